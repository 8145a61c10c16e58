"""What edits make of a bank, as laws: nothing is lost, only what was edited differs, and the way back is open."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_eval.exam.bank_files import read_bank, write_bank
from retrieval_eval.exam.items import Bank, Item, ItemEdit, described, diff, edited_bank

IDS = st.sampled_from("abcdef")
BANK = Bank(
    tuple(
        Item(
            "q1" if name in "abc" else "q2",
            f"{name}?",
            item_id=name if name in "ad" else "",
            answers=("gold",) if name in "ab" else (),
            retired=name == "f",
            secret=name == "c",
        )
        for name in "abcdef"
    )
)
KEYS = dict(zip("abcdef", BANK.by_id, strict=True))


@st.composite
def edits(draw: st.DrawFn) -> dict[str, ItemEdit]:
    """Each text is new, or the item's own; a retired item gets none."""
    found = {}
    for name in draw(st.lists(IDS, unique=True)):
        item = BANK.by_id[KEYS[name]]
        retired = draw(st.sampled_from([None, False, True]))
        stays = item.retired if retired is None else retired
        text = None if stays else draw(st.sampled_from([None, f"{name}?", f" {name}? ", f"new {name}?"]))
        weight = draw(st.sampled_from([None, 0.5, 1.0, 3.0]))
        found[item.item_id] = ItemEdit(text, weight, retired)
    return found


def test_no_edit_makes_no_new_version() -> None:
    assert edited_bank(BANK, {}) == BANK
    assert described(diff(BANK, edited_bank(BANK, {}))) == "nothing changed"


@given(edits())
def test_the_difference_between_the_versions_is_the_edit(done: dict[str, ItemEdit]) -> None:
    after = edited_bank(BANK, done)
    for item in BANK.items:  # none is ever lost, no text ever changed
        assert after.by_id[item.item_id].text == item.text
        assert after.by_id[item.item_id].answers == item.answers
        assert item.item_id in done or after.by_id[item.item_id] == item
    changes = diff(BANK, after)
    new_texts = {
        item_id for item_id, edit in done.items() if edit.text and edit.text.strip() != BANK.by_id[item_id].text
    }
    was_active = {item.item_id for item in BANK.items if not item.retired}
    is_active = {item_id for item_id in KEYS.values() if _retired(item_id, done) is False}
    assert {old.item_id for old, _ in changes.edited} == new_texts & was_active
    assert {item.item_id for item in changes.retired} == was_active - is_active
    assert {item.replaces or item.item_id for item in changes.added} == is_active - was_active
    assert all(new.replaces == old.item_id and new.answers == old.answers for old, new in changes.edited)
    heavier = {item_id for item_id, edit in done.items() if edit.weight not in (None, 1.0)}
    assert {new.replaces or new.item_id for _, new in changes.reweighted} == heavier & was_active & is_active


def _retired(item_id: str, done: Mapping[str, ItemEdit]) -> bool:
    edit = done.get(item_id, ItemEdit())
    return BANK.by_id[item_id].retired if edit.retired is None else edit.retired


@given(st.data())
def test_the_order_of_edits_does_not_matter(data: st.DataObject) -> None:
    done = data.draw(edits())
    shuffled = dict(data.draw(st.permutations(list(done.items()))))
    assert edited_bank(BANK, shuffled) == edited_bank(BANK, done)


@given(st.sampled_from(["b", "e"]))
def test_an_old_text_brings_its_item_back_with_its_id_and_grades(name: str) -> None:
    old = BANK.by_id[KEYS[name]]
    changed = edited_bank(BANK, {old.item_id: ItemEdit("other?", 2.0)})
    (new,) = (item for item in changed.items if item.replaces == old.item_id)
    back = edited_bank(changed, {new.item_id: ItemEdit(old.text, 1.0)})
    changes = diff(BANK, Bank(tuple(item for item in back.items if item.item_id != new.item_id)))
    assert changes.added == changes.edited == ()
    assert {item.item_id for items in back.active.values() for item in items} == {
        item.item_id for items in BANK.active.values() for item in items
    }
    again = edited_bank(back, {old.item_id: ItemEdit("other?", 2.0)})
    assert again.version == changed.version


def test_who_retires_an_item_makes_way_for_its_text_in_another() -> None:
    a, b = KEYS["a"], KEYS["b"]
    for done in ({a: ItemEdit("b?"), b: ItemEdit(retired=True)}, {b: ItemEdit(retired=True), a: ItemEdit("b?")}):
        after = edited_bank(BANK, done)
        assert [item.text for item in after.active["q1"]] == ["b?", "c?"]


@settings(max_examples=30)
@given(done=edits(), name=st.sampled_from(["bank.csv", "bank.jsonl.gz", "bank.yaml"]))
def test_every_edited_bank_survives_its_file(
    done: dict[str, ItemEdit], name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    after = edited_bank(BANK, done, [Item("q2", "Added? <b> | $x$", weight=2.5, secret=True)])
    file = tmp_path_factory.mktemp("bank") / name
    write_bank(file, after, secret=True)
    again: Bank = read_bank(file)
    assert again.by_id == after.by_id
    assert again.version == after.version


@pytest.mark.parametrize(
    ("done", "added", "problem"),
    [
        ({"none": ItemEdit(weight=2)}, (), "the bank has no item 'none'"),
        ({KEYS["a"]: ItemEdit("  ")}, (), "an item without text"),
        ({KEYS["a"]: ItemEdit(weight=0)}, (), "a weight must be a number above 0, not 0"),
        ({KEYS["a"]: ItemEdit(weight=float("nan"))}, (), "a weight must be a number above 0"),
        ({KEYS["a"]: ItemEdit("b?")}, (), "another item of the query has this text"),
        ({KEYS["f"]: ItemEdit("x?")}, (), "a retired item keeps its text"),
        ({KEYS["a"]: ItemEdit("x?", retired=True)}, (), "a retired item keeps its text"),
        ({}, (Item("q1", "b?"),), "the query has this item already"),
        ({}, (Item("q2", "f?"),), "the query has this item already, retired: bring it back"),
    ],
)
def test_edits_that_cannot_be_made_say_why(done: dict[str, ItemEdit], added: tuple[Item, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        edited_bank(BANK, done, added)


def test_a_description_is_numbers_and_no_texts() -> None:
    done = {KEYS["a"]: ItemEdit("x?"), KEYS["b"]: ItemEdit(retired=True), KEYS["e"]: ItemEdit(weight=2.0)}
    changes = diff(BANK, edited_bank(BANK, done, [Item("q2", "y?")]))
    assert described(changes) == "1 edited, 1 added, 1 retired, 1 reweighted"
