"""What takes long to compute of a large tournament, kept after a run so that its pages open at once."""

from __future__ import annotations

from contextlib import closing

from arena.results.cache import WORTH_KEEPING, cached_games
from arena.store import Store


def keep_boards(location: str, tournament: str) -> None:
    """Compute and keep the figures of the pages that are slow, where there are so many games."""
    with closing(Store.open(location)) as store:
        if len(cached_games(store, tournament)) >= WORTH_KEEPING:
            from arena.boards.compare import compare_board
            from arena.boards.queries import query_board
            from arena.results.agreement import keep_judges_alone

            keep_judges_alone(store, tournament)
            compare_board(store, tournament)
            query_board(store, tournament)
