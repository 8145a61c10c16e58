"""Nuggets: windows, lists and batches; six scores by hand, as laws, as published, and what is left out of a mean."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_eval.nuggets.files import read_assignments
from retrieval_eval.nuggets.scores import COLUMNS, ScoreTable, score_table
from retrieval_eval.nuggets.types import (
    Assignment,
    Importance,
    NuggetBank,
    Support,
    batches,
    kept_nuggets,
    make_nuggets,
    of_empty_answer,
    updated_list,
    windows,
)

VITAL, OKAY = Importance
FULL, PARTIAL, NONE = Support
Nuggets: TypeAlias = list[tuple[Importance, Support]]
NUGGETS = st.lists(st.tuples(st.sampled_from(Importance), st.sampled_from(Support)), min_size=1, max_size=12)


def assignment(
    run: str,
    query_id: str,
    labels: Sequence[Support | None],
    importances: Sequence[Importance | None] = (),
    words: int = 10,
) -> Assignment:
    importances = importances or [VITAL] * len(labels)
    nuggets = make_nuggets(query_id, [f"fact {place}" for place in range(len(labels))], importances)
    return Assignment(query_id, run, nuggets, tuple(labels), words=10)


def mean(table: ScoreTable, run: str, column: str = "v_strict") -> tuple[float | None, int]:
    """A run's mean of a score, and the number of topics in it."""
    scores = table.score(column)
    return scores.means[run].value, scores.count(run)


def of_answer(importances: Sequence[Importance | None], labels: Sequence[Support | None]) -> dict[str, float | None]:
    """The scores of one answer; ``None`` if undefined."""
    table = score_table([assignment("r", "q", labels, importances)])
    return {scores.name: scores.means["r"].value for scores in table.scores}


@pytest.mark.parametrize(
    ("importances", "labels", "expected"),
    [
        # Three vital nuggets (1, 0.5, 0) and two okay ones (0.5, 1).
        (
            [VITAL, VITAL, VITAL, OKAY, OKAY],
            [FULL, PARTIAL, NONE, PARTIAL, FULL],
            (1 / 3, 1.5 / 3, 1.5 / 4, 2.25 / 4, 2 / 5, 3 / 5),
        ),
        ([OKAY, OKAY], [FULL, PARTIAL], (None, None, 0.5, 0.75, 0.5, 0.75)),
        ([VITAL, None], [FULL, PARTIAL], (None, None, None, None, 0.5, 0.75)),
        ([VITAL, OKAY], [FULL, None], (None,) * 6),  # a label failed
        ([], [], (None,) * 6),
    ],
)
def test_scores_by_hand(importances: list[Importance | None], labels: list[Support | None], expected: object) -> None:
    assert tuple(of_answer(importances, labels).values()) == pytest.approx(expected)


@given(NUGGETS)
def test_laws_of_the_scores(nuggets: Nuggets) -> None:
    found = of_answer(*zip(*nuggets, strict=True))
    for name in ("v", "w", "a"):
        strict, lenient = found[f"{name}_strict"], found[name]
        assert (strict is None) is (lenient is None)
        assert strict is None or lenient is None or 0 <= strict <= lenient <= 1
    v, w, a = (found[name] for name in ("v", "w", "a"))
    if v is not None and w is not None and a is not None:
        assert min(v, a) - 1e-12 <= w <= max(v, a) + 1e-12
    assert of_answer(*zip(*sorted(nuggets), strict=True)) == pytest.approx(found)
    graded = of_answer([own for own, _ in nuggets], [NONE if label is PARTIAL else label for _, label in nuggets])
    assert all(graded[f"{name}_strict"] == graded[name] for name in ("v", "w", "a"))


def test_an_empty_answer_supports_nothing() -> None:
    empty = of_empty_answer(NuggetBank("q", "why", make_nuggets("q", ["a", "b"], [VITAL, OKAY])), "run")
    assert (empty.labels, empty.words) == ((NONE, NONE), 0)


