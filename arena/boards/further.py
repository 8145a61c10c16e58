"""The boards of the stages that bring their section along: each is in the module here that has the section's name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from arena.present.blocks import Board


def further_boards(results: Mapping[str, Any]) -> dict[str, Board]:
    """By section, the board of what ``arena.results.further`` read."""
    return {key: import_module(f"arena.boards.{key}").board(read) for key, read in results.items()}
