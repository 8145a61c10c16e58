"""Prediction-powered means: a judge's many values, corrected by a few human labels; unbiased for any judge.

Angelopoulos et al. (2023, Science 382, "Prediction-powered inference") take the judge's mean over all items and
correct it by the judge's error on the items that people labelled. The weight of the judge, lambda, is tuned to the
data (Angelopoulos, Duchi and Zrnic 2023, "PPI++", section 6). A judge that is pure noise gets lambda 0, and the
estimate uses the labels only. A mean is

    theta = mean_L(y) + lambda (mean_all(f) - mean_L(f))

with people's values y and the judge's values f, over all items and over the labelled items L. Items of one query are
dependent, and the labelled items are a subset of all, so the variance is computed from sums by query. Query g
contributes

    (a_g - lambda b_g),   a_g = sum_L,g (y - mean_L y) / m,   b_g = sum_L,g (f - mean_L f) / m - sum_g (f - mean f) / n

and lambda = sum a_g b_g / sum b_g^2 minimises the sum of squared contributions. As in a jackknife, the contribution of
a query is divided by the share of labels on all other queries. Intervals use Student's t. The degrees of freedom are
the number of queries with labels less one, less another one if lambda is not 0.

The labelled items must be a random sample of all items (``next_labels`` draws one), or each label must come with the
probability with which it was drawn. Each label's weight in both means over L is then 1 over that probability, divided
by the sum of the weights (Zrnic and Candes 2024, arXiv 2403.03208, "Active statistical inference", who do not divide).
With the same weights in both means their difference has an intercept; otherwise an estimate with lambda below 1 would
be biased.

Tests of whether people's labels can be a random sample of what a judge judged.

A correction by labels is right if the labels were drawn at random: single items, queries in turn, or whole queries.
All three designs leave two things to chance: how many labels each query has, and which items of a query have them. Two
kinds of tests check each of these:

- position: do labels stand early or late in the judge's file, between queries or within queries? A rank-sum test; its
  variance is that of permutations of the queries, and of the items of each query.
- group: do items of one group (one value of the judge, one opponent) have more or fewer labels than chance explains?
  Chernoff's bound; between queries its exponent is divided by the largest number of labels of a query, since labels of
  a query are drawn together.

The tests of position use one half of ``REJECTED`` and the tests of groups use the other half, so that at most one
random sample in a thousand is rejected. A sample that passes may still not be random: labels alone cannot show that it
is.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import numbered, student
from retrieval_eval.stats.estimate import Estimate

_LEVEL = 0.95
_NOISE = 1e-20
"""Ratio of two sums of squares below which the smaller one counts as rounding error."""
_VARIANCE_QUANTILE = 0.95
"""Quantile of the variance, as estimated after further labels, that ``labels_needed`` plans for. With this quantile the
labels sufficed in over 90 % of simulations."""


class Corrected(Struct, frozen=True):
    """A mean over items, estimated in three ways, each with its interval.

    Attributes:
        corrected: the mean from the judge's values and people's labels together.
        people: the mean of people's labels only.
        judge: the mean of the judge's values only; the interval ignores the judge's bias.
        weight: lambda, the weight of the judge's values in ``corrected``.
        ends: lowest and highest value of the scale; a mean lies between them.
        n: number of items, all of which have a value of the judge.
        labelled: number of items that people labelled.
        queries: number of queries with items that people labelled.
        all_queries: number of all queries.
        alike: intraclass correlation of the judge's values within queries. The higher it is, the less a second label
            on a query adds.
        people_variance: the part of the variance of ``corrected`` that further labels would reduce.
        fixed_variance: the rest of this variance, which further labels would not reduce.
        p_bias: two-sided p-value of the judge agreeing with people in the mean, on the items that both labelled.
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
    p_bias: float

    @property
    def correction(self) -> float:
        """How far the judge's mean lies from the corrected one, in half widths of its interval; 0 without one."""
        corrected, judge = self.corrected, self.judge.value
        if corrected.value is None or corrected.low is None or judge is None:
            return 0.0
        distance, half = abs(judge - corrected.value), corrected.value - corrected.low
        if half <= 0:  # people differ from the judge by the same amount everywhere
            return math.inf if distance > 0 else 0.0
        return distance / half


