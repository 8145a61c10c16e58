"""Intervals of means of bounded figures, such as scores from 0 to 1 or win shares.

Student's t is unreliable if scores are near an end of their scale or a few queries determine the mean. With 20 queries
and a mean of 0.92 it covers the true mean in 76 to 92 % of cases. If 5 % of queries are complete losses, its lower end
passes a worse system as "not worse" in up to 36 % of cases. So each end of the interval is the farther of two:

- the empirical likelihood (Owen 2001, *Empirical Likelihood*, sections 2.9 and 3.3) of the figures and of ``UNSEEN``
  additional figures at that end of the scale. Chen, Variyath and Abraham (2008, J. Computational and Graphical
  Statistics 17) add such a figure so that the likelihood exists. The end is where the log-likelihood ratio reaches
  t^2 / 2, for Student's t with n - 1 degrees of freedom.
- the end if every figure that is not a complete loss equalled the best one: the interval of Clopper and Pearson (1934,
  Biometrika 26) for the share of these figures. It is exact for rare, complete losses and for constant figures.

``benchmarks/coverage.py`` and ``benchmarks/gate.py`` measure its coverage.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import Interval, student
from retrieval_eval.stats.estimate import Estimate

METHOD: Final = "empirical likelihood"
UNSEEN: Final = 0.25
"""Number of figures added at the end of the scale. More would lower the power: a loss of 0.17 on 30 queries is detected
in 40 % of cases with 1, and in 85 % with 0.25. Fewer would pass too many worse systems with rare, complete losses."""
LOST: Final = 0.1
"""Figures up to this value count as complete losses."""
_LARGEST_LOG: Final = 60.0


def mean_interval(figures: Floats, level: float = 0.95, *, times: float = 1.0) -> Interval:
    """Interval of the mean of figures from 0 to 1, shape (n,), as if each figure occurred ``times`` times."""
    return _low(figures, level, times), 1 - _low(1 - figures, level, times)


def ratio_estimate(parts: ArrayLike, wholes: ArrayLike, ends: Interval = (0.0, 1.0)) -> Estimate:
    """``sum(parts) / sum(wholes)`` over clusters, such as the mean over all turns of conversations, with its interval.

    The interval is that of the mean of the clusters' contributions, ``m + (part - m * whole) / mean(wholes)``.

    Args:
        parts: sum of the figures of each cluster, shape (clusters,).
        wholes: number of figures of each cluster; clusters without figures are left out.
        ends: ends of a figure's scale.

    Returns:
        An estimate; without an interval for fewer than two clusters.
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
    return Estimate(value, low, high, int(whole.size), METHOD)


def mean_estimates(values: Floats, unit: NDArray[np.int64], ends: Interval | None = None) -> tuple[Estimate, ...]:
    """Means over queries with intervals, ignoring NaN.

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
