"""Comparisons of all pairs of agents: joint intervals, rank intervals, paired tests, and groups by significance.

All claims about order use the same simultaneous intervals of the differences of all pairs of agents (Mogstad, Romano,
Shaikh and Wilhelm 2024, Review of Economic Studies 91, "Inference for Ranks", section 3). So rank intervals, groups and
pairs never contradict each other.
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
from retrieval_eval.stats import Floats

RESOLUTION = 1e-6
"""Ratings that differ by less than this many points are equal: agents with the same results differ only by rounding."""

_KNOWN = 1e9
"""Degrees of freedom of Student's t for a standard error that is known and not estimated."""

_LARGEST = 30.0
"""Largest number of standard errors in use: beyond it the normal tail is 0 in floating point."""

_POWER = 0.8
"""Probability with which the predicted number of queries shall separate two agents."""

_MOST_QUERIES = 1_000_000
"""Largest number of queries predicted: agents that need more are practically equal, and the number would be noise."""


class JointDifferences(Struct, frozen=True, eq=False):
    """Simultaneous intervals of the differences between all pairs of agents, shape (agents, agents).

    Attributes:
        difference: rating of the row agent minus rating of the column agent, in points.
        se: downward standard error of each difference.
        half: distance from each difference down to the lower end of its interval; entry (j, i) is the distance up to
            the upper end of the interval of (i, j).
        units: number of independent queries (or games) of the agent of the pair that has fewer.
        level: probability that all intervals contain the true differences.
        p: p-value for the hypothesis of no difference, corrected for the number of pairs: it is 1 - level if the
            interval just excludes 0; NaN for too few units.
    """

    difference: Floats
    se: Floats
    half: Floats
    units: NDArray[np.int64]
    level: float
    p: Floats

    @property
    def different(self) -> NDArray[np.bool_]:
        """Whether the interval of each pair excludes 0, shape (agents, agents)."""
        above = self.difference > np.maximum(self.half, RESOLUTION)
        return np.asarray(above | above.T, np.bool_)


def competition_ranks(ratings: Floats) -> NDArray[np.int64]:
    """1 + the number of agents rated strictly higher, along the last axis; equal ratings share a rank."""
    steps = np.round(np.atleast_2d(ratings) / RESOLUTION)
    ordered = np.sort(-steps, axis=-1)
    ranks = np.array(
        [np.searchsorted(row, -row_steps, side="left") + 1 for row, row_steps in zip(ordered, steps, strict=True)]
    )
    return ranks.reshape(np.shape(ratings)).astype(np.int64)


def joint_differences(
    ratings: Floats,
    sample_sets: tuple[Floats, ...],
    units: int | NDArray[np.int64],
    level: float = 0.95,
    *,
    fewest: int | None = None,
) -> JointDifferences:
    """Simultaneous intervals of the rating differences of all pairs, from the largest studentised difference.

    The spread below and above each difference is measured separately: an agent that nearly always loses may be much
    weaker than estimated, which does not make it doubtful that it is weaker. To first order this gives the same answer
    on any monotone scale, like percentiles and unlike a common standard deviation.

    Resamples of few queries vary too little, by (n - 1) / n, and have normal tails. The factor n / (n - 1) and
    quantiles of Student's t with n - 1 degrees of freedom correct both. With fewer units than ``fewest`` (default:
    ``fewest_queries``) this is not enough, and every interval is widened to include 0.

    ``ratings`` has shape (agents,). ``sample_sets`` are ratings of resampled queries and, if resampling cannot show all
    variation, draws from the fitted model, whose standard errors count as known; each of shape (samples, agents). With
    both kinds of samples, each pair gets the wider of its two intervals. ``units`` is the number of independent queries
    (or games), for all agents or per agent, shape (agents,); the agent with fewer decides.
    """
    se = half = p = np.zeros((ratings.size, ratings.size))
    difference = ratings[:, np.newaxis] - ratings
    pair_units = _of_pairs(units, ratings.size)
    resampling_terms = np.maximum(pair_units, 2) - 1.0, np.sqrt(1 + 1 / (np.maximum(pair_units, 2) - 1))
    model_terms = np.full(pair_units.shape, _KNOWN), np.ones(pair_units.shape)
    for samples, (freedom, inflation) in zip(sample_sets, (resampling_terms, model_terms), strict=False):
        below = _spread_below(samples - ratings)
        largest = _largest(samples - ratings, below)
        rank = min(largest.size, math.ceil(level * (largest.size + 1)))
        critical = min(float(np.partition(largest, rank - 1)[rank - 1]), _LARGEST)
        beyond = scipy.special.ndtr(-critical)
        width = -scipy.special.stdtrit(freedom, beyond) * inflation * below
        se, half = np.where(width > half, inflation * below, se), np.maximum(width, half)
        p = np.maximum(p, _corrected(difference, inflation * below, freedom, largest))
    too_few = pair_units < (fewest_queries(ratings.size) if fewest is None else fewest)
    half = np.where(too_few, np.maximum(half, np.abs(difference)), half)
    return JointDifferences(difference, se, half, pair_units, level, np.where(too_few, np.nan, np.minimum(p, p.T)))


