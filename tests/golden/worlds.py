"""Tournaments of the golden files: texts of the demo, offline judges, the same figures on every machine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import yaml

from arena.demo import copy_demo
from retrieval_eval.data.tables import read_rows, write_rows
from tests.support.sample_store import AGENTS, write_store
from tests.support.votes import cast_votes

QUERIES = 10
"""Of the demo, enough for every table to have figures."""


def write_demo(folder: Path) -> None:
    """The demo as ``ragleague demo`` has it, not yet run."""
    copy_demo(folder)


def write_whole(folder: Path) -> None:
    """``whole.yaml``: every stage on some queries of the demo, whose answers cite and say what they took.

    People labelled some documents (``human.qrels``) and voted on some games (``people.csv``, ``graded.csv``).
    """
    copy_demo(folder / "demo")
    queries = [_fields(row, "qid", "query") for row in read_rows(folder / "demo/queries.csv")][:QUERIES]
    chosen = {row["qid"] for row in queries}
    answers = [row for row in _rows(folder / "demo/answers.csv", "qid", "agent", "answer") if row["qid"] in chosen]
    documents = [
        row
        for row in _rows(folder / "demo/documents.csv", "qid", "did", "document", "agent", "rank")
        if row["qid"] in chosen
    ]
    noise = random.Random(4)
    for place, row in enumerate(answers):
        words = len(row["answer"].split())
        row["answer"] += " [1]" if place % 3 else " [1][2]" if place % 2 else ""
        took = {
            "latency_s": 0.4 + words / 50,
            "cost_usd": words / 40_000,
            "input_tokens": 9 * words,
            "output_tokens": words,
        }
        row.update({name: "" if place % 11 == 0 else round(value, 6) for name, value in took.items()})
        row["lang"] = "en"
    write_rows(
        folder / "queries.csv",
        ["qid", "query", "kind"],
        [{**row, "kind": "even" if i % 2 else "odd"} for i, row in enumerate(queries)],
    )
    write_rows(folder / "answers.csv", list(answers[0]), answers)
    write_rows(folder / "documents.csv", list(documents[0]), documents)
    labels = sorted({(row["qid"], row["did"]) for row in documents})
    (folder / "human.qrels").write_text(
        "".join(f"{qid} 0 {did} {noise.choice((0, 0, 1, 2))}\n" for qid, did in labels if noise.random() < 0.7)
    )
    write_rows(folder / "bank.csv", ["qid", "question", "weight", "secret"], _questions(queries))
    (folder / "nuggets.jsonl").write_text("".join(_nuggets(row, documents) for row in queries))
    _write_people(folder, answers, noise)
    content: dict[str, Any] = {
        "name": "whole",
        "store": "whole.db",
        "data": {name: f"{name}.csv" for name in ("queries", "documents", "answers")} | {"qrels": "human.qrels"},
        "judges": {"words": {"provider": "lexical"}},
        "retrieval": {"judge": "words"},
        "pairwise": {"judges": ["words"], "documents": {"threshold": 1}},
        "criteria": {"judge": "words", "documents": {"threshold": 1}},
        "exam": {"judge": "words", "bank": "bank.csv"},
        "nuggets": {"judge": "words", "bank": "nuggets.jsonl"},
        "ratings": {
            "elo": {"tournaments": 50},
            "bradley_terry": {"covariates": ["log_length", "citations"]},
            "bootstrap": {"samples": 200},
            "seed": 7,
        },
    }
    (folder / "whole.yaml").write_text(yaml.safe_dump(content))


def write_sample(folder: Path) -> None:
    """``sample.db``: a store made by hand, with failures, games not judged yet, prices, people's labels and votes."""
    write_store(
        folder / "sample.db",
        unasked=10,
        failed=3,
        priced=True,
        details={"confidence": 2},
        qrels={f"q{n:02}": {f"q{n:02}-common": n % 3, f"q{n:02}-d0": 2} for n in range(12)},
    )
    cast_votes(folder / "sample.db", AGENTS)


def _rows(path: Path, *names: str) -> list[dict[str, Any]]:
    return [_fields(row, *names) for row in read_rows(path)]


def _fields(row: Any, *names: str) -> dict[str, Any]:
    return {name: row.text(name) for name in names}


def _questions(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"qid": row["qid"], "question": question, "weight": weight, "secret": secret}
        for row in queries
        for question, weight, secret in (
            (row["query"], 2, ""),
            (f"Why is it so: {row['query'].rstrip('?').lower()}?", 1, ""),
            (
                f"What do passages say of {row['query'].split()[-1].rstrip('?')}?",
                1,
                "true" if row["qid"] == "q01" else "",
            ),
        )
    ]


def _nuggets(query: dict[str, Any], documents: list[dict[str, Any]]) -> str:
    sentences = dict.fromkeys(
        " ".join(row["document"].split(".")[0].split()[:9]) for row in documents if row["qid"] == query["qid"]
    )
    nuggets = [
        {"text": text, "importance": "okay" if i % 3 == 2 else "vital"} for i, text in enumerate([*sentences][:5])
    ]
    return json.dumps({"qid": query["qid"], "query": query["query"], "nuggets": nuggets}) + "\n"


def _write_people(folder: Path, answers: list[dict[str, Any]], noise: random.Random) -> None:
    agents = sorted({row["agent"] for row in answers})
    votes = [
        {
            "qid": row["qid"],
            "agent_a": row["agent"],
            "agent_b": other,
            "verdict": noise.choice(("A", "B", "TIE")),
            "annotator": person,
        }
        for row in answers
        for other in agents
        for person in ("ann", "bob")
        if other > row["agent"] and noise.random() < 0.5
    ]
    write_rows(folder / "people.csv", list(votes[0]), votes)
    grades = [
        {
            "qid": row["qid"],
            "agent": row["agent"],
            "relevance": noise.choice((1, 2)),
            "accuracy": noise.choice((0, 1, 2)),
            "annotator": "ann",
        }
        for row in answers
    ]
    write_rows(folder / "graded.csv", list(grades[0]), grades)
