"""Oversight: what a person looks at, which items matter, and what an edit would change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from retrieval_eval.exam.grades import Grade, Rankings, make_grids
from retrieval_eval.exam.items import Bank, Item
from retrieval_eval.exam.oversight import (
    edit_effect,
    graded_answers,
    grid_rows,
    influences,
    spurious_items,
    uncovered_passages,
)
from retrieval_eval.exam.scores import correlate, cover_scores, places

GRADES = [
    *(Grade("q", "p1", item, grade) for item, grade in {"a": 5, "b": 4, "c": 0}.items()),
    *(Grade("q", "p2", item, grade) for item, grade in {"a": 4, "b": 0, "c": 1}.items()),
    *(Grade("q", "p3", item, grade) for item, grade in {"a": 0, "b": 3}.items()),
]
BANK = Bank(tuple(Item("q", f"{item}?", item_id=item) for item in "abc"))
LABELS = {"q": {"p1": 0, "p2": 1, "p3": 3, "p9": 3}}
RANKED: Rankings = {("q", "x"): ("p1",), ("q", "y"): ("p2",), ("q", "z"): ("p3",)}


def test_answers_stand_beside_their_grades_the_highest_first() -> None:
    answers = {("q", "p2", "a"): "epidermis", ("q", "p3", "c"): "not graded"}
    found = list(graded_answers(make_grids(GRADES, BANK), answers))
    assert [(row.item_id, row.passage_id, row.grade, row.answer) for row in found[:2]] == [
        ("a", "p1", 5, ""),
        ("a", "p2", 4, "epidermis"),
    ]
    assert (found[-1].item_id, found[-1].grade, found[-1].answer) == ("c", None, "not graded")


def test_relevant_passages_that_cover_nothing_are_listed_with_what_is_not_graded() -> None:
    (found,) = uncovered_passages(make_grids(GRADES, BANK), LABELS, level=4, relevant=1)
    assert (found.passage_id, found.label, found.best_grade, found.ungraded) == ("p3", 3, 3, 1)


def test_items_that_passages_without_relevance_cover_are_counted() -> None:
    found = spurious_items(make_grids(GRADES, BANK), LABELS, level=4, relevant=1)
    assert [(item.item_id, item.not_relevant, item.of, item.relevant) for item in found] == [
        ("b", 1, 1, 0),
        ("a", 1, 1, 1),
    ]
    assert spurious_items(make_grids(GRADES, BANK), {"q": {"p2": 1}}, level=4, relevant=1) == []


def test_the_grid_shows_an_ungraded_pair_as_nothing() -> None:
    rows = dict(grid_rows(make_grids(GRADES, BANK), "q"))
    assert list(rows) == ["p1", "p2", "p3"]
    assert rows["p3"] == [0, 3, None]


def test_the_item_that_decides_the_leaderboard_comes_first() -> None:
    # At 4: x covers a and b, y covers a, z nothing. Without b, x and y are tied; without a, y falls to z.
    found = influences(make_grids(GRADES, BANK, RANKED), RANKED, level=4)
    assert [(item.item_id, item.new_leader, item.moved) for item in found] == [
        ("b", True, 2),
        ("a", False, 2),
        ("c", False, 0),
    ]
    assert found[2].kendall == 1.0


TABLES = st.lists(st.integers(0, 5), min_size=18, max_size=18)


@settings(max_examples=30)
@given(TABLES)
def test_leaving_out_an_item_is_scoring_without_it(table: list[int]) -> None:
    bank = Bank(tuple(Item(f"q{at % 2}", f"{at}?", item_id=str(at), weight=1.0 + at) for at in range(6)))
    grades = [Grade(f"q{at % 2}", f"p{at // 6}", str(at % 6), grade) for at, grade in enumerate(table)]
    ranked = {(f"q{query}", f"agent{passage}"): (f"p{passage}",) for query in range(2) for passage in range(3)}

    def ranks(known: Bank) -> dict[str, float]:
        means = cover_scores(make_grids(grades, known, ranked), ranked, levels=(3,)).by_level[3]["cover"].means
        return places({agent: mean.value for agent, mean in means.items() if mean.value is not None})

    for found in influences(make_grids(grades, bank, ranked), ranked, level=3):
        without = ranks(Bank(tuple(item for item in bank.items if item.item_id != found.item_id)))
        assert found.moved == sum(without[agent] != place for agent, place in ranks(bank).items())
        assert found.kendall == pytest.approx(correlate(ranks(bank), without).kendall)


def test_an_edit_shows_the_labels_and_places_it_changes_and_what_must_be_graded() -> None:
    retired = replace(BANK, items=(replace(BANK.items[0], retired=True), *BANK.items[1:], Item("q", "new?")))
    effect = edit_effect(BANK, retired, GRADES, RANKED, level=4)
    assert [(change.passage_id, change.before, change.after) for change in effect.labels] == [
        ("p1", 5, 4),
        ("p2", 4, 1),
    ]
    assert [(move.agent, move.place_before, move.place_after) for move in effect.places] == [
        ("x", 1, 1),
        ("y", 2, 2.5),
        ("z", 3, 2.5),
    ]
    # Three passages with the new item, and p3 with c.
    assert effect.to_grade == 4


def test_grades_of_an_item_whose_question_changed_under_its_id_do_not_count() -> None:
    after = replace(BANK, items=(replace(BANK.items[0], text="Another question?"), *BANK.items[1:]))
    effect = edit_effect(BANK, after, GRADES, RANKED, level=4)
    assert effect.to_grade == 4
    assert [(change.passage_id, change.after) for change in effect.labels] == [("p1", 4), ("p2", 1)]


def test_a_new_weight_moves_places_without_any_grading() -> None:
    after = replace(BANK, items=(BANK.items[0], replace(BANK.items[1], weight=9.0), BANK.items[2]))
    effect = edit_effect(
        BANK, after, [entry for entry in GRADES if entry.passage_id != "p3"], {("q", "x"): ("p1",)}, level=4
    )
    assert effect.labels == ()
    assert effect.to_grade == 0
    assert effect.places[0].after == pytest.approx(10 / 11)
