"""Groups of queries on which another agent beats the leader, although the leader wins on all queries together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.data.dataset import groupings
from arena.ratings.games import WinAndTie
from arena.results.games import GameTable
from judges.types import Query
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import FEW_QUERIES, units_of
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.paired import holm_levels, symmetric_interval


class Reversal(Struct, frozen=True):
    """A group of queries on which ``other`` beats the leader.

    Attributes:
        column, value: the group has the queries with this value in this column.
        share: the leader's share of the points against ``other`` on the group; ``n`` is the number of queries.
        overall: the leader's share of the points against ``other`` on all queries.
    """

    column: str
    value: str
    other: str
    share: Estimate
    overall: float


class Reversals(Struct, frozen=True):
    """What the groups of queries say about the leader.

    Attributes:
        columns: names of the columns that group the queries.
        groups: number of groups that are large enough to be tested against some agent.
        few: names (``COLUMN=VALUE``) of the groups with too few queries to be tested.
        reversed: the reversals, the largest first. Together they are wrong with a probability of at most 5 %.
    """

    leader: str
    columns: tuple[str, ...]
    groups: int
    few: tuple[str, ...]
    reversed: tuple[Reversal, ...]


def reversals(
    games: GameTable, queries: Mapping[str, Query], leader: str, win_and_tie: WinAndTie, level: float = 0.95
) -> Reversals | None:
    """Test each group of queries for an agent that beats the leader there, against the leader's share on all queries.

    All games of two agents on one query, in any order and by any judge, are one value, and all turns of a conversation
    are one. All tests, of every agent on every group of every column, share the error probability (Holm).

    Returns:
        ``None`` if no column groups the queries, or there are too few for two groups.
    """
    columns = groupings(queries.values())
    columns.pop("conversation", None)  # its turns are one unit, so no group of it can be tested
    if not columns or leader not in games.agents or len(games.queries) < 2 * FEW_QUERIES:
        return None
    shares = _shares(games, leader, games.scores(win_and_tie))
    unit = units_of(games.queries, games.clusters)
    tests: list[tuple[str, str, int, Floats, float]] = []
    overall = [float(figures.mean()) if figures.size else 0.0 for figures in (_by_unit(row, unit) for row in shares)]
    few: list[str] = []
    tested = 0
    for column, values in columns.items():
        value_of = [queries[name].metadata.get(column) if name in queries else None for name in games.queries]
        for value in values:
            member = np.array([query_value == value for query_value in value_of], np.bool_)
            by_agent = {other: _by_unit(shares[other], unit, member) for other in range(len(games.agents))}
            sizes = [figures.size for figures in by_agent.values()]
            tested += max(sizes) >= FEW_QUERIES
            if max(sizes) < FEW_QUERIES:
                few.append(f"{column}={value}")
            tests += [
                (column, value, other, figures, overall[other])
                for other, figures in by_agent.items()
                if figures.size >= FEW_QUERIES
            ]

    def share(test: int, tested_at: float) -> Estimate:
        figures = tests[test][3]
        return Estimate(float(figures.mean()), *symmetric_interval(figures, tested_at), figures.size)

    def is_apart(test: int, tested_at: float) -> bool:
        tested_share = share(test, tested_at)
        return (tested_share.high or 0) < 0.5 or (tested_share.low or 0) > 0.5

    levels = holm_levels(len(tests), is_apart, level)
    reversed_groups = [
        Reversal(column, value, games.agents[other], share(number, levels[number]), on_all)
        for number, (column, value, other, figures, on_all) in enumerate(tests)
        if figures.mean() < 0.5 <= on_all and is_apart(number, levels[number])
    ]
    reversed_groups.sort(key=lambda reversal: reversal.share.value or 0)
    return Reversals(leader, tuple(columns), tested, tuple(few), tuple(reversed_groups))


def _shares(games: GameTable, leader: str, scores: Floats) -> Floats:
    """The leader's share of the points against each agent on each query, NaN without a game; (agents, queries)."""
    number = games.agents.index(leader)
    rows = np.flatnonzero(games.of_agent(leader) & games.played)
    leads = games.a[rows] == number
    other = np.where(leads, games.b[rows], games.a[rows]).astype(np.int64)
    cells, size = other * len(games.queries) + games.query[rows], len(games.agents) * len(games.queries)
    won = np.where(leads, scores[rows], 1 - scores[rows])
    with np.errstate(invalid="ignore"):
        shares = np.bincount(cells, won, size) / np.bincount(cells, minlength=size)
    return np.asarray(shares.reshape(len(games.agents), -1), np.float64)


def _by_unit(figures: Floats, unit: NDArray[np.int64], member: NDArray[np.bool_] | None = None) -> Floats:
    """Mean of the figures over the queries of each unit that has one; ``member`` selects queries."""
    seen = ~np.isnan(figures) if member is None else ~np.isnan(figures) & member
    counts = np.bincount(unit[seen], minlength=1)
    return np.asarray(
        (np.bincount(unit[seen], figures[seen], counts.size))[counts > 0] / counts[counts > 0], np.float64
    )
