"""Results of a task from the store, with samples and judges combined."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from arena.store import Result, Store, Wanted
from arena.store.outcomes import LabelResults, combined, document_labels, each_combined, of_each_judge
from judges.types import Task


def outcomes(
    store: Store, tournament: str, task: Task, query_id: str | None = None, among: Collection[str] | None = None
) -> list[tuple[Wanted, Result | None]]:
    """All judgments to make for a task, with their results; samples are combined. Arguments as for ``Store.outcomes``.

    A result is ``None`` while a sample is missing, and a failure if most samples failed.
    """
    combinations = store.settings(tournament).combinations
    return combined(store.outcomes(tournament, task, query_id, among), combinations)


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
