"""What was computed of a tournament, kept in its store until something is judged or begun anew."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from arena.boards.frozen import read, written
from arena.boards.results import Leaderboard, leaderboard, read_verified
from arena.games.table import GameTable
from arena.store import Store
from arena.store.figures import Figures
from judges.errors import StoreError

Value = TypeVar("Value")

FIGURES: Final = 1
"""The version of the figures. Whoever changes how one is computed raises it, and the stores compute theirs anew; the
tests of this module fail until that is done."""

_BOARD, _GAMES = "leaderboard", "games"


class Cache:
    """The kept values of one tournament; open it before reading what they are made of.

    Rows of the store hold them. Whatever changes what they are made of takes them away in the same transaction, and
    nothing is put there that was made before such a change.
    """

    def __init__(self, store: Store, tournament: str) -> None:
        self._figures = Figures(store, tournament, f"figures {FIGURES}")
        self._seen, _ = store.judged(tournament)

    def get(self, kind: str) -> Any | None:
        """The value of this kind; ``None`` where none is kept, or not as it is written now."""
        content = self._figures.get(kind)
        with suppress(ValueError):
            return None if content is None else read(content)
        return None

    def keep(self, values: Mapping[str, Any]) -> None:
        """Keep values by kind, where the store can be written and is as it was."""
        with suppress(StoreError):
            self._figures.keep({kind: written(own) for kind, own in values.items()}, seen=self._seen)

    def made(self, kind: str, make: Callable[[], Value], made_of: bytes = b"") -> Value:
        """The value of this kind if it was made of the same; else it is made, and kept."""
        digest, value = hashlib.sha256(made_of).hexdigest(), self.get(kind)
        if not isinstance(value, tuple) or value[0] != digest:
            value = digest, make()
            self.keep({kind: value})
        made: Value = value[1]
        return made


def kept_leaderboard(store: Store, tournament: str) -> Leaderboard:
    """The same as ``leaderboard``, from what is kept in the store if that is fresh; else it is made and kept.

    A store that cannot be written keeps nothing, and each reader makes its own.
    """
    cache = Cache(store, tournament)
    board = cache.get(_BOARD)
    if not isinstance(board, Leaderboard):
        read_now = read_verified(store, tournament)
        board = leaderboard(store, tournament, read=read_now)
        cache.keep({_BOARD: board, _GAMES: read_now[1].table})
    return board


def kept_games(store: Store, tournament: str) -> GameTable:
    """All games of a tournament, from what is kept with its leaderboard if that is fresh."""
    games = Cache(store, tournament).get(_GAMES)
    return games if isinstance(games, GameTable) else read_verified(store, tournament)[1].table
