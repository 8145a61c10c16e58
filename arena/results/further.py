"""The results of the stages that bring their section along: each is in the module here that has the section's name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from arena.config.stages import FURTHER
from arena.store import Store


def further_results(
    store: Store, tournament: str, settings: Mapping[str, Any], *, scored: bool = False
) -> dict[str, Any]:
    """By section, what these stages have come to, where the tournament has them; ``scored``: only those with scores."""
    return {
        key: import_module(f"arena.results.{key}").results(store, tournament)
        for key, stage in FURTHER.items()
        if settings.get(key) and (stage.scores or not scored)
    }