def test_a_missing_topic_counts_zero_in_scores_and_length() -> None:
    table = score_table(
        [assignment("whole", "1", [FULL]), assignment("whole", "2", [FULL]), assignment("half", "1", [FULL])]
    )
    assert (mean(table, "whole"), mean(table, "half")) == ((1, 2), (0.5, 2))
    coverage = table.coverage("half")
    assert (coverage["length"], coverage["missing"]) == (5, 1)


def test_the_topic_set_may_hold_topics_that_no_run_answered_and_lack_others() -> None:
    table = score_table([assignment("r", "1", [FULL]), assignment("r", "9", [NONE])], ["1", "2"])
    assert (table.unjudged_topics, table.left_out) == (("2",), 1)
    coverage = table.coverage("r")
    assert (mean(table, "r", "a"), coverage["topics"], coverage["missing"]) == ((0.5, 2), 2, 1)


def test_a_query_without_vital_nuggets_is_left_out_of_the_vital_mean_also_where_it_is_missing() -> None:
    table = score_table(
        [assignment("r", "1", [FULL]), assignment("s", "1", [FULL]), assignment("r", "2", [NONE, NONE], [OKAY, OKAY])]
    )
    for run in ("r", "s"):
        assert (mean(table, run), mean(table, run, "a")) == ((1, 1), (0.5, 2))


def test_a_failure_is_coverage_and_bounds_and_never_not_support() -> None:
    table = score_table([assignment("r", "1", [FULL]), assignment("r", "2", [NONE, None, FULL, FULL])])
    scores, coverage = table.score("v_strict"), table.coverage("r")
    assert (mean(table, "r"), coverage["failed"]) == ((1, 1), 1)
    assert scores.mean_bounds("r") == (0.75, 0.875)
    assert (coverage["labels"], coverage["assigned"], coverage["coverage"]) == (5, 4, 0.8)


@settings(max_examples=30)
@given(st.lists(st.lists(st.sampled_from([*Support, None]), min_size=1, max_size=5), min_size=1, max_size=5))
def test_bounds_hold_every_score_that_failed_labels_may_turn_into(answers: list[list[Support | None]]) -> None:
    found = score_table([assignment("r", str(at), labels) for at, labels in enumerate(answers)])
    for credit in Support:
        filled = [[credit if label is None else label for label in labels] for labels in answers]
        whole = score_table([assignment("r", str(at), labels) for at, labels in enumerate(filled)])
        for scores in found.scores:
            value, _ = mean(whole, "r", scores.name)
            assert value is not None
            low, high = scores.mean_bounds("r")
            assert low - 1e-12 <= value <= high + 1e-12


def test_a_run_with_failures_only_has_no_score_and_comes_last() -> None:
    table = score_table([assignment("a", "1", [None]), assignment("b", "1", [NONE])])
    assert (table.best_first(), mean(table, "a")) == (["b", "a"], (None, 0))


def test_an_answer_held_against_no_nuggets_is_left_out_and_noticed() -> None:
    table = score_table([assignment("r", "1", []), assignment("s", "1", [FULL]), assignment("r", "2", [FULL])])
    assert (table.coverage("r")["empty"], mean(table, "r", "a")) == (1, (1, 1))
    assert table.differing_topics == ("1",)


def test_two_assignments_of_one_answer_are_refused() -> None:
    with pytest.raises(ValueError, match="two assignments"):
        score_table([assignment("r", "1", [FULL]), assignment("r", "1", [NONE])])


def test_intervals_hold_the_mean_and_need_two_topics() -> None:
    rng = np.random.default_rng(0)
    many = [assignment("r", str(at), [FULL if rng.random() < 0.5 else NONE for _ in range(4)]) for at in range(60)]
    scores = score_table(many).score("v")
    found = scores.means["r"]
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert found.low < found.value < found.high
    # The normal interval of a mean of 60 topics.
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * scores.values.std() / 60**0.5, rel=0.15)
    assert score_table(many[:1]).score("v").means["r"].low is None


def test_few_defined_topics_leave_nearly_all_open() -> None:
    table = score_table(
        [
            *(assignment("r", str(at), [NONE], [OKAY]) for at in range(8)),
            *(assignment("r", f"v{at}", [FULL if at else NONE]) for at in range(2)),
        ]
    )
    assert mean(table, "r") == (0.5, 2)
    found = table.score("v_strict").means["r"]
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.02 < 0.98 < found.high


