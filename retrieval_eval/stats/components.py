"""Queries and judges as two sources of error: variances, intervals and parts, from arrays.

A figure, such as the difference of two agents, is estimated from cells: query by judge. The *contribution* of a cell is
what it adds to the estimate's error; the contributions of a figure sum to 0. For a mean they are the weighted
deviations from the mean (``contributions_of_mean``), for a rating its influence function.

With judges as a random sample of such judges (Cornfield and Tukey 1956, Annals of Mathematical Statistics 27), the
variance of a mean over complete cells is (MSQ + MSJ - MSE) / (n_q n_j). ``Variance`` leaves out MSE, so that few judges
without a visible difference do not get the interval of fixed judges, and takes the degrees of freedom of Satterthwaite
(1946, Biometrics Bulletin 2). The same sums of squared contributions serve cells that are missing and figures that are
no means: they are the variance of Owen's pigeonhole bootstrap (2007, Annals of Applied Statistics 1) without its term
for single cells and with n / (n - 1) for each factor.

Parts of the variance have generalized intervals (Weerahandi 1995, *Exact Statistical Methods for Data Analysis*): each
mean square is divided by draws of its chi-squared distribution. Missing cells are filled by an additive fit, and mean
squares use harmonic means of the numbers of cells ("unweighted means"; Thomas and Hultquist 1978, Annals
of Statistics 6). ``benchmarks/judges_random.py`` measures the coverage of all of these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import numpy as np
import scipy
from msgspec import Struct, field
from msgspec.structs import replace

from retrieval_eval.stats import Bools, Floats, Ints
from retrieval_eval.stats.bootstrap import COEFFICIENT, jackknife_estimate
from retrieval_eval.stats.estimate import Estimate

FEWEST_JUDGES: Final = 3
"""With fewer judges there is no interval for other judges."""
ROUGH: Final = 5
"""With fewer judges an interval for other judges is rough."""
METHOD: Final = "queries and judges"
QUERIES: Final = "queries"
JUDGES: Final = "judges"
ANSWERS: Final = "answers"
REST: Final = "rest"
"""Names of the parts; the rest is the interaction of query and judge, with the chance of single verdicts. Repeated
answers tell what a query's other answers would have changed from what other queries would have."""
_CHANCE: Final = "chance"
"""What is left of single cells (query, judge and repeat); not a part, but taken off others."""
_DRAWS: Final = 10_000
_FILLS: Final = 40
"""Number of alternating fits of queries and judges to fill missing cells; enough for a fifth of the cells missing."""
_TINY: Final = 1e-300


class Variance(Struct, frozen=True, eq=False):
    """Variance of figures for other queries and other judges; ``axis 0`` of each array is the figure.

    Attributes:
        of_queries, of_judges: the two terms; MSQ / (n_q n_j) and MSJ / (n_q n_j) if no cell is missing.
        queries, judges: number of queries and of judges with a cell.
    """

    of_queries: Floats
    of_judges: Floats
    queries: Ints
    judges: Ints

    @property
    def freedom(self) -> Floats:
        """Degrees of freedom of the sum of both terms."""
        squares = self.of_queries**2 / np.maximum(self.queries - 1, 1) + self.of_judges**2 / np.maximum(
            self.judges - 1, 1
        )
        total = self.of_queries + self.of_judges
        return np.where(squares > 0, total**2 / np.maximum(squares, _TINY), np.maximum(self.judges - 1, 1))

    def half_widths(self, tail: float | Floats) -> Floats:
        """Half the width of each interval with probability ``tail`` above it; NaN below ``FEWEST_JUDGES``."""
        reach = -scipy.special.stdtrit(self.freedom, tail) * np.sqrt(self.of_queries + self.of_judges)
        return np.where((self.judges < FEWEST_JUDGES) | (self.queries < 2), np.nan, reach)


