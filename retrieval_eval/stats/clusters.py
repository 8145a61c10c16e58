"""Intervals of statistics whose observations depend on each other within queries.

Everything here takes one row of totals per cluster (query), so that a statistic of all rows and what it would be
without one cluster are equally cheap. Student's t with one degree of freedom less than there are clusters is used
throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import scipy

from retrieval_eval.stats.bootstrap import Floats

Interval: TypeAlias = tuple[float, float]


def student(level: float, units: float) -> float:
    """Two-sided quantile of Student's t for ``units`` independent clusters."""
    return float(scipy.special.stdtrit(units - 1, (1 + level) / 2))


def share_interval(parts: Floats, wholes: Floats, level: float = 0.95) -> Interval | None:
    """Interval of ``sum(parts) / sum(wholes)``, where row q holds the counts of cluster q.

    Wilson's interval with the effective number of observations, which is that of independent ones with the variance
    seen between clusters (Korn and Graubard 1998, Survey Methodology 24; with Wilson's formula, Dean and Pagano 2015,
    Journal of Survey Statistics and Methodology 3). Where all clusters agree, each counts as one observation: forty
    verdicts on one query never look like forty queries.

    Returns:
        ``None`` where fewer than two clusters have anything to count.
    """
    seen = wholes > 0
    units, size = int(seen.sum()), float(wholes.sum())
    if units < 2:
        return None
    share = float(parts.sum()) / size
    excess = (parts - share * wholes)[seen]
    variance = float((excess**2).sum()) / size**2 * units / (units - 1)
    return wilson(share, variance, size, units, level)


def wilson(share: float, variance: float, size: float, units: float, level: float = 0.95) -> Interval:
    """Wilson's interval of a share of ``size`` things with the variance seen between ``units`` independent ones.

    Of a mean of shares the size is infinite: the variance alone says how much it rests on.
    Without any variance each unit counts as one observation.
    """
    spread = share * (1 - share)
    effective = min(size, spread / variance) if variance > 1e-12 * spread and spread > 0 else units
    square = student(level, units) ** 2
    middle = (share + square / (2 * effective)) / (1 + square / effective)
    half = np.sqrt(square * (spread / effective + square / (4 * effective**2))) / (1 + square / effective)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def jackknife_interval(statistic: Callable[[Floats], Floats], totals: Floats, level: float = 0.95) -> Interval | None:
    """Interval of ``statistic(totals.sum(axis=0))`` by leaving out one cluster at a time.

    Args:
        statistic: of a stack of totals, shape (n, ...) to (n,); NaN where it is not defined.
        totals: one row per cluster, shape (clusters, ...); rows of zeros are no clusters.
        level: of the interval.

    Returns:
        ``None`` where fewer than two clusters have anything to count, or the statistic hangs on a single one.
    """
    seen = totals.reshape(len(totals), -1).any(axis=1)
    units = int(seen.sum())
    if units < 2:
        return None
    whole = totals[seen].sum(axis=0)
    without = statistic(whole - totals[seen])
    if np.isnan(without).any():
        return None
    estimate = float(statistic(whole[np.newaxis])[0])
    sd = float(np.sqrt((units - 1) / units * ((without - without.mean()) ** 2).sum()))
    half = student(level, units) * sd
    return estimate - half, estimate + half
