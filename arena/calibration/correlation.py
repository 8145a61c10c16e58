"""Correlation and differences between a judge's values and people's.

Pearson, Spearman and Kendall: standard errors come from the jackknife over queries, since items of one query are
dependent. Intervals and p-values use the same standard error on Fisher's z scale, with Student's t and one degree of
freedom less than there are queries, so an interval excludes 0 exactly if p is below 0.05. A test that treated items as
independent would report agreement where the items of a query only share noise.

Bland and Altman (1986, The Lancet 327): the bias is the mean of judge minus people. The limits of agreement are the
bias plus and minus 1.96 standard deviations of the differences; about 95 % of all differences lie between them. A judge
can rank items correctly and still be one grade too generous.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import jackknife_estimate, numbered, student
from retrieval_eval.stats.estimate import Coefficient, Estimate
from retrieval_eval.stats.rank import pair_sums, weighted_taus

_CELLS_IN_MEMORY = 4_000_000
_CERTAIN = 1 - 1e-12
_NO_SPREAD = 1e-12


class Correlations(Struct, frozen=True):
    """Correlations between the values that two raters, such as judge and people, gave to the same ``n`` items.

    Attributes:
        queries: number of queries with these items.
        pearson: product-moment correlation of the values.
        spearman: product-moment correlation of the values' mid-ranks.
        kendall: Kendall's tau-b over all pairs of items.
    """

    n: int
    queries: int
    pearson: Coefficient
    spearman: Coefficient
    kendall: Coefficient


def correlations(
    first: Sequence[float], second: Sequence[float], queries: Sequence[Hashable], *, mirrored: bool = False
) -> Correlations:
    """Correlate two raters' values of the same items; ``queries`` names the query of each item.

    If the values are verdicts, 1 and -1 for the two agents (``mirrored``), the order of the agents is arbitrary. Each
    item then counts twice, the second time with opposite signs.
    """
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    unit, n, units = numbered(queries), x.size, len(set(queries))
    if not n:
        return Correlations(0, 0, Coefficient(None), Coefficient(None), Coefficient(None))
    if mirrored:
        x, y, unit = np.concatenate([x, -x]), np.concatenate([y, -y]), np.concatenate([unit, unit])
    weights = np.vstack([np.ones((1, units)), 1.0 - np.eye(units)])
    sums = pair_sums(x, y, unit, units)

    def spearmans(drawn: Floats) -> Floats:
        return _moments(_mid_ranks(x, unit, drawn), _mid_ranks(y, unit, drawn), drawn[:, unit])

    return Correlations(
        n,
        units,
        _coefficient(_chunked(lambda drawn: _moments(x[np.newaxis], y[np.newaxis], drawn[:, unit]), weights, x.size)),
        _coefficient(_chunked(spearmans, weights, x.size)),
        _coefficient(weighted_taus(sums, weights)),
    )


def _chunked(statistic: Callable[[Floats], Floats], weights: Floats, n: int) -> Floats:
    step = max(1, _CELLS_IN_MEMORY // max(1, n))
    return np.concatenate([statistic(weights[start : start + step]) for start in range(0, len(weights), step)])


def _moments(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Product-moment correlation of ``x`` and ``y`` under each row of weights.

    Shapes (1 or samples, n) for values and (samples, n) for weights give (samples,).
    """
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    dx = x - (weights * x).sum(axis=1, keepdims=True) / total
    dy = y - (weights * y).sum(axis=1, keepdims=True) / total
    xx, yy, xy = ((weights * product).sum(axis=1) for product in (dx * dx, dy * dy, dx * dy))
    spread = np.sqrt(xx * yy)
    return np.where(spread > _NO_SPREAD, xy / np.where(spread > _NO_SPREAD, spread, 1.0), np.nan)


