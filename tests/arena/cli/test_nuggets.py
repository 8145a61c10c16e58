"""``nuggets score`` and ``nuggets correlate`` as their users see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arena.boards.nugget_comparison import NuggetComparison
from arena.present.picture import Chart
from arena.stages.nuggets.comparison import compare_conditions, read_condition

COLUMNS = ("v_strict", "v", "w_strict", "w", "a_strict", "a")
RUNS = {"r<1>": "ssn", "r2": "snn", "r3": "npn", "r4": "nnn"}
LABELS = {"s": "support", "p": "partial_support", "n": "not_support", "f": "failed"}


def record(run: str, topic: str, letters: str) -> dict[str, object]:
    nuggets = [
        {"text": f"fact {at}", "importance": "okay" if at == 2 else "vital", "assignment": LABELS[letter]}
        for at, letter in enumerate(letters)
    ]
    return {"query": "why", "qid": topic, "nuggets": nuggets, "run_id": run, "answer_text": "word " * 4}


@pytest.fixture
def assignments(tmp_path: Path) -> Path:
    """Four runs on three topics; r4 did not answer the third, r2 has a failed label on it."""
    records = [record(run, topic, letters) for run, letters in RUNS.items() for topic in ("1", "2")]
    records += [record("r<1>", "3", "sss"), record("r2", "3", "sfs"), record("r3", "3", "nns")]
    path = tmp_path / "assignments.jsonl"
    path.write_text("".join(json.dumps(own) + "\n" for own in records), encoding="utf-8")
    return path


def read_json(cli: Any, *arguments: object) -> Any:
    ended = cli(*arguments)
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


def test_a_topic_set_of_other_ids_is_refused(cli: Any, assignments: Path, tmp_path: Path) -> None:
    (tmp_path / "topics.tsv").write_text("2024-1\twhy\n", encoding="utf-8")
    ended = cli("nuggets", assignments, "--topics", tmp_path / "topics.tsv")
    assert (ended.status, ended.out) == (2, "")
    assert "none of its topics is in" in ended.err


def test_a_bad_label_is_one_line_with_file_line_and_value(cli: Any, assignments: Path) -> None:
    text = assignments.read_text(encoding="utf-8").replace("partial_support", "partly", 1)
    assignments.write_text(text, encoding="utf-8")
    ended = cli("nuggets", assignments)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {assignments}:5: nugget 2: assignment is one of")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("form", ["json", "csv", "jsonl"])
def test_written_scores_are_read_back_as_a_condition(cli: Any, assignments: Path, tmp_path: Path, form: str) -> None:
    scores = tmp_path / f"scores.{form}"
    scores.write_text(cli("nuggets", assignments, "--format", form).out, encoding="utf-8")
    for column in COLUMNS:
        shape = read_json(cli, "nuggets", assignments, "--with", scores, "--score", column, "--format", "json")
        assert (shape["n"], shape["kendall_tau"], shape["spearman"]) == (4, 1, 1)
        assert shape["pairs"]["n"] == (10 if form == "jsonl" else 0)
        assert all(own["a"] == pytest.approx(own["b"]) for own in shape["points"]["runs"])


def test_the_charts_hold_every_run_every_answer_and_the_front(assignments: Path) -> None:
    condition = read_condition(assignments, "v_strict")
    scores, length = NuggetComparison(compare_conditions(condition, condition), "v_strict", ("a", "b")).pictures()
    assert isinstance(scores, Chart)
    assert isinstance(length, Chart)
    assert [[dot.look for dot in chart.dots].count("blue") for chart in (scores, length)] == [4, 4]
    assert len(scores.dots) == len(length.dots) == 4 + 10
    assert list(length.path) == [(pytest.approx(8 / 3), 0), (4, 1)]
    assert scores.dots[0].told == "r<1>: 1.00, 1.00"
