"""Recorded topics, answers and documents through a whole exam: a bank that is written, and one that is there."""

from __future__ import annotations

import gzip
import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from retrieval_eval.data.tables import write_rows
from retrieval_eval.exam.bank_files import read_bank
from tests.support.exams import user
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge

TOPICS = 3
AGENTS = 6
ITEMS = 4
_CITED = re.compile(r"\[(\d+)\]")
_WORD = re.compile(r"\w+")
_SHOWN = re.compile(r"<<<([a-z ]+) \w+>>>\n(.*?)\n<<<end", re.DOTALL)


def lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_topics(data: Path, folder: Path, topics: int) -> None:
    """Tables of the first topics: answers; what each of them cites, in its order; nuggets of the documents on top."""
    asked = [line.split("\t") for line in (data / "queries.tsv").read_text(encoding="utf-8").splitlines()[:topics]]
    ids = {query_id for query_id, _ in asked}
    write_rows(folder / "queries.csv", ("qid", "query"), [{"qid": qid, "query": text} for qid, text in asked])
    answers = [row for row in lines(data / "answers.jsonl.gz") if row["qid"] in ids]
    write_rows(folder / "answers.csv", ("qid", "agent", "answer"), answers)
    texts = {row["docid"]: row["text"] for row in lines(data / "documents.jsonl.gz")}
    ranked: dict[str, list[str]] = {}
    for line in (data / "retrieved.run").read_text().splitlines():
        query_id, _, doc_id, *_ = line.split()
        ranked.setdefault(query_id, []).append(doc_id)
    rows = []
    for answer in answers:
        own = ranked[answer["qid"]]
        cited = dict.fromkeys(int(number) for number in _CITED.findall(answer["answer"]) if int(number) < len(own))
        rows += [
            {"qid": answer["qid"], "agent": answer["agent"], "did": own[place], "document": texts[own[place]]}
            for place in cited
        ]
    write_rows(folder / "documents.csv", ("qid", "agent", "did", "document"), rows)
    nuggets = [
        {"qid": query_id, "nugget": " ".join(_WORD.findall(texts[doc_id])[:8])}
        for query_id, _ in asked
        for doc_id in islice(ranked[query_id], ITEMS)
    ]
    write_rows(folder / "bank.csv", ("qid", "nugget"), nuggets)


def configured(folder: Path, url: str, name: str, **exam: Any) -> Path:
    judge = {"provider": "openai", "model": "m", "base_url": url, "concurrency": 32}
    content = {
        "name": name,
        "store": "crowd.db",
        "data": {table: f"{table}.csv" for table in ("queries", "documents", "answers")},
        "judges": {"judge": judge},
        "exam": {"judge": "judge", **exam},
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def word_judge(call: Call) -> Reply:
    """Rates by the share of the item's words that the passage has; writes items as the steady judge does."""
    if "response_format" in call.body:
        return steady_judge(call)
    shown = dict(_SHOWN.findall(user(call)))
    wanted = set(_WORD.findall((shown.get("key fact") or shown["question"]).casefold()))
    known = wanted & set(_WORD.findall(shown["passage"].casefold()))
    return Reply(str(5 * len(known) // len(wanted)))


@pytest.fixture(scope="module")
def topics(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crowd")
    write_topics(shared / "data/crowdrag25", folder, TOPICS)
    return folder


def test_answers_are_graded_by_a_bank_that_a_judge_writes(topics: Path, cli: Any) -> None:
    with LLMServer(word_judge) as server:
        config = configured(topics, server.openai_url, "answers", generate={"per_query": ITEMS})
        done = cli("make", "bank", config, "--out", topics / "written.jsonl")
        assert (done.status, len(server.calls)) == (0, TOPICS), done.err
        done = cli("make", "grades", config, "--format", "json")
        assert done.status == 0, done.err
        first = len(server.calls)
        config = configured(topics, server.openai_url, "saved", bank="written.jsonl")
        again = cli("make", "grades", config, "--format", "json")
        assert len(server.calls) == first, "the bank in its file is the bank that was written"
    assert {len(items) for items in read_bank(topics / "written.jsonl").active.values()} == {ITEMS}
    found, saved = json.loads(done.out), json.loads(again.out)
    assert found["agents"] == saved["agents"]
    assert len(found["agents"]) == AGENTS
    coverage = found["coverage"]
    assert coverage["graded"] == coverage["pairs"] == first - TOPICS
    assert found["settings"]["texts"] == "answers"


def test_cited_documents_are_graded_by_a_bank_of_ones_own(topics: Path, cli: Any) -> None:
    with LLMServer(word_judge) as server:
        config = configured(topics, server.openai_url, "documents", bank="bank.csv", texts="documents", depth=10)
        done = cli("make", "grades", config, "--format", "json", "--out", topics / "graded.jsonl.gz")
        assert done.status == 0, done.err
        calls = len(server.calls)
    found = json.loads(done.out)
    assert len(found["agents"]) == AGENTS
    assert found["coverage"]["graded"] == found["coverage"]["pairs"]
    assert calls < found["coverage"]["pairs"], "what several agents cite is graded once"
    covers = [row["levels"]["5"]["cover"]["mean"] for row in found["agents"]]
    assert 0 < covers[-1] < covers[0] < 1
    labels = topics / "exam.qrels"
    assert (
        cli(
            "exam", topics / "graded.jsonl.gz", "--show", "labels", "--out", labels, "--bank", topics / "bank.csv"
        ).status
        == 0
    )
    assert labels.read_text().count("\n") * ITEMS == calls
    scored = json.loads(cli("exam", topics / "graded.jsonl.gz", "--bank", topics / "bank.csv", "--format", "json").out)
    assert scored["agents"] == found["agents"]