class LabelsNeeded(Struct, frozen=True):
    """Total number of labels by people that makes an interval as narrow as ``width``.

    Attributes:
        corrected: number of labels if the judge's values are used too; ``None`` if not even labels on all items would
            be enough, or if this is unknown.
        people: number of labels if only people's labels are used; ``None`` as above.
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
    """Estimate the mean that people's labels would have if they had labelled all items.

    ``people`` is ``None`` for an item without a label. ``chances`` has the probability with which each labelled item
    was drawn; by default all are equal. ``ends`` has the lowest and highest value of the scale, by default those that
    occur.

    Raises:
        ValueError: there are no labels.
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
    judge_part = by_query(f - means[2]) / n
    b = by_query(share * (f - means[1])) - judge_part
    weight = tuned(a, b)
    groups = np.unique(unit[labelled]).size
    others_share = 1 - by_query(share)
    parameters = 2 if weight else 1
    corrected, label_part, people_only = (
        contributions / np.maximum(others_share, 1 / m)
        for contributions in (a - weight * b, a - weight * (b + judge_part), a)
    )
    bias = means[1] - means[0]
    errors = by_query(share * (f - y - bias)) / np.maximum(others_share, 1 / m)
    variance = inflated(float((corrected**2).sum()), groups, parameters)
    people_variance = inflated(float((label_part**2).sum()), groups, parameters)
    return Corrected(
        corrected=by_student(means[0] + weight * (means[2] - means[1]), variance, groups - parameters),
        people=by_student(means[0], inflated(float((people_only**2).sum()), groups), groups - 1),
        judge=by_student(means[2], inflated(float((judge_part**2).sum()), units), units - 1),
        weight=weight,
        ends=ends or (float(min(f.min(), y[labelled].min())), float(max(f.max(), y[labelled].max()))),
        n=n,
        labelled=m,
        queries=groups,
        all_queries=units,
        alike=_intraclass_correlation(f, unit),
        people_variance=people_variance,
        fixed_variance=variance - people_variance,
        p_bias=_p_value(bias, inflated(float((errors**2).sum()), groups), groups - 1),
    )


def _p_value(value: float, variance: float, freedom: int) -> float:
    """Two-sided p-value of Student's t test that a figure is 0; 1 if its variance is 0 or unknown."""
    return float(2 * scipy.special.stdtr(freedom, -abs(value) / math.sqrt(variance))) if variance > 0 else 1.0


def _intraclass_correlation(values: Floats, unit: NDArray[np.int64]) -> float:
    """Intraclass correlation from a one-way analysis of variance; the units may differ in size."""
    sizes = np.bincount(unit)
    within_freedom, between_freedom = values.size - sizes.size, sizes.size - 1
    if not within_freedom or not between_freedom:
        return 0.0
    means = np.bincount(unit, values) / sizes
    within = float(((values - means[unit]) ** 2).sum()) / within_freedom
    between = float((sizes * (means - values.mean()) ** 2).sum()) / between_freedom
    mean_size = (values.size - float((sizes**2).sum()) / values.size) / between_freedom
    unit_variance = max(0.0, between - within) / mean_size
    return unit_variance / (unit_variance + within) if unit_variance > 0 else 0.0


def label_shares(labelled: NDArray[np.bool_], chances: Sequence[float] | None = None) -> Floats:
    """Weight of each item in a mean over labelled items: 1 over the probability of drawing it, scaled to sum to 1.

    Items without a label have weight 0.
    """
    weights = labelled.astype(np.float64)
    if chances is not None:
        weights[labelled] = 1 / np.asarray(chances, np.float64)[labelled]
    return np.asarray(weights / weights.sum(), np.float64)


