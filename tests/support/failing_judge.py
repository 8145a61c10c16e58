"""A scripted judge of three agents that may give nothing usable on one of them, and a tournament with every stage."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from arena.config.schema import Config
from retrieval_eval.data.tables import write_rows
from tests.support.llm_server import Call, Reply, Script
from tests.support.nugget_judge import labels, shown_nuggets, user_of
from tests.support.tournaments import configured

GOOD, FAIR, POOR = "alder", "birch", "cedar"
QUALITY = {GOOD: 0.85, FAIR: 0.5, POOR: 0.15}
"""How often what an agent says or finds is judged well."""
QUERIES = tuple(f"q{number:02}" for number in range(20))
DOCUMENTS, ITEMS = 4, 5
"""Documents that each agent retrieved for a query, and questions, or nuggets, of a query."""


def draw(*what: object) -> float:
    """The same number from 0 to 1 for the same things."""
    return int(hashlib.sha256(" ".join(map(str, what)).encode()).hexdigest()[:8], 16) / 2**32


def judge(unusable: str = "", share: float = 0.6) -> Script:
    """A judge by ``QUALITY``; of the prompts that show what the agent ``unusable`` wrote or found a share fails."""

    def reply(call: Call) -> Reply:
        user = user_of(call)
        answers, documents = (re.findall(rf"(\w+) {verb} q(\d+)", user) for verb in ("says of", "found for"))
        shown = answers or documents
        fails = any(agent == unusable for agent, _ in shown) and draw("fails", user) < share
        return Reply("") if fails else _judged(call, user, answers, documents)

    return reply


def _judged(call: Call, user: str, answers: Any, documents: Any) -> Reply:
    task = call.body.get("response_format", {}).get("json_schema", {}).get("name", "grading")
    (agent, query), *_ = answers or documents

    def good(*of: object) -> bool:
        return draw(task, agent, query, *of) < QUALITY[agent]

    if task == "pairwise":
        first, second = (QUALITY[name] + draw(name, query) for name, _ in dict.fromkeys(answers))
        return Reply(json.dumps({"explanation": "e", "verdict": "A" if first > second else "B"}))
    if task == "criteria":
        names = list(call.body["response_format"]["json_schema"]["schema"]["properties"])
        grades = {name: "e" if name == "explanation" else 2 if good(name) else 0 for name in names}
        return Reply(json.dumps(grades))
    if task == "relevance":
        return Reply(json.dumps({"reason": "r", "label": "very relevant" if good(user) else "not relevant"}))
    if task == "assignment":
        return labels("support" if good(text) else "not_support" for text in shown_nuggets(call))
    if task == "support":
        return Reply(json.dumps({"reason": "r", "support": "full" if good(user) else "none"}))
    return Reply("5" if good(user) else "0")


def tournament(folder: Path, url: str, **sections: Any) -> Config:
    write_rows(folder / "queries.csv", ["qid", "query"], [{"qid": q, "query": f"What is {q}?"} for q in QUERIES])
    write_rows(
        folder / "answers.csv",
        ["qid", "agent", "answer"],
        [
            {
                "qid": query,
                "agent": agent,
                "answer": "\n\n".join(f"{agent} says of {query} this {n} thing [{n}]." for n in (1, 2)),
            }
            for query in QUERIES
            for agent in QUALITY
        ],
    )
    write_rows(
        folder / "documents.csv",
        ["qid", "did", "document", "agent", "rank"],
        [
            {
                "qid": query,
                "did": f"{query}-{agent}-{number}",
                "document": f"{agent} found for {query} text {number}.",
                "agent": agent,
                "rank": number,
            }
            for query in QUERIES
            for agent in QUALITY
            for number in range(1, DOCUMENTS + 1)
        ],
    )
    write_rows(
        folder / "bank.csv",
        ["qid", "question"],
        [{"qid": query, "question": f"Point {n} of {query}?"} for query in QUERIES for n in range(ITEMS)],
    )
    nuggets = [
        {
            "query": f"What is {query}?",
            "qid": query,
            "nuggets": [{"text": f"Fact {n} of {query}.", "importance": "vital"} for n in range(ITEMS)],
        }
        for query in QUERIES
    ]
    (folder / "nuggets.jsonl").write_text("".join(json.dumps(one) + "\n" for one in nuggets))
    stages: dict[str, Any] = {
        "exam": {"judge": "judge", "bank": folder / "bank.csv", "passage_words": 10},
        "nuggets": {"judge": "judge", "bank": folder / "nuggets.jsonl"},
        "support": {"judge": "judge", "citations": "all"},
        "ratings": {"bootstrap": {"samples": 200}, "elo": {"tournaments": 5}},
    }
    return configured(folder, url, **stages | sections)
