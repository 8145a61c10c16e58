"""Reads the results of a tournament's judgments from its store, combines samples and judges, and counts them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from arena.config.settings import StoredSettings
from arena.config.stages import WORDINGS, further_stages, require_stages
from arena.store import IDENTICAL, Result, Store, Wanted
from arena.store.outcomes import LabelResults, combined, document_labels, each_combined, of_each_judge
from judges.types import JudgeFailure, Judgment, Task
from retrieval_eval.stats.repeats import averaged
from retrieval_eval.stats.scores import Scores

OutcomesOf: TypeAlias = Callable[[Task], Sequence[tuple[Wanted, Result | None]]]
"""A function from a task to its planned judgments, each with its result; ``None`` if it is not judged yet."""


def outcomes(
    store: Store, tournament: str, task: Task, query_id: str | None = None, among: Collection[str] | None = None
) -> list[tuple[Wanted, Result | None]]:
    """The planned judgments of a task with their results; samples are combined. Arguments as for ``Store.outcomes``.

    A result is ``None`` while a sample is missing, and a failure if most samples failed.
    """
    combinations = store.settings(tournament).combinations
    return combined(store.outcomes(tournament, task, query_id, among), combinations)


def outcomes_of(store: Store, tournament: str) -> OutcomesOf:
    """A function that reads a task's planned judgments and results from this store; samples are not combined."""
    return partial(store.outcomes, tournament)


def each_outcome(store: Store, tournament: str, task: Task) -> Iterator[tuple[Wanted, Result | None]]:
    """Yield what ``outcomes`` returns for all queries, with only a few results in memory at a time."""
    return each_combined(store.each_outcome(tournament, task), store.settings(tournament).combinations)


def labels_of(store: Store, tournament: str, query_id: str | None = None) -> LabelResults:
    """Relevance labels by (query_id, doc_id), of all queries or of one.

    All samples and judges of a document are combined into one label.
    """
    settings = store.settings(tournament)
    labelled = store.outcomes(tournament, Task.RELEVANCE, query_id)
    return document_labels(labelled, settings.combinations, settings.across_judges)


def labels_by_judge(store: Store, tournament: str, query_id: str | None = None) -> dict[str, LabelResults]:
    """Relevance labels by judge, then by (query_id, doc_id), of all queries or of one; samples are combined."""
    return of_each_judge(outcomes(store, tournament, Task.RELEVANCE, query_id))


class StageResults(Struct, frozen=True, eq=False):
    """Results of one stage of judging; a stage with further figures defines a subclass.

    Attributes:
        scores: the agents' scores by this stage, its main score first.
    """

    scores: tuple[Scores, ...] = ()


def further_results(
    store: Store, tournament: str, settings: StoredSettings, *, scored: bool = False
) -> dict[str, StageResults]:
    """Results of the stages that define their configuration section themselves, by section name.

    With ``scored``, stages that give agents no scores are skipped.

    Raises:
        InputError: a stage that made judgments in this tournament is not installed.
    """
    require_stages(settings.stages)
    by_stage: dict[str, StageResults] = {
        key: import_module(stage.results).results(store, tournament)
        for key, stage in further_stages().items()
        if key in settings.further and (stage.scores or not stage.tasks or not scored)
    }
    return {key: replace(each, scores=tuple(map(averaged, each.scores))) for key, each in by_stage.items()}


_WORDS: Final[Mapping[Task, str]] = {
    Task.RELEVANCE: "Documents labelled",
    Task.PAIRWISE: "Games judged, each order counted",
    Task.CRITERIA: "Answers graded",
    Task.QUESTIONS: "Exam items written, by query",
    Task.GRADING: "Passages graded by exam items",
    Task.EXTRACTION: "Answers found in passages",
    Task.ANSWER_CHECK: "Answers found, checked",
    Task.NUGGETS: "Turns of making nuggets",
    Task.IMPORTANCE: "Nuggets' importance, at most ten each",
    Task.ASSIGNMENT: "Answers held against nuggets, some at a time",
    Task.ANSWERING: "Answers written",
    Task.REWRITING: "Search queries written",
    Task.PASSAGE_ASSIGNMENT: "Retrieved documents held against nuggets, some at a time",
    Task.QUERIES: "Queries written, by passage",
    Task.ANSWERABLE: "Queries held against their passage",
}

