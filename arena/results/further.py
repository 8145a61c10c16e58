"""Results of the stages in ``FURTHER``; each stage has a module here that is named like its section."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from arena.config.settings import StoredSettings
from arena.config.stages import FURTHER
from arena.store import Store


def further_results(store: Store, tournament: str, settings: StoredSettings, *, scored: bool = False) -> dict[str, Any]:
    """Results of the tournament's stages in ``FURTHER``, by section; ``scored`` skips stages without scores."""
    return {
        key: import_module(f"arena.results.{key}").results(store, tournament)
        for key, stage in FURTHER.items()
        if key in settings.further and (stage.scores or not scored)
    }
