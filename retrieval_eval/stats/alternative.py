"""The alternative annotator test: may a judge replace people (Calderon, Reichart, Dror 2025, arXiv 2501.10970)?

The test leaves out one rater at a time. For each item with values of this rater, the judge and at least one other
rater, it compares who agrees better with the other raters: ``W_judge`` is 1 if the judge agrees at least as well as the
rater, ``W_rater`` is 1 if the rater agrees at least as well as the judge. The judge replaces the rater if
mean(W_rater - W_judge) is significantly below epsilon, an allowance for the cost of people. The judge passes if it
replaces at least half of the raters.

The published test assumes that items are independent. Several items of one query are not, so it passes too easily. The
clustered form tests the same mean with a cluster-robust standard error: one term for each query's sum, and Student's t
with one degree of freedom less than there are queries. A test of query means would test another mean if queries have
different numbers of items. A bootstrap fails if the judge never loses, because all its samples are equal; the published
t test then sees no variance either and is certain. Differences are -1, 0 or 1, so their variance is at least
epsilon * (1 - epsilon) if their mean is epsilon; the clustered form uses this as the smallest variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

import numpy as np
import scipy
from msgspec import Struct

from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import student
from retrieval_eval.stats.estimate import Estimate

Item = TypeVar("Item", bound=Hashable)
Score: TypeAlias = Literal["accuracy", "neg_rmse"]
"""How a value's agreement with other raters' values is measured: ``accuracy``, for unordered labels, is the share of
equal labels; ``neg_rmse``, for numbers, is minus the root of the mean squared difference.
"""

FEWEST: Final = 30
"""Smallest number of items on which a rater is compared with the judge; with fewer items the published test is
Wilcoxon's.
"""
HALF: Final = 0.5
"""Share of raters that the judge must replace to pass."""
_SAME: Final = 1e-12


def _accuracy(value: Any, others: Sequence[Any]) -> float:
    return sum(bool(value == other) for other in others) / len(others)


def _neg_rmse(value: float, others: Sequence[float]) -> float:
    return -math.sqrt(sum((value - other) ** 2 for other in others) / len(others))


class LeftOut(Struct, frozen=True):
    """Result for one rater whom the test left out and compared with the judge.

    p-values are one-sided and corrected for the number of raters.

    Attributes:
        clusters: number of clusters of the compared items, such as queries.
        advantage: share of items on which the judge agrees with the other raters at least as well as this rater.
        difference: mean of W_rater - W_judge with a clustered interval; negative if the judge is better.
        p_value: p-value of "the judge is worse by epsilon or more" for independent items, as published.
        p_clustered: p-value of the same hypothesis, with clustered standard errors.
        p_worse: p-value of "the judge is worse by at most epsilon", with clustered standard errors.
    """

    rater: str
    items: int
    clusters: int
    advantage: float
    difference: Estimate
    p_value: float
    p_clustered: float
    p_worse: float


class AlternativeTest(Struct, frozen=True):
    """The judge compared with all raters; for epsilon, level and score see ``alternative_test``.

    Attributes:
        raters: comparisons with the raters that have enough items.
        few: names of the raters who judged too few items that the judge and another rater judged too.
        winning_rate: share of the raters that the judge replaces by the published test; ``None`` without comparisons.
        winning_rate_clustered: share of the raters that the judge replaces by the clustered form of the test.
        losing_rate: share of the raters who are significantly better than the judge by more than epsilon, by the
            clustered form.
        advantage: mean of the raters' ``advantage``.
    """

    epsilon: float
    level: float
    score: Score
    raters: tuple[LeftOut, ...]
    few: tuple[str, ...]
    winning_rate: float | None
    winning_rate_clustered: float | None
    losing_rate: float | None
    advantage: float | None

    @property
    def passed(self) -> bool:
        """Whether the judge replaces at least half of the raters by the published test."""
        return self.winning_rate is not None and self.winning_rate >= HALF

    @property
    def passed_clustered(self) -> bool:
        """Whether the judge replaces at least half of the raters by the clustered form of the test."""
        return self.winning_rate_clustered is not None and self.winning_rate_clustered >= HALF


def alternative_test(
    people: Mapping[str, Mapping[Item, Any]],
    judge: Mapping[Item, Any],
    *,
    epsilon: float,
    score: Score = "accuracy",
    cluster: Callable[[Any], Hashable] = lambda item: item,
    fewest: int = FEWEST,
    level: float = 0.05,
) -> AlternativeTest:
    """Test whether a judge may replace people, on the items with values of the judge and at least two raters.

    None and NaN count as no value.

    Args:
        people: each rater's value for each item; a rater may skip items.
        judge: the judge's value for each item.
        epsilon: allowed disadvantage of the judge as a share of the items, in [0, 1). The authors advise 0.2 if people
            are experts, 0.15 if they are trained, and 0.1 for a crowd.
        score: how agreement between a value and the other raters' values is measured.
        cluster: returns an item's cluster, such as its query; by default every item is its own cluster.
        fewest: a rater with fewer items is not compared. With fewer than 30 items the published form uses Wilcoxon's
            signed-rank test and not Student's t.
        level: significance level; p-values control false discoveries (Benjamini and Yekutieli).
    """
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon must be at least 0 and below 1, not {epsilon:g}")
    agrees = _accuracy if score == "accuracy" else _neg_rmse
    people, judge = {rater: _without_gaps(values) for rater, values in people.items()}, _without_gaps(judge)
    raters_of: dict[Item, list[str]] = {}
    for rater, values in people.items():
        for item in values:
            if item in judge:
                raters_of.setdefault(item, []).append(rater)
    compared, few, raw_p_values = [], [], []
    for rater, values in people.items():
        items = [item for item in values if len(raters_of.get(item, ())) > 1]
        if len(items) < max(fewest, 2):
            few.append(rater)
            continue
        gaps = np.empty(len(items))
        for place, item in enumerate(items):
            others = [people[other][item] for other in raters_of[item] if other != rater]
            gaps[place] = agrees(values[item], others) - agrees(judge[item], others)
        differences = (gaps >= -_SAME).astype(np.float64) - (gaps <= _SAME)
        numbers: dict[Hashable, int] = {}
        unit = np.array([numbers.setdefault(cluster(item), len(numbers)) for item in items])
        mean, error = float(differences.mean()), _clustered_error(differences, unit, epsilon)
        half = student(0.95, len(numbers)) * error if len(numbers) > 1 else math.nan
        raw_p_values.append((_published(differences, epsilon), *_student(mean - epsilon, error, len(numbers))))
        low, high = (None, None) if math.isnan(half) else (max(-1.0, mean - half), min(1.0, mean + half))
        difference = Estimate(mean, low, high, len(numbers), "cluster-robust")
        compared.append((rater, len(items), len(numbers), float((gaps <= _SAME).mean()), difference))
    columns = np.array(raw_p_values).reshape(-1, 3).T
    corrected = [scipy.stats.false_discovery_control(column, method="by").tolist() for column in columns]
    raters = tuple(LeftOut(*figures, *p) for figures, *p in zip(compared, *corrected, strict=True))

    def share(p_values: Sequence[float]) -> float | None:
        return sum(p <= level for p in p_values) / len(p_values) if p_values else None

    return AlternativeTest(
        epsilon=epsilon,
        level=level,
        score=score,
        raters=raters,
        few=tuple(few),
        winning_rate=share(corrected[0]),
        winning_rate_clustered=share(corrected[1]),
        losing_rate=share(corrected[2]),
        advantage=float(np.mean([rater.advantage for rater in raters])) if raters else None,
    )


def _without_gaps(values: Mapping[Item, Any]) -> dict[Item, Any]:
    return {
        item: value
        for item, value in values.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }


def _published(differences: Floats, epsilon: float) -> float:
    """p-value of "the mean is at least epsilon": by Student's t, or for few items by Wilcoxon's signed-rank test."""
    if differences.size < FEWEST:
        return float(scipy.stats.wilcoxon(differences - epsilon, alternative="less").pvalue)
    error = float(differences.std(ddof=1)) / math.sqrt(differences.size)
    return _student(float(differences.mean()) - epsilon, error, differences.size)[0]


def _student(excess: float, error: float, units: int) -> tuple[float, float]:
    """p-values of "the mean is at least epsilon" and "at most epsilon", where ``excess`` is the mean minus epsilon.

    A single cluster (``units`` is 1) has p-values of 1.
    """
    if units < 2:
        return 1.0, 1.0
    if error == 0:
        return (float(excess >= 0), float(excess <= 0))
    t = excess / error
    return float(scipy.special.stdtr(units - 1, t)), float(scipy.special.stdtr(units - 1, -t))


def _clustered_error(differences: Floats, unit: np.ndarray[Any, np.dtype[np.int64]], epsilon: float) -> float:
    """Cluster-robust standard error of the mean; equals the usual standard error if each cluster has one item."""
    sums = np.bincount(unit, differences - differences.mean())
    units = sums.size
    variance = float((sums**2).sum()) / differences.size**2 * units / (units - 1) if units > 1 else 0.0
    return math.sqrt(max(variance, epsilon * (1 - epsilon) / differences.size))
