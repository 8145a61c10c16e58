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
    by: str = "",
) -> GateBoard:
    """Fail unless a new agent is shown to be not worse than an old one; asks no judge, and returns the comparison.

    Args:
        board: the results, or the path of a tournament's YAML file or store.
        new: the agent that may replace the old one.
        old: the agent in use.
        margin: how much worse the new agent may be, as a share of games won or in units of the score.
        on: ``pairwise``, ``exam``, ``nuggets``, ``criteria``, a criterion, a measure such as ``nDCG@10``, or a list of
            these.
        by: a column of the queries: the new agent must not be worse on any of its groups either.

    Raises:
        AssertionError: the new agent is worse, or there are too few results to decide; the message is Markdown.
        InputError: there is no such tournament, agent or score.

    Example:
        >>> from ragleague.testing import assert_not_worse
        >>> assert_not_worse("demo/rag-handbook.db", new="rag-hybrid", old="weak-baseline").passed
        True
    """
    __tracebackhide__ = True
    if not hasattr(board, "compare"):
        import ragleague

        board = ragleague.open(board)
    gate = board.compare(new, old, on=on, margin=margin, by=by)
    if not gate.passed:
        raise AssertionError(f"\n{gate.markdown()}")
    return gate
