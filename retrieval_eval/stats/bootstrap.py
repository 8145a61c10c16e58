"""How far a figure would move had other queries been asked: the bootstrap over clusters, as a rule queries.

Labels, ranks and scores of one query depend on each other, so whole queries are drawn with replacement (Efron and
Tibshirani 1993, *An Introduction to the Bootstrap*, chapter 8): a sample is how often each query was drawn. All
intervals of the product that come from such samples are made by ``estimates``; ``benchmarks/coverage`` shows that they
hold what they promise at 25 and at 80 queries.

Statistics of counts have intervals from one row of totals per cluster, so that a statistic of all rows and what it
would be without one cluster are equally cheap; Student's t with one degree of freedom less than there are clusters is
used.
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

from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.estimate import Estimate

FEW_QUERIES: Final = 10
"""With fewer queries a bootstrap over them has too little to draw from."""
METHOD: Final = "bootstrap"


Clusters: TypeAlias = Mapping[str, str]
"""The conversation of each query that is a turn of one: what its scores depend on each other within, and so what is
drawn. A query that is not there is its own."""
ALONE: Final[Clusters] = MappingProxyType({})
"""No conversations: every query is its own."""


def numbered(names: Iterable[Hashable]) -> NDArray[np.int64]:
    """Names as numbers from 0, in the order of their appearance."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], np.int64)


def units_of(queries: Iterable[str], clusters: Clusters = ALONE) -> NDArray[np.int64]:
    """The number of each query's cluster, in the order of their appearance, shape (queries,)."""
    return numbered(clusters.get(query_id, query_id) for query_id in queries)


def units_with(seen: NDArray[np.bool_], unit: NDArray[np.int64]) -> NDArray[np.int64]:
    """In how many clusters any query is seen, shape (..., queries) to (...)."""
    if unit.size == int(unit.max(initial=-1)) + 1:
        return np.asarray(seen.sum(axis=-1), np.int64)
    order = np.argsort(unit, kind="stable")
    starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
    return np.asarray(np.logical_or.reduceat(seen[..., order], starts, axis=-1).sum(axis=-1), np.int64)


def sums_by_unit(values: Floats, unit: NDArray[np.int64]) -> Floats:
    """Sums over the queries of each cluster, shape (figures, queries) to (figures, clusters)."""
    units = int(unit.max(initial=-1)) + 1
    if units == unit.size:
        return values
    return np.array([np.bincount(unit, own, units) for own in values])


def unit_weights(unit: NDArray[np.int64], samples: int, seed: int) -> Floats:
    """How often each query is drawn in each sample, all of one cluster alike, shape (samples, queries)."""
    units = int(unit.max(initial=-1)) + 1
    weights = query_weights(units, samples, seed)
    return weights if units == unit.size else weights[:, unit]


@lru_cache(maxsize=2)  # many judges of one benchmark have the same queries
def query_weights(queries: int, samples: int, seed: int) -> Floats:
    """How often each query is drawn in each sample, shape (samples, queries), read-only; rows add up to ``queries``."""
    if queries == 0:
        return np.zeros((samples, 0))
    drawn = np.random.default_rng(seed).multinomial(queries, np.full(queries, 1 / queries), size=samples)
    weights = drawn.astype(np.float64)
    weights.flags.writeable = False
    return weights


def weighted_means(values: Floats, weights: Floats) -> Floats:
    """Weighted means over queries of what is defined, shapes (runs, queries), (samples, queries) to (samples, runs)."""
    defined = ~np.isnan(values)
    used = weights @ defined.T.astype(np.float64)
    sums = weights @ np.where(defined, values, 0.0).T
    return np.where(used > 0, sums / np.where(used > 0, used, 1.0), np.nan)


def whole(*samples: Floats) -> NDArray[np.bool_]:
    """Which samples define every figure of each set, shape (samples,) of sets of shape (samples, figures)."""
    return np.asarray(~np.any([np.isnan(one).any(axis=1) for one in samples], axis=0), np.bool_)


