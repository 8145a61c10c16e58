"""Nuggets before, while and after people edit them: every step is told, and every list is one that a run can use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_eval.nuggets.types import (
    FROM,
    HISTORY,
    EditKind,
    Importance,
    NuggetBank,
    added,
    changes,
    draft_of,
    edited,
    make_nuggets,
    merged,
    moved,
    removed,
    weighed,
    worded,
)

V, O = Importance.VITAL, Importance.OKAY  # noqa: E741


def bank(*nuggets: tuple[str, Importance | None] | tuple[str, Importance | None, Any], **details: Any) -> NuggetBank:
    origins = [{"from": own[2]} if len(own) > 2 else {} for own in nuggets]
    made = make_nuggets("q", [own[0] for own in nuggets], [own[1] for own in nuggets], origins)
    return NuggetBank("q", "Why?", made, details)


OLD = bank(("a", V), ("b", V), ("c", O), ("d", O), ("e", None))


@pytest.mark.parametrize(
    ("after", "kinds"),
    [
        (OLD, [EditKind.KEPT] * 5),
        (bank(("a", V)), [EditKind.KEPT, *[EditKind.REMOVED] * 4]),
        (bank(("a", O), ("b", V), ("c", O), ("d", O), ("e", None)), [EditKind.IMPORTANCE, *[EditKind.KEPT] * 4]),
        (bank(("a and b", V, ["a", "b"]), ("c", O), ("d", O), ("e", None)), [EditKind.MERGED, *[EditKind.KEPT] * 3]),
        (
            bank(("a1", V, "a"), ("a2", V, ["a"]), ("b", V), ("c", O), ("d", O), ("e", V)),
            [EditKind.SPLIT, EditKind.SPLIT, EditKind.KEPT, EditKind.KEPT, EditKind.KEPT, EditKind.IMPORTANCE],
        ),
        (
            bank(("A.", V, "a"), ("new", O), ("b", V), ("c", O), ("d", O), ("e", None)),
            [EditKind.REWORDED, EditKind.ADDED, *[EditKind.KEPT] * 4],
        ),
        (bank(), [EditKind.REMOVED] * 5),
    ],
)
def test_every_edit_is_told_by_what_the_new_list_has(after: NuggetBank, kinds: list[EditKind]) -> None:
    assert [change.kind for change in changes(OLD, after)] == kinds


def test_a_merged_nugget_tells_both_texts_and_importances() -> None:
    (change, *_) = changes(OLD, bank(("c and a", V, ["c", "a"])))
    assert (change.before, change.after, change.importance_before, change.importance) == (("c", "a"), "c and a", O, V)


def test_what_was_not_there_cannot_be_the_origin() -> None:
    with pytest.raises(ValueError, match="names 'z', which is not in the old list"):
        changes(OLD, bank(("y", V, ["z"])))
    with pytest.raises(ValueError, match="must be a text or a list of texts"):
        changes(OLD, bank(("y", V, 3)))


def test_history_grows_with_every_edit_that_changes_something() -> None:
    once = edited(OLD, bank(("a", V)), by="ann", at="2026-01-01")
    assert edited(once, bank(("a", V)), by="bob", at="2026-01-02") == once
    twice = edited(once, bank(("a", O, "a")), by="bob", at="2026-01-02")
    assert [(entry["by"], len(entry["changes"])) for entry in twice.details["history"]] == [("ann", 4), ("bob", 1)]
    assert twice.nuggets[0].details == {}
    assert twice.details["history"][1]["changes"][0]["importance"] == "okay"


def test_a_history_that_is_none_is_not_written_over() -> None:
    with pytest.raises(ValueError, match="'history' must be a list of edits"):
        edited(bank(("a", V), history=None), bank(("b", V)), by="ann", at="now")


BANK = NuggetBank("q", "Why?", make_nuggets("q", ["a", "b", "c"], [V, O, None], [{"n": 1}, {}, {}]), {"by": "us"})


def steps_told(draft: NuggetBank) -> list[tuple[str, tuple[str, ...], str | None]]:
    return [(own.kind.value, own.before, own.after) for own in changes(BANK, draft) if own.kind is not EditKind.KEPT]


@pytest.mark.parametrize(
    ("step", "texts", "said"),
    [
        (lambda d: d, "a b c", []),
        (lambda d: added(d, " d \n e ", O), "a b c d_e", [("added", (), "d e")]),
        (lambda d: removed(d, [0, 2]), "b", [("removed", ("a",), None), ("removed", ("c",), None)]),
        (lambda d: merged(d, [2, 1], "b and c"), "a b_and_c", [("merged", ("b", "c"), "b and c")]),
        (lambda d: worded(d, 1, ["b1", "b2"]), "a b1 b2 c", [("split", ("b",), "b1"), ("split", ("b",), "b2")]),
        (lambda d: worded(d, 1, ["B"]), "a B c", [("reworded", ("b",), "B")]),
        (lambda d: weighed(d, [0, 1], O), "a b c", [("importance", ("a",), "a")]),
        (lambda d: moved(d, 2, -1), "a c b", []),
        (lambda d: moved(d, 0, 9), "b c a", []),
        (lambda d: moved(d, 1, -9), "b a c", []),
        (lambda d: worded(worded(d, 0, ["A"]), 0, ["a"]), "a b c", []),
        (
            lambda d: merged(worded(d, 0, ["x", "y"]), [1, 2], "yb"),
            "x yb c",
            [("reworded", ("a",), "x"), ("merged", ("a", "b"), "yb")],
        ),
        (lambda d: removed(added(d, "d", None), [3]), "a b c", []),
        (lambda d: worded(added(d, "d e", None), 3, ["d", "e"]), "a b c d e", [("added", (), "d"), ("added", (), "e")]),
    ],
)
def test_each_step_does_what_it_says_and_is_told(
    step: Callable[[NuggetBank], NuggetBank], texts: str, said: list[object]
) -> None:
    draft = step(draft_of(BANK))
    assert [own.text.replace(" ", "_") for own in draft.nuggets] == texts.split()
    assert steps_told(draft) == said


def test_a_merged_nugget_is_vital_if_one_of_them_was_and_details_stay_with_their_nugget() -> None:
    draft = draft_of(BANK)
    assert merged(draft, [1, 2], "bc").nuggets[1].importance is O
    assert merged(draft, [1, 0], "ab").nuggets[0].importance is V
    assert worded(draft, 0, ["A"]).nuggets[0].details == {"n": 1, FROM: ["a"]}
    done = edited(BANK, worded(draft, 0, ["A"]), by="ann", at="now")
    assert done.nuggets[0].details == {"n": 1}
    assert done.details["by"] == "us"
    assert [own.nugget_id for own in done.nuggets] == [
        own.nugget_id for own in make_nuggets("q", ["A", "b", "c"], [V, O, None])
    ]


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (lambda d: removed(d, [0, 1, 2]), "a query needs at least one nugget"),
        (lambda d: added(d, "  ", V), "a nugget needs a text"),
        (lambda d: worded(d, 0, [""]), "a nugget needs a text"),
        (lambda d: added(d, " b", V), "this nugget is already in the list: b"),
        (lambda d: merged(d, [0, 1], "c"), "this nugget is already in the list: c"),
        (lambda d: worded(d, 0, ["x", "x"]), "this nugget is already in the list: x"),
        (lambda d: merged(d, [0], "x"), "choose at least two nuggets to merge"),
    ],
)
def test_a_step_that_a_run_could_not_use_is_refused(step: Callable[[NuggetBank], NuggetBank], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        step(draft_of(BANK))


def test_another_order_is_told_in_the_history() -> None:
    done = edited(BANK, moved(draft_of(BANK), 0, 1), by="ann", at="now")
    assert done.details[HISTORY] == [{"by": "ann", "at": "now", "changes": [], "reordered": True}]
    assert HISTORY not in edited(BANK, draft_of(BANK), by="ann", at="now").details


def test_a_list_that_repeats_a_text_is_kept_as_it_is() -> None:
    twice = NuggetBank("q", "Why?", make_nuggets("q", ["a", "a", "b"], [V, V, O]))
    assert [own.kind for own in changes(twice, draft_of(twice))] == [EditKind.KEPT] * 3
    assert [own.kind for own in changes(twice, worded(draft_of(twice), 0, ["x", "y"]))][:2] == [
        EditKind.SPLIT,
        EditKind.SPLIT,
    ]


def any_step(data: st.DataObject, draft: NuggetBank, names: Iterator[str]) -> NuggetBank:
    places = data.draw(st.lists(st.sampled_from(range(len(draft.nuggets))), min_size=1, max_size=3, unique=True))
    steps: list[Callable[[], NuggetBank]] = [
        lambda: added(draft, next(names), V),
        lambda: removed(draft, places),
        lambda: merged(draft, places, next(names)),
        lambda: worded(draft, places[0], [next(names), next(names)]),
        lambda: moved(draft, places[0], data.draw(st.integers(-3, 3))),
    ]
    try:
        return data.draw(st.sampled_from(steps))()
    except ValueError:
        return draft


@settings(max_examples=30)
@given(st.data())
def test_after_any_steps_every_old_nugget_is_accounted_for(data: st.DataObject) -> None:
    draft, names = draft_of(BANK), iter(f"new {number}" for number in range(99))
    for _ in range(data.draw(st.integers(0, 8))):
        draft = any_step(data, draft, names)
    found = changes(BANK, draft)
    assert {text for change in found for text in change.before} == {"a", "b", "c"}
    assert [change.after for change in found if change.after] == [own.text for own in draft.nuggets]
