"""Intervals over clusters (usually queries): bootstrap, Wilson's interval, jackknife, means of bounded figures.

Labels, ranks and scores of one query depend on each other, so the bootstrap draws whole queries with replacement (Efron
and Tibshirani 1993, *An Introduction to the Bootstrap*, chapter 8); a sample is the number of times each query was
drawn. ``estimates`` computes all bootstrap intervals of the product; ``benchmarks/coverage`` shows their coverage with
25 and with 80 queries.

For statistics of counts, Wilson's interval and the jackknife need only one row of totals per cluster. Both use
Student's t with one degree of freedom less than there are clusters.

Means of bounded figures, such as scores from 0 to 1 or win shares: Student's t is unreliable if scores are near an end
of their scale or a few queries determine the mean. With 20 queries and a mean of 0.92 it covers the true mean in 76 to
92 % of cases. If 5 % of queries are complete losses, its lower end passes a worse system as "not worse" in up to 36 %
of cases. So each end of the interval is the farther of two:

- the empirical likelihood (Owen 2001, *Empirical Likelihood*, sections 2.9 and 3.3) of the figures and of ``UNSEEN``
  additional figures at that end of the scale. Chen, Variyath and Abraham (2008, J. Computational and Graphical
  Statistics 17) add such a figure so that the likelihood exists. The end is where the log-likelihood ratio reaches
  t^2 / 2, for Student's t with n - 1 degrees of freedom.
- the end if every figure that is not a complete loss equalled the best one: the interval of Clopper and Pearson (1934,
  Biometrika 26) for the share of these figures. It is exact for rare, complete losses and for constant figures.

``benchmarks/coverage.py`` and ``benchmarks/gate.py`` measure the coverage of these means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from retrieval_eval.stats import Floats
from retrieval_eval.stats.estimate import Estimate

FEW_QUERIES: Final = 10
"""With fewer queries than this, a bootstrap over the queries is unreliable."""
LIKELIHOOD: Final = "empirical likelihood"
UNSEEN: Final = 0.25
"""Number of figures that the empirical likelihood adds at an end of the scale. More would lower the power: a loss of
0.17 on 30 queries is detected in 40 % of cases with 1, and in 85 % with 0.25. Fewer would pass too many worse systems
with rare, complete losses.
"""
LOST: Final = 0.1
"""Figures up to this value, on a scale from 0 to 1, count as complete losses."""
_LARGEST_LOG: Final = 60.0

Clusters: TypeAlias = Mapping[str, str]
"""Conversation by query_id, for queries that are turns of a conversation. Scores of the same conversation depend on
each other, so the bootstrap draws whole conversations. A query without an entry is its own cluster.
"""
ALONE: Final[Clusters] = MappingProxyType({})
"""No conversations: every query is its own cluster."""


def numbered(names: Iterable[Hashable]) -> NDArray[np.int64]:
    """Number the names from 0 in the order of their first appearance."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], np.int64)


def units_of(queries: Iterable[str], clusters: Clusters = ALONE) -> NDArray[np.int64]:
    """The number of each query's cluster, shape (queries,); clusters are numbered in the order of appearance."""
    return numbered(clusters.get(query_id, query_id) for query_id in queries)


