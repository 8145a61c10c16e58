"""Grading without a model: ratings in free text, unanswerable expressions, answers checked by words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.errors import ReplyError
from judges.self_rating import UNANSWERABLE, is_answer, is_ill_formed, is_unanswerable, self_rating
from judges.types import Answer, Document
from retrieval_eval.exam.grades import (
    Grade,
    checked_grade,
    document_grades,
    document_of,
    normalised,
    origin_of,
    passage_id_of,
    passages_of,
    passages_of_document,
    piece_id_of,
    same_words,
)
from retrieval_eval.exam.items import Item


@pytest.mark.parametrize(("reply", "grade"), [("4", 4), (" 0\n", 0), ("(5).", 5), ("**3**", 3), ('"2"', 2)])
def test_a_whole_number_on_the_scale_is_the_grade(reply: str, grade: int) -> None:
    assert self_rating(reply) == grade


@pytest.mark.parametrize("reply", ["Elvis Presley", "keeps vital fluids in", "the 1930s", "nothing unknown about it"])
def test_an_answer_in_place_of_a_rating_is_graded_1(reply: str) -> None:
    assert self_rating(reply) == 1


@pytest.mark.parametrize(
    "reply", [*UNANSWERABLE, "Unanswerable.", "It does not say!", " NO  answer ", "a. ", "(iii)", "b)"]
)
def test_unanswerable_and_ill_formed_replies_are_graded_0(reply: str) -> None:
    assert self_rating(reply) == 0
    assert not is_answer(reply)
    assert is_unanswerable(reply) != is_ill_formed(reply)


@pytest.mark.parametrize(
    "reply", ["", "  ", "score = 10", "-1", "6", "4 out of 5", "I would say 4", "4.5", "1954", "?"]
)
def test_what_may_be_meant_as_a_rating_is_not_guessed_at(reply: str) -> None:
    with pytest.raises(ReplyError):
        self_rating(reply)


def test_the_workbench_grades_answers_0_and_unanswerable_expressions_1() -> None:
    replies = {"4": 4, "-1": 1, "Elvis Presley": 0, "unanswerable": 1, "it does not say.": 1, "": 1, "7": 0, "(iii)": 1}
    assert {reply: self_rating(reply, compat="workbench") for reply in replies} == replies


def test_an_answer_that_only_contains_an_unanswerable_expression_is_an_answer() -> None:
    assert is_answer("no relevant information was lost in the fire")


def test_the_worked_example_of_the_paper_is_accepted() -> None:
    item = Item("tqa2:L_0384", "Outer layer of the skin?", answers=("epidermis",), item_id="NDQ_007535")
    for answer in ("epidermis", "The Epidermis.", "an epidermis"):
        assert checked_grade(answer, item) == 1
    for answer in ("dermis", "unanswerable", "a. ", "(iii)", ""):
        assert checked_grade(answer, item) == 0


def test_an_edit_distance_of_exactly_a_fifth_does_not_match() -> None:
    assert same_words("abcdefghij", "abcdefghiz")
    assert not same_words("abcdefghij", "abcdefghyz")


def test_words_are_lowered_stopped_and_stemmed() -> None:
    assert normalised("The layers, of THE skin!") == "layer skin"
    assert same_words("rising", "rises")


def test_a_negation_is_not_a_stopword() -> None:
    assert not same_words("it does not rise", "rise")
    assert not same_words("it doesn't rise", "rise")
    assert same_words("it does not rise", "rise", compat="workbench")


def test_answers_of_stopwords_alone_are_compared_word_by_word() -> None:
    assert same_words("All.", "all")
    assert not same_words("them", "all")


def test_the_workbench_takes_a_ratio_over_80_for_a_match() -> None:
    # One letter of five differs: an edit distance of exactly 20 %, a ratio of exactly 80; then one of six.
    assert not same_words("abcdk", "abcdx", compat="workbench")
    assert same_words("abcdfk", "abcdfx", compat="workbench")
    assert not same_words("abk", "abx", compat="workbench")


@pytest.mark.parametrize(("answer", "grade"), [("No.", 1), ("false", 1), ("Incorrect", 1), ("true", 0), ("no way", 0)])
def test_a_true_or_false_item_takes_its_words_alone(answer: str, grade: int) -> None:
    assert checked_grade(answer, Item("q", "Is it?", answers=("false",), kind="true_false")) == grade


@pytest.mark.parametrize(
    ("answer", "grade"),
    [("A", 1), ("(a)", 1), ("b.", 0), ("It increases", 1), ("decreases", 0), ("unknown", 0), ("", 0)],
)
def test_multiple_choice_takes_the_letter_or_the_text(answer: str, grade: int) -> None:
    choices = {"A": "It increases", "B": "It decreases"}
    item = Item("q", "And then?", answers=("A",), kind="multiple_choice", choices=choices)
    assert checked_grade(answer, item) == grade


def test_an_item_without_gold_answers_cannot_be_checked() -> None:
    with pytest.raises(ValueError, match="no gold answer"):
        checked_grade("epidermis", Item("q", "Outer layer?"))


TEXTS = st.text(st.sampled_from("ab.!? \n\t"), max_size=200)


@given(TEXTS, st.integers(1, 9))
def test_passages_hold_every_word_once_in_order_and_never_too_many(text: str, most: int) -> None:
    answer = Answer("q/1", "agent #2", text)
    passages = passages_of(answer, most_words=most)
    assert [word for passage in passages for word in passage.text.split()] == text.split()
    assert all(1 <= len(passage.text.split()) <= most for passage in passages)
    assert all(passage.text == text[passage.start : passage.end] for passage in passages)
    assert all(before.end <= after.start for before, after in pairwise(passages))
    assert [origin_of(passage.passage_id) for passage in passages] == [
        ("q/1", "agent #2", number) for number in range(1, len(passages) + 1)
    ]


def test_a_passage_ends_with_a_paragraph_else_with_a_sentence_else_between_words() -> None:
    def cut(text: str) -> list[str]:
        return [passage.text for passage in passages_of(Answer("q", "a", text), most_words=4)]

    assert cut("one two.\n\nthree\n \nfour five") == ["one two.\n\nthree", "four five"]
    assert cut("one. two three. four five") == ["one. two three.", "four five"]
    assert cut("one two three four five") == ["one two three four", "five"]


@given(st.text(max_size=5), st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))
def test_ids_of_passages_never_collide(query: str, agent: str, other_query: str, other_agent: str) -> None:
    same = (query, agent) == (other_query, other_agent)
    assert (passage_id_of(query, agent, 1) == passage_id_of(other_query, other_agent, 1)) == same
    assert passage_id_of(query, agent, 1).split() == [passage_id_of(query, agent, 1)]


@pytest.mark.parametrize("passage_id", ["msmarco_1", "q/a", "q/a#x", "q/a#", "q/a b#1", "q/a#01"])
def test_an_id_of_another_kind_leads_nowhere(passage_id: str) -> None:
    assert origin_of(passage_id) is None


def test_a_document_keeps_its_id_unless_it_is_cut() -> None:
    document = Document("msmarco#3", "one two three.\n\nfour five six.\n\nseven")
    (whole,) = passages_of_document(document, most_words=7)
    assert whole.passage_id == "msmarco#3"
    cut = passages_of_document(document, most_words=4)
    assert [(passage.passage_id, passage.text) for passage in cut] == [
        ("msmarco#3#1of2", "one two three."),
        ("msmarco#3#2of2", "four five six.\n\nseven"),
    ]
    assert [document_of(passage.passage_id) for passage in cut] == [("msmarco#3", 2)] * 2
    assert passages_of_document(Document("d", " "), most_words=4) == ()


@given(st.text(), st.integers(1, 3))
def test_ids_of_documents_passages_lead_back(doc_id: str, pieces: int) -> None:
    for of_document in (doc_id, piece_id_of(doc_id, 1, 2)):
        ids = [piece_id_of(of_document, number, pieces) for number in range(1, pieces + 1)]
        assert len(set(ids)) == pieces
        assert {document_of(passage_id) for passage_id in ids} == {(of_document, pieces)}


@pytest.mark.parametrize(
    ("grades", "expected"),
    [((0, 4), (4, "second")), ((5, None), (5, "first")), ((4, None), (None, "first")), ((None, None), (None, ""))],
)
def test_a_document_has_the_highest_grade_once_nothing_can_be_higher(
    grades: tuple[int | None, int | None], expected: tuple[int | None, str]
) -> None:
    answers = ("first" if grades[0] is not None else "", "second" if grades[1] else "")
    entries = [
        Grade("q", f"d#{number}of2", "i", grade, answer)
        for number, (grade, answer) in enumerate(zip(grades, answers, strict=True), start=1)
    ]
    cut = {entry.passage_id: document_of(entry.passage_id) for entry in entries}
    (found,) = document_grades(entries, cut, highest=5)
    assert (found.passage_id, (found.grade, found.answer)) == ("d", expected)
