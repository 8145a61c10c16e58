"""Test banks: ids, versions, every form of file there and back, and edits that lose nothing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from judges.errors import DataError
from retrieval_eval.exam.bank_files import read_bank, write_bank
from retrieval_eval.exam.items import Bank, Item, ItemEdit, QueryInfo, described, diff, edited_bank, item_id_of

FORMS = ["bank.csv", "bank.tsv", "bank.jsonl", "bank.jsonl.gz", "bank.yaml", "bank.parquet"]


def some_bank() -> Bank:
    return Bank(
        (
            Item(
                "q1",
                "Outer layer of the skin?",
                answers=("epidermis", "the epidermis"),
                metadata={"info": {"by": "hand"}},
            ),
            Item("q1", "Is the skin an organ?", answers=("true",), kind="true_false", weight=2.0, secret=True),
            Item("q1", "Deepest layer?", kind="multiple_choice", choices={"A": "fat", "B": "hair"}, answers=("A",)),
            Item("q1", "three | layers\n", item_type="nugget", facet_id="T_1", retired=True, replaces="q1/old"),
            Item("q2", "Does it say no?", answers=("no",), kind="free", item_id="NDQ_7"),
        ),
        {("q1", None): QueryInfo("The Integumentary System"), ("q1", "T_1"): QueryInfo(), ("q2", None): QueryInfo("?")},
    )


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_an_id_is_the_query_and_the_md5_of_the_stripped_text() -> None:
    # The nugget and its id are those of 001, Figure 3.
    assert item_id_of("940547", " Early 1950s innovation\n").startswith("940547/")
    assert item_id_of("q", "x", "T_2") == "q/T_2/9dd4e461268c8034f5c8564e155c67a6"
    assert Item("q", " x ").item_id == "q/9dd4e461268c8034f5c8564e155c67a6"


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_bank_back(name: str, tmp_path: Path) -> None:
    bank = some_bank()
    stripped = replace(bank, items=tuple(replace(item, text=item.text.strip()) for item in bank.items))
    assert write_bank(tmp_path / name, stripped, secret=True) == 0
    assert read_bank(tmp_path / name) == stripped


@pytest.mark.parametrize("name", FORMS)
def test_secret_items_stay_out_of_a_file_unless_asked_for(name: str, tmp_path: Path) -> None:
    assert write_bank(tmp_path / name, some_bank()) == 1
    assert "q1/" in str(read_bank(tmp_path / name).by_id)
    raw = (tmp_path / name).read_bytes()
    assert b"an organ" not in (gzip.decompress(raw) if name.endswith(".gz") else raw)


def test_the_workbenchs_bank_is_read_and_written_with_what_it_says_besides(tmp_path: Path) -> None:
    record = {
        "query_id": "940547",
        "facet_id": None,
        "test_collection": "DL20",
        "query_text": "When did rock n roll begin?",
        "info": {"prompt_target": "questions"},
        "items": [
            {
                "query_id": "940547",
                "facet_id": None,
                "info": None,
                "question_id": item_id_of("940547", "Which musicians are pioneers?"),
                "question_text": "Which musicians are pioneers?",
                "gold_answers": None,
            }
        ],
    }
    file = tmp_path / "dl20-questions.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(record).encode() + b"\n"))
    bank = read_bank(file)
    assert bank.queries["940547", None].text == "When did rock n roll begin?"
    write_bank(tmp_path / "again.jsonl.gz", bank)
    assert json.loads(gzip.decompress((tmp_path / "again.jsonl.gz").read_bytes())) == record


def test_banks_made_by_hand_say_as_little_as_possible(tmp_path: Path) -> None:
    table = read_bank(
        write(
            tmp_path / "a.csv",
            "qid,question,answers,choices\nq1,Outer layer?,epidermis|Epidermis,\nq1,An organ?,Yes,\n"
            "q1,Deepest?,fat,hair|fat\n",
        )
    )
    assert [(item.kind, item.answers) for item in table.items] == [
        ("free", ("epidermis", "Epidermis")),
        ("true_false", ("true",)),
        ("multiple_choice", ("B",)),
    ]
    yaml = read_bank(
        write(tmp_path / "b.yaml", "- qid: q1\n  query: skin\n  items:\n  - Outer layer?\n  - nugget: three layers\n")
    )
    assert [(item.item_type, item.text) for item in yaml.items] == [
        ("question", "Outer layer?"),
        ("nugget", "three layers"),
    ]
    assert yaml.queries["q1", None].text == "skin"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "qid,question\nq1,One?\n,Two?\n", r"a\.csv:3: the item names no query"),
        ("a.csv", "qid,question\nq1,One?\nq1, One?\n", r"a\.csv:3: an earlier item of the bank has the same id"),
        ("a.csv", "qid,question,weight\nq1,One?,heavy\n", r"a\.csv:2: 'weight' must be a number \('heavy'\)"),
        ("a.csv", "qid,question,weight\nq1,One?,-1\n", r"a\.csv:2: a weight must be a number above 0"),
        (
            "a.csv",
            "qid,question,weight\nq1,One?,1e308\n",
            r"a\.csv:2: a weight must be .* at most 1,000,000, not 1e\+308",
        ),
        ("a.csv", "qid,question,secret\nq1,One?,maybe\n", r"a\.csv:2: 'secret' must be true or false \('maybe'\)"),
        (
            "a.csv",
            "qid,question,answers,choices\nq1,One?,x,a|b\n",
            r"a\.csv:2: the answer 'x' is not one of the choices",
        ),
        ("a.csv", "qid,question,kind\nq1,One?,essay\n", r"a\.csv:2: the kind of an item .* \('essay'\)"),
        ("a.csv", "qid,question,nugget\nq1,One?,two\n", r"a\.csv:2: an item is a question or a nugget, not both"),
        ("a.csv", "qid,text\nq1,\n", r"a\.csv:2: the item has no text"),
        ("a.yaml", "- qid: q1\n  question: One?\n- qid: q1\n", r"a\.yaml:3: the item has no text"),
        ("a.yaml", "- qid: q1\n  qid: q2\n", r"a\.yaml:2: key 'qid' stands twice"),
        ("a.yaml", "- One?\n", r"a\.yaml:1: the entry has no keys"),
        ("a.yaml", "qid: q1\n", r"a\.yaml: is not a list; write a YAML list"),
        ("a.yaml", "- [\n", r"a\.yaml:2: "),
        (
            "a.jsonl",
            '{"query_id": "q1", "items": [{"query_id": "q2", "question": "One?"}]}\n',
            r"a\.jsonl:1: .*\('q2'\)",
        ),
    ],
)
def test_an_error_names_file_line_and_value(name: str, text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        read_bank(write(tmp_path / name, text))


def test_a_text_edited_in_the_file_gets_its_own_id_and_replaces_the_old_one(tmp_path: Path) -> None:
    bank = Bank((Item("q1", "Outer layer?"),))
    write_bank(tmp_path / "bank.csv", bank)
    file = write(tmp_path / "edited.csv", (tmp_path / "bank.csv").read_text(encoding="utf-8").replace("Outer", "Inner"))
    (item,) = read_bank(file).items
    assert (item.item_id, item.replaces) == (item_id_of("q1", "Inner layer?"), item_id_of("q1", "Outer layer?"))
    assert [(old.text, new.text) for old, new in diff(bank, read_bank(file)).edited] == [
        ("Outer layer?", "Inner layer?")
    ]


def test_a_difference_says_what_was_added_retired_edited_reweighted_and_disclosed() -> None:
    old = some_bank()
    first, second, third, gone, own = old.items
    new = Bank(
        (
            replace(first, retired=True),
            replace(second, secret=False, weight=1.0),
            gone,
            replace(own, text="Does it say yes?", secret=True),
            Item("q2", "New?"),
        )
    )
    found = diff(old, new)
    assert [item.text for item in found.added] == ["New?"]
    assert [item.text for item in found.retired] == [first.text, third.text]
    assert [(a.text, b.text) for a, b in found.edited] == [("Does it say no?", "Does it say yes?")]
    assert [(a.weight, b.weight) for a, b in found.reweighted] == [(2.0, 1.0)]
    assert [(a.secret, b.secret) for a, b in found.disclosed] == [(True, False), (False, True)]
    assert not diff(old, old)


@given(st.permutations(some_bank().items))
def test_the_order_of_the_items_does_not_make_a_version(items: list[Item]) -> None:
    assert Bank(tuple(items)).version == some_bank().version


def test_two_items_cannot_have_one_id() -> None:
    with pytest.raises(ValueError, match="two items"):
        Bank((Item("q1", "One?"), Item("q1", " One? ")))


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
    assert (after.version == BANK.version) == (not new_texts and after.items == BANK.items)


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
        ({KEYS["a"]: ItemEdit("  ")}, (), "an item has no text"),
        ({KEYS["a"]: ItemEdit(weight=0)}, (), "a weight must be a number above 0 and at most 1,000,000, not 0"),
        ({KEYS["a"]: ItemEdit(weight=float("nan"))}, (), "a weight must be a number above 0"),
        ({KEYS["a"]: ItemEdit("b?")}, (), "another item of the query has this text"),
        ({KEYS["f"]: ItemEdit("x?")}, (), "the text of a retired item cannot change"),
        ({KEYS["a"]: ItemEdit("x?", retired=True)}, (), "the text of a retired item cannot change"),
        ({}, (Item("q1", "b?"),), "the query already has this item"),
        ({}, (Item("q2", "f?"),), "the query already has this item, but retired: restore it"),
    ],
)
def test_edits_that_cannot_be_made_say_why(done: dict[str, ItemEdit], added: tuple[Item, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        edited_bank(BANK, done, added)


def test_a_description_is_numbers_and_no_texts() -> None:
    done = {KEYS["a"]: ItemEdit("x?"), KEYS["b"]: ItemEdit(retired=True), KEYS["e"]: ItemEdit(weight=2.0)}
    changes = diff(BANK, edited_bank(BANK, done, [Item("q2", "y?")]))
    assert described(changes) == "1 edited, 1 added, 1 retired, 1 reweighted"
    assert described(diff(BANK, edited_bank(BANK, {}))) == "nothing changed"
