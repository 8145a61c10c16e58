"""Summaries of relevance labels: a query's mean, the distribution of labels, and one label from several judges.

Pure functions over judgments. A failed judgment has no label: it is left out of the summary and counted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from judges.types import JudgeFailure, Judgment, Retrieved, label_of

Result: TypeAlias = Judgment | JudgeFailure | None
"""A relevance judgment, a failure, or ``None`` if the document has not been judged yet."""


class MeanLabel(Struct, frozen=True):
    """The mean of the available labels.

    Attributes:
        mean: the mean on the prompt's scale; ``None`` without labels.
        judged: number of documents with a label.
        of: number of documents to judge, including documents whose judgment failed.
    """

    mean: float | None
    judged: int
    of: int

    @property
    def coverage(self) -> float:
        """Judged documents divided by documents to judge; 1 if there are none."""
        return self.judged / self.of if self.of else 1.0


class LabelDistribution(Struct, frozen=True):
    """Number of documents per label.

    Attributes:
        counts: number of documents by label, ascending; labels without documents are absent.
        failed: number of documents whose judgment failed.
        left: number of documents that have not been judged yet.
    """

    counts: Mapping[int, int]
    failed: int
    left: int


def mean_label(results: Iterable[Result]) -> MeanLabel:
    """A query's mean label over its retrieved documents, each judged alone (seed 003, section 3: mean ``overall``).

    The published code counts a failed document as -1. Here it is left out of the mean and lowers the coverage.
    """
    results = list(results)
    labels = _labels(results)
    return MeanLabel(mean(labels) if labels else None, len(labels), len(results))


def label_distribution(results: Iterable[Result]) -> LabelDistribution:
    """Count the documents with each label, and the documents without a label."""
    results = list(results)
    counts = Counter(_labels(results))
    failed = sum(isinstance(result, JudgeFailure) for result in results)
    return LabelDistribution(dict(sorted(counts.items())), failed, sum(result is None for result in results))


def results_by_query(results: Mapping[tuple[str, str], Result]) -> dict[str, list[Result]]:
    """The results of each query's documents.

    Args:
        results: by (query_id, doc_id).
    """
    by_query: defaultdict[str, list[Result]] = defaultdict(list)
    for (query_id, _), result in results.items():
        by_query[query_id].append(result)
    return dict(by_query)


def results_by_agent(
    results: Mapping[tuple[str, str], Result], retrieved: Iterable[Retrieved]
) -> dict[str, list[Result]]:
    """The results of the documents that each agent retrieved, over all queries.

    Args:
        results: by (query_id, doc_id); a document without an entry counts as not judged yet.
        retrieved: each agent's documents, once each.
    """
    by_agent: defaultdict[str, list[Result]] = defaultdict(list)
    for entry in retrieved:
        by_agent[entry.agent].append(results.get((entry.query_id, entry.doc_id)))
    return dict(by_agent)


def majority(labels: Sequence[float]) -> float:
    """The most frequent label; on a tie the lowest, because a tie among judges should not make a document relevant.

    Raises:
        ValueError: no labels.
    """
    counts = Counter(_some(labels))
    most = max(counts.values())
    return min(label for label, count in counts.items() if count == most)


def median(labels: Sequence[float]) -> float:
    """The lower median: the highest label that more than half of the judges gave or exceeded.

    With an even number of labels the two middle labels may differ. Their mean may be off the scale, and only half of
    the judges gave the upper label or a higher one.

    Raises:
        ValueError: no labels.
    """
    return sorted(_some(labels))[(len(labels) - 1) // 2]


def mean(labels: Sequence[float]) -> float:
    """The mean, which may be off the scale.

    Raises:
        ValueError: no labels.
    """
    return math.fsum(_some(labels)) / len(labels)


def _some(labels: Sequence[float]) -> Sequence[float]:
    if not labels:
        raise ValueError("there are no labels to combine")
    return labels


def _labels(results: Iterable[Result]) -> list[int]:
    return [label_of(result.outcome) for result in results if isinstance(result, Judgment)]
