"""Citation precision on the leaderboard and beside nugget scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judges.errors import DataError
from tests.support.tournaments import configured, run, write_data


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
    config = configured(tmp_path, data=data | more, criteria=None)
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
        (("--answers", "other.csv", "--qrels", "labels.qrels"), "other.csv: no answer of a scored run"),
        (("--answers", "none.jsonl", "--qrels", "labels.qrels"), "none.jsonl"),
    ],
)
def test_what_cannot_be_scored_is_one_line(cli: Any, more: tuple[str, ...], said: str) -> None:
    Path("other.csv").write_text("qid,agent,answer\n1,nobody,a\n")
    ended = cli("nuggets", "score", "assignments.jsonl", *more)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert said in ended.err
