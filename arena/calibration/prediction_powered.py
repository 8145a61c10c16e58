"""Means and ratings by few labels of people and many of a judge, right whatever the judge is like.

Angelopoulos et al. (2023, Science 382, "Prediction-powered inference") take the judge's figure over all things and
correct it by the judge's error on those that people labelled. How far the judge is listened to, lambda, is tuned to
the data (Angelopoulos, Duchi and Zrnic 2023, "PPI++", section 6): 0 for noise, which leaves the labels alone. A mean is

    theta = mean_L(y) + lambda (mean_all(f) - mean_L(f))

with people's values y and the judge's f, over all things and over the labelled ones L. Things of one query depend on
each other, and labelled things are among all, so the variance is that of sums by query: query g moves theta by

    (a_g - lambda b_g),   a_g = sum_L,g (y - mean_L y) / m,   b_g = sum_L,g (f - mean_L f) / m - sum_g (f - mean f) / n

and lambda = sum a_g b_g / sum b_g^2 makes the sum of their squares least. As in a jackknife, what a query moves is
divided by the share of labels that the others hold. Intervals are Student's, with one degree of freedom less than
queries with labels, and one less for lambda.

What is labelled must be a random sample of all things (``next_labels`` draws one), or each label comes with the chance
with which it was drawn. Labels then weigh 1 over that chance in both means of L, shares that sum to 1 (Zrnic and Candes
2024, arXiv 2403.03208, "Active statistical inference", with the means divided by the sum of weights): the difference of
two means of the same weights has an intercept, without which a lambda below 1 would not be centred.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable, Sequence

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import numbered, student
from retrieval_eval.stats.estimate import Estimate

_LEVEL = 0.95
"""Of all intervals."""
_NOISE = 1e-20
"""Sum of squares, relative to another, that rounding leaves of nothing."""
_SURE = 0.95
"""Quantile of what a variance may turn out as; with it the labels suffice in nine simulations of ten and more."""


class Corrected(Struct, frozen=True):
    """One figure three ways, each with its interval.

    Attributes:
        corrected: judge and people together.
        people: the labels alone.
        judge: the judge alone, whose interval knows nothing of its bias.
        weight: lambda, how far the judge is listened to.
        ends: of the scale, which a mean cannot leave.
        n: things that the judge has a value of.
        labelled: those that people labelled.
        queries: queries with labels.
        all_queries: queries with things.
        alike: correlation of the judge's values of one query, which says what a second label on it is worth.
        people_variance, fixed_variance: of the corrected figure, the part that falls with further labels and the part
            that does not.
    """

    corrected: Estimate
    people: Estimate
    judge: Estimate
    weight: float
    ends: tuple[float, float]
    n: int
    labelled: int
    queries: int
    all_queries: int
    alike: float
    people_variance: float
    fixed_variance: float


class LabelsNeeded(Struct, frozen=True):
    """Labels for an interval of a given width; ``None`` where not even labels of all things would do.

    Attributes:
        width: wanted, from end to end.
        corrected: labels in all, with the judge.
        people: labels in all, without.
    """

    width: float
    corrected: int | None
    people: int | None


def corrected_mean(
    judge: Sequence[float],
    people: Sequence[float | None],
    queries: Sequence[Hashable],
    chances: Sequence[float] | None = None,
    ends: tuple[float, float] | None = None,
) -> Corrected:
    """Mean of people's values over all things, had they labelled them all.

    Args:
        judge: its value of each thing.
        people: theirs, or ``None``.
        queries: of things.
        chances: with which each thing was drawn; the same for all if absent. Those of things without a label count
            nothing.
        ends: of the scale; the lowest and the highest value that the judge or people gave if absent.

    Raises:
        ValueError: nobody labelled anything.
    """
    f = np.asarray(judge, np.float64)
    labelled = np.array([value is not None for value in people], np.bool_)
    if not labelled.any():
        raise ValueError("a correction needs labels of people")
    y = np.array([0.0 if value is None else value for value in people])
    unit = numbered(queries)
    units, n, m = int(unit.max()) + 1, f.size, int(labelled.sum())
    share = label_shares(labelled, chances)
    means = float(share @ y), float(share @ f), float(f.mean())

    def by_query(values: Floats) -> Floats:
        return np.bincount(unit, values, units).astype(np.float64)

    a = by_query(share * (y - means[0]))
    of_all = by_query(f - means[2]) / n
    b = by_query(share * (f - means[1])) - of_all
    weight = tuned(a, b)
    groups = np.unique(unit[labelled]).size
    others = 1 - by_query(share)
    spent = 2 if weight else 1
    moved, rectified, alone = (
        part / np.maximum(others, 1 / m) for part in (a - weight * b, a - weight * (b + of_all), a)
    )
    variance = inflated(float((moved**2).sum()), groups, spent)
    falling = inflated(float((rectified**2).sum()), groups, spent)
    return Corrected(
        corrected=by_student(means[0] + weight * (means[2] - means[1]), variance, groups - spent),
        people=by_student(means[0], inflated(float((alone**2).sum()), groups), groups - 1),
        judge=by_student(means[2], inflated(float((of_all**2).sum()), units), units - 1),
        weight=weight,
        ends=ends or (float(min(f.min(), y[labelled].min())), float(max(f.max(), y[labelled].max()))),
        n=n,
        labelled=m,
        queries=groups,
        all_queries=units,
        alike=_alike(f, unit),
        people_variance=falling,
        fixed_variance=variance - falling,
    )


def _alike(values: Floats, unit: NDArray[np.int64]) -> float:
    """Intraclass correlation, by the analysis of variance of units of any size."""
    sizes = np.bincount(unit)
    within_freedom, between_freedom = values.size - sizes.size, sizes.size - 1
    if not within_freedom or not between_freedom:
        return 0.0
    means = np.bincount(unit, values) / sizes
    within = float(((values - means[unit]) ** 2).sum()) / within_freedom
    between = float((sizes * (means - values.mean()) ** 2).sum()) / between_freedom
    usual = (values.size - float((sizes**2).sum()) / values.size) / between_freedom
    spread = max(0.0, between - within) / usual
    return spread / (spread + within) if spread > 0 else 0.0


def label_shares(labelled: NDArray[np.bool_], chances: Sequence[float] | None = None) -> Floats:
    """What each label weighs in a mean of them: 1 over its chance of being drawn, as shares of their sum; else 0."""
    weights = labelled.astype(np.float64)
    if chances is not None:
        weights[labelled] = 1 / np.asarray(chances, np.float64)[labelled]
    return np.asarray(weights / weights.sum(), np.float64)


def labels_needed(own: Corrected, width: float) -> LabelsNeeded:
    """How many labels make an interval this narrow in nine cases of ten, were further ones like those there are.

    With k times the labels the part of the variance that labels bring is divided by k, and they are on k times the
    queries as far as there are so many, so that the quantile of Student's t falls; further labels on the same queries
    say as much less as the judge's values of one query are alike. Fewer labels than there are would be spread over
    queries. The variance is known from few queries, and the next one is another draw: it is multiplied by a quantile of
    F, the distribution of the ratio of two such variances. Where people label everything the judge is of no use: then
    the labels alone say what can be had.
    """
    if own.people.low is None or own.people.high is None or own.corrected.low is None or own.corrected.high is None:
        return LabelsNeeded(width, None, None)
    alone = ((own.people.high - own.people.low) / 2 / student(_LEVEL, own.queries)) ** 2

    def repeats(of_query: float) -> float:
        """How much wider the labels of one query make a variance than as many of several."""
        return 1 + (of_query - 1) * own.alike

    def enough(falling: float, fixed: float, spent: int, now: float) -> int | None:
        def narrow(labels: int) -> bool:
            if labels >= own.labelled and now <= width:
                return True
            grown = min(own.all_queries, own.queries * labels / own.labelled)
            queries = grown if labels >= own.labelled else min(own.queries, labels)
            if queries <= spent:
                return False
            shared = repeats(labels / queries) / repeats(own.labelled / own.queries)
            variance = (falling * shared * own.labelled / labels + fixed) * (own.queries - spent) / (own.queries - 1)
            variance *= (queries - 1) / (queries - spent)
            variance *= float(scipy.special.fdtri(queries - spent, own.queries - spent, _SURE))
            return 2 * student(_LEVEL, queries - spent + 1) * math.sqrt(variance) <= width

        labels = range(1, own.n + 1)
        place = bisect.bisect_left(labels, True, key=narrow)
        return labels[place] if place < own.n else None

    people = enough(alone, 0.0, 1, own.people.high - own.people.low)
    spent = 2 if own.weight else 1
    together = enough(own.people_variance, own.fixed_variance, spent, own.corrected.high - own.corrected.low)
    known = [number for number in (together, people) if number is not None]
    return LabelsNeeded(width, min(known, default=None), people)


def next_labels(queries: Sequence[Hashable], labelled: Sequence[bool], count: int, seed: int = 0) -> list[int]:
    """Things to label next, by their places.

    A systematic sample of those without a label: queries in random order and the things of each in random order, of
    which every k-th is taken from a random start. Every thing has the same chance, whatever the order of the file, so
    that all labels stay a random sample; and the labels spread over queries, where a second label says less than a
    first. What judge and people disagree on, or what the judge is unsure of, is no such sample: labels chosen so would
    bend the correction.
    """
    rng = np.random.default_rng(seed)
    names = list(dict.fromkeys(queries))
    number = dict(zip(names, rng.permutation(len(names)).tolist(), strict=True))
    open_places = [at for at, known in enumerate(labelled) if not known]
    order = sorted(rng.permutation(open_places).tolist(), key=lambda at: number[queries[at]])
    if count >= len(order):
        return order
    step = len(order) / count
    start = float(rng.uniform(0, step))
    return [order[int(start + at * step)] for at in range(count)]


def tuned(a: Floats, b: Floats) -> float:
    """The weight in [0, 1] that makes the sum of squares of ``a - weight * b`` least; 0 where ``b`` says nothing.

    Beyond these ends it is mostly noise: a judge that goes against people, or labels of nearly everything, where ``b``
    vanishes and any weight will do.
    """
    scale = float((b**2).sum())
    return min(1.0, max(0.0, float((a * b).sum()) / scale)) if scale > _NOISE * float((a**2).sum()) else 0.0


def inflated(squares: float, units: int, spent: int = 1) -> float:
    """A jackknife's sum of squares by query as a variance, where so many figures were fitted to the queries."""
    return squares * (units - 1) / (units - spent) if units > spent else math.nan


def by_student(value: float, variance: float, freedom: int) -> Estimate:
    """A figure with Student's interval; without one where nothing shows how it varies."""
    if not variance > 0 or freedom < 1:
        return Estimate(value)
    half = student(_LEVEL, freedom + 1) * math.sqrt(variance)
    return Estimate(value, value - half, value + half)
