"""Nuggets as users of the command line make, assign, score and correlate them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arena.boards.nuggets import NuggetComparison
from arena.present.picture import Chart
from arena.results.nugget_comparison import compare_conditions, read_condition
from judges.errors import DataError
from retrieval_eval.nuggets.files import read_assignments
from tests.support import tournaments
from tests.support.llm_server import LLMServer
from tests.support.nugget_judge import nugget_judge, task_of
from tests.support.tournaments import run, write_data

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
    scored = json.loads(cli("nuggets", "score", "assignments.jsonl", "--format", "json").out)["runs"]
    assert scored["x"]["v_strict"] == pytest.approx(1 / 3, abs=1e-6)
    assert scored["x"]["a_strict"] == pytest.approx(1 / 4)


def test_a_file_that_a_person_may_have_edited_is_not_written_over(cli: Any, config: Path, server: LLMServer) -> None:
    Path("nuggets.jsonl").write_text("mine")
    refused = cli("make", "nuggets", config)
    assert refused.status == 2
    assert "nuggets.jsonl: exists already" in refused.err
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
        (("nuggets", "bank.yaml"), "nuggets.bank names a file of existing nuggets"),
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
    ended = cli("nuggets", "score", assignments, "--topics", tmp_path / "topics.tsv")
    assert (ended.status, ended.out) == (2, "")
    assert "none of its topics is in" in ended.err


def test_a_bad_label_is_one_line_with_file_line_and_value(cli: Any, assignments: Path) -> None:
    text = assignments.read_text(encoding="utf-8").replace("partial_support", "partly", 1)
    assignments.write_text(text, encoding="utf-8")
    ended = cli("nuggets", "score", assignments)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {assignments}:5: nugget 2: assignment must be one of")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("form", ["json", "csv", "jsonl"])
def test_written_scores_are_read_back_as_a_condition(cli: Any, assignments: Path, tmp_path: Path, form: str) -> None:
    scores = tmp_path / f"scores.{form}"
    scores.write_text(cli("nuggets", "score", assignments, "--format", form).out, encoding="utf-8")
    for column in COLUMNS:
        shape = read_json(cli, "nuggets", "correlate", assignments, scores, "--score", column, "--format", "json")
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
    assert scores.dots[0].tooltip == "r<1>: 1.00, 1.00"


def test_runs_of_the_trec_rag_track_are_answers_of_a_tournament_with_their_citations(cli: Any, tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"], documents=[("q1", "d1", "So it is.", "x")])
    sentences = [{"text": "So", "citations": [0]}, {"text": "it is.", "citations": [0, 1]}]
    runs = [
        {"run_id": run, "topic_id": "q1", "topic": "?", "references": ["d1", "d2"], "answer": sentences} for run in "xy"
    ]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(own) + "\n" for own in runs))
    (tmp_path / "qrels").write_text("q1 0 d1 1\nq1 0 d2 0\n")
    data = {"queries": [tmp_path / "queries.csv"], "documents": [tmp_path / "documents.csv"]}
    more = {"answers": [tmp_path / "runs.jsonl"], "qrels": [tmp_path / "qrels"]}
    config = tournaments.configured(tmp_path, data=data | more, criteria=None)
    assert run(config).complete
    shape = json.loads(cli("leaderboard", config.store, "--format", "json").out)
    assert shape["citations"]["people"]["y"]["precision"] == 0.5
    runs[1]["topic_id"] = "elsewhere"
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(own) + "\n" for own in runs))
    with pytest.raises(DataError, match=r"runs.jsonl:2: no query has this id; .*\('elsewhere'\)"):
        run(config)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    nuggets = [{"text": "it purrs", "importance": "vital", "assignment": "support"}]
    rows = [{"qid": "1", "run_id": run, "answer_text": "It purrs.", "nuggets": nuggets} for run in ("r", "s")]
    Path("assignments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answer = [{"text": "It purrs.", "citations": [0, 1]}]
    answers = [{"run_id": "r", "topic_id": "1", "topic": "?", "references": ["d1", "d2", "d3"], "answer": answer}]
    answers += [{**answers[0], "topic_id": "9"}, {**answers[0], "run_id": "s", "answer": [{"text": "It purrs."}]}]
    Path("runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    Path("labels.qrels").write_text("1 0 d1 1\n1 0 d2 0\n")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--answers", "runs.jsonl"), "--answers and --qrels go together"),
        (("--qrels", "labels.qrels"), "--answers and --qrels go together"),
        (("--answers", "other.csv", "--qrels", "labels.qrels"), "other.csv: no answer belongs to a scored run"),
        (("--answers", "none.jsonl", "--qrels", "labels.qrels"), "none.jsonl"),
    ],
)
def test_what_cannot_be_scored_is_one_line(cli: Any, more: tuple[str, ...], said: str) -> None:
    Path("other.csv").write_text("qid,agent,answer\n1,nobody,a\n")
    ended = cli("nuggets", "score", "assignments.jsonl", *more)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert said in ended.err
