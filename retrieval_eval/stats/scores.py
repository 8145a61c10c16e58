"""Scores of agents on queries, with means, intervals, bounds, and a test for agents with more missing judgments.

A judgment that failed or was never made is missing. It does not count as 0: a score is the mean of the existing
judgments, shown with the number of missing ones. If the missing judgments could change a conclusion, the score also has
bounds: its value if all missing judgments were the worst possible, and if all were the best.

Judgments may be missing because of one agent, for example if a filter refuses its answers. Fisher's exact test compares
each agent's share of missing judgments with the share of all other agents. Judgments of one query often fail together,
so both shares are counted as an effective number of independent judgments, by the design effect between queries or
conversations (the larger of the two; Korn and Graubard 1998, Survey Methodology 24): ten failures on one query count as
one. p-values are corrected for the number of agents and scores (Holm).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Final, Protocol

import numpy as np
import scipy
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from retrieval_eval.stats import Floats, Ints
from retrieval_eval.stats.bootstrap import ALONE, Clusters, mean_estimates, units_of, weighted_means
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.paired import holm

LEVEL: Final = 0.05
"""Significance level for p-values after Holm's correction."""
_ROUNDING: Final = 1e-7


class Judged(Protocol):
    """What judgments of agents on queries make, with the numbers of these judgments."""

    @property
    def agents(self) -> tuple[str, ...]: ...

    @property
    def queries(self) -> tuple[str, ...]: ...

    @property
    def judgments(self) -> Ints | None:
        """Numbers of needed, and of missing judgments, shape (2, agents, queries); ``None`` if not counted."""
        ...


def missing_of(judged: Judged) -> dict[str, tuple[int, int]]:
    """Number of each agent's missing judgments, and number of those that it needs; empty if they are not counted."""
    if judged.judgments is None:
        return {}
    wanted, missing = judged.judgments.sum(axis=2).tolist()
    return dict(zip(judged.agents, zip(missing, wanted, strict=True), strict=True))


