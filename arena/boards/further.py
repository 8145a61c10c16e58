"""Boards of optional stages; each board is in the module here that is named like the stage's section."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from arena.present.blocks import Board


def further_boards(results: Mapping[str, Any]) -> dict[str, Board]:
    """Boards by section, from the results that ``arena.results.further`` read."""
    return {key: import_module(f"arena.boards.{key}").board(result) for key, result in results.items()}
