"""``exam`` and ``bank`` as a user runs them, on a graded file of the workbench and on tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrieval_eval.data.tables import read_rows
from retrieval_eval.exam.bank_files import read_bank, write_bank
from retrieval_eval.exam.items import Bank, Item, QueryInfo
from tests.conftest import CLI
from tests.support.workbench_files import write_graded


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    return write_graded(tmp_path / "graded.jsonl")


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    items = [Item("skin", f"{name}?", item_id=name, secret=name == "b") for name in "abcd"]
    items += [Item("rock", f"{name}?", item_id=name) for name in "ef"]
    write_bank(tmp_path / "bank.yaml", Bank(tuple(items), {("skin", None): QueryInfo("The skin")}), secret=True)
    return tmp_path / "bank.yaml"


def test_secret_items_are_in_no_imported_table_unless_asked_for(
    cli: CLI, graded: Path, bank: Path, tmp_path: Path
) -> None:
    ended = cli("convert", "tables", graded, tmp_path / "open", "--bank", bank)
    assert ended.status == 0
    assert "6 rows of secret items left out; --secret writes them" in ended.out
    assert "1 rows of secret items left out" in ended.out
    secret = read_bank(bank).secret_ids
    assert secret
    for name in ("bank.csv", "grades.csv"):
        rows = list(read_rows(tmp_path / "open" / name))
        assert rows
        assert not [row for row in rows if row.text("item") in secret]


def test_grades_are_added_onto_a_workbench_file(cli: CLI, graded: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("qid,did,item,grade,llm,prompt\nrock,p4,e,5,gpt,rate\n", encoding="utf-8")
    out = tmp_path / "more.jsonl"
    assert cli("convert", "workbench", tmp_path / "new.csv", out, "--onto", graded, "--secret").status == 0
    before, after = (path.read_text(encoding="utf-8").splitlines() for path in (graded, out))
    assert (before[0], len(before)) == (after[0], len(after))
    assert before[1] != after[1]
    assert json.loads(after[1])[1][0]["exam_grades"][-1]["llm"] == "gpt"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("exam", "score", "none.csv"), "none.csv: no such file"),
        (("exam", "score", "table.csv"), "name the agents' ranked passages with --run"),
        (("exam", "score", "table.csv", "--items", "x*"), "no graded item has an id that matches the pattern 'x*'"),
        (("exam", "score", "table.csv", "--llm", "gpt"), "no grader has this model and prompt"),
        (("exam", "score", "table.csv", "--bank", "other.csv"), "no grade is for an item of the bank other.csv"),
        (("exam", "score", "table.csv", "--run", "bad.run"), "bad.run:1: a line must have 6 fields, 'query Q0"),
        (("exam", "agreement", "table.csv"), "has no relevance labels by people"),
        (
            ("exam", "agreement", "table.csv", "--qrels", "bad.run"),
            "bad.run:1: a line must have 4 fields",
        ),
        (("exam", "labels", "table.csv", "--out", "o.qrels", "--map", "4"), "'4' in the map of grades (--map)"),
        (("exam", "grid", "table.csv"), "exam grid: --query is missing: id of the query"),
        (("exam", "summary", "table.csv", "--query", "z"), "on query 'z'"),
        (
            ("convert", "workbench", "table.csv", "folder"),
            "folder: name a .jsonl.gz file; the Rubric-Grading Workbench",
        ),
        (
            ("convert", "tables", "table.csv", "folder"),
            "table.csv: is not a graded file of the Rubric-Grading Workbench; name one that ends in .jsonl.gz",
        ),
        (("convert", "workbench", "table.csv", "o.jsonl.gz"), "name the test bank with --bank"),
        (("bank", "show", "bad.run"), "bad.run: not a table"),
    ],
)
def test_what_a_user_can_get_wrong_is_one_line_and_status_2(
    cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("qid,did,item,grade\nq,p,a,4\n", encoding="utf-8")
    Path("other.csv").write_text("qid,question\nq,Another?\n", encoding="utf-8")
    Path("bad.run").write_text("q p\n", encoding="utf-8")
    done = cli(*arguments)
    assert done.status == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_labels_that_a_model_gave_without_items_are_chosen_by_their_prompt(
    cli: CLI, graded: Path, tmp_path: Path
) -> None:
    ended = cli("exam", "agreement", graded, "--prompt", "Sun", "--format", "json")
    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["n"] == 4, "the passages that people judged"
    out = tmp_path / "sun.qrels"
    assert cli("exam", "labels", graded, "--prompt", "Sun", "--llm", "flan", "--out", out).status == 0
    assert out.read_text(encoding="utf-8").splitlines()[0].split() == ["skin", "0", "p1", "1"]
    refused = cli("exam", "score", graded, "--prompt", "Sun")
    assert refused.status == 2
    assert (
        "this grader labelled passages and graded no items; use 'ragleague exam labels' or 'ragleague exam agreement'"
        in refused.err
    )
    mapped = cli("exam", "labels", graded, "--prompt", "Sun", "--map", "0:1", "--out", out)
    assert (mapped.status, "labels passages without items" in mapped.err) == (2, True)
    assert cli("exam", "agreement", graded, "--prompt", "Moon").status == 2


def test_programs_get_the_interval_that_people_see(cli: CLI, graded: Path) -> None:
    agents = json.loads(cli("exam", "score", graded, "--format", "json").out)["agents"]
    shown = cli("exam", "score", graded, "--format", "csv").out.splitlines()
    header, *rows = (line.split(",") for line in shown)
    for row in rows:
        told = dict(zip(header, row, strict=True))
        (own,) = (each["levels"]["4"]["cover"] for each in agents if each["agent"] == told["agent"])
        assert own["low"] <= own["mean"] <= own["high"]
        assert (own["low"], own["high"]) == (float(told["cover_low"]), float(told["cover_high"]))