class Stratum(Struct, frozen=True, eq=False):
    """Sum of squares of one source of error, for all figures.

    Attributes:
        squares, freedom: sum of squares and its degrees of freedom, shape (figures,).
        size: the mean square divided by it is a term of the figure's variance, shape (figures,); infinite if
            there is no such term.
        over: strata whose mean squares are part of this one, by name, with their sign.
    """

    squares: Floats
    freedom: Floats
    size: Floats
    over: Mapping[str, int] = field(default_factory=lambda: {REST: 1})


def contributions_of_mean(values: Floats) -> Floats:
    """Contributions to the mean over queries of each query's mean over judges; NaN where missing.

    ``values`` has shape (..., queries, judges) and NaN for missing cells.
    """
    seen = ~np.isnan(values)
    judged = seen.sum(axis=-1, keepdims=True)
    means = np.where(seen, values, 0.0).sum(axis=-1, keepdims=True) / np.maximum(judged, 1)
    queries = (judged > 0).sum(axis=-2, keepdims=True)
    figure = means.sum(axis=-2, keepdims=True) / np.maximum(queries, 1)
    return np.asarray((values - figure) / np.maximum(judged * queries, 1), np.float64)


def variance(contributions: Floats) -> Variance:
    """The variance of figures; ``contributions`` has shape (figures, queries, judges) and NaN for missing cells."""
    seen = ~np.isnan(contributions)
    cells = np.where(seen, contributions, 0.0)
    queries, judges = (np.asarray(seen.any(axis=axis).sum(axis=1), np.int64) for axis in (2, 1))
    of_queries, of_judges = (
        (cells.sum(axis=axis) ** 2).sum(axis=1) * number / np.maximum(number - 1, 1)
        for axis, number in ((2, queries), (1, judges))
    )
    return Variance(of_queries, of_judges, queries, judges)


def for_other_judges(first: Estimate, half: float) -> Estimate:
    """The interval of ``first``, which holds the judges fixed, widened for other judges; never narrower than ``first``.

    ``half`` is from ``Variance.half_widths``; without it, or without an interval of ``first``, there is none.
    """
    if first.value is None or first.low is None or first.high is None or math.isnan(half):
        return Estimate(first.value, n=first.n)
    low, high = min(first.low, first.value - half), max(first.high, first.value + half)
    return replace(first, low=low, high=high, method=METHOD)


def for_one_judge(means: Floats, level: float = 0.95) -> Estimate:
    """Prediction interval of the figure that another single judge would give on these queries.

    ``means`` has the figure by each judge alone, shape (judges,).
    """
    known = means[~np.isnan(means)]
    if known.size < FEWEST_JUDGES:
        return Estimate(None, n=known.size)
    reach = scipy.special.stdtrit(known.size - 1, (1 + level) / 2) * known.std(ddof=1) * math.sqrt(1 + 1 / known.size)
    return Estimate(
        float(known.mean()), float(known.mean() - reach), float(known.mean() + reach), known.size, "prediction"
    )


def strata(contributions: Floats) -> dict[str, Stratum]:
    """The sources of error of figures by queries, judges and the rest; shape and NaN as in ``variance``."""
    seen = ~np.isnan(contributions)
    has_query, has_judge = (np.asarray(seen.any(axis=axis), np.bool_) for axis in (2, 1))
    judged, judging = np.maximum(seen.sum(axis=2), 1), np.maximum(seen.sum(axis=1), 1)
    queries, judges = has_query.sum(axis=1), has_judge.sum(axis=1)
    possible = np.asarray(has_query[:, :, np.newaxis] & has_judge[:, np.newaxis], np.bool_)
    scale = queries[:, np.newaxis, np.newaxis] * judged[:, :, np.newaxis]
    values = _filled(np.where(seen, contributions * scale, 0.0), seen, possible)
    of_query, of_judge = _mean(values, possible, 2), _mean(values, possible, 1)
    mean = _mean(of_query, has_query, 1)
    rest = values - of_query[:, :, np.newaxis] - of_judge[:, np.newaxis] + mean[:, np.newaxis, np.newaxis]
    cells_of_query = queries / np.maximum((has_query / judged).sum(axis=1), _TINY)  # harmonic means
    cells_of_judge = judges / np.maximum((has_judge / judging).sum(axis=1), _TINY)
    squares_of_query, squares_of_judge = (
        (np.where(has, of - mean[:, np.newaxis], 0.0) ** 2).sum(axis=1)
        for has, of in ((has_query, of_query), (has_judge, of_judge))
    )
    cells = seen.sum(axis=(1, 2))
    left = np.maximum(cells - queries - judges + 1, 1)
    return {
        QUERIES: Stratum(squares_of_query * cells_of_query, queries - 1.0, queries * cells_of_query),
        JUDGES: Stratum(squares_of_judge * cells_of_judge, judges - 1.0, judges * cells_of_judge),
        REST: Stratum((np.where(seen, rest, 0.0) ** 2).sum(axis=(1, 2)), left.astype(np.float64), cells * 1.0, {}),
    }


