"""Whether a judge may stand in for people: the alternative annotator test (Calderon, Reichart, Dror 2025, 2501.10970).

One rater at a time is left out. On each thing that this rater, at least one other and the judge have judged: who agrees
better with the others, the judge or the rater left out? ``W_judge`` is 1 where the judge agrees at least as well,
``W_rater`` where the rater does. The judge replaces that rater if mean(W_rater - W_judge) is shown to be below epsilon,
what a judge may be worse since people cost more. It passes if it replaces at least half of the raters.

The published test takes things for independent. Where several come from one query they are not, and it passes too
easily. The clustered form tests the same mean with a standard error by query (one term for each query's sum, Student's
t with one degree of freedom less than there are queries). It is not a test of query means, which would ask something
else where queries have different numbers of things, nor a bootstrap, which would draw one world where the judge never
loses. There, too, the published t test sees no variance and is sure. But differences are -1, 0 or 1, so their variance
is at least epsilon * (1 - epsilon) if their mean is epsilon: the clustered form takes no less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

import numpy as np
import scipy
from msgspec import Struct

from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import student
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.significance import benjamini_yekutieli

Item = TypeVar("Item", bound=Hashable)
Score: TypeAlias = Literal["accuracy", "neg_rmse"]
"""How well a value agrees with those of others: of labels without an order, and of numbers and ordered labels."""

FEWEST: Final = 30
"""Things below which a rater is left out, and below which the published test is Wilcoxon's."""
HALF: Final = 0.5
"""Share of raters that must be replaced."""
_SAME: Final = 1e-12


def _accuracy(value: Any, others: Sequence[Any]) -> float:
    """Share of the others who gave the same label."""
    return sum(bool(value == other) for other in others) / len(others)


def _neg_rmse(value: float, others: Sequence[float]) -> float:
    """Minus the root of the mean squared difference to the others' numbers."""
    return -math.sqrt(sum((value - other) ** 2 for other in others) / len(others))


class LeftOut(Struct, frozen=True):
    """One rater against the judge. All p-values are one-sided and corrected for the number of raters.

    Attributes:
        items, clusters: things compared, and the queries that they come from.
        advantage: share of things on which the judge agrees with the others at least as well as the rater.
        difference: mean of W_rater - W_judge, its interval clustered; below 0 the judge is better.
        p_value: that the judge is worse by epsilon or more, all things being independent, as published.
        p_clustered: the same clustered.
        p_worse: that the judge is worse by no more than epsilon, clustered.
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
    """The judge against all raters.

    Attributes:
        epsilon: by how much of all things it may be worse.
        level: of the tests.
        score: how agreement is measured.
        raters: those who are compared.
        few: those who judged too few things together with another rater and the judge.
        winning_rate: share of the raters that the judge replaces, as published; ``None`` where nobody is compared.
        winning_rate_clustered: the same by the clustered form.
        losing_rate: share of the raters against whom it is shown to be worse by more than epsilon, clustered.
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
        """Whether the judge replaces at least half of the raters, as published."""
        return self.winning_rate is not None and self.winning_rate >= HALF

    @property
    def passed_clustered(self) -> bool:
        """The same by the clustered form."""
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
    """Test; items with fewer than two raters or without the judge's value are left out, as are values None and NaN.

    Args:
        people: each rater's values by item; a rater need not have judged every item.
        judge: the judge's.
        epsilon: 0.2 where people are experts, 0.15 where they are trained, 0.1 for a crowd (the authors' advice).
        score: how well a value agrees with those of the others.
        cluster: what an item comes from, such as its query; by default every item stands for itself.
        fewest: items below which a rater is left out. A rater with fewer than 30 is tested by Wilcoxon's signed ranks
            in place of Student's t, but for the clustered form.
        level: of the tests; false discoveries are controlled (Benjamini and Yekutieli).

    Raises:
        ValueError: epsilon is not from 0 to below 1.
    """
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon: a share from 0 to below 1, not {epsilon:g}")
    agrees = _accuracy if score == "accuracy" else _neg_rmse
    people, judge = {rater: _given(own) for rater, own in people.items()}, _given(judge)
    raters_of: dict[Item, list[str]] = {}
    for rater, own in people.items():
        for item in own:
            if item in judge:
                raters_of.setdefault(item, []).append(rater)
    found, few, raw = [], [], []
    for rater, own in people.items():
        items = [item for item in own if len(raters_of.get(item, ())) > 1]
        if len(items) < max(fewest, 2):
            few.append(rater)
            continue
        gaps = np.empty(len(items))
        for place, item in enumerate(items):
            others = [people[other][item] for other in raters_of[item] if other != rater]
            gaps[place] = agrees(own[item], others) - agrees(judge[item], others)
        lost = (gaps >= -_SAME).astype(np.float64) - (gaps <= _SAME)
        numbers: dict[Hashable, int] = {}
        of = np.array([numbers.setdefault(cluster(item), len(numbers)) for item in items])
        mean, error = float(lost.mean()), _clustered_error(lost, of, epsilon)
        half = student(0.95, len(numbers)) * error if len(numbers) > 1 else math.nan
        raw.append((_published(lost, epsilon), *_student(mean - epsilon, error, len(numbers))))
        low, high = (None, None) if math.isnan(half) else (max(-1.0, mean - half), min(1.0, mean + half))
        difference = Estimate(mean, low, high, len(numbers), "cluster-robust")
        found.append((rater, len(items), len(numbers), float((gaps <= _SAME).mean()), difference))
    corrected = [benjamini_yekutieli(np.array(column)).tolist() for column in zip(*raw, strict=True)] or [[], [], []]
    raters = tuple(LeftOut(*own, *p) for own, *p in zip(found, *corrected, strict=True))

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
        advantage=float(np.mean([own.advantage for own in raters])) if raters else None,
    )


def _given(values: Mapping[Item, Any]) -> dict[Item, Any]:
    def known(value: Any) -> bool:
        return value is not None and not (isinstance(value, float) and math.isnan(value))

    return {item: value for item, value in values.items() if known(value)}


def _published(lost: Floats, epsilon: float) -> float:
    """p-value that the mean is epsilon or more: Student's t, or for few Wilcoxon's signed ranks."""
    if lost.size < FEWEST:
        return float(scipy.stats.wilcoxon(lost - epsilon, alternative="less").pvalue)
    error = float(lost.std(ddof=1)) / math.sqrt(lost.size)
    return _student(float(lost.mean()) - epsilon, error, lost.size)[0]


def _student(excess: float, error: float, units: int) -> tuple[float, float]:
    """p-values that the mean is epsilon or more, and epsilon or less; nothing is shown by a single unit."""
    if units < 2:
        return 1.0, 1.0
    if error == 0:
        return (float(excess >= 0), float(excess <= 0))
    t = excess / error
    return float(scipy.special.stdtr(units - 1, t)), float(scipy.special.stdtr(units - 1, -t))


def _clustered_error(lost: Floats, of: np.ndarray[Any, np.dtype[np.int64]], epsilon: float) -> float:
    """Standard error of the mean by cluster; with one thing in each cluster it is the usual one."""
    sums = np.bincount(of, lost - lost.mean())
    units = sums.size
    variance = float((sums**2).sum()) / lost.size**2 * units / (units - 1) if units > 1 else 0.0
    return math.sqrt(max(variance, epsilon * (1 - epsilon) / lost.size))
