"""The smallest difference that a run can find, from the variances that a pilot shows.

On one query, the mean square of the difference of two agents is q + e / k with k judges, see ``Components``; it depends
on the share of ties, and hardly on how far the agents are apart. An interval over n queries finds a difference d with
80 % probability if

    d = t(0.975) sqrt((q + e / k) / n) + t(0.8) sqrt((q + e / k - d^2) / n),

since intervals of bounded figures are about as wide as for equal agents. With r answers of each agent to a query, the
answers' variance a adds a / r to q. Intervals for other judges of this kind follow
the formula of ``components.Variance``. ``benchmarks/decidable.py`` shows what runs on recorded verdicts find.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from retrieval_eval.stats import Floats
from retrieval_eval.stats.components import FEWEST_JUDGES, JUDGES, REST, Variance, contributions_of_mean, strata
from retrieval_eval.stats.repeats import mean_of_repeats

FEWEST: Final = 8
"""Minimum number of queries of a pilot."""
ENOUGH: Final = 20
"""With fewer queries in the pilot, its variances are rough."""
_TAIL: Final = 0.975
_POWER: Final = 0.8


class Components(Struct, frozen=True):
    """Mean squares of the difference of two agents on a query, pooled over pairs.

    Attributes:
        queries: of the mean over all judges of this kind; with one judge, of that judge.
        rest: of single cells (query by judge) around it; ``None`` for one judge.
        judges: variance between judges; ``None`` below ``FEWEST_JUDGES``.
        answers: variance between the answers that the agents give when asked again; ``None`` without repeats.
    """

    queries: float
    rest: float | None = None
    judges: float | None = None
    answers: float | None = None

    def worth(self, repeats: int) -> float | None:
        """Variance with so many answers of each query, divided by that of as many games on new queries."""
        whole = self.queries + (self.answers or 0.0)
        return None if self.answers is None or not whole else (repeats * self.queries + self.answers) / whole


def components(values: Floats) -> Components:
    """Components of differences, shape (pairs, queries, judges) or (..., repeats); NaN where missing."""
    if values.ndim == 4:
        by_repeat = np.moveaxis(values, 3, 0)
        whole, answers = components(mean_of_repeats(by_repeat)), _answers(mean_of_repeats(np.moveaxis(values, 2, 0)))
        if answers is None:
            return whole
        each, share = answers
        return replace(whole, queries=max(0.0, whole.queries - each * share), answers=each)
    seen = ~np.isnan(values)
    judged = np.maximum(seen.sum(axis=2), 1)
    known = seen.any(axis=2)
    square = float(((np.where(seen, values, 0.0).sum(axis=2) / judged)[known] ** 2).mean())
    sources = strata(contributions_of_mean(values))
    of_judges, of_rest = sources[JUDGES], sources[REST]
    several = of_judges.freedom > 0
    if not several.any():
        return Components(square)
    rest = float(of_rest.squares[several].sum() / of_rest.freedom[several].sum())
    queries = max(0.0, square - rest * float((1 / judged[known]).mean()))
    freedom = of_judges.freedom[several]
    if freedom.max() + 1 < FEWEST_JUDGES:
        return Components(queries, rest)
    cells = of_judges.size[several] / (freedom + 1)
    between = float(((of_judges.squares[several] - freedom * rest) / cells).sum() / freedom.sum())
    return Components(queries, rest, max(0.0, between))


def _answers(by_judges: Floats) -> tuple[float, float] | None:
    """Variance between repeats, shape (pairs, queries, repeats), and the mean of 1 / repeats; ``None`` without any."""
    seen = ~np.isnan(by_judges)
    number = seen.sum(axis=2)
    freedom = np.maximum(number - 1, 0)
    if not freedom.any():
        return None
    mean = np.where(seen, by_judges, 0.0).sum(axis=2) / np.maximum(number, 1)
    squares = np.where(seen, (by_judges - mean[:, :, np.newaxis]) ** 2, 0.0)
    return float(squares.sum() / freedom.sum()), float((1 / number[number > 0]).mean())


def smallest_difference(
    parts: Components, queries: int, judges: int = 1, repeats: int = 1, *, others: bool = False
) -> float | None:
    """The smallest true difference that a 95 % interval tells from 0 in 80 % of runs; ``None`` if none is.

    With ``others`` the interval is that for other judges of this kind.
    """
    if queries < 2 or (others and (parts.judges is None or judges < FEWEST_JUDGES)):
        return None
    of_cells, of_judges = (parts.rest or 0.0) / judges, (parts.judges or 0.0) / judges
    square = parts.queries + of_cells + (parts.answers or 0.0) / repeats
    reach = _student(_TAIL, queries - 1) * math.sqrt(square / queries)
    if others:
        terms = square / queries, of_judges + of_cells / queries
        freedom = float(Variance(*map(np.array, (*terms, queries, judges))).freedom)
        reach = max(reach, _student(_TAIL, freedom) * math.sqrt(sum(terms)))
    further = _student(_POWER, queries - 1)
    low, high = 0.0, math.sqrt(square)
    for _ in range(50):
        middle = (low + high) / 2
        varies = (square - middle**2) / queries + (of_judges if others else 0.0)
        low, high = (middle, high) if reach + further * math.sqrt(varies) > middle else (low, middle)
    return high if high < math.sqrt(square) else None


def _student(p: float, freedom: float) -> float:
    """Quantile of Student's t (Abramowitz and Stegun 1964, 26.7.5), since importing ``scipy.special`` takes 0.1 s."""
    z = NormalDist().inv_cdf(p)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))
