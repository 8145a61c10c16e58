"""The leaderboard as commands write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from arena.boards.leaderboard import TERMINAL, TournamentBoard
from arena.cli.show import show

if TYPE_CHECKING:
    from arena.calibration.comparison import Comparison
    from arena.leaderboard import Leaderboard


def print_leaderboard(board: Leaderboard, form: str, comparisons: Sequence[Comparison] = ()) -> None:
    """Write a leaderboard to standard output in one of the formats of ``leaderboard --format``.

    Args:
        board: the leaderboard.
        form: of the output.
        comparisons: its judges held against people, where people judged games.
    """
    lacking = board.shortfall
    refusal = f"no ratings: {lacking.message}; {lacking.remedy}" if lacking is not None and board.withheld else ""
    show(TournamentBoard(board, comparisons), form, said=refusal, sections=TERMINAL)