def with_answers(contributions: Floats) -> dict[str, Stratum]:
    """``strata`` with the repeated answers as a further source; shape (figures, queries, judges, repeats).

    Answers vary within the query, for all judges alike. The mean square of queries contains theirs.
    """
    seen = ~np.isnan(contributions)
    cells = np.where(seen, contributions, 0.0)
    whole = np.asarray(seen.any(axis=3), np.bool_)
    sources = strata(np.where(whole, cells.sum(axis=3), np.nan))
    of_answer, has_answer = cells.sum(axis=2), np.asarray(seen.any(axis=2), np.bool_)
    number, queries = has_answer.sum(axis=2), whole.any(axis=2).sum(axis=1)
    scale = queries[:, np.newaxis] * np.maximum(number, 1)
    values = of_answer * scale[:, :, np.newaxis]
    mean = _mean(values, has_answer, 2)
    squares = np.where(has_answer, (values - mean[:, :, np.newaxis]) ** 2, 0.0).sum(axis=(1, 2))
    share = np.where(number > 0, 1 / np.maximum(number, 1), 0.0).sum(axis=1) / np.maximum(queries, 1)
    judged = sources[QUERIES].size / np.maximum(queries, 1)
    freedom = np.maximum(number - 1, 0).sum(axis=1).astype(np.float64)
    sources[QUERIES] = replace(sources[QUERIES], over={ANSWERS: 1, REST: 1, _CHANCE: -1})
    sources[ANSWERS] = Stratum(squares * share * judged, freedom, sources[QUERIES].size, {_CHANCE: 1})
    judges, both = whole.sum(axis=2), seen.sum(axis=(2, 3))
    single = cells * (scale * judges)[:, :, np.newaxis, np.newaxis]
    of_judge = _mean(single, seen, 3)[..., np.newaxis]
    left = single - of_judge - _mean(single, seen, 2)[:, :, np.newaxis] + mean[:, :, np.newaxis, np.newaxis]
    left_freedom = np.maximum(both - judges - number + 1, 0).sum(axis=1).astype(np.float64)
    squares_left = (np.where(seen, left, 0.0) ** 2).sum(axis=(1, 2, 3)) * share
    sources[_CHANCE] = Stratum(squares_left, left_freedom, np.full(len(cells), np.inf), {})
    return sources


def parts(sources: Mapping[str, Stratum], level: float = 0.95) -> list[dict[str, Estimate]]:
    """For each figure, the share of its variance that each source makes, with generalized intervals.

    A figure without variance has no shares.
    """
    names, every = [*sources], [*sources.values()]
    over = np.array([[source.over.get(name, 0) for name in names] for source in every], np.float64)
    squares, freedom, size = (
        np.array([getattr(source, field) for source in every]) for field in ("squares", "freedom", "size")
    )
    points = _shares(squares / np.maximum(freedom, 1), over, size)
    estimates_of = []
    for figure, shares in enumerate(points.T.tolist()):
        chi_squared = [
            _chi_squared(max(1.0, degrees), order) for order, degrees in enumerate(freedom[:, figure].tolist())
        ]
        drawn = squares[:, figure, np.newaxis] / chi_squared
        ends = [
            np.quantile(_shares(drawn, over, size[:, figure, np.newaxis], signed=signed), tail, axis=1).tolist()
            for signed, tail in ((False, (1 - level) / 2), (True, (1 + level) / 2))
        ]
        estimates_of.append(
            {
                name: Estimate(None) if math.isnan(share) else Estimate(share, low, high, method="generalized")
                for name, share, low, high in zip(names, shares, *ends, strict=True)
                if name != _CHANCE
            }
        )
    return estimates_of