def labels_needed(estimate: Corrected, width: float) -> LabelsNeeded:
    """Estimate how many labels make the mean's interval as narrow as ``width`` in nine of ten cases.

    Further labels are assumed to resemble those that exist. With k times the labels, the part of the variance that
    comes from labels is divided by k. The labels then lie on k times the queries, up to the number of queries, so the
    quantile of Student's t falls. Further labels on the same queries add less, by the intraclass correlation of the
    judge's values. Fewer labels than now would be spread over queries. The variance is estimated from a few queries and
    varies from sample to sample, so it is multiplied by a quantile of F, the distribution of the ratio of two such
    variances. Once people label everything, the judge adds nothing, so ``corrected`` is never more than ``people``.
    """
    people, corrected = estimate.people, estimate.corrected
    if people.low is None or people.high is None or corrected.low is None or corrected.high is None:
        return LabelsNeeded(width, None, None)
    labels_variance = ((people.high - people.low) / 2 / student(_LEVEL, estimate.queries)) ** 2

    def design_effect(labels_per_query: float) -> float:
        """Variance of a mean of labels, relative to the variance if each label were on a different query."""
        return 1 + (labels_per_query - 1) * estimate.alike

    def fewest(people_variance: float, fixed: float, parameters: int, width_now: float) -> int | None:
        def is_enough(labels: int) -> bool:
            if labels >= estimate.labelled and width_now <= width:
                return True
            more_queries = min(estimate.all_queries, estimate.queries * labels / estimate.labelled)
            queries = more_queries if labels >= estimate.labelled else min(estimate.queries, labels)
            if queries <= parameters:
                return False
            clustering = design_effect(labels / queries) / design_effect(estimate.labelled / estimate.queries)
            variance = people_variance * clustering * estimate.labelled / labels + fixed
            variance = variance * (estimate.queries - parameters) / (estimate.queries - 1)
            variance *= (queries - 1) / (queries - parameters)
            f_quantile = scipy.special.fdtri(queries - parameters, estimate.queries - parameters, _VARIANCE_QUANTILE)
            variance *= float(f_quantile)
            return 2 * student(_LEVEL, queries - parameters + 1) * math.sqrt(variance) <= width

        labels = range(1, estimate.n + 1)
        index = bisect.bisect_left(labels, True, key=is_enough)
        return labels[index] if index < estimate.n else None

    alone = fewest(labels_variance, 0.0, 1, people.high - people.low)
    parameters = 2 if estimate.weight else 1
    with_judge = fewest(estimate.people_variance, estimate.fixed_variance, parameters, corrected.high - corrected.low)
    known = [labels for labels in (with_judge, alone) if labels is not None]
    return LabelsNeeded(width, min(known, default=None), alone)


def next_labels(queries: Sequence[Hashable], labelled: Sequence[bool], count: int, seed: int = 0) -> list[int]:
    """Draw ``count`` items for people to label next, at random from those without a label; returns their indices.

    The sample is systematic: queries are put in random order, the items of each query too, and every k-th item is
    taken from a random start. Every item has the same probability, whatever the order of the file, so all labels
    together stay a random sample. The labels are spread over queries, since a second label on a query adds less than
    the first. Choosing the items on which judge and people disagree, or on which the judge is unsure, would bias the
    correction.
    """
    rng = np.random.default_rng(seed)
    names = list(dict.fromkeys(queries))
    query_rank = dict(zip(names, rng.permutation(len(names)).tolist(), strict=True))
    unlabelled = [index for index, is_labelled in enumerate(labelled) if not is_labelled]
    order = sorted(rng.permutation(unlabelled).tolist(), key=lambda index: query_rank[queries[index]])
    if count >= len(order):
        return order
    step = len(order) / count
    start = float(rng.uniform(0, step))
    return [order[int(start + number * step)] for number in range(count)]


def tuned(a: Floats, b: Floats) -> float:
    """Weight in [0, 1] that minimises the sum of squares of ``a - weight * b``; 0 if ``b`` is negligible.

    An optimum outside [0, 1] is mostly noise: the judge contradicts people, or nearly everything is labelled, so that
    ``b`` vanishes and the weight does not matter.
    """
    scale = float((b**2).sum())
    return min(1.0, max(0.0, float((a * b).sum()) / scale)) if scale > _NOISE * float((a**2).sum()) else 0.0


def inflated(squares: float, units: int, parameters: int = 1) -> float:
    """Variance from a jackknife's sum of squares by query, adjusted for the number of fitted parameters."""
    return squares * (units - 1) / (units - parameters) if units > parameters else math.nan


def by_student(value: float, variance: float, freedom: int) -> Estimate:
    """Estimate with an interval from Student's t distribution; without an interval if the variance is 0 or unknown."""
    if not variance > 0 or freedom < 1:
        return Estimate(value)
    half = student(_LEVEL, freedom + 1) * math.sqrt(variance)
    return Estimate(value, value - half, value + half)


Mask: TypeAlias = NDArray[np.bool_]

REJECTED: Final = 0.001
"""Probability that labels which are a random sample are rejected as not random."""

_MOST_VALUES: Final = 10
"""Maximum number of groups when items are grouped by the judge's value or by the opponent. If there are more distinct
values, numbers are grouped by quartiles and names are not tested."""


