"""Which agents are better than which: rank intervals, paired tests, and groups that cannot be told apart.

All claims about order rest on one set of intervals of differences, wide enough to hold for all pairs of agents at once
(Mogstad, Romano, Shaikh and Wilhelm 2024, Review of Economic Studies 91, "Inference for Ranks", section 3): where a
rank interval or a group says that one agent is better than another, so does every other place that mentions the two.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.bootstrap import Bootstrap
from arena.ratings.bradley_terry import BradleyTerry, sandwich
from arena.ratings.games import NO_SPREAD, Games
from arena.ratings.results import PairDifference, fewest_queries
from retrieval_eval.stats.arrays import Floats

_RESOLUTION = 1e-6
"""Ratings closer than this many points are equal: agents with the same record differ by rounding alone."""

_KNOWN = 1e9
"""Degrees of freedom of a spread that is known."""

_LARGEST = 30.0
"""Beyond so many standard errors the normal tail is 0 in floating point."""

_POWER = 0.8
"""Chance that the number of queries said to be needed will indeed separate two agents."""

_MOST_QUERIES = 1_000_000
"""Two agents that would need more than this are as good as equal, and the number would be noise."""


class JointDifferences(Struct, frozen=True, eq=False):
    """Intervals of all differences between two agents, of which all hold the truth at once at the given level.

    Attributes:
        difference: rating of the row agent minus rating of the column agent, in points, shape (agents, agents).
        se: standard errors downwards: how far the difference may in truth be smaller, same shape.
        half: how far the intervals reach below the differences, same shape; (j, i) is how far above (i, j) reaches.
        units: number of independent queries (or games) on which both have games, same shape.
        level: probability that no interval misses.
        p: of no difference, corrected for all pairs by these very intervals: 1 - level where an interval just leaves
            out 0; NaN where there are too few units. Same shape.
    """

    difference: Floats
    se: Floats
    half: Floats
    units: NDArray[np.int64]
    level: float
    p: Floats

    @property
    def different(self) -> NDArray[np.bool_]:
        """Pairs whose interval leaves out 0, shape (agents, agents)."""
        above = self.difference > np.maximum(self.half, _RESOLUTION)
        return np.asarray(above | above.T, np.bool_)


def competition_ranks(ratings: Floats) -> NDArray[np.int64]:
    """1 + the number of agents rated strictly higher, along the last axis; equal ratings share a rank."""
    steps = np.round(np.atleast_2d(ratings) / _RESOLUTION)
    ordered = np.sort(-steps, axis=-1)
    ranks = np.array([np.searchsorted(row, -own, side="left") + 1 for row, own in zip(ordered, steps, strict=True)])
    return ranks.reshape(np.shape(ratings)).astype(np.int64)


def joint_differences(
    ratings: Floats,
    sample_sets: tuple[Floats, ...],
    units: int | NDArray[np.int64],
    level: float = 0.95,
    *,
    fewest: int | None = None,
) -> JointDifferences:
    """Intervals of all differences from the largest studentised difference over all pairs in each sample.

    How far samples fall short of a difference and how far they exceed it are measured apart: an agent that loses nearly
    always might be much weaker still, which is no reason to doubt that it is weaker. Like percentiles, and unlike one
    standard deviation for both sides, this gives the same answer on any monotone scale, to first order.

    Resamples of few queries vary too little, by (n - 1) / n, and have normal tails. Both are put right: by that factor,
    and by reading the quantile off Student's t with n - 1 degrees of freedom. Of fewer queries than ``fewest_queries``
    that is not enough: then every interval is as wide as it takes to hold 0.

    Args:
        ratings: point estimate, shape (agents,).
        sample_sets: ratings of resampled queries, and where these cannot show all, of draws from the fitted model,
            whose spread is known; each of shape (samples, agents). Each pair has the wider of its intervals.
        units: number of independent queries (or games), of all pairs or of each agent, shape (agents,). Of two agents
            the fewer count: one with games on 5 of 40 queries is told from no other.
        level: probability that all intervals hold the truth.
        fewest: units below which no interval leaves out 0; what ``fewest_queries`` says if absent.
    """
    se = half = p = np.zeros((ratings.size, ratings.size))
    difference = ratings[:, np.newaxis] - ratings
    of_pairs = _of_pairs(units, ratings.size)
    of_queries = np.maximum(of_pairs, 2) - 1.0, np.sqrt(1 + 1 / (np.maximum(of_pairs, 2) - 1))
    of_model = np.full(of_pairs.shape, _KNOWN), np.ones(of_pairs.shape)
    for samples, (freedom, inflation) in zip(sample_sets, (of_queries, of_model), strict=False):
        below = _spread_below(samples - ratings)
        largest = _largest(samples - ratings, below)
        beyond = scipy.special.ndtr(-_critical(largest, level))
        width = -scipy.special.stdtrit(freedom, beyond) * inflation * below
        se, half = np.where(width > half, inflation * below, se), np.maximum(width, half)
        p = np.maximum(p, _corrected(difference, inflation * below, freedom, largest))
    few = of_pairs < (fewest_queries(ratings.size) if fewest is None else fewest)
    half = np.where(few, np.maximum(half, np.abs(difference)), half)
    return JointDifferences(difference, se, half, of_pairs, level, np.where(few, np.nan, np.minimum(p, p.T)))


def _of_pairs(units: int | NDArray[np.int64], agents: int) -> NDArray[np.int64]:
    """The fewer of two agents' queries (or games), shape (agents, agents)."""
    own = np.broadcast_to(np.asarray(units, np.int64), (agents,))
    return np.minimum.outer(own, own)


