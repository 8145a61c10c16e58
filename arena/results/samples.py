"""What a store holds of a task, samples and judges combined."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from arena.store import Result, Store, Wanted
from arena.store.outcomes import LabelResults, combined, document_labels, each_combined, of_each_judge
from judges.types import Task


def outcomes(
    store: Store, tournament: str, task: Task, query_id: str | None = None, among: Collection[str] | None = None
) -> list[tuple[Wanted, Result | None]]:
    """Everything a tournament wants of one task, each once, with its combined result; or as ``Store.outcomes`` says.

    ``None`` while a sample is missing; a failure where more samples failed than did not.
    """
    how = store.settings(tournament).combinations
    return combined(store.outcomes(tournament, task, query_id, among), how)


def each_outcome(store: Store, tournament: str, task: Task) -> Iterator[tuple[Wanted, Result | None]]:
    """The same as ``outcomes``, of all queries, one by one: however many there are, few are in memory."""
    return each_combined(store.each_outcome(tournament, task), store.settings(tournament).combinations)


def labels_of(store: Store, tournament: str, query_id: str | None = None) -> LabelResults:
    """The relevance label of every document wanted, or of one query's, by (query_id, doc_id).

    Samples and judges are combined.
    """
    settings = store.settings(tournament)
    labelled = store.outcomes(tournament, Task.RELEVANCE, query_id)
    return document_labels(labelled, settings.combinations, settings.across_judges)


def labels_by_judge(store: Store, tournament: str, query_id: str | None = None) -> dict[str, LabelResults]:
    """Each relevance judge's labels, or those of one query, samples combined, by (query_id, doc_id)."""
    return of_each_judge(outcomes(store, tournament, Task.RELEVANCE, query_id))
