"""The page on synthetic queries lists every key of the section, with its default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import BaseModel

from arena.synth.section import SynthSection
from tests.conftest import ROOT


def keys(model: type[BaseModel], values: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from keys(inner, values[name], f"{path}{name}.")
        else:
            yield f"{path}{name}", values[name]


def test_the_page_has_every_key_with_its_default() -> None:
    page = (ROOT / "docs/synthetic-queries.md").read_text(encoding="utf-8")
    page = page.partition("## Keys of `synth`")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| `([a-z_.]+)` \| ([^|]*) \|", page, flags=re.MULTILINE))
    needed = {"documents": ["d"], "models": ["m"], "out": "q.csv"}
    real = dict(keys(SynthSection, SynthSection.model_validate(needed).model_dump(mode="json")))
    for key, value in real.items():
        said = told.pop(key).strip()
        if key in needed:
            assert said == "required", key
        else:
            assert yaml.safe_load(said.strip("`")) == value, key
    assert not told