AGENTS_ASKED: Final = "Agents asked"
"""Heading of the step in which agents answer the queries; it comes before all stages of judging."""


def stage_words() -> dict[Task, str]:
    """By task, the heading of its counts of judgments, such as "Documents labelled"."""
    words = {task: stage.words for stage in further_stages().values() for task in stage.tasks} | dict(_WORDS)
    return words | {again: f"{words[task]}, wording {number}" for again, (task, number) in WORDINGS.items()}


class Coverage(Struct, frozen=True):
    """Number of planned judgments in one stage, by state.

    ``judged`` includes the ``identical`` games: both answers are equal, so they are ties without a call.
    """

    wanted: int
    judged: int
    failed: int
    left: int
    identical: int

    @property
    def share(self) -> float:
        return self.judged / self.wanted if self.wanted else 1.0


class Shortfall(Struct, frozen=True):
    """The judge or agent that has too few verdicts for ratings.

    Attributes:
        kind: ``judge`` or ``agent``.
        judged: number of verdicts so far by this judge, or on this agent's games; each order of a game counts.
        wanted: number of planned verdicts by this judge, or on this agent's games.
        rated: whether any game has a verdict, so that ratings can be shown on request.
        again: advice on how to get the missing verdicts.
    """

    kind: str
    name: str
    judged: int
    wanted: int
    min_coverage: float
    rated: bool
    again: str = "run again to judge the rest"

    @property
    def share(self) -> float:
        return self.judged / self.wanted

    @property
    def message(self) -> str:
        counts = f"{self.kind} {self.name} has {self.judged} of {self.wanted} wanted verdicts ({self._share()})"
        return f"{counts}, and ratings need {100 * self.min_coverage:g}% of every judge's and agent's"

    def _share(self) -> str:
        """The share in percent, with enough decimals to show that it is below the required share."""
        threshold = 100 * self.min_coverage
        candidates = (f"{100 * self.share:.{decimals}f}" for decimals in range(4))
        return (
            f"{next((candidate for candidate in candidates if float(candidate) < threshold), f'under {threshold:g}')}%"
        )

    @property
    def remedy(self) -> str:
        """Advice on how to get the missing verdicts, and on how to see ratings from the verdicts so far, if any."""
        see = ", or see them with 'ragleague leaderboard --below-coverage'"
        return f"{self.again}{see}" if self.rated else self.again


def coverage(outcomes: Sequence[tuple[Wanted, Result | None]]) -> Coverage:
    judged = sum(isinstance(result, Judgment) for _, result in outcomes)
    failed = sum(isinstance(result, JudgeFailure) for _, result in outcomes)
    identical = sum(result is not None and result.judgment_id == IDENTICAL for _, result in outcomes)
    return Coverage(len(outcomes), judged, failed, len(outcomes) - judged - failed, identical)


def shortfall(judged_of: Mapping[str, Mapping[str, tuple[int, int]]], min_coverage: float) -> Shortfall | None:
    """The judge, or else the agent, with the lowest share of its planned verdicts, if below ``min_coverage``.

    If every judge has enough verdicts, so does the tournament: the share over all games is a weighted mean of the
    judges' shares. But that overall share can hide a judge that stopped early, or an agent whose answers a judge
    refused. The missing games are then no random sample, and ratings from the other games would measure something else.

    Args:
        judged_of: by kind (``judge`` or ``agent``) and name, the number of verdicts so far and of planned verdicts. An
            adaptive schedule plans only verdicts on the games that it has chosen so far.
    """
    for kind, by_name in judged_of.items():
        for name, (judged, wanted) in sorted(by_name.items(), key=lambda entry: entry[1][0] / entry[1][1]):
            if judged < min_coverage * wanted - 1e-9:
                rated = any(judgments for judgments, _ in by_name.values())
                return Shortfall(kind, name, judged, wanted, min_coverage, rated)
    return None
