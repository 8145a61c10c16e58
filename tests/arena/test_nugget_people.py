"""People assign nuggets: an order of their own, blind, nothing read twice, nothing carried over to another text."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from arena.stages.nuggets.people import (
    Sheet,
    State,
    annotations_of,
    assignments_by,
    labels_on,
    said_by,
    sheets,
    state_of,
    taken,
)
from judges.types import Answer
from retrieval_eval.nuggets.types import Importance, NuggetBank, Support, make_nuggets

VITAL = [Importance.VITAL] * 2
BANKS = {
    query_id: NuggetBank(query_id, f"What is {query_id}?", make_nuggets(query_id, ["one", "two"], VITAL))
    for query_id in ("q1", "q2", "q3")
}
ANSWERS = [
    Answer(query_id, agent, f"{query_id} as {agent} has it") for query_id in ("q1", "q2", "q3", "q4") for agent in "xyz"
]
LABELS = [Support.FULL, Support.NONE]


def sheet_of(query_id: str, agent: str) -> Sheet:
    return next(own for own in sheets(BANKS, ANSWERS, "ann") if own.query_id == query_id and agent in own.agents)


@given(st.sampled_from(["ann", "bob", "c"]), st.permutations(ANSWERS))
def test_an_assessor_reads_every_answer_once_query_by_query_in_an_order_of_their_own(
    annotator: str, answers: list[Answer]
) -> None:
    found = sheets(BANKS, answers, annotator)
    assert found == sheets(BANKS, ANSWERS, annotator)
    assert sorted((own.query_id, own.agents) for own in found) == [(q, (a,)) for q in BANKS for a in "xyz"]
    queries = [own.query_id for own in found]
    assert [queries[i] for i in (0, 3, 6)] == list(dict.fromkeys(queries))


def test_assessors_have_different_orders_and_an_added_answer_moves_nothing() -> None:
    orders = {tuple(own.thing_id for own in sheets(BANKS, ANSWERS, f"person {i}")) for i in range(5)}
    assert len(orders) == 5
    more = [*ANSWERS, Answer("q2", "new", "something else")]
    found = [own for own in sheets(BANKS, more, "ann") if own.agents != ("new",)]
    assert found == sheets(BANKS, ANSWERS, "ann")


def test_answers_of_one_text_are_read_once_and_empty_ones_never() -> None:
    answers = [Answer("q1", "x", "the same"), Answer("q1", "y", "the same"), Answer("q1", "z", " \n")]
    (sheet,) = sheets(BANKS, answers, "ann")
    assert sheet.agents == ("x", "y")
    said = said_by(annotations_of(sheet, LABELS, "ann"), "ann")
    later = Answer("q1", "late", "the same")
    found = {own.run: own.labels for own in assignments_by(BANKS, [*answers, later], said)}
    assert found == {"x": (*LABELS,), "y": (*LABELS,), "late": (*LABELS,), "z": (Support.NONE, Support.NONE)}


def test_what_one_says_is_on_their_sheet_and_on_nobody_else_s() -> None:
    sheet = sheet_of("q1", "x")
    kept = annotations_of(sheet, LABELS, "ann", seconds=9.0)
    assert [own.seconds for own in kept] == [4.5, 4.5]
    assert labels_on(sheet, said_by(kept, "ann")) == LABELS
    assert labels_on(sheet, said_by(kept, "bob")) == [None, None]
    assert labels_on(sheet_of("q1", "y"), said_by(kept, "ann")) == [None, None]


def test_a_changed_answer_query_or_nugget_inherits_no_label() -> None:
    sheet = sheet_of("q1", "x")
    said = said_by(annotations_of(sheet, LABELS, "ann"), "ann")
    assert labels_on(replace(sheet, answer="another"), said) == [None, None]
    assert labels_on(replace(sheet, query="another"), said) == [None, None]
    reworded = make_nuggets("q1", ["one", "two, reworded", "three"], [None] * 3)
    assert labels_on(replace(sheet, nuggets=reworded), said) == [Support.FULL, None, None]


def test_a_sheet_is_skipped_until_something_on_it_is_labelled() -> None:
    sheet = sheet_of("q1", "x")
    skip = annotations_of(sheet, [None, None], "ann")
    assert state_of(sheet, said_by([], "ann")) is State.OPEN
    assert state_of(sheet, said_by(skip, "ann")) is State.SKIPPED
    assert assignments_by(BANKS, ANSWERS, said_by(skip, "ann")) == []
    assert state_of(sheet, said_by([*skip, *annotations_of(sheet, [Support.FULL, None], "ann")], "ann")) is State.OPEN
    assert state_of(sheet, said_by([*skip, *annotations_of(sheet, LABELS, "ann")], "ann")) is State.DONE


def test_assignments_go_out_and_come_back_as_they_were() -> None:
    answers = {(own.query_id, own.agent): own for own in ANSWERS}
    kept = [said for agent in "xy" for said in annotations_of(sheet_of("q2", agent), LABELS, "ann")]
    out = assignments_by(BANKS, ANSWERS, said_by(kept, "ann"))
    assert [(own.query_id, own.run, own.labels) for own in out] == [("q2", agent, (*LABELS,)) for agent in "xy"]
    back = taken(out, BANKS, answers, "bob")
    assert said_by(back.annotations, "bob") == said_by(kept, "ann")
    assert (back.answers, back.left_out) == (2, {})


def test_what_a_file_says_of_other_texts_is_counted_and_left_out() -> None:
    answers = {(own.query_id, own.agent): own for own in ANSWERS}
    (own, *_) = assignments_by(BANKS, ANSWERS, said_by(annotations_of(sheet_of("q1", "x"), LABELS, "ann"), "ann"))
    found = taken(
        [
            replace(own, run="nobody"),
            replace(own, query_id="q9"),
            replace(own, answer="what it said last week"),
            replace(own, labels=(Support.FULL, None)),
            replace(own, run="y", answer=None, nuggets=make_nuggets("q1", ["one", "foreign"], VITAL)),
        ],
        BANKS,
        answers,
        "ann",
    )
    assert list(found.left_out.values()) == [2, 1, 1, 1]
    assert [(said.item, said.value) for said in found.annotations] == [("x", "support"), ("y", "support")]
    assert found.answers == 2
