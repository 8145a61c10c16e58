"""From files of answers to a leaderboard, without a YAML file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ragleague as rl

COUNT = 4
QUESTIONS = [f"What is thing number {number} about?" for number in range(COUNT)]


def rows(answer: str) -> list[dict[str, Any]]:
    return [
        {
            "user_input": text,
            "response": f"Thing {number} is {answer}.",
            "retrieved_contexts": [f"Thing {number}: alpha"],
        }
        for number, text in enumerate(QUESTIONS)
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, answer in (("a", "alpha"), ("b", "something else")):
        text = "".join(json.dumps(row) + "\n" for row in rows(answer))
        (tmp_path / f"answers_{name}.jsonl").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_two_files_and_a_judge_are_a_tournament(folder: Path, cli: Callable[..., Any]) -> None:
    ended = cli("run", "answers_a.jsonl", "answers_b.jsonl", "--judge", "lexical", "--format", "csv")
    assert ended.status == 0
    said = ended.err.splitlines()
    assert said[:2] == [
        "read: answers_a.jsonl, answers_b.jsonl: query=user_input, answer=response, passages=retrieved_contexts",
        "read: 4 queries, 4 documents, 8 answers, 0 gold answers, messages before 0 queries",
    ]
    assert said[2] == "assumed: 4 queries, 4 documents; agents answers_a and answers_b"
    assert said[3].endswith("judge lexical; store ragleague.db, tournament 'answers_a-answers_b'")
    assert said[4] == "--save FILE writes this as a YAML file to change"
    assert "pairwise: 8 judged, 0 needed no call" in ended.err
    assert ended.out.splitlines()[1].startswith("1,answers_a") or "answers_a" in ended.out
    assert (folder / "ragleague.db").exists()


def test_what_is_assumed_is_saved_as_a_yaml_file_that_says_the_same(folder: Path, cli: Callable[..., Any]) -> None:
    (folder / "conf").mkdir()
    first = cli("run", "answers_*.jsonl", "--judge", "lexical", "--limit", 2, "--save", "conf/own.yaml")
    assert "pairwise: 4 judged" in first.err
    again = cli("run", "conf/own.yaml")
    assert "pairwise: 0 judged, 4 needed no call" in again.err
    assert again.out == first.out
    assert "pairwise: 0 judged, 2 needed no call" in cli("run", "conf/own.yaml", "--limit", 1).err
    taken = cli("run", "answers_*.jsonl", "--judge", "lexical", "--save", "conf/own.yaml")
    assert (taken.status, taken.err) == (
        2,
        "error: conf/own.yaml: exists already; name another file with --save\n",
    )


def test_a_plan_of_answers_calls_nothing(folder: Path, cli: Callable[..., Any]) -> None:
    ended = cli("plan", "answers_a.jsonl", "answers_b.jsonl", "--judge", "openai/gpt-4.1-mini", "--format", "json")
    assert json.loads(ended.out)["stages"][0]["calls"] == 2 * COUNT
    assert not (folder / "ragleague.db").exists()


def test_columns_of_ones_own_are_named_on_the_command_line(folder: Path, cli: Callable[..., Any]) -> None:
    (folder / "all.csv").write_text("frage;sys;text\nwhy?;x;so\nwhy?;y;thus\n")
    columns = ["--column", "answer=text", "--column", "query=frage", "--column", "agent=sys"]
    assert "agents x and y" in cli("plan", "all.csv", "--judge", "lexical", *columns).err


@pytest.mark.parametrize(
    "given",
    [
        "answers_*.jsonl",
        [Path("answers_a.jsonl"), Path("answers_b.jsonl")],
        {"answers_a": pd.DataFrame(rows("alpha")), "answers_b": rows("something else")},
        [{**row, "model": f"answers_{name}"} for name, text in (("a", "alpha"), ("b", "no")) for row in rows(text)],
    ],
    ids=["pattern", "files", "by agent", "dictionaries"],
)
def test_python_loads_and_runs_the_same(folder: Path, given: Any) -> None:
    data = rl.load(given)
    assert data.agents == ("answers_a", "answers_b")
    board = rl.run(data, judge="lexical", progress=False)
    assert board.complete
    assert board.to_frame()["agent"].tolist()[0] == "answers_a"
    assert (folder / "ragleague.db").exists()
