"""What judges said of a task, from the store, samples and judges combined; and the results of each further stage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TypeAlias

from msgspec import Struct

from arena.config.settings import StoredSettings
from arena.config.stages import further_stages, require_stages
from arena.store import Result, Store, Wanted
from arena.store.outcomes import LabelResults, combined, document_labels, each_combined, of_each_judge
from judges.types import Task
from retrieval_eval.stats.scores import Scores

OutcomesOf: TypeAlias = Callable[[Task], Sequence[tuple[Wanted, Result | None]]]
"""Returns a task's judgments to make, each with its result, or ``None`` if it is not judged yet."""


def outcomes(
    store: Store, tournament: str, task: Task, query_id: str | None = None, among: Collection[str] | None = None
) -> list[tuple[Wanted, Result | None]]:
    """All judgments to make for a task, with their results; samples are combined. Arguments as for ``Store.outcomes``.

    A result is ``None`` while a sample is missing, and a failure if most samples failed.
    """
    combinations = store.settings(tournament).combinations
    return combined(store.outcomes(tournament, task, query_id, among), combinations)


def outcomes_of(store: Store, tournament: str) -> OutcomesOf:
    """A function from a task to its judgments to make, with their results, samples not combined."""
    return partial(store.outcomes, tournament)


def each_outcome(store: Store, tournament: str, task: Task) -> Iterator[tuple[Wanted, Result | None]]:
    """Yield the items of ``outcomes`` for all queries, with only a few results in memory at a time."""
    return each_combined(store.each_outcome(tournament, task), store.settings(tournament).combinations)


def labels_of(store: Store, tournament: str, query_id: str | None = None) -> LabelResults:
    """Relevance labels of all documents to judge, or only of one query's, by (query_id, doc_id).

    The samples and judges of each document are combined into one label.
    """
    settings = store.settings(tournament)
    labelled = store.outcomes(tournament, Task.RELEVANCE, query_id)
    return document_labels(labelled, settings.combinations, settings.across_judges)


def labels_by_judge(store: Store, tournament: str, query_id: str | None = None) -> dict[str, LabelResults]:
    """Relevance labels of each judge, for all queries or one, by (query_id, doc_id); samples are combined."""
    return of_each_judge(outcomes(store, tournament, Task.RELEVANCE, query_id))


class StageResults(Struct, frozen=True, eq=False):
    """Results of a stage; subclasses add the figures that only this stage's board shows.

    Attributes:
        scores: the stage's scores of the agents, its main score first.
    """

    scores: tuple[Scores, ...] = ()


def further_results(
    store: Store, tournament: str, settings: StoredSettings, *, scored: bool = False
) -> dict[str, StageResults]:
    """Results of the stages with a separate section, by section; ``scored`` skips stages without scores.

    Raises:
        InputError: a stage that made judgments in this tournament is not installed.
    """
    require_stages(settings.stages)
    return {
        key: import_module(stage.results).results(store, tournament)
        for key, stage in further_stages().items()
        if key in settings.further and (stage.scores or not scored)
    }
