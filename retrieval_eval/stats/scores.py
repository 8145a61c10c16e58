"""Scores of agents on queries, with means, intervals, missing judgments and bounds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import ALONE, Clusters, units_of, weighted_means
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.means import mean_estimates
from retrieval_eval.stats.missing import Gaps


class Scores(Struct, frozen=True, eq=False, dict=True):
    """One score of every agent on every query.

    Attributes:
        name: name of the score in comparisons, gates and calibrations.
        agents, queries: names of the rows and columns.
        values: each agent's score on each query, shape (agents, queries); NaN where an agent has no score.
        gaps: numbers of needed and missing judgments behind the values; ``None`` if they are not counted.
        ends: lower and upper bound of each value over all possible outcomes of the missing judgments, shape (2, agents,
            queries), NaN where no value is possible. ``None`` if nothing is missing.
        scale: lowest and highest possible value; ``None`` for 0 to 1, or for the range of the values if that is wider.
        clusters: the conversation of each query that belongs to one.
        column: key of the score's column on the leaderboard; empty if it has no column.
        heading: heading of the score in tables for people; if empty, the name.
    """

    name: str
    agents: tuple[str, ...]
    queries: tuple[str, ...]
    values: Floats
    gaps: Gaps | None = None
    ends: Floats | None = None
    scale: tuple[float, float] | None = None
    clusters: Clusters = field(default_factory=dict)
    column: str = ""
    heading: str = ""

    @cached_property
    def means(self) -> Mapping[str, Estimate]:
        """Each agent's mean over its queries, with a 95 % interval over queries or conversations."""
        estimates = mean_estimates(self.values, units_of(self.queries, self.clusters), self.scale)
        return dict(zip(self.agents, estimates, strict=True))

    @property
    def bounds(self) -> Floats:
        """Lower and upper bounds of the values, equal to the values if none is missing, shape (2, agents, queries)."""
        return np.array([self.values, self.values]) if self.ends is None else self.ends

    def lowest(self, agent: str) -> float:
        """Lower bound of the agent's mean over all possible outcomes of the missing judgments."""
        return self._mean_bound(0, agent)

    def highest(self, agent: str) -> float:
        """Upper bound of the agent's mean over all possible outcomes of the missing judgments."""
        return self._mean_bound(1, agent)

    def _mean_bound(self, end: int, agent: str) -> float:
        row = self.bounds[end, self.agents.index(agent)]
        return float(weighted_means(row[np.newaxis], np.ones((1, row.size)))[0, 0])

    def missing(self, agent: str) -> tuple[int, int]:
        """Number of the agent's missing judgments, and the number that its score needs."""
        return (0, 0) if self.gaps is None else self.gaps.of(agent)

    def count(self, agent: str) -> int:
        """Number of queries on which the agent has a value."""
        return int(self.seen()[self.agents.index(agent)].sum()) if agent in self.agents else 0

    def points(self) -> Floats:
        """Each agent's mean, shape (agents,)."""
        means: Floats = self.drawn(np.ones((1, len(self.queries))))[0]
        return means

    def drawn(self, weights: Floats) -> Floats:
        """Each agent's weighted mean for each row of query weights, shape (samples, queries) to (samples, agents)."""
        return weighted_means(self.values, weights)

    def seen(self) -> NDArray[np.bool_]:
        """Whether the agent has a value on the query, shape (agents, queries)."""
        return ~np.isnan(self.values)

    def cells(self) -> dict[tuple[str, str], float]:
        """All existing values by (query, agent), in the order of the queries."""
        return {
            (self.queries[column], self.agents[row]): float(self.values[row, column])
            for column, row in np.argwhere(self.seen().T).tolist()
        }

    def among(self, queries: Collection[str]) -> Scores:
        """Restrict the scores to these queries."""
        columns = [index for index, name in enumerate(self.queries) if name in queries]
        names, gaps = tuple(self.queries[index] for index in columns), self.gaps
        if gaps is not None:
            gaps = replace(gaps, queries=names, wanted=gaps.wanted[:, columns], missing=gaps.missing[:, columns])
        ends = None if self.ends is None else self.ends[:, :, columns]
        return replace(self, queries=names, values=self.values[:, columns], gaps=gaps, ends=ends)


def scores_of(
    name: str,
    values: Mapping[tuple[str, str], float],
    wanted: Collection[tuple[str, str]] = (),
    *,
    scale: tuple[float, float] | None = None,
    clusters: Clusters = ALONE,
    column: str = "",
    heading: str = "",
) -> Scores:
    """Make scores that need one judgment per agent and query; the ends of ``scale`` are bounds of missing values.

    >>> tone = scores_of("tone", {("a", "q1"): 1.0, ("a", "q2"): 0.0}, [("a", "q1"), ("a", "q2"), ("a", "q3")])
    >>> tone.means["a"].value, tone.missing("a")
    (0.5, (1, 3))
    """
    keys = {*values, *wanted}
    agents, queries = (tuple(sorted({key[position] for key in keys})) for position in (0, 1))
    cells = [[(agent, query_id) for query_id in queries] for agent in agents]
    shape = len(agents), len(queries)
    table = np.array([[values.get(key, np.nan) for key in row] for row in cells], np.float64).reshape(shape)
    counts = np.array([[int(key in keys) for key in row] for row in cells], np.int64).reshape(shape)
    missing = np.where(np.isnan(table), counts, 0)
    bounds = None if scale is None else (float(scale[0]), float(scale[1]))
    ends = np.array([np.where(missing > 0, end, table) for end in bounds or (0, 1)])
    gaps = Gaps(agents, queries, counts, missing)
    return Scores(name, agents, queries, table, gaps, ends, bounds, clusters, column, heading or name)