def units_with(seen: NDArray[np.bool_], unit: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of clusters with at least one query marked in ``seen``, shape (..., queries) to (...)."""
    if unit.size == int(unit.max(initial=-1)) + 1:
        return np.asarray(seen.sum(axis=-1), np.int64)
    order = np.argsort(unit, kind="stable")
    starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
    return np.asarray(np.logical_or.reduceat(seen[..., order], starts, axis=-1).sum(axis=-1), np.int64)


def sums_by_unit(values: Floats, unit: NDArray[np.int64]) -> Floats:
    """Sum of each figure over the queries of each cluster, shape (figures, queries) to (figures, clusters)."""
    units = int(unit.max(initial=-1)) + 1
    if units == unit.size:
        return values
    return np.array([np.bincount(unit, row, units) for row in values])


def unit_weights(unit: NDArray[np.int64], samples: int, seed: int) -> Floats:
    """How often each query is drawn in each bootstrap sample, equal within a cluster, shape (samples, queries)."""
    units = int(unit.max(initial=-1)) + 1
    weights = query_weights(units, samples, seed)
    return weights if units == unit.size else weights[:, unit]


@lru_cache(maxsize=2)  # the judges of one benchmark have the same queries
def query_weights(queries: int, samples: int, seed: int) -> Floats:
    """How often each query is drawn in each bootstrap sample, shape (samples, queries); the array is read-only."""
    if queries == 0:
        return np.zeros((samples, 0))
    drawn = np.random.default_rng(seed).multinomial(queries, np.full(queries, 1 / queries), size=samples)
    weights = drawn.astype(np.float64)
    weights.flags.writeable = False
    return weights


def weighted_means(values: Floats, weights: Floats) -> Floats:
    """Weighted means over queries, ignoring NaN; shapes (runs, queries) and (samples, queries) to (samples, runs)."""
    defined = ~np.isnan(values)
    used = weights @ defined.T.astype(np.float64)
    sums = weights @ np.where(defined, values, 0.0).T
    return np.where(used > 0, sums / np.where(used > 0, used, 1.0), np.nan)


def without_nan(*samples: Floats) -> NDArray[np.bool_]:
    """Whether each bootstrap sample is free of NaN in all arguments, shape (samples,).

    The arguments have shape (samples, figures).
    """
    return np.asarray(~np.any([np.isnan(figures).any(axis=1) for figures in samples], axis=0), np.bool_)


def estimates(
    values: ArrayLike, samples: Floats, queries: ArrayLike, level: float = 0.95, *, centred: bool = False
) -> tuple[Estimate, ...]:
    """Make estimates from figures and their bootstrap samples: percentile intervals, widened for few queries.

    The variance of a resample of n queries is too small by the factor (n - 1) / n, and percentiles correspond to
    quantiles of a normal distribution instead of Student's t. More extreme percentiles correct both (Hesterberg 2015,
    The American Statistician 69, "What teachers should know about the bootstrap", section 4.1). A figure has no
    interval if there are fewer than two queries or samples, or if all samples are equal.

    Args:
        values: the figures, shape (figures,); NaN if undefined.
        samples: the figures on resampled queries, shape (samples, figures); NaN if undefined in a sample.
        queries: number of queries behind the figures: one number for all, or one per figure.
        level: confidence level of the intervals.
        centred: shift the samples so that their mean is the figure, and clip the ends to -1 and 1. Rank correlations
            need this, because a resample is noisier than the queries and noise lowers a correlation.
    """
    figures = np.asarray(values, np.float64)
    units = np.broadcast_to(np.asarray(queries, np.int64), figures.shape)
    bounds = np.full((2, figures.size), np.nan)
    for place, (figure, unit) in enumerate(zip(figures, units.tolist(), strict=True)):
        sampled = samples[:, place]
        sampled = sampled[~np.isnan(sampled)]
        if unit < 2 or sampled.size < 2 or np.isnan(figure) or np.ptp(sampled) == 0:
            continue  # equal samples do not show how the figure varies
        far = math.sqrt(unit / (unit - 1)) * float(scipy.special.stdtrit(unit - 1, 1 - (1 + level) / 2))
        tail = float(scipy.special.ndtr(far))  # the share of samples beyond each end
        ends = np.quantile(sampled, [tail, 1 - tail])
        bounds[:, place] = np.clip(ends + (figure - sampled.mean()), -1, 1) if centred else ends
    points = [[None if math.isnan(point) else point for point in row.tolist()] for row in (figures, *bounds)]
    return tuple(
        Estimate(value, low, high, unit, "" if value is None else "bootstrap")
        for value, low, high, unit in zip(*points, units.tolist(), strict=True)
    )


Interval: TypeAlias = tuple[float, float]
_TINY: Final = 1e-300
"""Used as denominator instead of 0."""


@lru_cache(maxsize=4096)  # called for every pair of agents
def student(level: float, units: float) -> float:
    """Two-sided quantile of Student's t for ``units`` independent clusters."""
    return float(scipy.special.stdtrit(units - 1, (1 + level) / 2))