class Scores(Struct, frozen=True, eq=False, dict=True):
    """One score of every agent on every query.

    Attributes:
        name: name of the score in comparisons, gates and calibrations.
        agents, queries: names of the rows and columns.
        values: each agent's score on each query, shape (agents, queries); NaN where an agent has no score.
        judgments: numbers of the needed judgments behind the values, and of those that failed or were never made, shape
            (2, agents, queries); ``None`` if they are not counted.
        ends: lower and upper bound of each value over all possible outcomes of the missing judgments, shape (2, agents,
            queries), NaN where no value is possible. ``None`` if nothing is missing.
        scale: lowest and highest possible value; ``None`` for 0 to 1, or for the range of the values if that is wider.
        clusters: conversation by query, for queries that are turns of a conversation.
        column: key of the score's column on the leaderboard; empty if it has no column.
        heading: heading of the score in tables for people; if empty, the name.
        lower: whether lower is better.
        ranks: whether the score by itself says which agent is better, so that it enters comparisons of rankings.
        conditional: whether each agent's mean is over queries of its own choice, such as those that it answered. Two
            agents then cannot be compared query by query, only by ``contributions``.
        repeats: the values of each repeat, of which ``values`` are the means, shape (repeats, agents, queries);
            ``None`` if all answers are the first. See ``retrieval_eval.stats.repeats``.
    """

    name: str
    agents: tuple[str, ...]
    queries: tuple[str, ...]
    values: Floats
    judgments: Ints | None = None
    ends: Floats | None = None
    scale: tuple[float, float] | None = None
    clusters: Clusters = field(default_factory=dict)
    column: str = ""
    heading: str = ""
    lower: bool = False
    ranks: bool = True
    conditional: bool = False
    repeats: Floats | None = None

    def contributions(self) -> Scores:
        """The contributions of the queries to each agent's mean: scores on all judged queries with the same mean.

        A query contributes m + (v - m) / share, with the mean m, the query's value v and the share of judged queries
        that have a value; a query without a value contributes m. A missing judgment may contribute anything.
        """
        assert self.judgments is not None
        wanted, missing = self.judgments
        known = (wanted > 0) & (missing == 0)
        share = self.seen().sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
        mean, rows = self.points()[:, np.newaxis], np.where(self.seen(), self.values, self.points()[:, np.newaxis])
        values = np.where(known, mean + (rows - mean) / np.where(share > 0, share, np.nan), np.nan)
        low, high = (float(end) for end in (np.nanmin(values, initial=0.0), np.nanmax(values, initial=1.0)))
        ends = np.array([np.where(missing > 0, end, values) for end in (low, high)])
        return replace(self, values=values, ends=ends, scale=(low, high), conditional=False, repeats=None)

    @cached_property
    def means(self) -> Mapping[str, Estimate]:
        """Each agent's mean over its queries, with a 95 % interval over queries or conversations."""
        estimates = mean_estimates(self.values, units_of(self.queries, self.clusters), self.scale)
        return dict(zip(self.agents, estimates, strict=True))

    @property
    def bounds(self) -> Floats:
        """Lowest and highest possible value of each score, shape (2, agents, queries)."""
        return np.array([self.values, self.values]) if self.ends is None else self.ends

    def mean_bounds(self, agent: str) -> tuple[float, float]:
        """The agent's mean if every missing judgment had the worst possible outcome, and the best."""
        rows = self.bounds[:, self.agents.index(agent)]
        low, high = weighted_means(rows, np.ones((1, len(self.queries))))[0].tolist()
        return low, high

    def missing(self, agent: str) -> tuple[int, int]:
        return missing_of(self).get(agent, (0, 0))

    def count(self, agent: str) -> int:
        return int(self.seen()[self.agents.index(agent)].sum()) if agent in self.agents else 0

    def points(self) -> Floats:
        means: Floats = self.drawn(np.ones((1, len(self.queries))))[0]
        return means

    def drawn(self, weights: Floats) -> Floats:
        """Each agent's weighted mean over queries for each row of weights, (samples, queries) to (samples, agents)."""
        return weighted_means(self.values, weights)

    def seen(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.values)

    def cells(self) -> dict[tuple[str, str], float]:
        """All existing values by (query, agent), in the order of the queries."""
        return {
            (self.queries[column], self.agents[row]): float(self.values[row, column])
            for column, row in np.argwhere(self.seen().T).tolist()
        }

    def among(self, queries: Collection[str]) -> Scores:
        columns = [index for index, name in enumerate(self.queries) if name in queries]
        tables = {name: getattr(self, name) for name in ("judgments", "ends", "repeats")}
        kept = {name: None if table is None else table[:, :, columns] for name, table in tables.items()}
        names = tuple(self.queries[index] for index in columns)
        return replace(self, queries=names, values=self.values[:, columns], **kept)


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
    """Make scores from ``values`` by (agent, query); ``wanted`` has the pairs whose value needs a judgment.

    A missing value has the ends of ``scale`` (by default 0 and 1) as its bounds.

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
    judgments = np.array([counts, missing])
    return Scores(name, agents, queries, table, judgments, ends, bounds, clusters, column, heading or name)


class MissingShare(Struct, frozen=True):
    """One agent's share of missing judgments for one score, compared with all other agents together.

    Attributes:
        missing, wanted: number of the agent's missing judgments, and of those that its score needs.
        others_missing, others_wanted: these two numbers for all other agents together.
        p: p-value of equal shares, with judgments clustered by query, corrected for all agents and scores.
        p_alone: p-value of equal shares if all judgments are independent, corrected in the same way.
    """

    score: str
    agent: str
    missing: int
    wanted: int
    others_missing: int
    others_wanted: int
    p: float
    p_alone: float

    @property
    def more(self) -> bool:
        return self.missing * self.others_wanted > self.others_missing * self.wanted

    @property
    def uneven(self) -> bool:
        """Whether the agent's share of missing judgments is significantly larger than that of the other agents."""
        return self.more and self.p < LEVEL

    @property
    def doubtful(self) -> bool:
        """Whether the share is significantly larger only without clustering: a few queries may explain it."""
        return self.more and self.p_alone < LEVEL <= self.p


