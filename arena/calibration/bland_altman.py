"""How far a judge's values lie from people's: Bland and Altman (1986, The Lancet 327).

The bias is the mean of judge less people, the limits of agreement are the bias -+ 1.96 standard deviations of the
differences: between them lie about 95 % of all differences. A judge can agree in order and be one grade too kind.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arena.ratings.games import Floats
from retrieval_eval.stats.bootstrap import jackknife_interval
from retrieval_eval.stats.estimate import Estimate

_LIMIT = 1.96
_NO_WIDTH = 1e-9
"""Where no query differs from another, nothing shows how the figure varies: no interval is no claim of exactness."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing of the plot, or as many as ``times`` says: the mean of both values, and judge less people."""

    mean: float
    difference: float
    times: int


@dataclass(frozen=True, slots=True)
class BlandAltman:
    """Differences of judge and people.

    Attributes:
        n: things.
        bias: mean difference; above 0 the judge gives more than people.
        lower, upper: limits of agreement; intervals of all three are clustered by query.
        sd: standard deviation of the differences, ``None`` for fewer than two things.
        points: of the plot, by mean and difference.
    """

    n: int
    bias: Estimate
    lower: Estimate
    upper: Estimate
    sd: float | None
    points: tuple[Difference, ...]


def bland_altman(people: Sequence[float], judge: Sequence[float], queries: Sequence[Hashable]) -> BlandAltman:
    """Compare two values of each thing.

    Args:
        people: people's values, shape (n,).
        judge: the judge's.
        queries: the query of each.
    """
    x, y = np.asarray(people, np.float64), np.asarray(judge, np.float64)
    difference = y - x
    number = {query: at for at, query in enumerate(dict.fromkeys(queries))}
    unit: NDArray[np.int64] = np.array([number[query] for query in queries], np.int64)
    totals = np.zeros((len(number), 3))
    np.add.at(totals, unit, np.stack([np.ones(x.size), difference, difference**2], axis=1))
    sd = float(difference.std(ddof=1)) if x.size > 1 else None
    places, times = np.unique(np.stack([(x + y) / 2, difference], axis=1), axis=0, return_counts=True)
    points = [Difference(mean, gap, count) for (mean, gap), count in zip(places.tolist(), times.tolist(), strict=True)]
    bias, lower, upper = (_estimate(totals, factor) for factor in (0.0, -_LIMIT, _LIMIT))
    return BlandAltman(x.size, bias, lower, upper, sd, tuple(points))


def _estimate(totals: Floats, factor: float) -> Estimate:
    """Bias plus so many standard deviations, with its jackknife interval."""

    def statistic(sums: Floats) -> Floats:
        n, total, squares = np.moveaxis(sums, -1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = total / n
            if not factor:
                return np.asarray(mean, np.float64)
            return np.asarray(mean + factor * np.sqrt(np.maximum(squares - n * mean**2, 0) / (n - 1)), np.float64)

    value = float(statistic(totals.sum(axis=0)[np.newaxis])[0])
    if np.isnan(value):
        return Estimate(None)
    low, high = jackknife_interval(statistic, totals) or (value, value)
    return Estimate(value, low, high) if high - low > _NO_WIDTH else Estimate(value)