def share_interval(parts: Floats, wholes: Floats, level: float = 0.95, *, means: bool = False) -> Interval | None:
    """Interval of a share ``sum(parts) / sum(wholes)``; both arrays have one count for each cluster.

    Wilson's interval with the effective number of observations: the number of independent observations that would have
    the variance between clusters (Korn and Graubard 1998, Survey Methodology 24; with Wilson's formula, Dean and Pagano
    2015, Journal of Survey Statistics and Methodology 3). If all clusters agree, each counts as one observation, so
    forty verdicts on one query never count as forty queries. ``None`` if fewer than two clusters have counts. With
    ``means``, parts are sums of shares and not counts, see ``wilson``.
    """
    (interval,) = share_intervals(parts, wholes, np.zeros(wholes.size, np.int64), 1, level, means=means)
    return interval


def share_intervals(
    parts: Floats,
    wholes: Floats,
    share: NDArray[np.integer[Any]],
    shares: int,
    level: float = 0.95,
    *,
    means: bool = False,
) -> list[Interval | None]:
    """``share_interval`` for many shares at once; ``share`` says for each cluster to which share it belongs."""
    units = np.bincount(share[wholes > 0], minlength=shares)
    part, whole = (np.bincount(share, counts, shares) for counts in (parts, wholes))
    values = part / np.maximum(whole, _TINY)
    squares = np.bincount(share, (parts - values[share] * wholes) ** 2 * (wholes > 0), shares)
    variances = squares / np.maximum(whole, _TINY) ** 2 * units / np.maximum(units - 1, 1)
    return [
        wilson(value, variance, math.inf if means else size, number, level) if number > 1 else None
        for value, variance, size, number in zip(
            values.tolist(), variances.tolist(), whole.tolist(), units.tolist(), strict=True
        )
    ]


def share_estimate(parts: ArrayLike, wholes: ArrayLike) -> Estimate:
    """The share ``sum(parts) / sum(wholes)`` with its interval; an estimate without value if all ``wholes`` are 0."""
    part, whole = np.asarray(parts, np.float64), np.asarray(wholes, np.float64)
    if not whole.any():
        return Estimate(None)
    return Estimate(float(part.sum() / whole.sum()), *(share_interval(part, whole) or ()))


def wilson(share: float, variance: float, size: float, units: float, level: float = 0.95) -> Interval:
    """Wilson's interval of a share of ``size`` observations, with the variance measured between ``units`` clusters.

    For a mean of shares the size is infinite, so that the variance alone determines the effective number of
    observations. Without any variance each cluster counts as one observation.
    """
    spread = max(0.0, share * (1 - share))  # rounding may push a share of 1 above 1
    effective = min(size, spread / variance) if variance > 1e-12 * spread and spread > 0 else units
    square = student(level, units) ** 2
    middle = (share + square / (2 * effective)) / (1 + square / effective)
    half = math.sqrt(square * (spread / effective + square / (4 * effective**2))) / (1 + square / effective)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def smallest_share(bar: float, share: Estimate, units: int) -> float | None:
    """The smallest true share that a sample shows to be above ``bar`` with 80 % probability; ``None`` if none is.

    ``share`` is the sample's own estimate with the interval of ``wilson``, which tells its effective size.
    """
    if share.value is None or share.low is None or share.high is None:
        return None
    square, spread = student(0.95, units) ** 2, share.value * (1 - share.value)
    half = (share.high - share.low) ** 2 / 4  # solves wilson's equation for square / size
    a, b = half - 0.25, 2 * half - spread
    size = max(1, round(2 * square * a / (-b - math.sqrt(b * b - 4 * a * half))))
    least = next((count for count in range(size + 1) if _wilson_low(count, size, units) > bar), None)
    return None if least is None else float(scipy.special.bdtri(least - 1, size, 0.2))


