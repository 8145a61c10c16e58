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

What is labelled must be a random sample of all things; see ``next_labels``.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable, Sequence

import numpy as np
from msgspec import Struct

from arena.ratings.games import Floats
from retrieval_eval.stats.bootstrap import numbered, student
from retrieval_eval.stats.estimate import Estimate

_LEVEL = 0.95
"""Of all intervals."""


class Corrected(Struct, frozen=True):
    """One figure three ways, each with its interval.

    Attributes:
        corrected: judge and people together.
        people: the labels alone.
        judge: the judge alone, whose interval knows nothing of its bias.
        weight: lambda, how far the judge is listened to.
        n: things that the judge has a value of.
        labelled: those that people labelled.
        queries: queries with labels.
        all_queries: queries with things.
        people_variance, fixed_variance: of the corrected figure, the part that falls with further labels and the part
            that does not.
    """

    corrected: Estimate
    people: Estimate
    judge: Estimate
    weight: float
    n: int
    labelled: int
    queries: int
    all_queries: int
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


def corrected_mean(judge: Sequence[float], people: Sequence[float | None], queries: Sequence[Hashable]) -> Corrected:
    """Mean of people's values over all things, had they labelled them all.

    Each thing has a value of the judge, one of people or ``None``, and a query.

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
    means = float(y[labelled].mean()), float(f[labelled].mean()), float(f.mean())

    def by_query(values: Floats) -> Floats:
        return np.bincount(unit, values, units).astype(np.float64)

    a = by_query(labelled * (y - means[0])) / m
    of_all = by_query(f - means[2]) / n
    b = by_query(labelled * (f - means[1])) / m - of_all
    weight = tuned(a, b)
    groups = np.unique(unit[labelled]).size
    others = 1 - by_query(labelled.astype(np.float64)) / m
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
        n=n,
        labelled=m,
        queries=groups,
        all_queries=units,
        people_variance=falling,
        fixed_variance=variance - falling,
    )


def labels_needed(own: Corrected, width: float) -> LabelsNeeded:
    """How many labels an interval of this width needs, were further ones like those there are.

    With k times the labels the part of the variance that labels bring is divided by k, and they are on k times the
    queries as far as there are so many, so that the quantile of Student's t falls. Where people label everything the
    judge is of no use: then the labels alone say what can be had.
    """
    if own.people.low is None or own.people.high is None or own.corrected.low is None:
        return LabelsNeeded(width, None, None)
    alone = ((own.people.high - own.people.low) / 2 / student(_LEVEL, own.queries)) ** 2

    def enough(falling: float, fixed: float, spent: int) -> int | None:
        def narrow(labels: int) -> bool:
            queries = max(own.queries, min(own.all_queries, own.queries * labels / own.labelled))
            variance = (falling * own.labelled / labels + fixed) * (own.queries - spent) / (own.queries - 1)
            variance *= (queries - 1) / (queries - spent)
            return 2 * student(_LEVEL, queries - spent + 1) * math.sqrt(variance) <= width

        labels = range(1, own.n + 1)
        place = bisect.bisect_left(labels, True, key=narrow)
        return labels[place] if place < own.n else None

    people = enough(alone, 0.0, 1)
    together = enough(own.people_variance, own.fixed_variance, 2 if own.weight else 1)
    known = [number for number in (together, people) if number is not None]
    return LabelsNeeded(width, min(known, default=None), people)


def next_labels(queries: Sequence[Hashable], labelled: Sequence[bool], count: int, seed: int = 0) -> list[int]:
    """Things to label next, by their places.

    A systematic sample of those without a label: queries in random order and the things of each in random order, of
    which every k-th is taken from a random start. Every thing has the same chance, so that all labels stay a random
    sample, and the labels spread over queries, where a second label says less than a first. What judge and people
    disagree on, or what the judge is unsure of, is no such sample: labels chosen so would bend the correction.
    """
    rng = np.random.default_rng(seed)
    place = {query: at for at, query in enumerate(rng.permutation(len(set(queries))))}
    number = dict(zip(dict.fromkeys(queries), place.values(), strict=True))
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
    return min(1.0, max(0.0, float((a * b).sum()) / scale)) if scale > 0 else 0.0


def inflated(squares: float, units: int, spent: int = 1) -> float:
    """A jackknife's sum of squares by query as a variance, where so many figures were fitted to the queries."""
    return squares * (units - 1) / (units - spent) if units > spent else math.nan


def by_student(value: float, variance: float, freedom: int) -> Estimate:
    """A figure with Student's interval; without one where nothing shows how it varies."""
    if not variance > 0 or freedom < 1:
        return Estimate(value)
    half = student(_LEVEL, freedom + 1) * math.sqrt(variance)
    return Estimate(value, value - half, value + half)
