"""The list of stages: their sections in the configuration, their tasks, and the modules of their code.

A new stage needs a file in ``arena.stages`` with its class and section, one in ``arena.results``, a prompt, and a line
here. A stage of another distribution needs no line: its entry point in ``ragleague.stages`` names a ``ListedStage``.
If people can judge the same items as a stage, the stage's module defines ``KIND``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from judges.errors import InputError
from judges.types import EXAM_TASKS, NUGGET_TASKS, Task


class ListedStage(Struct, frozen=True):
    """A stage in the list. Its modules are imported only if a configuration or a store has its section.

    Attributes:
        key: key of the stage's section in the configuration and in stored settings.
        tasks: tasks that the stage gives to judges.
        module: module that defines the stage's class and, if ``words`` is set, the section's model as ``SECTION``.
        make: name of the class or function that creates the stage from its section, the configuration, data and labels.
        words: heading for the stage's judgments; set only for a stage that defines a section itself.
        results: module whose ``results(store, tournament)`` returns ``StageResults``; for stages with ``words``.
        board: module whose ``board(results)`` returns the board of the results; if empty, a table shows the scores.
        name: the stage's name for ``--stage``, if it differs from the key.
        scores: headings of the stage's scores by name, for a stage that defines a section itself; the main score is
            first.
        by_people: whether people judge the same items; the module then defines ``KIND``, a ``JudgedKind`` with the
            name, level and column ``key``.
        origin: name and version of the distribution that contains the stage; empty for ragleague.
    """

    key: str
    tasks: Sequence[Task]
    module: str
    make: str
    words: str = ""
    results: str = ""
    board: str = ""
    name: str = ""
    scores: Mapping[str, str] = field(default_factory=dict)
    by_people: bool = False
    origin: str = ""

    def load(self, name: str) -> Any:
        """Import the stage's module and return its class, function or constant ``name``."""
        return getattr(import_module(self.module), name)


STAGES: Final = (
    ListedStage("retrieval", (Task.RELEVANCE,), "arena.stages.relevance", "RelevanceStage", name="relevance"),
    ListedStage("pairwise", (Task.PAIRWISE,), "arena.stages.pairwise", "pairwise_stage"),
    ListedStage("criteria", (Task.CRITERIA,), "arena.stages.criteria", "CriteriaStage"),
    ListedStage("exam", EXAM_TASKS, "arena.stages.exam", "ExamStage"),
    ListedStage("nuggets", NUGGET_TASKS, "arena.stages.nuggets", "NuggetStage"),
    ListedStage(
        "support",
        (Task("support"),),
        "arena.stages.support",
        "SupportStage",
        "Citations held against their document",
        "arena.results.support",
        "arena.boards.support",
        scores={"support_precision": "Support", "support_recall": "Support recall"},
        by_people=True,
    ),
    ListedStage(
        "audit",
        (Task("audit"),),
        "arena.stages.audit",
        "AuditStage",
        "Games of known cheats",
        "arena.results.audit",
        "arena.boards.audit",
    ),
)
"""The stages of this distribution, in the order in which they run."""

GROUP: Final = "ragleague.stages"
"""The group of entry points; the name of each is the key of its stage."""
_RESERVED: Final = ("left_out", "prompts", "source", "stages")
"""Keys of stored settings that are not sections, so that no stage may use them."""
_INSTALLED: dict[str, ListedStage] = {}
"""Stages of other distributions that a configuration or a store has asked for, by key."""


def listed_stages() -> tuple[ListedStage, ...]:
    """The stages of this distribution, then the stages of other distributions that are in use."""
    return (*STAGES, *_INSTALLED.values())


def all_tasks() -> tuple[Task, ...]:
    """All tasks that stages give to judges."""
    return tuple(dict.fromkeys([*Task, *(task for stage in listed_stages() for task in stage.tasks)]))


def further_stages() -> dict[str, ListedStage]:
    """The stages that define their section themselves, by key."""
    return {stage.key: stage for stage in listed_stages() if stage.words}


def installed_stages() -> list[str]:
    """Keys of the stages that other distributions declare; slow, as it reads the metadata of all of them."""
    from importlib.metadata import entry_points

    return sorted(entry_points(group=GROUP).names)


def find_stage(key: str) -> ListedStage | None:
    """The stage of a section, looked up among the entry points if it is not in the list; ``None`` if there is none.

    Raises:
        InputError: the entry point cannot be loaded, or is not a stage that can be added.
    """
    known = {stage.key: stage for stage in listed_stages()}
    if key in known:
        return known[key]
    from importlib.metadata import entry_points

    points = [*entry_points(group=GROUP, name=key)]
    if not points:
        return None
    sources = [f"{point.dist.name} {point.dist.version}" if point.dist else point.value for point in points]
    if len({point.value for point in points}) > 1:
        raise InputError(f"{key}: {' and '.join(sources)} both have a stage of this name; uninstall one")
    try:
        stage = points[0].load()
    except Exception as error:
        raise InputError(
            f"{key}: the stage of {sources[0]} cannot be loaded ({type(error).__name__}: {error}); install it again"
        ) from error
    if fault := _fault(key, stage):
        raise InputError(f"{key}: the stage of {sources[0]} cannot be used: {points[0].value} {fault}")
    return _INSTALLED.setdefault(key, replace(stage, origin=sources[0]))


def require_stages(origins: Mapping[str, str]) -> None:
    """Check that the stages of other distributions that judged a tournament are installed.

    Args:
        origins: by section, the name and version that the stage's distribution had when the stage judged.
    """
    for key, origin in origins.items():
        if find_stage(key) is None:
            raise InputError(f"section {key!r} was judged by a stage of {origin}, which is not installed; install it")


def _fault(key: str, stage: object) -> str:
    """The reason why an entry point is not a stage that can be added; empty if it is one."""
    if not isinstance(stage, ListedStage):
        return "is no ListedStage"
    if stage.key != key or key in _RESERVED:
        return f"has the key {stage.key!r}"
    if not (stage.words and stage.results):
        return "needs 'words' and 'results'"
    if taken := [task.value for task in stage.tasks if task in all_tasks()]:
        return f"gives the task {taken[0]!r}, which another stage gives"
    if taken := [name for name in stage.scores if any(name in other.scores for other in listed_stages())]:
        return f"has the score {taken[0]!r}, which another stage has"
    return ""