def shares(scores: Mapping[str, Judged], clusters: Clusters = ALONE) -> tuple[MissingShare, ...]:
    """Compare each agent's share of missing judgments with that of the other agents, for each score by its name.

    Scores without missing judgments are left out.
    """
    agent_shares: list[MissingShare] = []
    for name, judged in scores.items():
        if judged.judgments is None or not judged.judgments[1].any() or len(judged.agents) < 2:
            continue
        unit = units_of(judged.queries, clusters)
        wanted, missing = (np.array([np.bincount(unit, row) for row in table]) for table in judged.judgments)
        for row, agent in enumerate(judged.agents):
            rest = np.arange(len(judged.agents)) != row
            here, there = ((missing[rows].sum(axis=0), wanted[rows].sum(axis=0)) for rows in ([row], rest))
            counts = [int(count.sum()) for count in (*here, *there)]
            if here[1].any() and there[1].any():
                effect = max(1.0, _design_effect(*here), _design_effect(*there))
                clustered = _fisher(*(round(count / effect) for count in counts))
                agent_shares.append(MissingShare(name, agent, *counts, clustered, _fisher(*counts)))  # type: ignore[call-arg]
    corrected = (holm(np.array([getattr(share, name) for share in agent_shares])).tolist() for name in ("p", "p_alone"))
    return tuple(replace(share, p=p, p_alone=alone) for share, p, alone in zip(agent_shares, *corrected, strict=True))


def _design_effect(missing: Floats, wanted: Floats) -> float:
    """Variance of the share of missing judgments between clusters, divided by that of independent judgments."""
    units, size, share = int((wanted > 0).sum()), wanted.sum(), missing.sum() / wanted.sum()
    spread = share * (1 - share)
    if not spread or units < 2:
        return 1.0
    return float(((missing - share * wanted) ** 2).sum() / size / spread * units / (units - 1))


def _fisher(missing: int, n: int, others_missing: int, m: int) -> float:
    """Two-sided p-value of Fisher's exact test of two shares, ``missing / n`` and ``others_missing / m``."""
    total = missing + others_missing
    first = np.arange(max(0, total - m), min(total, n) + 1)
    log = _log_choose(n, first) + _log_choose(m, total - first) - _log_choose(n + m, total)
    chances = np.exp(log - scipy.special.logsumexp(log))
    return min(1.0, float(chances[chances <= chances[missing - first[0]] * (1 + _ROUNDING)].sum()))


def _log_choose(n: int, k: Ints | int) -> Floats:
    chosen = np.asarray(k)
    logarithm: Floats = (
        scipy.special.gammaln(n + 1) - scipy.special.gammaln(chosen + 1) - scipy.special.gammaln(n - chosen + 1)
    )
    return logarithm


def over_the_known(share: Floats, least: Floats, most: Floats) -> Floats:
    """The share of covered items or supported sentences: ``least`` if it equals ``most``, else ``share``.

    The best of several judgments decides about an item or sentence, here called a part (does any passage answer a
    question, does any citation support a sentence). So a part with a missing judgment can be known, because another
    judgment is already the best possible. Such parts count in the bounds but not in the share, because they always have
    the best value: the more judgments fail, the larger their proportion of the known parts. If 30 % of the grades of
    four passages fail, a cover of 0.30 would become 0.51, and if 60 % fail, 0.85; over the parts without missing
    judgments it stays 0.30. So a single share may be outside its bounds. Clipping it to the bounds would bias the mean
    again, to 0.36.

    Args:
        share: share over the parts without missing judgments; NaN if there are none.
        least: lowest possible share over all parts.
        most: highest possible share over all parts.
    """
    return np.where(least == most, least, share)
