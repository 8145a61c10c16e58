"""What the documents of each query are worth by the relevance judges: the mean label, and the means of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from arena.stages import samples
from arena.store import Store
from judges.types import Judgment, details_of
from retrieval_eval.relevance import MeanLabel, mean_label, results_by_query


@dataclass(frozen=True, slots=True)
class QueryLabels:
    """One query's documents, judged one by one.

    Attributes:
        label: the mean, with how many documents it is of. A failed document is in no mean.
        parts: means of what else the prompt asked for in numbers, such as the match of a ``search_quality`` label.
    """

    label: MeanLabel
    parts: Mapping[str, float]


def query_labels(store: Store, tournament: str) -> dict[str, QueryLabels]:
    """By query_id, in the order of the queries; those without a document to label are left out.

    Raises:
        InputError: no such tournament.
    """
    by_query = results_by_query(samples.labels_of(store, tournament))
    found = {}
    for query_id in store.queries(tournament):
        if query_id in by_query:
            results = by_query[query_id]
            details = [details_of(result.outcome) for result in results if isinstance(result, Judgment)]
            numbers: dict[str, list[float]] = {}
            for one in details:
                for name, value in one.items():
                    if not isinstance(value, str):
                        numbers.setdefault(name, []).append(value)
            parts = {name: fmean(values) for name, values in numbers.items()}
            found[query_id] = QueryLabels(mean_label(results), parts)
    return found