def _mid_ranks(values: Floats, unit: NDArray[np.int64], weights: Floats) -> Floats:
    """Mid-ranks of the values if each is repeated as often as its query's weight says.

    ``unit`` is the index of each value's query. Weights of shape (samples, queries) give ranks of shape (samples, n).
    """
    distinct, index = np.unique(values, return_inverse=True)
    counts = np.zeros((weights.shape[1], distinct.size))
    np.add.at(counts, (unit, index), 1)
    frequencies = weights @ counts
    ranks: Floats = (frequencies.cumsum(axis=1) - frequencies / 2)[:, index]
    return ranks


def _coefficient(values: Floats) -> Coefficient:
    """A coefficient with its jackknife interval.

    ``values`` has first the coefficient over all queries, then the coefficients without one query each.
    """
    value, replicates = float(values[0]), values[1:]
    if np.isnan(value):
        return Coefficient(None)
    units = replicates.size
    if units < 2 or np.isnan(replicates).any() or abs(value) > _CERTAIN:
        return Coefficient(value)
    error = float(np.sqrt((units - 1) / units * ((replicates - replicates.mean()) ** 2).sum())) / (1 - value**2)
    if error < _NO_SPREAD:
        return Coefficient(value)
    z, half = float(np.arctanh(value)), student(0.95, units) * error
    p_value = 2 * float(scipy.special.stdtr(units - 1, -abs(z) / error))
    return Coefficient(value, float(np.tanh(z - half)), float(np.tanh(z + half)), p_value=p_value)


_LIMIT = 1.96
_NO_WIDTH = 1e-9
"""Smallest width of an interval. If all queries have the same values, nothing shows how a figure varies, so narrower
intervals are left out."""


class PlotPoint(Struct, frozen=True):
    """A mark in the plot by Bland and Altman, for all items with the same two values.

    Attributes:
        mean: mean of the judge's and people's value.
        difference: the judge's value minus people's.
        times: number of items with these values.
    """

    mean: float
    difference: float
    times: int


class BlandAltman(Struct, frozen=True):
    """Differences between the judge's and people's values of ``n`` items; all intervals are clustered by query.

    Attributes:
        bias: mean difference; above 0 if the judge gives higher values than people.
        lower, upper: limits of agreement, between which about 95 % of the differences lie.
        sd: standard deviation of the differences, ``None`` for fewer than two items.
        points: marks of the plot, sorted by mean and difference.
    """

    n: int
    bias: Estimate
    lower: Estimate
    upper: Estimate
    sd: float | None
    points: tuple[PlotPoint, ...]


def bland_altman(people: Sequence[float], judge: Sequence[float], queries: Sequence[Hashable]) -> BlandAltman:
    """Describe how people's and the judge's values of the same items differ; ``queries`` names each item's query."""
    x, y = np.asarray(people, np.float64), np.asarray(judge, np.float64)
    difference = y - x
    totals = np.zeros((len(set(queries)), 3))
    np.add.at(totals, numbered(queries), np.stack([np.ones(x.size), difference, difference**2], axis=1))
    sd = float(difference.std(ddof=1)) if x.size > 1 else None
    marks, times = np.unique(np.stack([(x + y) / 2, difference], axis=1), axis=0, return_counts=True)
    points = [PlotPoint(mean, gap, count) for (mean, gap), count in zip(marks.tolist(), times.tolist(), strict=True)]
    bias, lower, upper = (_estimate(totals, factor) for factor in (0.0, -_LIMIT, _LIMIT))
    return BlandAltman(x.size, bias, lower, upper, sd, tuple(points))


def _estimate(totals: Floats, factor: float) -> Estimate:
    """Mean difference plus ``factor`` standard deviations, with a jackknife interval.

    ``totals`` has the number, the sum and the sum of squares of the differences of each query, shape (queries, 3).
    """

    def statistic(sums: Floats) -> Floats:
        n, total, squares = np.moveaxis(sums, -1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = total / n
            if not factor:
                return np.asarray(mean, np.float64)
            return np.asarray(mean + factor * np.sqrt(np.maximum(squares - n * mean**2, 0) / (n - 1)), np.float64)

    return jackknife_estimate(statistic, totals, narrowest=_NO_WIDTH)