def test_all_runs_of_trec_2024_score_what_the_report_printed(shared: Path) -> None:
    folder = shared / "data/trec_rag24_nuggets"
    table = score_table(read_assignments([folder / "nugget_assignment.jsonl.gz"]))
    coverage = {run: table.coverage(run) for run in table.runs}
    with (folder / "published_scores.csv").open(encoding="utf-8") as file:
        published = {row["run_id"]: row for row in csv.DictReader(file)}
    assert len(published) == 30
    assert {
        run: {scores.name: f"{scores.means[run].value:.4f}" for scores in table.scores}
        | {"length": f"{coverage[run]['length']:.2f}"}
        for run in table.runs
    } == {run: {column: row[column] for column in (*COLUMNS, "length")} for run, row in published.items()}
    assert len(table.topics) == 21
    missing = {run: row["missing"] for run, row in coverage.items() if row["missing"]}
    assert missing == {"iiresearch-bm25-top10-llama3-8b-instruct": 1}


IDS = st.lists(st.integers(0, 60).map(str), max_size=80)


def test_documents_are_related_lists_hold_thirty_twenty_are_kept_and_ten_labelled_at_a_time() -> None:
    assert windows(["a", "b", "c", "d"], {"a": 0, "b": 1, "d": 3}) == [("b", "d")]
    texts = [str(place) for place in range(40)]
    assert updated_list(texts) == tuple(texts[:30])
    found = kept_nuggets(texts[:30], [OKAY] * 15 + [VITAL] * 15)
    assert [text for text, _ in found] == [*texts[15:30], *texts[:5]]
    assert [len(batch) for batch in batches(range(25))] == [10, 10, 5]


def test_what_cannot_be_paired_or_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        kept_nuggets(["a", "b"], [VITAL])
    with pytest.raises(ValueError, match="at least one"):
        batches([1], 0)


@given(IDS, st.dictionaries(st.integers(0, 60).map(str), st.integers(0, 3)), st.integers(0, 3))
def test_windows_hold_every_relevant_document_once_in_the_order_of_ranks(
    ranked: list[str], labels: dict[str, int], least: int
) -> None:
    found = windows(ranked, labels, from_label=least)
    assert all(len(window) == 10 for window in found[:-1])
    assert all(1 <= len(window) <= 10 for window in found)
    read = [doc_id for window in found for doc_id in window]
    assert read == [doc_id for doc_id in dict.fromkeys(ranked) if labels.get(doc_id, -1) >= least]


@given(st.lists(st.text("aB \n", max_size=4), max_size=60), st.integers(1, 30))
def test_a_list_is_short_without_repetition_and_in_the_judges_order(reply: list[str], most: int) -> None:
    found = updated_list(reply, most=most)
    assert len(found) <= most
    assert len({text.casefold() for text in found}) == len(found)
    assert all(text and text == " ".join(text.split()) for text in found)
    places = [next(at for at, text in enumerate(reply) if " ".join(text.split()) == own) for own in found]
    assert places == sorted(places)
    assert updated_list(found, most=most) == found


@given(st.lists(st.tuples(st.text(min_size=1), st.sampled_from(Importance)), max_size=30), st.integers(0, 30))
def test_vital_nuggets_are_kept_first_and_each_in_order(nuggets: list[tuple[str, Importance]], keep: int) -> None:
    found = kept_nuggets([text for text, _ in nuggets], [own for _, own in nuggets], keep=keep)
    whole = [entry for own in (VITAL, OKAY) for entry in nuggets if entry[1] is own]
    assert found == whole[:keep]


@given(st.lists(st.integers(), max_size=45), st.integers(1, 12))
def test_batches_are_full_but_for_the_last_and_lose_nothing(items: list[int], size: int) -> None:
    found = batches(items, size)
    assert [item for batch in found for item in batch] == items
    assert all(len(batch) == size for batch in found[:-1])
    assert all(found)
