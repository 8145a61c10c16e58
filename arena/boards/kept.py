"""Precompute slow figures of a large tournament at the end of a run, so that its pages open at once."""

from __future__ import annotations

from contextlib import closing

from arena.results.cache import WORTH_KEEPING
from arena.results.ratings import Leaderboard
from arena.store import Store
from judges.types import Task


def keep_boards(location: str, board: Leaderboard) -> None:
    """Compute and cache the slow pages' figures; does nothing for a tournament with few games."""
    games = board.coverage.get(Task.PAIRWISE)
    if games is None or games.wanted < WORTH_KEEPING:
        return
    from arena.boards.compare import compare_board
    from arena.boards.queries import query_board
    from arena.results.agreement import keep_judges_alone

    with closing(Store.open(location)) as store:
        keep_judges_alone(store, board.tournament)
        compare_board(store, board.tournament)
        query_board(store, board.tournament)
