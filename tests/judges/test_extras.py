from __future__ import annotations

import sys
from importlib import metadata, util

import pytest

from judges.errors import how_to_install


def test_an_extra_is_installed_by_its_libraries_into_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert how_to_install("ray") == f"{sys.executable} -m pip install 'ray>=2.50'"
    assert all(f"'{library}>=" in how_to_install("local") for library in ("accelerate", "torch", "transformers"))
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    assert how_to_install("ray") == f"uv pip install --python {sys.executable} 'ray>=2.50'"


def test_every_extra_has_a_command() -> None:
    extras = metadata.metadata("ragleague").get_all("Provides-Extra") or []
    assert {"documents", "local", "postgres", "ray"} <= {*extras}
    assert all(">=" in how_to_install(extra) for extra in extras)