def rank_intervals(joint: JointDifferences) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Best and worst rank of each agent; the intervals of all agents hold their true ranks at once.

    An agent ranks behind all that are surely better and ahead of all that are surely worse, where the true rank is
    1 + the number of agents that are truly better.
    """
    better = joint.different & (joint.difference > 0)
    agents = len(better)
    return 1 + better.sum(axis=0).astype(np.int64), agents - better.sum(axis=1).astype(np.int64)


def queries_needed(
    difference: Floats,
    se: Floats,
    half: Floats,
    units: int | NDArray[np.int64],
    *,
    agents: int = 2,
    level: float = 0.95,
) -> list[tuple[int | None, int | None, int | None]]:
    """How many more queries would separate two agents in four cases out of five, of each pair.

    Those there are stay, so the difference then is a mean of today's and of what the new queries show. Its standard
    error falls with the root of the number of queries, and so does the interval, whose quantile of Student's t falls
    too. ``benchmarks/queries_needed.py`` holds the number against drawing queries and rating them.

    Args:
        difference: between the two agents of each pair, in points, shape (pairs,).
        se: its standard error downwards, likewise.
        half: how far its interval reaches below it, likewise.
        units: number of queries (or games) behind it, of all pairs or of each.
        agents: number of agents, of whose differences all intervals hold at once.
        level: with which they do.

    Returns:
        The number if the new queries differ as those there are; and its ends if they differ as much more, or less, as
        an interval of the difference at 80 % allows. The first is 0 where the interval leaves out 0 already; all are
        ``None`` where the two are as good as equal, and the last where they may be.
    """
    gaps = np.abs(difference)
    apart = gaps > np.maximum(half, _RESOLUTION)
    unclear = ~apart & (gaps > _RESOLUTION) & (se > NO_SPREAD)
    gap, error = gaps[unclear], se[unclear]
    units = np.broadcast_to(np.asarray(units, np.int64), gaps.shape)[unclear]
    # Resamples of few queries come in few kinds, so that their quantile can be larger than many queries will need.
    of_all_pairs = 1 - (1 - level) / (agents * (agents - 1))
    freedom = np.maximum(units, 2) - 1
    tail = np.minimum(of_all_pairs, scipy.special.stdtr(freedom, half[unclear] / error))
    reach = scipy.special.stdtrit(freedom, (1 + _POWER) / 2) * error
    luck, sd = scipy.special.ndtri(_POWER), error * np.sqrt(units)
    least = np.maximum(1, fewest_queries(agents) - units)

    def more(of_new: Floats) -> list[int | None]:
        def suffice(new: NDArray[np.int64]) -> NDArray[np.bool_]:
            total = units + new
            mean = (units * gap + new * of_new) / total
            quantile = scipy.special.stdtrit(total - 1, tail)
            return np.asarray(mean > sd * (quantile / np.sqrt(total) + luck * np.sqrt(new) / total), np.bool_)

        fewest, enough = least.copy(), np.full(gap.shape, _MOST_QUERIES)
        found = (of_new > 0) & suffice(enough)
        while (fewest < enough).any():
            middle = (fewest + enough) // 2
            fits = suffice(middle)
            fewest, enough = np.where(fits, fewest, np.minimum(middle + 1, enough)), np.where(fits, middle, enough)
        return [number if own else None for number, own in zip(enough.tolist(), found.tolist(), strict=True)]

    found: list[tuple[int | None, int | None, int | None]] = [
        (0, 0, 0) if own else (None,) * 3 for own in apart.tolist()
    ]
    for pair, number, low, high in zip(
        np.flatnonzero(unclear).tolist(), more(gap), more(gap + reach), more(gap - reach), strict=True
    ):
        found[pair] = (None, None, None) if number is None else (number, low, high)
    return found


def paired_tests(ratings: Floats, covariances: tuple[Floats, ...], units: int | NDArray[np.int64]) -> Floats:
    """Wald tests of all differences, with Student's t on one degree of freedom less than there are ``units``.

    Args:
        ratings: in points, shape (agents,).
        covariances: of the ratings, each of shape (agents, agents); each pair uses its largest.
        units: number of independent queries (or games), of all pairs or of each agent, shape (agents,).

    Returns:
        Two-sided p-values of each pair alone, shape (agents, agents).
    """
    difference = ratings[:, np.newaxis] - ratings[np.newaxis]
    own = [np.diag(covariance) for covariance in covariances]
    variance = np.max([d[:, np.newaxis] + d - 2 * cov for d, cov in zip(own, covariances, strict=True)], axis=0)
    apart = np.abs(difference) > _RESOLUTION
    size = np.sqrt(np.maximum(variance, _RESOLUTION**2))
    freedom = np.maximum(_of_pairs(units, ratings.size), 2) - 1
    return np.where(apart, 2 * scipy.special.stdtr(freedom, -np.abs(difference) / size), 1.0)


def groups(ratings: Floats, different: NDArray[np.bool_]) -> tuple[str, ...]:
    """Letters for groups of agents that cannot be told apart.

    A group is a longest run of agents, from the highest rating down, no two of which differ; so agents that share a
    letter cannot be told apart, and all that share ``A`` with the first are tied for first. An agent in several
    groups names the first and the last, as in ``B-D``.

    Args:
        ratings: shape (agents,).
        different: which pairs differ, symmetric, shape (agents, agents).
    """
    order = np.argsort(-ratings, kind="stable")
    runs: list[tuple[int, int]] = []
    for start in range(order.size):
        end = start + 1
        while end < order.size and not different[order[end], order[start:end]].any():
            end += 1
        if not runs or end > runs[-1][1]:
            runs.append((start, end))
    labels = [""] * order.size
    for place, agent in enumerate(order):
        member = [_letter(number) for number, (start, end) in enumerate(runs) if start <= place < end]
        labels[agent] = member[0] if len(member) == 1 else f"{member[0]}-{member[-1]}"
    return tuple(labels)


def _spread_below(deviations: Floats) -> Floats:
    """Root mean square, as of a half-normal, of how far samples fall short of each difference, shape (agents, agents).

    Entry (i, j) is of rating i minus rating j; how far samples exceed that is entry (j, i).
    """
    return np.array(
        [np.sqrt(2 * (_short_of(deviations, agent) ** 2).mean(axis=0)) for agent in range(deviations.shape[1])]
    )


def _largest(deviations: Floats, below: Floats) -> Floats:
    """The largest studentised shortfall over all ordered pairs of each sample, shape (samples,)."""
    scale = np.where(below > NO_SPREAD, below, np.inf)
    largest = np.zeros(len(deviations))
    for agent in range(deviations.shape[1]):
        np.maximum(largest, (_short_of(deviations, agent) / scale[agent]).max(axis=1), out=largest)
    return largest


def _corrected(difference: Floats, se: Floats, freedom: Floats, largest: Floats) -> Floats:
    """Share of samples in which some pair strays as far as each pair's difference lies from 0, shape (agents, agents).

    Beyond what samples can show, the tail of Student's t for as many comparisons as there are ordered pairs.
    """
    apart = difference > _RESOLUTION
    size = np.where(apart, difference / np.maximum(se, _RESOLUTION), 0.0)
    alone = scipy.special.stdtr(freedom, -size)
    far = np.minimum(-scipy.special.ndtri(np.maximum(alone, np.finfo(np.float64).tiny)), _LARGEST)
    as_far = largest.size - np.searchsorted(np.sort(largest), far, side="left")
    share = (1 + as_far) / (1 + largest.size)
    tail = np.minimum(share, alone * difference.size)
    return np.where(apart, np.where(as_far == 0, tail, share), 1.0)


def _critical(largest: Floats, level: float) -> float:
    """Quantile of the largest studentised shortfall, as of a normal distribution."""
    rank = min(largest.size, math.ceil(level * (largest.size + 1)))
    return min(float(np.partition(largest, rank - 1)[rank - 1]), _LARGEST)


def _short_of(deviations: Floats, agent: int) -> Floats:
    """How much each sample's difference of one agent to all others is below the estimate, shape (samples, agents)."""
    return np.maximum(deviations - deviations[:, [agent]], 0.0)