def _of_pairs(units: int | NDArray[np.int64], agents: int) -> NDArray[np.int64]:
    """The smaller number of queries (or games) of the two agents of each pair, shape (agents, agents)."""
    per_agent = np.broadcast_to(np.asarray(units, np.int64), (agents,))
    return np.minimum.outer(per_agent, per_agent)


def rank_intervals(joint: JointDifferences) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Best and worst rank of each agent: intervals that contain the true ranks of all agents simultaneously.

    The true rank is 1 + the number of agents that are truly better. The best rank is 1 + the number of agents that are
    surely better; the worst is the number of agents that are not surely worse, itself included.
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
    """Number of additional queries that would separate each pair of agents with a probability of 80 %.

    The present queries stay, so the new difference is a weighted mean of the present difference and the difference
    on the new queries. Its standard error falls with the square root of the number of queries; the interval also
    narrows because the quantile of Student's t falls. ``benchmarks/queries_needed.py`` checks the prediction by
    simulation.

    ``difference``, ``se`` and ``half`` are as in ``JointDifferences``, shape (pairs,); ``units`` is the number of
    queries (or games) of all pairs or per pair. The intervals are simultaneous at ``level`` for all pairs of ``agents``
    agents.

    Returns:
        Three numbers for each pair: for a difference on the new queries equal to the present one, to the upper end of
        its 80 % interval, and to the lower end. All are 0 if the pair's simultaneous interval already excludes 0. All
        are ``None`` if the two agents are practically equal. Only the last is ``None`` if no number of queries suffices
        for the lower end.
    """
    gaps = np.abs(difference)
    apart = gaps > np.maximum(half, RESOLUTION)
    unclear = ~apart & (gaps > RESOLUTION) & (se > NO_SPREAD)
    gap, error = gaps[unclear], se[unclear]
    units = np.broadcast_to(np.asarray(units, np.int64), gaps.shape)[unclear]
    # Few queries give few different resamples, so their quantile may be larger than that of many queries.
    bonferroni = 1 - (1 - level) / (agents * (agents - 1))
    freedom = np.maximum(units, 2) - 1
    tail = np.minimum(bonferroni, scipy.special.stdtr(freedom, half[unclear] / error))
    reach = scipy.special.stdtrit(freedom, (1 + _POWER) / 2) * error
    power, sd = scipy.special.ndtri(_POWER), error * np.sqrt(units)
    least = np.maximum(1, fewest_queries(agents) - units)

    def additional(new_gap: Floats) -> list[int | None]:
        def suffice(new: NDArray[np.int64]) -> NDArray[np.bool_]:
            total = units + new
            mean = (units * gap + new * new_gap) / total
            quantile = scipy.special.stdtrit(total - 1, tail)
            return np.asarray(mean > sd * (quantile / np.sqrt(total) + power * np.sqrt(new) / total), np.bool_)

        fewest, enough = least.copy(), np.full(gap.shape, _MOST_QUERIES)
        possible = (new_gap > 0) & suffice(enough)
        while (fewest < enough).any():
            middle = (fewest + enough) // 2
            fits = suffice(middle)
            fewest, enough = np.where(fits, fewest, np.minimum(middle + 1, enough)), np.where(fits, middle, enough)
        return [number if ok else None for number, ok in zip(enough.tolist(), possible.tolist(), strict=True)]

    needed: list[tuple[int | None, int | None, int | None]] = [
        (0, 0, 0) if separated else (None,) * 3 for separated in apart.tolist()
    ]
    predictions = additional(gap), additional(gap + reach), additional(gap - reach)
    for pair, number, low, high in zip(np.flatnonzero(unclear).tolist(), *predictions, strict=True):
        needed[pair] = (None, None, None) if number is None else (number, low, high)
    return needed