def estimates(
    values: ArrayLike, samples: Floats, queries: ArrayLike, level: float = 0.95, *, centred: bool = False
) -> tuple[Estimate, ...]:
    """Percentile intervals, widened for few queries.

    A resample of n queries varies by (n - 1) / n too little, and percentiles are quantiles of a normal where those of
    Student's t are due. Both are put right by taking percentiles further out (Hesterberg 2015, The American
    Statistician 69, "What teachers should know about the bootstrap", section 4.1).

    Args:
        values: the figures, shape (figures,); NaN is not defined.
        samples: the same of resampled queries, shape (samples, figures); NaN where a sample does not define it.
        queries: number of queries drawn from, one for all figures or one of each.
        level: of the intervals.
        centred: move the samples until their mean is the figure. Rank correlations need it, since a resample is
            noisier than the queries themselves and noise lowers a correlation; their ends stay within -1 and 1.

    Returns:
        One estimate per figure; without an interval for fewer than two queries or two samples, or where all are alike.
    """
    figures = np.asarray(values, np.float64)
    units = np.broadcast_to(np.asarray(queries, np.int64), figures.shape)
    bounds = np.full((2, figures.size), np.nan)
    for place, (figure, unit) in enumerate(zip(figures, units.tolist(), strict=True)):
        sampled = samples[:, place]
        sampled = sampled[~np.isnan(sampled)]
        if unit < 2 or sampled.size < 2 or np.isnan(figure) or np.ptp(sampled) == 0:
            continue  # where no sample differs, nothing shows how the figure varies
        far = math.sqrt(unit / (unit - 1)) * float(scipy.special.stdtrit(unit - 1, 1 - (1 + level) / 2))
        tail = float(scipy.special.ndtr(far))  # the share of samples beyond each end
        ends = np.quantile(sampled, [tail, 1 - tail])
        bounds[:, place] = np.clip(ends + (figure - sampled.mean()), -1, 1) if centred else ends
    return tuple(
        Estimate(
            None if math.isnan(value) else value,
            None if math.isnan(low) else low,
            None if math.isnan(high) else high,
            unit,
            "" if math.isnan(value) else METHOD,
        )
        for value, low, high, unit in zip(figures.tolist(), *bounds.tolist(), units.tolist(), strict=True)
    )


Interval: TypeAlias = tuple[float, float]
_NEVER: Final = 1e-300
"""In place of a whole of nothing."""


@lru_cache(maxsize=4096)  # asked for every pair of agents
def student(level: float, units: float) -> float:
    """Two-sided quantile of Student's t for ``units`` independent clusters."""
    return float(scipy.special.stdtrit(units - 1, (1 + level) / 2))


def share_interval(parts: Floats, wholes: Floats, level: float = 0.95, *, means: bool = False) -> Interval | None:
    """Interval of ``sum(parts) / sum(wholes)``, where row q holds the counts of cluster q.

    Wilson's interval with the effective number of observations, which is that of independent ones with the variance
    seen between clusters (Korn and Graubard 1998, Survey Methodology 24; with Wilson's formula, Dean and Pagano 2015,
    Journal of Survey Statistics and Methodology 3). Where all clusters agree, each counts as one observation: forty
    verdicts on one query never look like forty queries. With ``means`` parts are no counts: see ``wilson``.

    Returns:
        ``None`` where fewer than two clusters have anything to count.
    """
    (found,) = share_intervals(parts, wholes, np.zeros(wholes.size, np.int64), 1, level, means=means)
    return found


def share_intervals(
    parts: Floats,
    wholes: Floats,
    share: NDArray[np.integer[Any]],
    shares: int,
    level: float = 0.95,
    *,
    means: bool = False,
) -> list[Interval | None]:
    """The same of many shares at once: each cluster is of the one that ``share`` numbers."""
    units = np.bincount(share[wholes > 0], minlength=shares)
    part, whole = (np.bincount(share, own, shares) for own in (parts, wholes))
    values = part / np.maximum(whole, _NEVER)
    squares = np.bincount(share, (parts - values[share] * wholes) ** 2 * (wholes > 0), shares)
    variances = squares / np.maximum(whole, _NEVER) ** 2 * units / np.maximum(units - 1, 1)
    return [
        wilson(value, variance, math.inf if means else size, number, level) if number > 1 else None
        for value, variance, size, number in zip(
            values.tolist(), variances.tolist(), whole.tolist(), units.tolist(), strict=True
        )
    ]


