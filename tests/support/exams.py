"""Small exams on disk: two queries, two agents, a bank of three items, passages of a few words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from arena.config.schema import Config
from arena.run import exam as exam_run
from arena.store import Result, Store, Wanted
from judges.types import Task
from retrieval_eval.data.tables import write_rows
from tests.support.llm_server import Call
from tests.support.tournaments import Quiet

LAYERS, ORGAN, PIONEERS = "Which layer is outside?", "Is skin an organ?", "Who were pioneers?"
ITEMS = (("skin", LAYERS), ("skin", ORGAN), ("rock", PIONEERS))
ANSWERS = {
    ("skin", "one"): "The epidermis is outside.\n\nThe skin is an organ of ours.",
    ("skin", "two"): "Skin is soft, they say.",
    ("rock", "one"): "Elvis was a pioneer. So was Berry.",
    ("rock", "two"): "",
}
PASSAGES = {"skin": 3, "rock": 1}
"""Of all agents, at five words each: one paragraph of the first answer is one passage, the empty one has none."""
ALL = PASSAGES["skin"] * 2 + PASSAGES["rock"]
"""Pairs of passage and item."""


def write_exam(folder: Path, items: Any = ITEMS, columns: tuple[str, ...] = ("qid", "question")) -> None:
    """Write queries.csv, answers.csv and bank.csv; the items are rows of ``columns``."""
    queries = {"skin": "The integumentary system", "rock": "When did rock n roll begin?"}
    write_rows(folder / "queries.csv", ["qid", "query"], [{"qid": q, "query": text} for q, text in queries.items()])
    answers = [{"qid": q, "agent": agent, "answer": text} for (q, agent), text in ANSWERS.items()]
    write_rows(folder / "answers.csv", ["qid", "agent", "answer"], answers)
    write_bank_csv(folder, items, columns)


def write_bank_csv(folder: Path, items: Any, columns: tuple[str, ...] = ("qid", "question")) -> None:
    """Write bank.csv."""
    write_rows(folder / "bank.csv", columns, [dict(zip(columns, item, strict=True)) for item in items])


def exam_config(
    folder: Path, url: str | None = None, *, judge: Any = None, beside: Any = None, **section: Any
) -> Config:
    """A tournament with an exam, ``section``, that names a bank where it has no ``generate``; ``beside`` are others."""
    declared: dict[str, Any] = {"provider": "lexical"}
    if url is not None:
        declared = {"provider": "openai", "model": "gpt-x", "base_url": url, "timeout_s": 10}
    exam = {"judge": "judge", "passage_words": 7} | section
    if "generate" not in exam:
        exam.setdefault("bank", folder / "bank.csv")
    content = {
        "name": "exam",
        "store": str(folder / "exam.db"),
        "data": {"queries": [folder / "queries.csv"], "answers": [folder / "answers.csv"]},
        "judges": {"judge": declared | (judge or {})},
        "exam": exam,
        **(beside or {}),
    }
    return Config.model_validate(content)


def graded(config: Config, **options: Any) -> exam_run.GradedExam:
    """Grade, and check that what was counted adds up."""
    found = exam_run.grade(config, Quiet(), **options)
    for stage in found.summary.stages.values():
        assert stage.judged + stage.known + stage.failed + stage.left == stage.wanted
        assert stage.left >= 0
    return found


def grades(config: Config) -> dict[tuple[str, str], int | None]:
    """By passage, or document, and text of the item, as the store has them."""
    from contextlib import closing

    from arena.results.exam import exam_study

    with closing(Store.open(config.store)) as store:
        study = exam_study(store, config.name)
    return {(entry.passage_id, study.text_of(entry.item_id)): entry.grade for entry in study.grades}


def stored(config: Config, task: Task) -> dict[Wanted, Result | None]:
    """The wants of a task with their results."""
    store = Store.open(config.store)
    found = dict(store.outcomes(config.name, task))
    store.close()
    return found


def system(call: Call) -> str:
    """The instructions of a request."""
    text: str = call.body["messages"][0]["content"]
    return text


def user(call: Call) -> str:
    """What a request is about."""
    text: str = call.body["messages"][1]["content"]
    return text
