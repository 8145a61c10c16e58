"""Scores with edited nuggets, before they are assigned."""

from __future__ import annotations

from arena.stages.nuggets.results import carried, preview
from retrieval_eval.nuggets.types import Assignment, Importance, NuggetBank, Support, make_nuggets

V, O = Importance.VITAL, Importance.OKAY  # noqa: E741
FULL, PARTIAL, NONE = Support


def assignment(run: str, query_id: str, *labels: Support, words: int = 3) -> Assignment:
    return Assignment(
        query_id, run, make_nuggets(query_id, ["a", "b"], [V, O]), labels, words, "an answer here"[:words]
    )


ASSIGNMENTS = [
    assignment("x", "q1", FULL, NONE),
    assignment("x", "q2", FULL, FULL),
    assignment("y", "q1", NONE, NONE, words=0),
    assignment("y", "q2", NONE, PARTIAL),
]


def edited(*nuggets: tuple[str, Importance]) -> dict[str, NuggetBank]:
    made = make_nuggets("q1", [text for text, _ in nuggets], [importance for _, importance in nuggets])
    return {"q1": NuggetBank("q1", "Why?", made)}


def test_labels_stay_with_their_text_wherever_it_stands_and_however_it_weighs() -> None:
    found = carried(ASSIGNMENTS, edited(("b", V), ("a", O)))
    assert [own.labels for own in found] == [(NONE, FULL), (FULL, FULL), (NONE, NONE), (NONE, PARTIAL)]
    assert [own.importance for own in found[0].nuggets] == [V, O]


def test_a_new_nugget_is_open_but_for_an_empty_answer() -> None:
    found = carried(ASSIGNMENTS, edited(("a", V), ("new", V)))
    assert [own.labels for own in found][0::2] == [(FULL, None), (NONE, NONE)]


def test_scores_after_an_edit_are_bounds_until_all_is_assigned() -> None:
    (before, after), (_, other) = preview(ASSIGNMENTS, edited(("a", V), ("new", V)))
    assert (before.run, before.means["v_strict"].value) == ("x", 1.0)
    assert (after.means["v_strict"].lowest, after.means["v_strict"].highest) == (0.75, 1.0)
    assert after.labels - after.assigned == 1
    assert other.means["v_strict"].value == 0.0
    (_, after), _ = preview(ASSIGNMENTS, edited(("a", O), ("b", V)))
    assert after.means["v_strict"].value == 0.5