def share_estimate(parts: ArrayLike, wholes: ArrayLike) -> Estimate:
    """``sum(parts) / sum(wholes)`` with its interval, as ``share_interval`` has it; nothing where there is no whole."""
    part, whole = np.asarray(parts, np.float64), np.asarray(wholes, np.float64)
    if not whole.any():
        return Estimate(None)
    return Estimate(float(part.sum() / whole.sum()), *(share_interval(part, whole) or ()))


def wilson(share: float, variance: float, size: float, units: float, level: float = 0.95) -> Interval:
    """Wilson's interval of a share of ``size`` things with the variance seen between ``units`` independent ones.

    Of a mean of shares the size is infinite: the variance alone says how much it rests on.
    Without any variance each unit counts as one observation.
    """
    spread = max(0.0, share * (1 - share))  # a share of 1 may be a little more
    effective = min(size, spread / variance) if variance > 1e-12 * spread and spread > 0 else units
    square = student(level, units) ** 2
    middle = (share + square / (2 * effective)) / (1 + square / effective)
    half = math.sqrt(square * (spread / effective + square / (4 * effective**2))) / (1 + square / effective)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


COEFFICIENT: Final[Interval] = (-1.0, 1.0)
"""Ends of kappa, alpha and kin, whose intervals are symmetric on Fisher's scale: with 12 queries 90 to 94 % hold what
they should where they are symmetric on the coefficient's own, and 94 to 98 % so."""


def jackknife_estimate(
    statistic: Callable[[Floats], Floats],
    totals: Floats,
    ends: Interval = (-math.inf, math.inf),
    *,
    narrowest: float = 0.0,
) -> Estimate:
    """``statistic(totals.sum(axis=0))`` with its interval, by leaving out one cluster at a time.

    There is none where fewer than two clusters have anything to count, or where the statistic hangs on a single one.

    Args:
        statistic: of a stack of totals, shape (n, ...) to (n,); NaN where it is not defined.
        totals: one row per cluster, shape (clusters, ...); rows of zeros are no clusters.
        ends: that the interval keeps within; see ``COEFFICIENT``.
        narrowest: no interval is given below this width: where no cluster differs from another, nothing shows how the
            figure varies, which is no claim of exactness.
    """
    (found,) = jackknife_estimates(statistic, totals, np.zeros(len(totals), np.int64), 1, ends, narrowest=narrowest)
    return found


def jackknife_estimates(
    statistic: Callable[[Floats], Floats],
    totals: Floats,
    figure: NDArray[np.integer[Any]],
    figures: int,
    ends: Interval = (-math.inf, math.inf),
    *,
    narrowest: float = 0.0,
) -> tuple[Estimate, ...]:
    """The same of many figures at once: each row of ``totals`` is a cluster of the one that ``figure`` numbers."""
    seen = totals.any(axis=tuple(range(1, totals.ndim)))
    order = np.argsort(figure[seen], kind="stable")
    rows, own = totals[seen][order], figure[seen][order]
    known, first, units = np.unique(own, return_index=True, return_counts=True)
    found = [Estimate(None)] * figures
    if not known.size:
        return tuple(found)
    whole = np.add.reduceat(rows, first, axis=0)
    place = np.repeat(np.arange(known.size), units)
    values, left = statistic(whole), statistic(whole[place] - rows)
    means = np.add.reduceat(left, first) / units
    sd = np.sqrt((units - 1) / units * np.add.reduceat((left - means[place]) ** 2, first))
    for at, value, number, spread in zip(known.tolist(), values.tolist(), units.tolist(), sd.tolist(), strict=True):
        if math.isnan(value):
            continue
        found[at] = Estimate(value)
        half = student(0.95, number) * spread if number > 1 else math.nan
        if not (math.isnan(half) or (narrowest and 2 * half <= narrowest)):
            low, high = _of_coefficient(value, half) if ends == COEFFICIENT else (value - half, value + half)
            found[at] = Estimate(value, max(ends[0], low), min(ends[1], high))
    return tuple(found)


def _of_coefficient(value: float, half: float) -> Interval:
    """Ends on Fisher's scale, on which a coefficient varies alike wherever it lies."""
    if not half or abs(value) >= 1:
        return value - half, value + half
    z, reach = math.atanh(value), half / (1 - value**2)
    return math.tanh(z - reach), math.tanh(z + reach)
