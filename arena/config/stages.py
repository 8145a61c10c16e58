"""The list of stages: their sections in the configuration, their tasks, and the modules of their code.

A new stage needs a file in ``arena.stages`` with its class and section, one file each in ``arena.results`` and
``arena.boards``, a prompt, and a line here. What people can judge of it too, its module says in ``KIND``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from msgspec import Struct, field

from judges.types import EXAM_TASKS, NUGGET_TASKS, Task


class ListedStage(Struct, frozen=True):
    """A stage in the list. Its module is imported only if a configuration or a store has its section.

    Attributes:
        key: its section in the configuration and in stored settings.
        tasks: tasks that it gives to judges.
        module: module in ``arena.stages``. If ``words`` is set, it defines the section's model as ``SECTION``, and the
            modules named ``key`` in ``arena.results`` and ``arena.boards`` define ``results`` and ``board``.
        make: name of the class or function that creates the stage from its section, the configuration, data and labels.
        words: heading for its judgments; set only for a stage that defines its own section.
        name: its name for ``--stage``, if that differs from the key.
        scores: headings of its ways of scoring by name, for a stage that defines its own section; the first one stands
            for the stage.
        by_people: whether people judge the same; the module then defines ``KIND``, a ``JudgedKind`` with the
            name, level and column ``key``.
    """

    key: str
    tasks: Sequence[Task]
    module: str
    make: str
    words: str = ""
    name: str = ""
    scores: Mapping[str, str] = field(default_factory=dict)
    by_people: bool = False

    def load(self, name: str) -> Any:
        """Import the stage's module and return its class, function or constant ``name``."""
        return getattr(import_module(f"arena.stages.{self.module}"), name)


STAGES: Final = (
    ListedStage("retrieval", (Task.RELEVANCE,), "relevance", "RelevanceStage", name="relevance"),
    ListedStage("pairwise", (Task.PAIRWISE,), "pairwise", "pairwise_stage"),
    ListedStage("criteria", (Task.CRITERIA,), "criteria", "CriteriaStage"),
    ListedStage("exam", EXAM_TASKS, "exam.stage", "ExamStage"),
    ListedStage("nuggets", NUGGET_TASKS, "nuggets.stage", "NuggetStage"),
    ListedStage(
        "support",
        (Task("support"),),
        "support",
        "SupportStage",
        "Citations held against their document",
        scores={"support_precision": "Support", "support_recall": "Support recall"},
        by_people=True,
    ),
    ListedStage("audit", (Task("audit"),), "audit", "AuditStage", "Games of known cheats"),
)
"""The stages in the order in which they run."""

TASKS: Final = tuple(dict.fromkeys([*Task, *(task for stage in STAGES for task in stage.tasks)]))
"""All tasks of judges."""

FURTHER: Final = {stage.key: stage for stage in STAGES if stage.words}
"""The stages that define their own section, by key."""