def queries_not_random(labelled: Mask, queries: Sequence[Hashable], level: float = REJECTED) -> str:
    """Say why the queries with labels cannot be a random sample of all queries; empty if they can.

    ``labelled`` says whether people labelled an item, ``queries`` names its query; both are in the order of the judge's
    file. A random sample is rejected with probability ``level``.
    """
    unit = numbered(queries)
    return _position_test(
        "queries", _by_query(np.bincount(unit), np.bincount(unit, labelled).astype(np.float64)), level
    )


def not_random(
    labelled: Mask, queries: Sequence[Hashable], kinds: Mapping[str, Sequence[str] | Floats], level: float = REJECTED
) -> str:
    """Say why the labelled items cannot be a random sample; empty if they can.

    ``kinds`` has attributes of the items by name, such as the judge's values: one value per item. The other arguments
    are as in ``queries_not_random``.
    """
    unit = numbered(queries)
    sizes, labels = np.bincount(unit), np.bincount(unit, labelled)
    if not 0 < labels.sum() < unit.size:
        return ""
    position = _position_test("things of each query", _in_query(unit, sizes, labelled), level / 4)
    if reason := queries_not_random(labelled, queries, level / 4) or position:
        return reason
    groups = [(name, value, members) for name, values in kinds.items() for value, members in _groups(values)]
    for name, value, members in groups:
        count, in_queries = int((members & labelled).sum()), float((labels / sizes) @ np.bincount(unit, members))
        overall = float(labels.sum()) * members.mean()
        p_value = min(_count_p_value(count, in_queries, 1), _count_p_value(in_queries, overall, labels.max()))
        if p_value < level / 4 / len(groups):
            return f"{count:,} labels are on things with {name} {value}, and a random sample has about {overall:,.0f}"
    return ""


def _position_test(what: str, z: float, level: float) -> str:
    if math.erfc(abs(z) / math.sqrt(2)) >= level:
        return ""
    return f"the {'first' if z < 0 else 'last'} {what} in the judge's file have more labels than chance gives"


def _by_query(sizes: NDArray[np.int64], labels: Floats) -> float:
    """Rank-sum z: above 0 if late queries of the file have more labels than early ones; standard normal by chance."""
    excess = labels - sizes * (labels.sum() / sizes.sum())
    ranks = np.arange(sizes.size) - (sizes.size - 1) / 2
    spread = float((excess**2).sum() * (ranks**2).sum()) / max(1, sizes.size - 1)
    return float(excess @ ranks) / math.sqrt(spread) if spread > 0 else 0.0


def _in_query(unit: NDArray[np.int64], sizes: NDArray[np.int64], labelled: Mask) -> float:
    """Rank-sum z: above 0 if late items of a query have more labels than early ones; standard normal by chance."""
    order = np.argsort(unit, kind="stable")
    starts = np.cumsum(sizes) - sizes
    ranks = np.empty(unit.size)
    ranks[order] = np.arange(unit.size) - np.repeat(starts, sizes)
    ranks -= ((sizes - 1) / 2)[unit]
    labels = np.bincount(unit, labelled)
    # m of n ranks drawn without replacement: m (n - m) / n times their variance (n + 1) n / 12.
    spread = float((labels * (sizes - labels) * (sizes + 1) / 12).sum())
    return float(ranks[labelled].sum()) / math.sqrt(spread) if spread > 0 else 0.0


def _count_p_value(count: float, expected: float, batch: float) -> float:
    """Chernoff's bound on the probability that a number of labels is this far from ``expected``.

    ``batch`` is the number of labels that are drawn together.
    """
    if expected <= 0:
        return 1.0
    surplus = count * math.log(count / expected) if count else 0.0
    return 2 * math.exp(-(surplus - count + expected) / batch)


def _groups(values: Sequence[str] | Floats) -> Iterator[tuple[str, Mask]]:
    array = np.asarray(values)
    distinct = [value for value, _ in Counter(array.tolist()).most_common(_MOST_VALUES + 1)]
    if 1 < len(distinct) <= _MOST_VALUES:
        for value in distinct:
            yield value if isinstance(value, str) else f"{value:g}", array == value
    elif len(distinct) > 1 and array.dtype.kind == "f":
        ends = np.quantile(array, [0.25, 0.5, 0.75])
        for low, high in zip([-np.inf, *ends], [*ends, np.inf], strict=True):
            yield f"{low:g} to {high:g}", (array > low) & (array <= high)
