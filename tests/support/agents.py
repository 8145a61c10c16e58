"""Small tournaments whose answers come from agents that are asked over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from retrieval_eval.data.tables import write_rows
from tests.support.llm_server import Call, Reply

QUERIES = [f"q{number}" for number in range(8)]


def asked(call: Call) -> str:
    """The id of the query of a request: its text is ``What is q3?``."""
    return str(call.body["question"]).removeprefix("What is ").removesuffix("?")


def answering(words: str = "It is", faults: Mapping[str, Reply] | None = None) -> Callable[[Call], Reply]:
    """A script for the server: each agent answers each query in its own words, with two documents; but for faults."""

    def script(call: Call) -> Reply:
        query = asked(call)
        if faults is not None and query in faults:
            return faults[query]
        agent = call.path.strip("/")
        found = [{"id": f"{query}-{n}", "text": f"Page {n} about {query}.", "score": 1 / n} for n in (1, 2)]
        body = {"answer": f"{words} {query}, says {agent}.", "found": found, "tokens": 40, "dollars": 0.002}
        return Reply(body=body)

    return script


def http_agent(url: str, **changed: Any) -> dict[str, Any]:
    """The declaration of an agent behind an address."""
    mapping = {"answer": "answer", "documents": "found", "output_tokens": "tokens", "cost_usd": "dollars"}
    return {
        "kind": "http",
        "url": url,
        "request": {"question": "{query}"},
        "mapping": mapping,
        "max_attempts": 1,
    } | changed


def write_config(folder: Path, agents: Mapping[str, Any], queries: Sequence[str] = QUERIES, **sections: Any) -> Path:
    """A tournament of these agents, judged by words alone; ``sections`` replace whole sections of the file."""
    write_rows(folder / "queries.csv", ["qid", "query"], [{"qid": q, "query": f"What is {q}?"} for q in queries])
    content = {
        "name": "asked",
        "store": "asked.db",
        "data": {"queries": "queries.csv"},
        "agents": dict(agents),
        "judges": {"words": {"provider": "lexical"}},
        "pairwise": {"judges": "words", "documents": {"include": False}},
        "ratings": {"bootstrap": {"samples": 50}, "min_coverage": 0},
    }
    path = folder / "asked.yaml"
    path.write_text(yaml.safe_dump(content | sections), encoding="utf-8")
    return path
