"""The stages of a tournament: what each wants judged, what a result leads to, and how both are read.

``STAGES`` names them all. A further one is a file here with its class, section and board, a prompt, and a line there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from judges.types import EXAM_TASKS, NUGGET_TASKS, Task

if TYPE_CHECKING:
    from arena.store import Store


class ListedStage(Struct, frozen=True):
    """A stage as the list names it. Its module is imported where a configuration or a store has its section.

    Attributes:
        key: its section in the configuration and in stored settings.
        tasks: what judges are asked to do.
        module: in this package. One of the section's own brings ``SECTION``, the section's model, and ``board``.
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
        """Something of its module."""
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


def further_boards(
    store: Store, tournament: str, settings: Mapping[str, Any], *, scored: bool = False
) -> dict[str, Any]:
    """The boards of the stages that bring their section along, where the tournament has them; or those with scores."""
    return {
        key: stage.load("board")(store, tournament)
        for key, stage in FURTHER.items()
        if settings.get(key) and (stage.scores or not scored)
    }
