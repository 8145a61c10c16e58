"""For test suites: an assertion that a new agent is not worse than an old one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arena.boards.gate.board import GateBoard
    from ragleague.board import Board


def assert_not_worse(
    board: Board | str | Path,
    *,
    new: str,
    old: str,
    margin: float = 0.05,
    on: str | Sequence[str] = "pairwise",
) -> GateBoard:
    """Compare two agents on what is judged; nobody is asked. Gives the comparison back where it passes.

    Args:
        board: the results, or a tournament's YAML file or store.
        new: the agent that may replace the other.
        old: the other.
        margin: how much worse still passes, in share of games won or in units of the score.
        on: ``pairwise``, ``exam``, ``nuggets``, ``criteria``, a criterion, a measure such as ``nDCG@10``, or several.

    Raises:
        AssertionError: it is worse, or it is not shown that it is not; the message is Markdown.
        InputError: no such tournament, agent or score.
    """
    __tracebackhide__ = True
    if not hasattr(board, "compare"):
        import ragleague

        board = ragleague.open(board)
    found = board.compare(new, old, on=on, margin=margin)
    if not found.passed:
        raise AssertionError(f"\n{found.markdown()}")
    return found
