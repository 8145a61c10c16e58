"""The list of a tournament's stages: for each, its section of the configuration, its tasks and its modules.

To add a stage to ragleague, write a module in ``arena.stages`` with its class and section, a module in
``arena.results`` and a prompt, and add an entry to ``STAGES``. Another package adds a stage by an entry point in the
group ``ragleague.stages`` that names a ``ListedStage``. If people can judge the same items as the stage's judges, the
stage's module defines ``KIND``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from judges.errors import InputError
from judges.types import EXAM_TASKS, NUGGET_TASKS, Task


class ListedStage(Struct, frozen=True):
    """The entry of a stage. Its modules are imported only if a configuration or a store has its section.

    Attributes:
        key: key of the stage's section in the configuration and in stored settings.
        tasks: kinds of requests that the stage sends to judges.
        module: name of the module with the stage's class and, if ``words`` is set, the section's model as ``SECTION``.
        make: name of the class or function that creates the stage from its section, the configuration, data and labels.
        words: heading for the stage's judgments; empty for a stage whose section is in ``arena.config.judging``.
        results: name of the module whose ``results(store, tournament)`` returns ``StageResults``; set with ``words``.
        board: name of the module whose ``board(results)`` returns the tables to print; if empty, one table of scores.
        name: the stage's name for ``--stage``, if it differs from the key.
        scores: heading of each of the stage's scores, by the score's name; the main score is first. Only set with
            ``words``.
        by_people: whether people can judge the same items; the module then defines ``KIND``, a ``JudgedKind`` whose
            name, level and column are equal to ``key``.
        origin: name and version of the package that contains the stage; empty for ragleague.
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


WORDINGS: Final[Mapping[Task, tuple[Task, int]]] = {
    Task(f"{task.value}_wording_{number}"): (task, number)
    for task in (
        *(Task.PAIRWISE, Task.CRITERIA, Task.GRADING, Task.ASSIGNMENT, Task.PASSAGE_ASSIGNMENT),
        Task("support"),
    )
    for number in (2, 3)
}
"""The tasks in which an audit judges again by another wording of the prompt: the task judged first, and the wording."""

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
        "refusals",
        (Task("refusals"),),
        "arena.stages.refusals",
        "RefusalsStage",
        "Answers that answer, refuse or ask back",
        "arena.results.refusals",
        "arena.boards.refusals",
        scores={
            "alignment": "Refusal score",
            "risk": "Risk",
            "carefulness": "Carefulness",
            "wrongly_declined": "Wrongly declined",
            "coverage": "Coverage",
            "declined": "Declined",
        },
        by_people=True,
    ),
    ListedStage(
        "answer_scores",
        (),
        "arena.stages.answer_scores",
        "AnswerScoresStage",
        "Scores that the answers bring along",
        "arena.results.answer_scores",
        "arena.boards.answer_scores",
    ),
    ListedStage(
        "audit",
        (Task("audit"), *WORDINGS),
        "arena.stages.audit",
        "AuditStage",
        "Games of known cheats",
        "arena.results.audit",
        "arena.boards.audit",
    ),
)
"""The stages that are part of ragleague, in the order in which they run."""

GROUP: Final = "ragleague.stages"
"""Group of the entry points by which other packages add stages; an entry point's name is the stage's key."""
_RESERVED: Final = ("left_out", "prompts", "source", "stages")
"""Keys of stored settings that are not sections; no stage may have one of them as its key."""
_INSTALLED: dict[str, ListedStage] = {}
"""Stages of other packages that ``find_stage`` has loaded, by key."""


def listed_stages() -> tuple[ListedStage, ...]:
    """The stages in ``STAGES``, then the stages of other packages that ``find_stage`` has loaded."""
    return (*STAGES, *_INSTALLED.values())


def all_tasks() -> tuple[Task, ...]:
    """All kinds of requests that stages send to judges."""
    return tuple(dict.fromkeys([*Task, *(task for stage in listed_stages() for task in stage.tasks)]))


def further_stages() -> dict[str, ListedStage]:
    """The stages whose module defines their section of the configuration, by key."""
    return {stage.key: stage for stage in listed_stages() if stage.words}


def unasked(sections: Collection[str]) -> list[str]:
    """Those of these sections whose stages ask no judge."""
    return [key for key, stage in further_stages().items() if key in sections and not stage.tasks]


def installed_stages() -> list[str]:
    """Keys of the stages in other installed packages; slow, as it reads the metadata of all packages."""
    from importlib.metadata import entry_points

    return sorted(entry_points(group=GROUP).names)


def find_stage(key: str) -> ListedStage | None:
    """Find the stage with this key among the loaded stages, then among the entry points; ``None`` if there is none.

    Raises:
        InputError: the entry point cannot be loaded or used as a stage, or two packages have one with this key.
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
        raise InputError(f"{key}: the packages {' and '.join(sources)} both have a stage of this name; uninstall one")
    try:
        stage = points[0].load()
    except Exception as error:
        raise InputError(
            f"{key}: the stage in the package {sources[0]} cannot be loaded "
            f"({type(error).__name__}: {error}); install it again"
        ) from error
    if fault := _fault(key, stage):
        raise InputError(f"{key}: the stage in the package {sources[0]} cannot be used: {points[0].value} {fault}")
    return _INSTALLED.setdefault(key, replace(stage, origin=sources[0]))


def require_stages(origins: Mapping[str, str]) -> None:
    """Check that the packages are installed whose stages judged a tournament; raises ``InputError`` if not.

    Args:
        origins: for each such stage, by section: name and version of its package when the stage judged.
    """
    for key, origin in origins.items():
        if find_stage(key) is None:
            raise InputError(
                f"section {key!r} was judged by a stage of the package {origin}, which is not installed; install it"
            )


def _fault(key: str, stage: object) -> str:
    """Why the object of an entry point cannot be used as a stage; empty if it can."""
    if not isinstance(stage, ListedStage):
        return "is not a ListedStage"
    if stage.key != key or key in _RESERVED:
        return f"has the key {stage.key!r}, which is reserved or differs from the name of its entry point"
    if not (stage.words and stage.results):
        return "needs 'words' and 'results'"
    if taken := [task.value for task in stage.tasks if task in all_tasks()]:
        return f"gives the task {taken[0]!r}, which another stage gives"
    if taken := [name for name in stage.scores if any(name in other.scores for other in listed_stages())]:
        return f"has the score {taken[0]!r}, which another stage has"
    return ""
