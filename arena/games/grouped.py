"""The games of a tournament from its store by the million: numbered as they come, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from arena.games.table import FAILED, FIRST, NOT_WANTED, SECOND, TIE, WAITING, GameTable
from arena.ratings.games import Ints
from arena.store import Store
from arena.store.grouped import grouped_games

_LACKING: Final = (FAILED, WAITING, NOT_WANTED)
_SAID: Final = np.array([[FIRST, TIE, SECOND, *_LACKING], [SECOND, TIE, FIRST, *_LACKING]], np.int8)
"""By the order shown, what the numbers of the store say from the first agent's side."""


class _Names(dict[str, int]):
    """Numbers names as they come."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]

    def column(self, names: Iterable[str]) -> Ints:
        """The numbers of many names."""
        return np.fromiter(map(self.__getitem__, names), np.int32)

    def places(self) -> Ints:
        """By number, the place of each name among all of them sorted."""
        places = np.empty(len(self), np.int32)
        places[[self[name] for name in sorted(self)]] = np.arange(len(self))
        return places


def read_grouped(store: Store, tournament: str) -> GameTable:
    """All games of a tournament whose judges are asked once, in the order in which the database has them.

    Raises:
        InputError: no such tournament.
    """
    judges, queries, agents = _Names(), _Names(), _Names()
    numbers: list[NDArray[Any]] = [np.zeros((4, 0), np.int32)]
    figures: list[NDArray[Any]] = [np.zeros((3, 0), np.int8)]
    for part in grouped_games(store, tournament):
        judge, query, item, other, *known = zip(*part, strict=True)
        columns = ((judges, judge), (queries, query), (agents, item), (agents, other))
        numbers.append(np.stack([names.column(column) for names, column in columns]))
        figures.append(np.array(known, np.int8))
    codes, (forward, backward, identical) = np.concatenate(numbers, axis=1), np.concatenate(figures, axis=1)
    first, second = (agents.places()[column] for column in codes[2:])
    said = np.stack([_SAID[0, forward], _SAID[1, backward]], axis=1)
    turned = first > second
    said[turned] = np.where(said[turned] <= FIRST, -said[turned], said[turned])[:, ::-1]
    return GameTable(
        agents=tuple(sorted(agents)),
        queries=tuple(sorted(queries)),
        judges=tuple(sorted(judges)),
        a=np.minimum(first, second),
        b=np.maximum(first, second),
        query=queries.places()[codes[1]],
        judge=judges.places()[codes[0]],
        said=said,
        identical=identical.astype(np.bool_),
    )
