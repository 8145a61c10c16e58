"""The list of stages: a section of the configuration, what judges are asked, and where the stage's code is.

A further stage is a file in ``arena.stages`` with its class and section, one each in ``arena.results`` and
``arena.boards``, a prompt, and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from msgspec import Struct, field

from judges.types import EXAM_TASKS, NUGGET_TASKS, Task


class ListedStage(Struct, frozen=True):
    """A stage as the list names it. Its module is imported where a configuration or a store has its section.

    Attributes:
        key: its section in the configuration and in stored settings.
        tasks: what judges are asked to do.
        module: in ``arena.stages``. Of a stage that brings its section along it has ``SECTION``, the section's model;
            modules of the key's name in ``arena.results`` and ``arena.boards`` have ``results`` and ``board``.
        make: what makes it of its section, the configuration, the data and the labels.
        words: of a stage that brings its section along, what its wants are called.
        name: as ``--stage`` has it, where that is not the key.
        scores: headings of the ways of scoring that the board of such a stage has as ``means`` and as ``columns``, by
            their names; the first stands for the stage.
    """

    key: str
    tasks: Sequence[Task]
    module: str
    make: str
    words: str = ""
    name: str = ""
    scores: Mapping[str, str] = field(default_factory=dict)

    def load(self, name: str) -> Any:
        """The class, function or constant of this name in the stage's module."""
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
    ),
    ListedStage("audit", (Task("audit"),), "audit", "AuditStage", "Games of known cheats"),
)
"""In the order in which they are done."""

TASKS: Final = tuple(dict.fromkeys([*Task, *(task for stage in STAGES for task in stage.tasks)]))
"""All that a judge may be asked to do."""

FURTHER: Final = {stage.key: stage for stage in STAGES if stage.words}
"""The stages that bring their section along."""
