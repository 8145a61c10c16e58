"""The leader of a tournament on each group of queries: its share of the points, and who beats it there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.data.dataset import groupings
from arena.ratings.games import WinAndTie
from arena.results.games import GameTable
from judges.errors import InputError
from judges.sections import nearest
from judges.types import Query
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import FEW_QUERIES, units_of
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.groups import interaction, shrunk
from retrieval_eval.stats.paired import holm_levels, symmetric_interval


class GroupShare(Struct, frozen=True):
    """The leader against one other agent on one group of queries.

    Attributes:
        column, value: the group has the queries with this value in this column.
        share: the leader's share of the points against ``other`` on the group; ``n`` is the number of queries. A group
            with too few queries to be tested has no interval.
        shrunk: the share shrunk towards that of all groups of the column.
        overall: the leader's share of the points against ``other`` on all queries.
    """

    column: str
    value: str
    other: str
    share: Estimate
    shrunk: float
    overall: float

    @property
    def name(self) -> str:
        return f"{self.column}={self.value}"

    @property
    def few(self) -> bool:
        return self.share.low is None

    @property
    def reversed(self) -> bool:
        """Whether the other agent beats the leader on the group by more than chance, but not on all queries."""
        return (self.share.high or 1) < 0.5 <= self.overall


class LeaderByGroup(Struct, frozen=True):
    """What the groups of queries say about the leader.

    Attributes:
        columns: names of the columns that group the queries.
        shares: by group and other agent, the lowest shrunken share first, groups of few queries last. Together the
            intervals exclude one half by chance with a probability of at most 5 %.
        interaction: if one column was named, the p-value of the hypothesis that the leader's share of the points is the
            same in all its groups.
    """

    leader: str
    columns: tuple[str, ...]
    shares: tuple[GroupShare, ...]
    interaction: float | None = None

    @property
    def tested(self) -> set[str]:
        """Names of the groups with enough queries against some agent."""
        return {share.name for share in self.shares if not share.few}

    @property
    def few(self) -> list[str]:
        """Names of the groups with too few queries to be tested."""
        return sorted({share.name for share in self.shares} - self.tested)

    @property
    def reversed(self) -> list[GroupShare]:
        """The groups on which another agent beats the leader, the lowest share first."""
        return sorted((share for share in self.shares if share.reversed), key=lambda share: share.share.value or 0)


def require_column(queries: Mapping[str, Query], column: str) -> dict[str, tuple[str, ...]]:
    """The ids of each group's queries, by the value of a column.

    Raises:
        InputError: no column of this name divides the queries into groups.
    """
    groups = groupings(queries.values())
    if column not in groups:
        if any(column in query.metadata for query in queries.values()):
            why = f"{column!r} does not group the queries: it has one value, or too many"
        else:
            why = f"no column {column!r} of the queries{nearest(column, groups) if groups else ' makes groups'}"
        raise InputError(f"--by: {why}")
    return groups[column]


def leader_by_group(
    games: GameTable,
    queries: Mapping[str, Query],
    leader: str,
    win_and_tie: WinAndTie,
    *,
    by: str = "",
    level: float = 0.95,
) -> LeaderByGroup | None:
    """Compare the leader with every other agent on each group of queries, by all columns or by the one named ``by``.

    All games of two agents on one query, in any order and by any judge, are one value, and all turns of a conversation
    are one. All tests, of every agent on every group of every column, share the error probability (Holm).

    Returns:
        ``None`` if no column groups the queries, or there are too few for two groups.
    """
    columns = {by: require_column(queries, by)} if by else groupings(queries.values())
    if not by:
        columns.pop("conversation", None)  # its turns are one unit, so no group of it can be tested
    if not columns or leader not in games.agents or (len(games.queries) < 2 * FEW_QUERIES and not by):
        return None
    shares = shares_against(games, leader, games.scores(win_and_tie))
    unit, place = units_of(games.queries, games.clusters), {name: row for row, name in enumerate(games.queries)}
    cells: list[tuple[str, str, int, Floats, float]] = []
    for column, groups in columns.items():
        members = {
            value: np.isin(np.arange(len(place)), [place[name] for name in ids if name in place])
            for value, ids in groups.items()
        }
        for other in range(len(games.agents)):
            parts = [_by_unit(shares[other], unit, member) for member in members.values()]
            figures, number = _together(parts)
            if figures.size:
                means = shrunk(figures, number)
                cells += [
                    (column, value, other, part, mean)
                    for value, part, mean in zip(groups, parts, means.tolist(), strict=False)
                    if part.size
                ]
    tested = [number for number, cell in enumerate(cells) if cell[3].size >= FEW_QUERIES]

    def ends(test: int, tested_at: float) -> tuple[float, float]:
        return symmetric_interval(cells[tested[test]][3], tested_at)

    def is_apart(test: int, tested_at: float) -> bool:
        low, high = ends(test, tested_at)
        return high < 0.5 or low > 0.5

    levels = holm_levels(len(tested), is_apart, level)
    intervals: dict[int, tuple[float | None, float | None]] = {
        tested[test]: ends(test, tested_at) for test, tested_at in enumerate(levels)
    }
    overall = [
        float(figures.mean()) if figures.size else math.nan for figures in (_by_unit(row, unit) for row in shares)
    ]
    rows = [
        GroupShare(
            column,
            value,
            games.agents[other],
            Estimate(float(figures.mean()), *intervals.get(number, (None, None)), figures.size),
            mean,
            overall[other],
        )
        for number, (column, value, other, figures, mean) in enumerate(cells)
    ]
    rows.sort(key=lambda row: (row.few, row.shrunk))
    p = None
    if by:
        with np.errstate(invalid="ignore"):
            against_all = np.nansum(shares, axis=0) / (~np.isnan(shares)).sum(axis=0)
        p = interaction(*_together([_by_unit(against_all, unit, member) for member in members.values()]))
    return LeaderByGroup(leader, tuple(columns), tuple(rows), p)


def _together(parts: Sequence[Floats]) -> tuple[Floats, NDArray[np.int64]]:
    """The figures of all groups in one array, and the number of each figure's group."""
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [part.size for part in parts])


def shares_against(games: GameTable, leader: str, scores: Floats) -> Floats:
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
