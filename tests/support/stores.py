"""What tests of the store keep in one."""

from __future__ import annotations

from arena.data.dataset import Dataset
from arena.store import Store, Wanted
from judges.types import Answer, Document, JudgeFailure, Judgment, Query, Retrieved, Task, Usage

JUDGMENT = Judgment(
    "id-1", 2, "On the subject.", '{"label": 2}', "gpt-x-2026", Usage(10, 3, 5), 2, 0.25, 0.001, ("first try",)
)
FAILURE = JudgeFailure("id-1", "contract", "not a label", "no", "gpt-x", Usage(10, None, 5), 3, 0.5, None, ("a", "b"))
DATA = Dataset(
    {"q2": Query("q2", "how?", {"lang": "en"}), "q1": Query("q1", "why?")},
    {"d1": Document("d1", "one", {"title": "T"}), "d2": Document("d2", "two")},
    {("q1", "x"): Answer("q1", "x", "because"), ("q1", "y"): Answer("q1", "y", "", {"model": "m"})},
    {"q1": (Retrieved("q1", "d1", "x", 1, 0.5), Retrieved("q1", "d2", "x", 2), Retrieved("q1", "d1", "y", 1, -1.0))},
    {"q1": {"d1": 2, "nobody's": 1}, "q2": {"d1": -1}},
)
LABEL = Wanted(Task.RELEVANCE, "strong", "q1", "d1")
GAME = Wanted(Task.PAIRWISE, "strong", "q1", "x", "y", "ab")


def save(store: Store, *results: Judgment | JudgeFailure, task: Task = Task.RELEVANCE) -> None:
    """Keep results of some prompt."""
    store.save([(task, "reasoner@1", result) for result in results])