def _letter(number: int) -> str:
    """A to Z, then AA, AB and so on, as columns of a spreadsheet."""
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, 26)
        text = chr(ord("A") + place) + text
    return text


_NO_VARIANCE = 1e-9
"""A covariance below this (squared points) says that no query differs from another, not that ratings are exact."""

_DRAWS = 2000
"""Normal draws in place of bootstrap samples."""

_FEWEST_SAMPLES = 100
"""Fewer bootstrap samples cannot show how far the largest of many differences strays."""


class PairTests(Struct, frozen=True, eq=False):
    """All pairs of agents: tests of each, as of ``paired_tests``, and intervals that hold for all.

    ``covariances`` are of the ratings: the sandwich, and the model's where the sandwich cannot show the uncertainty.
    ``arbitrary`` names the agents of whose ratings no query shows the variation. ``units`` is the number of queries (or
    games), ``per_agent`` of those on which each agent has a game, shape (agents,); ``by_query`` says which.
    """

    p: Floats
    joint: JointDifferences
    covariances: tuple[Floats, ...]
    arbitrary: frozenset[str]
    units: int
    per_agent: NDArray[np.int64]
    by_query: bool

    def interval(self, ratings: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
        """Student's interval of each rating by the largest of the covariances, two arrays of shape (agents,).

        Degrees of freedom are one less than the agent has queries. ``benchmarks/coverage`` shows what it holds.
        """
        variance = np.max([covariance.diagonal() for covariance in self.covariances], axis=0)
        far = scipy.special.stdtrit(np.maximum(self.per_agent, 2) - 1, (1 + level) / 2)
        half = far * np.sqrt(np.maximum(variance, 0.0))
        return ratings - half, ratings + half


def compare(
    games: Games, fitted: BradleyTerry, resampled: Bootstrap | None, *, by_query: bool, level: float, seed: int
) -> PairTests | None:
    """Compare all pairs of agents.

    ``None`` where a single query (game) leaves nothing to estimate variation from.

    Where there are no or too few bootstrap samples, draws from the sandwich covariance take their place.
    """
    spread = sandwich(games, fitted, by_query=by_query)
    if spread is None:
        return None
    covariances = [spread.covariance]
    arbitrary = frozenset(name for problem in fitted.problems for name in problem.agents)
    if np.trace(spread.covariance) < _NO_VARIANCE:
        arbitrary = frozenset(fitted.agents)
    if arbitrary:
        covariances.append(fitted.model_covariance())
    if resampled is not None and len(resampled.samples) >= _FEWEST_SAMPLES:
        sample_sets = resampled.sample_sets
    else:
        rng = np.random.default_rng(seed)
        draws = [rng.multivariate_normal(fitted.ratings, c, size=_DRAWS, method="eigh") for c in covariances]
        sample_sets = tuple(np.asarray(draw, np.float64) for draw in draws)
    return PairTests(
        paired_tests(fitted.ratings, tuple(covariances), spread.per_agent),
        joint_differences(fitted.ratings, sample_sets, spread.per_agent, level),
        tuple(covariances),
        arbitrary,
        spread.clusters,
        spread.per_agent,
        by_query and games.cluster is not None,
    )


def _or_none(number: float) -> float | None:
    return None if math.isnan(number) else number


def pair_differences(agents: tuple[str, ...], compared: PairTests | None) -> tuple[PairDifference, ...]:
    """A line for every pair of agents, none where there is no comparison."""
    if compared is None:
        return ()
    joint = compared.joint
    one, other = np.triu_indices(len(agents), k=1)
    ahead = joint.difference[one, other] >= 0
    better, worse = np.where(ahead, one, other), np.where(ahead, other, one)
    gap, se, half = (part[better, worse] for part in (joint.difference, joint.se, joint.half))
    separable, arbitrary = joint.different[better, worse], np.array([name in compared.arbitrary for name in agents])
    # Of games whose queries are unknown, more means more of all pairs.
    units = joint.units[better, worse] if compared.by_query else np.full(gap.shape, compared.units)
    needed = queries_needed(gap, se, half, units, agents=len(agents), level=joint.level)
    unknown = (arbitrary[one] | arbitrary[other]) & ~separable
    figures = (
        (gap, joint.p[one, other], np.where(np.isnan(joint.p), np.nan, compared.p)[one, other], se),
        (gap - half, gap + joint.half[worse, better], separable),
    )
    columns = [[_or_none(number) for number in column.tolist()] for figure in figures for column in figure]
    return tuple(
        PairDifference(agents[first], agents[second], *values, *((None,) * 3 if hidden else more))
        for first, second, *values, hidden, more in zip(
            better.tolist(), worse.tolist(), *columns, unknown.tolist(), needed, strict=True
        )
    )
