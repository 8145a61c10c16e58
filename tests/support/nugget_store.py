"""A tournament on disk whose nuggets come from a file and are assigned offline, by shared words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from arena.config.schema import load_config
from retrieval_eval.data.tables import write_rows
from tests.support.tournaments import run

FACTS = ("it purrs", "it sleeps all day", "it has nine lives")
AGENTS = ("x", "y", "z")


def as_it_is(text: str) -> str:
    """The wording that changes nothing."""
    return text


def write_nugget_tournament(
    folder: Path,
    *,
    queries: Sequence[str] = ("q1", "q2"),
    agents: Sequence[str] = AGENTS,
    wording: Callable[[str], str] = as_it_is,
    **sections: Any,
) -> Path:
    """Write the files of a tournament; agent number n states the first n facts, so that the first states none.

    Args:
        folder: for ``t.yaml`` and what it names.
        queries: ids.
        agents: names.
        wording: of every query, answer and nugget.
        sections: of the YAML file, in place of the usual ones; ``None`` leaves one out.

    Returns:
        The YAML file.
    """
    write_rows(
        folder / "queries.csv", ["qid", "query"], [{"qid": q, "query": wording(f"What of {q}?")} for q in queries]
    )
    answers = [
        {"qid": q, "agent": agent, "answer": wording(f"One says {', '.join(FACTS[:number]) or 'nothing'} in case {q}.")}
        for q in queries
        for number, agent in enumerate(agents)
    ]
    write_rows(folder / "answers.csv", ["qid", "agent", "answer"], answers)
    write_bank(folder / "bank.jsonl", queries, wording)
    content = {
        "name": "nuggets",
        "store": "store.db",
        "data": {"queries": "queries.csv", "answers": "answers.csv"},
        "judges": {"words": {"provider": "lexical"}},
        "nuggets": {"judge": "words", "bank": "bank.jsonl"},
        **sections,
    }
    path = folder / "t.yaml"
    path.write_text(yaml.safe_dump({name: section for name, section in content.items() if section is not None}))
    return path


def write_bank(path: Path, queries: Sequence[str], wording: Callable[[str], str] = as_it_is) -> None:
    """The facts of each query, the last one okay and the others vital."""
    lines = [
        {
            "qid": query,
            "query": wording(f"What of {query}?"),
            "nuggets": [
                {"text": wording(fact), "importance": "okay" if fact == FACTS[-1] else "vital"} for fact in FACTS
            ],
        }
        for query in queries
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def played_nugget_tournament(folder: Path, **given: Any) -> Path:
    """The same, run; returns the YAML file, with the store as ``store.db`` beside it."""
    path = write_nugget_tournament(folder, **given)
    run(load_config(path))
    return path
