"""The games of a tournament from its store by the million: what the database has grouped, put together again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arena.games.read import WantedGames, said_by
from arena.games.table import FIRST, NOT_WANTED, GameTable
from arena.ratings.games import Ints
from arena.samples import Combine, combine
from arena.store import IDENTICAL, Result, Store, Wanted
from arena.store.grouped import grouped_verdicts
from judges.types import JudgeFailure

_Games: TypeAlias = tuple[Ints, NDArray[np.int8], NDArray[np.bool_]]


class _Sample(NamedTuple):
    """One sample's result, the same on all these queries."""

    number: int
    result: Result | None
    queries: Ints


class _Order(NamedTuple):
    """What one order of a game says from the first agent's side, the same on all these queries."""

    second_shown_first: bool
    said: int
    identical: bool
    queries: Ints


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


def read_grouped(store: Store, tournament: str, how: Mapping[str, Combine]) -> WantedGames:
    """All games of a tournament, by judge and pair; without how far the samples of a judge agree.

    Args:
        store: where the judgments are.
        tournament: its name.
        how: by judge, how several samples of a verdict become one.

    Raises:
        InputError: no such tournament.
    """
    names = _Names()
    asked: defaultdict[Wanted, list[_Sample]] = defaultdict(list)
    for want, result, queries in grouped_verdicts(store, tournament):
        asked[replace(want, sample=0)].append(_Sample(want.sample, result, names.column(queries)))
    played: defaultdict[tuple[str, str, str], list[_Order]] = defaultdict(list)
    causes: Counter[str] = Counter()
    for want, samples in asked.items():
        first, second = sorted((want.item, want.other))
        for result, numbers in _combined(samples, how.get(want.judge, "majority")):
            played[want.judge, first, second].append(_order(want, result, numbers))
            if isinstance(result, JudgeFailure):
                causes[result.cause] += numbers.size
    return WantedGames(_table(played, names), causes, {})


def _combined(samples: Sequence[_Sample], how: Combine) -> Iterator[tuple[Result | None, Ints]]:
    """Results and the queries they are of; games whose samples say the same in the same places together."""
    if not any(sample.number for sample in samples):
        yield from ((sample.result, sample.queries) for sample in samples)
        return
    queries, place = np.unique(np.concatenate([sample.queries for sample in samples]), return_inverse=True)
    said = np.full((queries.size, 1 + max(sample.number for sample in samples)), -1, np.int32)
    ends = np.cumsum([sample.queries.size for sample in samples])
    for code, (sample, rows) in enumerate(zip(samples, np.split(place, ends[:-1]), strict=True)):
        said[rows, sample.number] = code
    alike, which, count = np.unique(said, axis=0, return_inverse=True, return_counts=True)
    rows_of_each = np.split(np.argsort(which.ravel(), kind="stable"), np.cumsum(count)[:-1])
    for codes, rows in zip(alike.tolist(), rows_of_each, strict=True):
        yield combine([samples[code].result for code in codes if code >= 0], how), queries[rows]


def _order(want: Wanted, result: Result | None, queries: Ints) -> _Order:
    said, second_first = said_by(result), (want.order == "ba") != (want.item > want.other)
    identical = result is not None and result.judgment_id == IDENTICAL
    return _Order(second_first, -said if second_first and said <= FIRST else said, identical, queries)


def _table(played: Mapping[tuple[str, str, str], Sequence[_Order]], names: _Names) -> GameTable:
    judges = tuple(sorted({judge for judge, _, _ in played}))
    agents = tuple(sorted({agent for _, *pair in played for agent in pair}))
    games = [_games(orders) for orders in played.values()] or [_games(())]
    sizes = [queries.size for queries, _, _ in games]
    queries, said, identical = (np.concatenate(column) for column in zip(*games, strict=True))

    def column(of: tuple[str, ...], part: int) -> Ints:
        return np.repeat(np.array([of.index(key[part]) for key in played], np.int32), sizes if played else [])

    return GameTable(
        agents=agents,
        queries=tuple(sorted(names)),
        judges=judges,
        a=column(agents, 1),
        b=column(agents, 2),
        query=names.places()[queries],
        judge=column(judges, 0),
        said=said,
        identical=identical,
    )


def _games(orders: Sequence[_Order]) -> _Games:
    """Both orders of each query together: queries, what each order says, whether the answers are the same."""
    none = np.zeros(0, np.int32)
    queries, place = np.unique(np.concatenate([none, *(order.queries for order in orders)]), return_inverse=True)
    said = np.full((queries.size, 2), NOT_WANTED, np.int8)
    identical = np.zeros(queries.size, np.bool_)
    ends = np.cumsum([order.queries.size for order in orders])
    for order, rows in zip(orders, np.split(place, ends[:-1]), strict=False):
        said[rows, int(order.second_shown_first)] = order.said
        identical[rows] |= order.identical
    return queries, said, identical