def paired_tests(ratings: Floats, covariances: tuple[Floats, ...], units: int | NDArray[np.int64]) -> Floats:
    """P-values of Wald tests of all rating differences, by Student's t with ``units`` - 1 degrees of freedom.

    A pair's variance is the largest by any of ``covariances``. The p-values are two-sided and not corrected for the
    number of pairs; their shape and that of each covariance is (agents, agents).
    """
    difference = ratings[:, np.newaxis] - ratings[np.newaxis]
    variances = [np.diag(covariance) for covariance in covariances]
    variance = np.max([d[:, np.newaxis] + d - 2 * cov for d, cov in zip(variances, covariances, strict=True)], axis=0)
    apart = np.abs(difference) > RESOLUTION
    size = np.sqrt(np.maximum(variance, RESOLUTION**2))
    freedom = np.maximum(_of_pairs(units, ratings.size), 2) - 1
    return np.where(apart, 2 * scipy.special.stdtr(freedom, -np.abs(difference) / size), 1.0)


def groups(ratings: Floats, different: NDArray[np.bool_]) -> tuple[str, ...]:
    """Letters of each agent's groups; agents in a group have no significant differences.

    A group is a maximal run of agents, in the order of ratings, without a significant difference between any two. So
    agents that share a letter are not separable, and all agents with the letter ``A`` are tied for first. An agent in
    several groups gets the first and the last letter, as in ``B-D``. ``different`` has shape (agents, agents).
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
    """Downward standard error of each difference, shape (agents, agents), from ``deviations`` of sampled ratings.

    It is the root mean square shortfall of the sampled differences below their estimate, times sqrt 2. Entry (i, j) is
    for rating i minus rating j; its upward standard error is entry (j, i).
    """
    return np.array(
        [np.sqrt(2 * (_short_of(deviations, agent) ** 2).mean(axis=0)) for agent in range(deviations.shape[1])]
    )


def _largest(deviations: Floats, below: Floats) -> Floats:
    """Largest shortfall of a pair's difference below its estimate, in standard errors ``below``, shape (samples,)."""
    scale = np.where(below > NO_SPREAD, below, np.inf)
    largest = np.zeros(len(deviations))
    for agent in range(deviations.shape[1]):
        np.maximum(largest, (_short_of(deviations, agent) / scale[agent]).max(axis=1), out=largest)
    return largest


def _corrected(difference: Floats, se: Floats, freedom: Floats, largest: Floats) -> Floats:
    """Corrected p-values: the share of samples whose ``largest`` shortfall reaches the studentised difference.

    If no sample reaches it, the p-value is at most the tail of Student's t times the number of ordered pairs. Shape
    (agents, agents).
    """
    apart = difference > RESOLUTION
    size = np.where(apart, difference / np.maximum(se, RESOLUTION), 0.0)
    alone = scipy.special.stdtr(freedom, -size)
    threshold = np.minimum(-scipy.special.ndtri(np.maximum(alone, np.finfo(np.float64).tiny)), _LARGEST)
    exceeding = largest.size - np.searchsorted(np.sort(largest), threshold, side="left")
    share = (1 + exceeding) / (1 + largest.size)
    tail = np.minimum(share, alone * difference.size)
    return np.where(apart, np.where(exceeding == 0, tail, share), 1.0)


