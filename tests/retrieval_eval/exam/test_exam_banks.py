"""Test banks: ids, versions, differences, and every form of file there and back."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.errors import DataError
from retrieval_eval.exam.bank_files import read_bank, write_bank
from retrieval_eval.exam.items import Bank, Item, QueryInfo, diff, item_id_of

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
        ("a.csv", "qid,question\nq1,One?\n,Two?\n", r"a\.csv:3: the query's id \(qid\) is missing"),
        ("a.csv", "qid,question\nq1,One?\nq1, One?\n", r"a\.csv:3: an item with this id stands earlier"),
        ("a.csv", "qid,question,weight\nq1,One?,heavy\n", r"a\.csv:2: the weight is not a number \('heavy'\)"),
        ("a.csv", "qid,question,weight\nq1,One?,-1\n", r"a\.csv:2: a weight must be a number above 0"),
        ("a.csv", "qid,question,secret\nq1,One?,maybe\n", r"a\.csv:2: 'secret' is true or false \('maybe'\)"),
        ("a.csv", "qid,question,answers,choices\nq1,One?,x,a|b\n", r"a\.csv:2: the answer 'x' is none of the choices"),
        ("a.csv", "qid,question,kind\nq1,One?,essay\n", r"a\.csv:2: the kind of an item .* \('essay'\)"),
        ("a.csv", "qid,question,nugget\nq1,One?,two\n", r"a\.csv:2: an item is a question or a nugget, not both"),
        ("a.csv", "qid,text\nq1,\n", r"a\.csv:2: the item has no text"),
        ("a.yaml", "- qid: q1\n  question: One?\n- qid: q1\n", r"a\.yaml:3: the item has no text"),
        ("a.yaml", "- qid: q1\n  qid: q2\n", r"a\.yaml:2: key 'qid' stands twice"),
        ("a.yaml", "- One?\n", r"a\.yaml:1: the entry is not a mapping"),
        ("a.yaml", "qid: q1\n", r"a\.yaml: is not a YAML list"),
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
            replace(own, text="Does it say yes?"),
            Item("q2", "New?"),
        )
    )
    found = diff(old, new)
    assert [item.text for item in found.added] == ["New?"]
    assert [item.text for item in found.retired] == [first.text, third.text]
    assert [(a.text, b.text) for a, b in found.edited] == [("Does it say no?", "Does it say yes?")]
    assert [(a.weight, b.weight) for a, b in found.reweighted] == [(2.0, 1.0)]
    assert [(a.secret, b.secret) for a, b in found.disclosed] == [(True, False)]
    assert not diff(old, old)


def test_an_edited_bank_keeps_the_old_item_retired_and_has_another_version() -> None:
    bank = some_bank()
    after = bank.edited("NDQ_7", "Is it yes?")
    assert after.by_id["NDQ_7"].retired
    assert [item.replaces for item in after.active["q2"]] == ["NDQ_7"]
    assert after.version != bank.version
    assert [new.text for _, new in diff(bank, after).edited] == ["Is it yes?"]


@given(st.permutations(some_bank().items))
def test_the_order_of_the_items_does_not_make_a_version(items: list[Item]) -> None:
    assert Bank(tuple(items)).version == some_bank().version


def test_two_items_cannot_have_one_id() -> None:
    with pytest.raises(ValueError, match="two items"):
        Bank((Item("q1", "One?"), Item("q1", " One? ")))