def _shares(mean_squares: Floats, over: Floats, size: Floats, *, signed: bool = False) -> Floats:
    """Each source's share of the variance, shape (sources, ...), from mean squares; NaN without variance.

    A term below 0 counts as 0, but with ``signed`` lowers the whole. Upper ends need this: if judges do not differ,
    their terms are below 0 in half of the draws, and without them the share of the queries would end too low.
    """
    terms = (mean_squares - np.tensordot(over, mean_squares, 1)) / np.maximum(size, 1.0)
    positive = np.maximum(terms, 0.0)
    total = np.maximum(terms.sum(axis=0), positive.max(axis=0)) if signed else positive.sum(axis=0)
    return np.asarray(np.where(total > 0, positive / np.where(total > 0, total, 1.0), np.nan), np.float64)


@lru_cache(maxsize=64)  # the figures of a board have the same few degrees of freedom
def _chi_squared(freedom: float, source: int) -> Floats:
    return np.random.default_rng(source).chisquare(freedom, _DRAWS)


def _filled(values: Floats, seen: Bools, possible: Bools) -> Floats:
    """Values with an additive fit of queries and judges in the missing cells."""
    if (seen | ~possible).all():
        return values
    for _ in range(_FILLS):
        of_query, of_judge = _mean(values, possible, 2), _mean(values, possible, 1)
        mean = _mean(of_query, np.asarray(possible.any(axis=2), np.bool_), 1)
        fit = of_query[:, :, np.newaxis] + of_judge[:, np.newaxis] - mean[:, np.newaxis, np.newaxis]
        values = np.where(seen, values, fit)
    return values


def _mean(values: Floats, known: Bools, axis: int) -> Floats:
    return np.asarray(np.where(known, values, 0.0).sum(axis=axis) / np.maximum(known.sum(axis=axis), 1), np.float64)


def effective_votes(errors: Floats, unit: Ints) -> Estimate:
    """Number of independent judges that a panel is worth: k / (1 + (k - 1) r) (Kish 1965, *Survey Sampling*).

    r is the mean correlation of two judges' errors on the same items, with its jackknife interval over clusters.

    Args:
        errors: error of each judge on each item, shape (items, judges); NaN where it did not judge.
        unit: the cluster of each item, such as its query.
    """
    judges = errors.shape[1]
    one, other = np.triu_indices(judges, k=1)
    both = ~np.isnan(errors[:, one]) & ~np.isnan(errors[:, other])
    x, y = (np.where(both, errors[:, side], 0.0) for side in (one, other))
    sums = np.stack([both.astype(np.float64), x, y, x * x, y * y, x * y], axis=1)
    totals = np.zeros((int(unit.max(initial=-1)) + 1, *sums.shape[1:]))
    np.add.at(totals, unit, sums)
    r = jackknife_estimate(_mean_correlation, totals, COEFFICIENT)
    worth = (None if end is None else judges / max(1.0, 1 + (judges - 1) * end) for end in (r.value, r.high, r.low))
    value, low, high = worth
    return Estimate(value, low, high, len(totals), "jackknife")


def _mean_correlation(totals: Floats) -> Floats:
    """Mean over pairs of judges of the correlation of their errors, shape (n, 6, pairs) to (n,)."""
    number, x, y, xx, yy, xy = np.moveaxis(totals, 1, 0)
    number = np.maximum(number, 1)
    spread = (xx - x * x / number) * (yy - y * y / number)
    known = spread > _TINY
    correlation = np.where(known, (xy - x * y / number) / np.sqrt(np.where(known, spread, 1.0)), 0.0)
    pairs = known.sum(axis=-1)
    return np.asarray(np.where(pairs > 0, correlation.sum(axis=-1) / np.maximum(pairs, 1), np.nan), np.float64)