def _short_of(deviations: Floats, agent: int) -> Floats:
    """How far one agent's differences to the others fall below their estimates, shape (samples, agents)."""
    return np.maximum(deviations - deviations[:, [agent]], 0.0)


def _letter(number: int) -> str:
    """Name of the group with this number (from 0): A to Z, then AA, AB and so on, like the columns of a spreadsheet."""
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, 26)
        text = chr(ord("A") + place) + text
    return text


_NO_VARIANCE = 1e-9
"""If the sum of the ratings' variances (squared points) is below this, all queries have equal results."""

_DRAWS = 2000

_FEWEST_SAMPLES = 100
"""Minimum number of bootstrap samples: with fewer, the distribution of the largest difference is too coarse."""


class PairTests(Struct, frozen=True, eq=False):
    """Tests and simultaneous intervals of all pairs of agents.

    Attributes:
        p: uncorrected p-values of ``paired_tests``, shape (agents, agents).
        covariances: the sandwich covariance of the ratings and, if it cannot show the uncertainty, that of the model.
        arbitrary: agents whose rating has no finite maximum or does not vary between queries.
        units, by_query: number of queries (or games), and whether they are queries.
        per_agent: number of queries (or games) of each agent, shape (agents,).
    """

    p: Floats
    joint: JointDifferences
    covariances: tuple[Floats, ...]
    arbitrary: frozenset[str]
    units: int
    per_agent: NDArray[np.int64]
    by_query: bool

    def interval(self, ratings: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends of a confidence interval (Student's t) of each rating, shape (agents,) each.

        A rating's variance is the largest by any of ``covariances``. The degrees of freedom are the agent's queries
        minus one. ``benchmarks/coverage`` measures the coverage.
        """
        variance = np.max([covariance.diagonal() for covariance in self.covariances], axis=0)
        quantile = scipy.special.stdtrit(np.maximum(self.per_agent, 2) - 1, (1 + level) / 2)
        half = quantile * np.sqrt(np.maximum(variance, 0.0))
        return ratings - half, ratings + half


def compare(
    games: Games, fitted: BradleyTerry, resampled: Bootstrap | None, *, by_query: bool, level: float, seed: int
) -> PairTests | None:
    """Compare all pairs of agents; ``None`` for a single query (or game), which shows no variation.

    With fewer than ``_FEWEST_SAMPLES`` bootstrap samples, normal draws with the covariances of the ratings replace
    them.
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


def pair_differences(agents: tuple[str, ...], compared: PairTests | None) -> tuple[PairDifference, ...]:
    """One row per pair of agents, the better one first; empty if ``compared`` is ``None``."""
    if compared is None:
        return ()
    joint = compared.joint
    one, other = np.triu_indices(len(agents), k=1)
    ahead = joint.difference[one, other] >= 0
    better, worse = np.where(ahead, one, other), np.where(ahead, other, one)
    gap, se, half = (matrix[better, worse] for matrix in (joint.difference, joint.se, joint.half))
    separable, arbitrary = joint.different[better, worse], np.array([name in compared.arbitrary for name in agents])
    # Without queries, the predicted number counts the games of all pairs together.
    units = joint.units[better, worse] if compared.by_query else np.full(gap.shape, compared.units)
    needed = queries_needed(gap, se, half, units, agents=len(agents), level=joint.level)
    unknown = (arbitrary[one] | arbitrary[other]) & ~separable
    figures = (
        (gap, joint.p[one, other], np.where(np.isnan(joint.p), np.nan, compared.p)[one, other], se),
        (gap - half, gap + joint.half[worse, better], separable),
    )
    plain = [column.tolist() for figure in figures for column in figure]
    columns = [[None if math.isnan(number) else number for number in column] for column in plain]
    return tuple(
        PairDifference(agents[first], agents[second], *values, *((None,) * 3 if hidden else queries))
        for first, second, *values, hidden, queries in zip(
            better.tolist(), worse.tolist(), *columns, unknown.tolist(), needed, strict=True
        )
    )
