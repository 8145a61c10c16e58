"""Agreement of exam labels with people's: the published tables, and the recorded grades."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from arena.stages.exam.study import load_study
from retrieval_eval.data.trec import read_qrels
from retrieval_eval.exam.scores import exam_labels, read_grade_map
from retrieval_eval.stats.agreement import binarised_table, cohen_kappa, graded_table, label_agreement


@pytest.mark.parametrize(
    ("counts", "kappa"),
    [
        ([[998, 2377], [668, 7343]], 0.25),  # 001, Table 5, questions
        ([[1211, 4095], [455, 5625]], 0.16),  # 001, Table 5, nuggets
        ([[1910, 1117], [880, 2445]], 0.37),  # 000, Table 4, whose 0.38 for the upper row cannot be recomputed
    ],
)
def test_the_published_counts_give_the_published_kappa(counts: list[list[int]], kappa: float) -> None:
    found = cohen_kappa(counts)
    assert found is not None
    assert round(found, 2) == kappa


def test_labels_are_paired_and_the_others_counted() -> None:
    found = label_agreement({"q": {"a": 5, "b": 0, "c": 3}}, {"q": {"a": 2, "b": 0, "x": 1}, "r": {"a": 1}})
    assert (found.n, found.first_only, found.second_only) == (2, 1, 2)
    table = graded_table(found)
    assert (table.rows, table.columns, table.counts.tolist()) == (("5", "0"), ("2", "0"), [[1, 0], [0, 1]])
    binary = binarised_table(found, least_first=4, least_second=1)
    assert (binary.rows, binary.columns, binary.kappa) == (("5", "0"), ("2", "0"), 1.0)
    assert found.scale == (0, 1, 2, 3, 4, 5)


def test_nothing_in_common_gives_no_coefficient() -> None:
    found = label_agreement({"q": {"a": 1}}, {"q": {"b": 1}})
    assert (found.n, found.kappa.value, found.alpha_ordinal.value) == (0, None, None)
    empty = graded_table(found)
    assert (empty.rows, empty.counts.size, empty.kappa) == ((), 0, None)


def test_recorded_grades_give_the_authors_labels_and_kappa(shared: Path) -> None:
    folder = shared / "data/llmjudge24"
    study = load_study(folder / "rubric_grades.csv.gz", items="*-Q*")
    made = exam_labels(study.grids, grade_to_label=read_grade_map("0:0,1-3:1,4:2,5:3"))
    assert len(made) == 7263
    assert made.labels == read_qrels(folder / "llm_qrels/flant5-exam-rubric.qrels").labels
    found = label_agreement(made.labels, read_qrels(folder / "human.qrels").labels)
    assert found.kappa.value == pytest.approx(0.133545, abs=5e-7)
    assert np.asarray(found.confusion).sum() == found.n == 7263
