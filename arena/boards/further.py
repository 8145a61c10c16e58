"""Boards of the stages that define their own section."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from arena.boards.scores import ScoreBoard
from arena.config.stages import further_stages
from arena.present.blocks import Board
from arena.results.further import StageResults


def further_boards(results: Mapping[str, StageResults]) -> dict[str, Board]:
    """Boards by section, from the results that ``arena.results.further`` read."""
    boards: dict[str, Board] = {}
    for key, result in results.items():
        stage = further_stages()[key]
        own = import_module(stage.board).board if stage.board else None
        boards[key] = ScoreBoard(key, result.scores, stage.words) if own is None else own(result)
    return boards