def _wilson_low(count: int, size: int, units: int) -> float:
    share = count / size
    return (
        wilson(share, share * (1 - share) / size, size, units)[0]
        if 0 < count < size
        else wilson(share, 0, size, size)[0]
    )


COEFFICIENT: Final[Interval] = (-1.0, 1.0)
"""Range of coefficients such as kappa and alpha. Their intervals are symmetric on Fisher's scale: with 12 queries these
cover the true value in 94 to 98 % of cases; intervals symmetric on the coefficient's scale only in 90 to 94 %."""


def jackknife_estimate(
    statistic: Callable[[Floats], Floats],
    totals: Floats,
    ends: Interval = (-math.inf, math.inf),
    *,
    narrowest: float = 0.0,
) -> Estimate:
    """``statistic(totals.sum(axis=0))`` with its jackknife interval, which leaves out one cluster at a time.

    There is no interval if fewer than two clusters have counts, or if the statistic is undefined without one of them.

    Args:
        statistic: function of a stack of totals, shape (n, ...) to (n,); NaN where undefined.
        totals: one row per cluster, shape (clusters, ...); rows of zeros are ignored.
        ends: range of the statistic, to which the interval is clipped; see ``COEFFICIENT``.
        narrowest: intervals up to this width are dropped. If clusters do not differ, they do not show how the figure
            varies, and an interval of width 0 would claim certainty.
    """
    (estimate,) = jackknife_estimates(statistic, totals, np.zeros(len(totals), np.int64), 1, ends, narrowest=narrowest)
    return estimate


def jackknife_estimates(
    statistic: Callable[[Floats], Floats],
    totals: Floats,
    figure: NDArray[np.integer[Any]],
    figures: int,
    ends: Interval = (-math.inf, math.inf),
    *,
    narrowest: float = 0.0,
) -> tuple[Estimate, ...]:
    """``jackknife_estimate`` for many figures at once; ``figure`` says for each row to which figure it belongs."""
    is_counted = totals.any(axis=tuple(range(1, totals.ndim)))
    order = np.argsort(figure[is_counted], kind="stable")
    rows, row_figures = totals[is_counted][order], figure[is_counted][order]
    figure_numbers, first, units = np.unique(row_figures, return_index=True, return_counts=True)
    estimates_by_figure = [Estimate(None)] * figures
    if not figure_numbers.size:
        return tuple(estimates_by_figure)
    whole = np.add.reduceat(rows, first, axis=0)
    place = np.repeat(np.arange(figure_numbers.size), units)
    values, left_out = statistic(whole), statistic(whole[place] - rows)
    means = np.add.reduceat(left_out, first) / units
    sd = np.sqrt((units - 1) / units * np.add.reduceat((left_out - means[place]) ** 2, first))
    for at, value, number, spread in zip(
        figure_numbers.tolist(), values.tolist(), units.tolist(), sd.tolist(), strict=True
    ):
        if math.isnan(value):
            continue
        estimates_by_figure[at] = Estimate(value)
        half = student(0.95, number) * spread if number > 1 else math.nan
        if not (math.isnan(half) or (narrowest and 2 * half <= narrowest)):
            low, high = _of_coefficient(value, half) if ends == COEFFICIENT else (value - half, value + half)
            estimates_by_figure[at] = Estimate(value, max(ends[0], low), min(ends[1], high))
    return tuple(estimates_by_figure)


def _of_coefficient(value: float, half: float) -> Interval:
    """Ends of an interval that is symmetric on Fisher's scale, where the variance is the same for all coefficients."""
    if not half or abs(value) >= 1:
        return value - half, value + half
    z, reach = math.atanh(value), half / (1 - value**2)
    return math.tanh(z - reach), math.tanh(z + reach)


