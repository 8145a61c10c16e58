"""The usual small tournament, judged in batches by the scripted server."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import judges.batches
from arena.config.schema import Config
from arena.store import Store
from arena.store.batches import open_batches
from tests.support.llm_server import LLMServer
from tests.support.tournaments import configured, write_data

ALL = 26
"""Judgments of the usual data: eight labels, and then twelve games and six grades."""
VENDORS = ("openai", "anthropic")
PRICE = {"input": 2, "output": 8, "cached_input": 1}


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a test end at once, and are looked for no longer than a moment."""
    monkeypatch.setattr(judges.batches, "_COLLECT_S", 0.05)
    monkeypatch.setattr(judges.batches, "_SEARCH_S", 0.5)
    monkeypatch.setattr(judges.batches, "_LEAST_S", 0.02)


def batched(folder: Path, server: LLMServer, vendor: str = "openai", **judge: Any) -> Config:
    url = server.openai_url if vendor == "openai" else server.anthropic_url
    write_data(folder)
    declared = {"provider": vendor, "mode": "batch", "price": PRICE, **judge}
    return configured(folder, url, judge=declared, ratings={"bootstrap": {"samples": 50}, "elo": {"tournaments": 5}})


def labels_only(folder: Path, server: LLMServer, **judge: Any) -> Config:
    return batched(folder, server, **judge).model_copy(update={"pairwise": None, "criteria": None})


def as_yaml(folder: Path, server: LLMServer, vendor: str = "openai", **judge: Any) -> Path:
    path = folder / "small.yaml"
    path.write_text(batched(folder, server, vendor, **judge).model_dump_json(exclude_defaults=True), encoding="utf-8")
    return path


def paid_once(server: LLMServer, number: int = ALL) -> bool:
    paid = Counter(server.batches.paid)
    return len(paid) == number and set(paid.values()) == {1}


def under_way(config: Config) -> list[int]:
    """How many requests each batch holds whose judgments are not in the store."""
    store = Store.open(config.store)
    found = [each.open for each in open_batches(store)]
    store.close()
    return found
