"""Agreement of labels: published tables, independent implementations, intervals over queries, rankings of runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from arena.results.exam import load_study
from judges.errors import InputError
from retrieval_eval.data.trec import read_qrels
from retrieval_eval.exam.scores import exam_labels, read_grade_map
from retrieval_eval.scores.metrics import evaluate
from retrieval_eval.scores.run_comparison import ranking_agreement
from retrieval_eval.stats.agreement import (
    MeasurementLevel,
    Weights,
    binarised_table,
    cohen_kappa,
    cohen_kappas,
    coincidences,
    graded_table,
    krippendorff_alphas,
    label_agreement,
    rater_agreement,
)
from retrieval_eval.stats.estimate import Estimate

LEVELS: list[MeasurementLevel] = ["nominal", "ordinal", "interval"]
WEIGHTS: list[Weights] = ["none", "linear", "quadratic"]
TABLES = arrays.arrays(np.float64, (4, 4), elements=st.integers(0, 30).map(float))


def krippendorff_alpha(ratings: np.ndarray | list[list[float]], level: MeasurementLevel = "nominal") -> float | None:
    values = np.asarray(ratings, np.float64)
    labels = np.unique(values[~np.isnan(values)])
    value = float(krippendorff_alphas(coincidences(values, labels).sum(axis=0), labels, level))
    return None if np.isnan(value) else value


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        # Grade (rows: high, low) against manual judgment (columns: relevant, not): rubric workbench, Table 5.
        ([[998, 2377], [668, 7343]], 0.25),
        ([[1211, 4095], [455, 5625]], 0.16),
        # EXAM++, Table 4: both of its rows describe this one table; the 0.38 printed for one cannot be recomputed.
        ([[1910, 1117], [880, 2445]], 0.37),
    ],
)
def test_published_counts_give_their_published_kappa(table: list[list[int]], kappa: float) -> None:
    assert round(cohen_kappa(table) or 0, 2) == kappa


def test_kappa_by_hand() -> None:
    # Observed 35/50; by chance (25*30 + 25*20)/2500 = 0.5.
    assert cohen_kappa([[20, 5], [10, 15]]) == pytest.approx(0.4)
    # Three labels, one disagreement of one step and one of two: costs 1 + 2 (linear), 1 + 4 (quadratic).
    table = [[2, 1, 1], [0, 2, 0], [0, 0, 2]]
    expected = np.outer([4, 2, 2], [2, 3, 3]) / 8
    cost = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert cohen_kappa(table, "linear") == pytest.approx(1 - 3 / (cost * expected).sum())
    assert cohen_kappa(table, "quadratic") == pytest.approx(1 - 5 / (cost**2 * expected).sum())


@given(TABLES, st.sampled_from(WEIGHTS))
def test_kappa_depends_neither_on_who_is_first_nor_on_the_direction_of_the_scale(
    table: np.ndarray, how: Weights
) -> None:
    kappas = cohen_kappas(np.stack([table, table.T, table[::-1, ::-1], 3 * table]), how)
    np.testing.assert_allclose(kappas, np.full(4, kappas[0]), atol=1e-12)
    assert np.isnan(kappas[0]) or -1 - 1e-12 <= kappas[0] <= 1


def test_a_coefficient_is_undefined_where_nothing_could_disagree() -> None:
    assert cohen_kappa([[9, 0], [0, 0]]) is None
    assert cohen_kappa([[0, 0], [0, 0]]) is None
    assert krippendorff_alpha([[1, 1, 1], [1, 1, 1]]) is None
    assert krippendorff_alpha([[1, np.nan], [np.nan, 2]]) is None


def test_alpha_of_the_example_in_the_literature() -> None:
    # Four observers, twelve units, five labels and missing ones (Krippendorff 2011, "Computing alpha-reliability", C).
    nan = np.nan
    data = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
        [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
    ]
    values = {level: krippendorff_alpha(data, level) for level in LEVELS}
    assert values == pytest.approx({"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}, abs=5e-4)


HUMAN = {"q1": {"a": 0, "b": 2, "c": 3}, "q2": {"a": 1, "d": 0}, "q3": {"e": 2}}
LLM = {"q1": {"a": 0, "b": 3, "c": 3, "x": 1}, "q2": {"a": 0, "d": 0}, "q9": {"a": 1}}

LABELS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]), st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3)), max_size=3
)


def test_figures_are_of_the_pairs_that_both_labelled() -> None:
    found = label_agreement(HUMAN, LLM)
    assert (found.n, found.queries, found.first_only, found.second_only) == (5, 2, 1, 2)
    assert found.scale == (0, 1, 2, 3)
    assert found.confusion == ((2, 0, 0, 0), (1, 0, 0, 0), (0, 0, 0, 1), (0, 0, 0, 1))
    assert found.agreement.value == pytest.approx(3 / 5)
    # By chance: (2*3 + 1*0 + 1*0 + 1*2) / 25.
    assert found.kappa.value == pytest.approx((3 / 5 - 8 / 25) / (1 - 8 / 25))


def test_each_threshold_has_its_own_table() -> None:
    first, second, third = label_agreement(HUMAN, LLM).binarised
    assert (first.threshold, first.both, first.first_only, first.second_only, first.neither) == (1, 2, 1, 0, 2)
    assert (second.threshold, second.both, second.first_only, second.second_only, second.neither) == (2, 2, 0, 0, 3)
    assert (third.threshold, third.both, third.first_only, third.second_only, third.neither) == (3, 1, 0, 1, 3)
    assert second.kappa.value == 1


@settings(max_examples=30)
@given(LABELS, LABELS)
def test_coefficients_are_those_of_independent_implementations(
    one: Mapping[str, Mapping[str, int]], other: Mapping[str, Mapping[str, int]]
) -> None:
    found = label_agreement(one, other)
    pairs = [(one[q][d], other[q][d]) for q in one if q in other for d in one[q] if d in other[q]]
    assert found.n == len(pairs)
    assert sum(map(sum, found.confusion)) == len(pairs)
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    for estimate, level in ((found.alpha, "nominal"), (found.alpha_ordinal, "ordinal")):
        if len({*first, *second}) < 2:
            assert estimate.value is None
        else:
            expected = krippendorff.alpha([first, second], level_of_measurement=level)
            assert estimate.value == pytest.approx(expected, abs=1e-9)
    for estimate, power in ((found.kappa_linear, 1), (found.kappa_quadratic, 2)):
        distance = [abs(a - b) ** power for a in first for b in second]
        if not any(distance):
            assert estimate.value is None
        else:
            observed = np.mean([abs(a - b) ** power for a, b in pairs])
            assert estimate.value == pytest.approx(1 - observed / np.mean(distance), abs=1e-9)


def test_nothing_in_common_is_no_figure_and_no_error() -> None:
    found = label_agreement({"q1": {"a": 1}}, {"q1": {"b": 1}, "q2": {"a": 1}})
    assert (found.n, found.queries, found.scale, found.confusion, found.binarised) == (0, 0, (), (), ())
    assert found.kappa == found.alpha == found.agreement == Estimate(None)


def test_one_label_all_over_has_no_kappa_but_agrees() -> None:
    found = label_agreement({"q1": {"a": 1}, "q2": {"a": 1}}, {"q1": {"a": 1}, "q2": {"a": 1}})
    assert found.kappa == Estimate(None)
    assert (found.agreement.value, found.agreement.high) == (1, 1)
    assert found.agreement.low < 0.1  # two queries


def test_labels_that_are_no_scale_are_refused() -> None:
    with pytest.raises(InputError, match="the labels range from 0 to 4711, but a scale has at most"):
        label_agreement({"q": {"a": 0}}, {"q": {"a": 4711}})
    with pytest.raises(InputError, match="at most 101 labels"):
        label_agreement({"q": {"a": 0}}, {"q": {"a": 10**19}})
    assert label_agreement({"q": {"a": 0, "b": 100}}, {"q": {"a": 0, "b": 100}}).kappa.value == 1


def test_runs_are_ranked_on_the_queries_that_both_sets_label() -> None:
    runs = {
        "ab": {q: {"a": 2.0, "b": 1.0} for q in ("q1", "q2", "q3")},
        "ba": {q: {"b": 1.0} for q in ("q1", "q2", "q3")},
    }
    human = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1}, "q3": {"b": 1}}
    llm = {"q1": {"b": 1}, "q2": {"b": 1}}
    found = ranking_agreement(evaluate(human, runs, ["P@1"]), evaluate(llm, runs, ["P@1"]), "P@1")
    assert found.topics == 2
    assert found.kendall_tau.value == found.spearman.value == -1
    assert found.swapped == (("ab", "ba"),)


RATINGS = st.lists(st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=6, max_size=6), min_size=2, max_size=4)


@settings(max_examples=30)
@given(RATINGS)
def test_alpha_is_krippendorff_s_whatever_is_missing(ratings: list[list[int | None]]) -> None:
    """Six documents, two each of three queries."""
    raters = []
    for row in ratings:
        own: dict[str, dict[str, int]] = {}
        for place, label in enumerate(row):
            if label is not None:
                own.setdefault(f"q{place // 2}", {})[f"d{place}"] = label
        raters.append(own)
    table = np.array(ratings, dtype=float)
    paired = (~np.isnan(table)).sum(axis=0) > 1
    found = rater_agreement(raters)
    assert found.documents == paired.sum()
    assume(len(np.unique(table[:, paired][~np.isnan(table[:, paired])])) > 1)
    for estimate, level in ((found.alpha, "nominal"), (found.alpha_ordinal, "ordinal")):
        assert estimate.value == pytest.approx(krippendorff.alpha(table, level_of_measurement=level))


def test_nothing_in_common_is_not_defined() -> None:
    found = rater_agreement([{"q": {"a": 1}}, {"q": {"b": 1}}, {}])
    assert (found.documents, found.queries, found.alpha.value) == (0, 0, None)


def test_labels_are_paired_and_the_others_counted() -> None:
    found = label_agreement({"q": {"a": 5, "b": 0, "c": 3}}, {"q": {"a": 2, "b": 0, "x": 1}, "r": {"a": 1}})
    assert (found.n, found.first_only, found.second_only) == (2, 1, 2)
    table = graded_table(found)
    assert (table.rows, table.columns, table.counts.tolist()) == (("5", "0"), ("2", "0"), [[1, 0], [0, 1]])
    binary = binarised_table(found, least_first=4, least_second=1)
    assert (binary.rows, binary.columns, binary.kappa) == (("5", "0"), ("2", "0"), 1.0)
    assert found.scale == (0, 1, 2, 3, 4, 5)


def test_recorded_grades_give_the_authors_labels_and_kappa(shared: Path) -> None:
    folder = shared / "data/llmjudge24"
    study = load_study(folder / "rubric_grades.csv.gz", items="*-Q*")
    made = exam_labels(study.grids, grade_to_label=read_grade_map("0:0,1-3:1,4:2,5:3"))
    assert len(made) == 7263
    assert made.labels == read_qrels(folder / "llm_qrels/flant5-exam-rubric.qrels").labels
    found = label_agreement(made.labels, read_qrels(folder / "human.qrels").labels)
    assert found.kappa.value == pytest.approx(0.133545, abs=5e-7)
    assert np.asarray(found.confusion).sum() == found.n == 7263