def mean_interval(figures: Floats, level: float = 0.95, *, times: float = 1.0) -> Interval:
    """Interval of the mean of figures from 0 to 1, shape (n,), as if each figure occurred ``times`` times."""
    return _low(figures, level, times), 1 - _low(1 - figures, level, times)


def ratio_estimate(parts: ArrayLike, wholes: ArrayLike, ends: Interval = (0.0, 1.0)) -> Estimate:
    """``sum(parts) / sum(wholes)`` over clusters, such as the mean over all turns of conversations, with its interval.

    The interval is that of the mean of the clusters' contributions, ``m + (part - m * whole) / mean(wholes)``; there is
    none for fewer than two clusters.

    Args:
        parts: sum of the figures of each cluster, shape (clusters,).
        wholes: number of figures of each cluster; clusters without figures are left out.
        ends: ends of a figure's scale.
    """
    part, whole = np.asarray(parts, np.float64), np.asarray(wholes, np.float64)
    part, whole = part[whole > 0], whole[whole > 0]
    if not whole.size:
        return Estimate(None, n=0)
    value = float(part.sum() / whole.sum())
    if whole.size < 2:
        return Estimate(value, n=1)
    figures = value + (part - value * whole) / whole.mean()
    least, most = min(ends[0], float(figures.min())), max(ends[1], float(figures.max()))
    low, high = mean_interval((figures - least) / (most - least))
    low, high = (max(ends[0], min(ends[1], least + (most - least) * end)) for end in (low, high))
    return Estimate(value, low, high, int(whole.size), LIKELIHOOD)


def mean_estimates(values: Floats, unit: NDArray[np.int64], ends: Interval | None = None) -> tuple[Estimate, ...]:
    """Each figure's mean over queries with its interval; NaN is ignored.

    Args:
        values: value of each figure on each query, shape (figures, queries); NaN if undefined.
        unit: the cluster of each query, see ``units_of``.
        ends: ends of the scale; by default 0 and 1, or further out if a value is outside.
    """
    known = ~np.isnan(values)
    if ends is None:
        scores = values[known]
        ends = min(0.0, float(scores.min(initial=0.0))), max(1.0, float(scores.max(initial=1.0)))
    size = int(unit.max(initial=-1)) + 1
    return tuple(
        ratio_estimate(np.bincount(unit[defined], row[defined], size), np.bincount(unit[defined], minlength=size), ends)
        for row, defined in zip(values, known, strict=True)
    )


def _low(x: Floats, level: float, times: float) -> float:
    units = times * x.size
    if units <= 1 or not x.any():
        return 0.0
    losses = times * float((x <= LOST).sum())
    kept_share = (
        1 - float(scipy.special.betaincinv(losses + 1, units - losses, (1 + level) / 2)) if losses < units else 0.0
    )
    return min(kept_share * float(x.max()), _likelihood_low(x, student(level, units) ** 2 / 2, times))


def _likelihood_low(x: Floats, allowed: float, times: float) -> float:
    """The lowest mean whose log-likelihood ratio is at most ``allowed``.

    The weights 1 / (1 + t x), divided by their sum, maximise the likelihood for some mean m. As t increases from 0, m
    falls from the sample mean to 0 and the log-likelihood ratio grows without bound.
    """
    total = times * x.size + UNSEEN

    def share(t: float) -> float:
        return float((times * (1 / (1 + t * x)).sum() + UNSEEN) / total)

    def excess(log_t: float) -> float:
        t = math.exp(log_t)
        return total * math.log(share(t)) + times * float(np.log1p(t * x).sum()) - allowed

    if excess(_LARGEST_LOG) <= 0:
        return 0.0
    t = math.exp(scipy.optimize.brentq(excess, -_LARGEST_LOG, _LARGEST_LOG))
    return float((1 / share(t) - 1) / t)
