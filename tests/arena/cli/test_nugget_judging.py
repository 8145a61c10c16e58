"""``nuggets create``, ``nuggets assign`` and a run with nuggets, as their users see them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.nuggets.files import read_assignments
from tests.support.crowd import crowd_judge, sloppy_crowd_judge, stated, write_crowd_data
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.nugget_judge import nugget_judge, task_of
from tests.support.tournaments import write_data

FILE = """
name: small
store: store.db
data: {{queries: queries.csv, documents: documents.csv, answers: answers.csv}}
judges: {{judge: {{provider: openai, model: gpt-x, base_url: '{url}', concurrency: 32}}}}
retrieval: {{judge: judge}}
nuggets: {{judge: judge{more}}}
"""


@pytest.fixture
def server() -> Any:
    with LLMServer(nugget_judge) as started:
        yield started


@pytest.fixture
def config(tmp_path: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    return configured(tmp_path, server)


def configured(folder: Path, server: LLMServer, more: str = "") -> Path:
    path = folder / "t.yaml"
    path.write_text(FILE.format(url=server.openai_url, more=more))
    return path


def lines(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_nuggets_are_made_assigned_and_scored_in_nuggetizers_files(cli: Any, config: Path) -> None:
    made = cli("make", "nuggets", config)
    assert made.status == 0, made.err
    assert made.out == "wrote nuggets.jsonl: 8 nuggets for 2 queries, 6 of them vital\n"
    assert lines("nuggets.jsonl")[0] == {
        "query": "What is q1?",
        "qid": "q1",
        "nuggets": [
            {"text": "fact of all", "importance": "vital"},
            {"text": "fact of x", "importance": "vital"},
            {"text": "fact of y", "importance": "vital"},
            {"text": "fact of z", "importance": "okay"},
        ],
    }
    assigned = cli("make", "assignments", config)
    assert assigned.status == 0, assigned.err
    assert "wrote assignments.jsonl: 24 of 24 labels of 6 answers" in assigned.out
    first = lines("assignments.jsonl")[0]
    assert first.keys() == {"query", "qid", "nuggets", "run_id", "answer_text", "response_length"}
    assert first["nuggets"][:2] == [
        {"text": "fact of all", "importance": "vital", "assignment": "support"},
        {"text": "fact of x", "importance": "vital", "assignment": "not_support"},
    ]
    scored = json.loads(cli("nuggets", "assignments.jsonl", "--format", "json").out)["runs"]
    assert scored["x"]["v_strict"] == pytest.approx(1 / 3, abs=1e-6)
    assert scored["x"]["a_strict"] == pytest.approx(1 / 4)


def test_a_file_that_a_person_may_have_edited_is_not_written_over(cli: Any, config: Path, server: LLMServer) -> None:
    Path("nuggets.jsonl").write_text("mine")
    refused = cli("make", "nuggets", config)
    assert refused.status == 2
    assert "nuggets.jsonl: is there already" in refused.err
    assert Path("nuggets.jsonl").read_text() == "mine"
    assert not server.calls
    assert cli("make", "nuggets", config, "--force").status == 0


def test_lists_for_people_come_back_edited_and_are_assigned_to_any_answers(
    cli: Any, config: Path, server: LLMServer, tmp_path: Path
) -> None:
    assert cli("make", "nuggets", config, "--for-editing", "--out", "raw.jsonl").status == 0
    raw = lines("raw.jsonl")
    assert {nugget["importance"] for bank in raw for nugget in bank["nuggets"]} == {None}
    assert not any(task_of(call) == "importance" for call in server.calls)
    edited = [{**raw[0], "nuggets": [{"text": "fact of all", "importance": "vital"}]}]
    Path("edited.jsonl").write_text("".join(json.dumps(bank) + "\n" for bank in edited))
    submitted = {
        "run_id": "r1", "topic_id": "q1", "topic": "What is q1?", "references": [], "response_length": 2,
        "answer": [{"text": "Something.", "citations": []}],
    }  # fmt: skip
    Path("run.jsonl").write_text(json.dumps(submitted) + "\n")
    files = ("--nuggets", "edited.jsonl", "--answers", "run.jsonl", "--answers", "answers.csv")
    ended = cli("make", "assignments", config, *files, "--format", "json")
    assert ended.status == 0, ended.err
    assert json.loads(ended.out) == {
        "file": "assignments.jsonl", "answers": 4, "labels": 4, "assigned": 4, "without": {},
    }  # fmt: skip
    assert {own.run for own in read_assignments(["assignments.jsonl"])} == {"r1", "x", "y", "z"}
    before = len(server.calls)
    assert cli("make", "assignments", config, *files, "--force").status == 0
    assert len(server.calls) == before
    Path("exam.csv").write_text("qid,question\nq2,What is the PLANTED fact?\n")
    config.write_text(config.read_text() + "exam: {judge: judge, bank: exam.csv}\n")
    ended = cli("make", "assignments", config, *files, "--force")
    assert (ended.status, ended.err.count("error")) == (0, 0), "other stages are not looked at"


def test_failed_labels_are_written_as_failed_and_the_exit_status_says_incomplete(
    cli: Any, config: Path, server: LLMServer
) -> None:
    assert cli("make", "nuggets", config).status == 0
    server.script = lambda call: Reply('{"labels": ["support"]}')
    ended = cli("make", "assignments", config)
    assert ended.status == 3
    assert {nugget["assignment"] for own in lines("assignments.jsonl") for nugget in own["nuggets"]} == {"failed"}
    failed = cli("failures", config)
    assert "'labels' must hold exactly 4 labels, not 1" in failed.out
    board = cli("leaderboard", config, "--details")
    assert "x: 8 of 8 labels failed; topics left out of its means for that: 2" in board.out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("assignments", "t.yaml"), "no query has nuggets yet; 'ragleague make nuggets t.yaml' makes them"),
        (("assignments", "t.yaml", "--nuggets", "n.jsonl"), "--nuggets and --answers go together"),
        (
            ("assignments", "t.yaml", "--nuggets", "n.jsonl", "--answers", "other.csv"),
            "no answer to a query of n.jsonl",
        ),
        (("assignments", "t.yaml", "--nuggets", "none.jsonl", "--answers", "answers.csv"), "none.jsonl"),
        (("nuggets", "bank.yaml"), "nuggets.bank gives the nuggets"),
        (("nuggets", "without.yaml"), "the configuration has no section 'nuggets'"),
        (("assignments", "bank.yaml"), "absent.jsonl"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    cli: Any, config: Path, server: LLMServer, arguments: tuple[str, ...], problem: str
) -> None:
    Path("n.jsonl").write_text('{"query": "q", "qid": "q1", "nuggets": [{"text": "a"}]}\n')
    Path("other.csv").write_text("qid,agent,answer\nq9,x,y\n")
    text = config.read_text()
    Path("bank.yaml").write_text(text.replace("nuggets: {judge: judge", "nuggets: {judge: judge, bank: absent.jsonl"))
    Path("without.yaml").write_text("\n".join(line for line in text.splitlines() if not line.startswith("nuggets")))
    ended = cli("make", *arguments)
    assert ended.status == 2
    assert problem in ended.err.splitlines()[-1]
    assert "Traceback" not in ended.err


def test_a_judge_that_spells_lists_in_its_own_ways_shifts_no_label_and_every_short_list_is_a_failure(
    cli: Any, tmp_path: Path, shared: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    write_crowd_data(shared / "data" / "crowdrag25", tmp_path, queries=6)
    with Path("answers.csv").open(newline="", encoding="utf-8") as file:
        answers = {(row["qid"], row["agent"]): row["answer"] for row in csv.DictReader(file)}
    short = {key for key in answers if key[1] == "human-news"}
    with LLMServer(sloppy_crowd_judge([answers[key] for key in short])) as server:
        path = configured(tmp_path, server)
        assert cli("make", "nuggets", path).status == 0
        assert cli("make", "assignments", path).status == 3
        spelled = {call.sha256 for call in server.calls if task_of(call) == "assignment"}
    assert len(spelled) > 2 * len(answers)
    for own in read_assignments(["assignments.jsonl"]):
        said = [label and label.value for label in own.labels]
        right = [stated(nugget.text, own.answer or "") for nugget in own.nuggets]
        assert said == ([None] * len(right) if (own.query_id, own.run) in short else right)
    failed = cli("failures", path)
    assert "must hold exactly 10 labels, not 9" in failed.out
    assert "somewhat" not in failed.out
    runs = json.loads(cli("nuggets", "assignments.jsonl", "--format", "json").out)["runs"]
    assert (runs["human-news"]["v_strict"], runs["human-news"]["coverage"], runs["human-news"]["failed"]) == (
        None,
        0,
        6,
    )
    assert all(run["coverage"] == 1 for name, run in runs.items() if name != "human-news")
    with LLMServer(crowd_judge) as server:
        mended = configured(tmp_path, server)
        assert cli("make", "assignments", mended, "--retry-failed", "--force").status == 0
        spans = {
            len(own.nuggets) // 10 + (len(own.nuggets) % 10 > 0) for own in read_assignments(["assignments.jsonl"])
        }
        assert len(server.calls) <= len(short) * max(spans)


def test_a_nugget_that_a_reply_repeats_is_left_out_and_said(cli: Any, tmp_path: Path, monkeypatch: Any) -> None:
    def judge(call: Call) -> Reply:
        if task_of(call) == "nuggets":
            return Reply(json.dumps({"nuggets": ["Cats purr", "cats PURR.", "Cats purr loudly"]}))
        return nugget_judge(call)

    monkeypatch.chdir(tmp_path)
    write_data(tmp_path, ["q1"])
    with LLMServer(judge) as server:
        made = cli("make", "nuggets", configured(tmp_path, server))
    assert made.status == 0, made.err
    assert "- q1: Left out: 'cats PURR.' repeats 'Cats purr'.\n" in made.out
    assert [own["text"] for own in lines("nuggets.jsonl")[0]["nuggets"]] == ["Cats purr", "Cats purr loudly"]
