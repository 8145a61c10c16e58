"""What relevance labels add up to, and what becomes of failures: they are counted and are no labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.types import JudgeFailure, Judgment, Retrieved
from retrieval_eval.scores.relevance import (
    LabelDistribution,
    MeanLabel,
    Result,
    label_distribution,
    majority,
    mean,
    mean_label,
    median,
    results_by_agent,
    results_by_query,
)

FAILED = JudgeFailure("f", "contract", "not a label", "-1")
SAMPLE = [1, 2, 2, 1, 1, 1, 1, 2, 2]
"""The overall labels of seed 003's sample response, section 3.2; their mean is printed as 1.4444444444444444."""


def judged(label: int, **details: int) -> Judgment:
    return Judgment("j", {"label": label, **details} if details else label, "", "", "m")


labels = st.lists(st.integers(-1, 5), min_size=1, max_size=12)


def test_the_mean_of_the_sample_is_the_published_score() -> None:
    assert mean_label([judged(label, match=3) for label in SAMPLE]) == MeanLabel(13 / 9, 9, 9)
    assert mean_label(map(judged, SAMPLE)).mean == pytest.approx(1.4444444444444444, abs=1e-15)


@given(labels, st.integers(0, 5), st.integers(0, 5))
def test_failures_and_what_is_not_judged_yet_change_the_coverage_and_not_the_mean(
    given_labels: list[int], failed: int, left: int
) -> None:
    results: list[Result] = [*map(judged, given_labels), *[FAILED] * failed, *[None] * left]
    found = mean_label(results)
    assert found.mean == pytest.approx(sum(given_labels) / len(given_labels))
    assert found.coverage == len(given_labels) / len(results)
    distribution = label_distribution(reversed(results))
    assert sum(distribution.counts.values()) + distribution.failed + distribution.left == found.of
    assert sum(label * count for label, count in distribution.counts.items()) == sum(given_labels)


def test_without_a_label_there_is_no_mean() -> None:
    assert mean_label([FAILED, None]) == MeanLabel(None, 0, 2)
    assert (mean_label([]).mean, mean_label([]).coverage) == (None, 1.0)


def test_labels_are_distributed_by_query_and_by_agent() -> None:
    results: dict[tuple[str, str], Result] = {
        ("q1", "a"): judged(2, match=3),
        ("q1", "b"): judged(0),
        ("q2", "a"): FAILED,
        ("q2", "c"): judged(2),
    }
    by_query = {query: label_distribution(found) for query, found in results_by_query(results).items()}
    assert by_query == {"q1": LabelDistribution({0: 1, 2: 1}, 0, 0), "q2": LabelDistribution({2: 1}, 1, 0)}
    assert list(by_query["q1"].counts) == [0, 2]
    retrieved = [
        Retrieved("q1", "a", "x", 1),
        Retrieved("q1", "b", "x", 2),
        Retrieved("q2", "a", "x", 1),
        Retrieved("q1", "a", "y", 1),
        Retrieved("q2", "new", "y", 3),
    ]
    by_agent = {agent: mean_label(found) for agent, found in results_by_agent(results, retrieved).items()}
    assert by_agent == {"x": MeanLabel(1.0, 2, 3), "y": MeanLabel(2.0, 1, 2)}


@pytest.mark.parametrize(
    ("given_labels", "combine", "expected"),
    [
        ([2, 2, 0], majority, 2),
        ([0, 2], majority, 0),
        ([3, 3, 1, 1, 2], majority, 1),
        ([0, 3, 3], median, 3),
        ([0, 1, 2, 3], median, 1),
        ([0, 3], mean, 1.5),
        ([2], majority, 2),
    ],
)
def test_several_labels_become_one(
    given_labels: Sequence[int], combine: Callable[[Sequence[float]], float], expected: float
) -> None:
    assert combine(given_labels) == expected


@given(labels, st.data())
def test_combining_does_not_depend_on_the_order_and_stays_within_what_was_said(
    given_labels: list[int], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(given_labels))
    for combine in (majority, median):
        assert combine(given_labels) == combine(shuffled)
        assert combine(given_labels) in given_labels
        assert isinstance(combine(given_labels), int)
    assert mean(given_labels) == mean(shuffled)
    assert min(given_labels) <= mean(given_labels) <= max(given_labels)


@given(labels)
def test_the_median_is_the_highest_label_that_more_than_half_reach(given_labels: list[int]) -> None:
    reached = [label for label in given_labels if 2 * sum(other >= label for other in given_labels) > len(given_labels)]
    assert median(given_labels) == max(reached) == median_low(given_labels)


@pytest.mark.parametrize("combine", [majority, median, mean])
def test_nothing_combines_to_nothing(combine: Callable[[Sequence[float]], float]) -> None:
    with pytest.raises(ValueError, match="no labels"):
        combine([])
