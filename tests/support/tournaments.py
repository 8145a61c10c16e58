"""Small tournaments on disk, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from arena.config.schema import Config
from arena.run import judging as tournament
from arena.run.ledger import RunSummary
from arena.store import Result, Store, Wanted
from judges.types import Judgment, Task
from retrieval_eval.data.tables import write_rows

AGENTS = ("x", "y", "z")


class Quiet:
    """Progress that nobody watches; remembers what it was told."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, str]] = []
        self.begun: dict[str, int] = {}

    def begin(self, task: str, wanted: int) -> None:
        self.begun[task] = wanted

    def more(self, task: str, wanted: int) -> None:
        self.begun[task] += wanted

    def count(self, task: str, kind: str, cost_usd: float | None) -> None:
        self.counted.append((task, kind))


def write_data(
    folder: Path,
    queries: Iterable[str] = ("q1", "q2"),
    answers: Mapping[tuple[str, str], str] | None = None,
    documents: Iterable[tuple[str, str, str, str]] | None = None,
) -> None:
    """Write the three tables; by default every agent answers every query and retrieved two documents of three.

    Args:
        folder: for ``queries.csv``, ``documents.csv`` and ``answers.csv``.
        queries: ids.
        answers: texts by (query, agent), in place of the usual ones.
        documents: rows (query, document, text, agent).
    """
    queries = list(queries)
    answers = usual_answers(queries) | dict(answers or {})
    documents = usual_documents(queries) if documents is None else list(documents)
    write_rows(folder / "queries.csv", ["qid", "query"], [{"qid": q, "query": f"What is {q}?"} for q in queries])
    write_rows(
        folder / "answers.csv",
        ["qid", "agent", "answer"],
        [{"qid": q, "agent": agent, "answer": text} for (q, agent), text in answers.items()],
    )
    write_rows(
        folder / "documents.csv",
        ["qid", "did", "document", "agent"],
        [{"qid": q, "did": did, "document": text, "agent": agent} for q, did, text, agent in documents],
    )


def usual_answers(queries: Iterable[str]) -> dict[tuple[str, str], str]:
    """Each agent says something of its own."""
    return {(query, agent): f"Agent {agent} says that {query} is {agent * 3}." for query in queries for agent in AGENTS}


def usual_documents(queries: Iterable[str]) -> list[tuple[str, str, str, str]]:
    """Every agent retrieved the first document of a query and one that nobody else did."""
    return [
        (query, f"{query}-{name}", f"About {query}, as {name} tells it.", agent)
        for query in queries
        for agent in AGENTS
        for name in ("all", agent)
    ]


def configured(folder: Path, base_url: str | None = None, **sections: Any) -> Config:
    """A tournament over the tables in ``folder`` with all three stages.

    Args:
        folder: also for the store.
        base_url: of the server that ``judge`` asks through the openai provider; the lexical judge without.
        sections: replace whole sections of the file, ``None`` leaves one out; ``judge`` adds to its declaration.
    """
    declared: dict[str, Any] = {"provider": "lexical"}
    if base_url is not None:
        declared = {"provider": "openai", "model": "gpt-x", "base_url": base_url, "timeout_s": 10}
    declared |= sections.pop("judge", {})
    content: dict[str, Any] = {
        "name": "small",
        "store": str(folder / "store.db"),
        "data": {name: [folder / f"{name}.csv"] for name in ("queries", "documents", "answers")},
        "judges": {"judge": declared},
        "retrieval": {"judge": "judge"},
        "pairwise": {"judges": ["judge"], "documents": {"threshold": 1}},
        "criteria": {"judge": "judge", "documents": {"threshold": 1}},
    }
    content |= sections
    return Config.model_validate({name: section for name, section in content.items() if section is not None})


def run(config: Config, **options: Any) -> RunSummary:
    """Run, and check that the summary and what progress was told agree."""
    progress = Quiet()
    summary = tournament.run(config, progress, **options)
    for task, stage in summary.stages.items():
        assert progress.begun[task] == stage.wanted
        for kind in ("judged", "known", "failed"):
            assert progress.counted.count((task, kind)) == getattr(stage, kind)
        assert stage.left >= 0
    return summary


def calls(summary: RunSummary) -> dict[Task, int]:
    """Requests sent by stage, stages without any left out."""
    return {task: stage.calls for task, stage in summary.stages.items() if stage.calls}


def results(config: Config, task: Task | None = None) -> dict[Wanted, Result | None]:
    """What the store holds for each want."""
    store = Store.open(config.store)
    found = {
        want: result for kind in ([task] if task else list(Task)) for want, result in store.outcomes(config.name, kind)
    }
    store.close()
    return found


def outcomes(config: Config, task: Task | None = None) -> dict[Wanted, Any]:
    """Labels, verdicts and grades by want; a failure by its cause, ``None`` where nothing is known."""
    return {
        want: result.outcome if isinstance(result, Judgment) else result and result.cause
        for want, result in results(config, task).items()
    }
