"""What relevance labels add up to: a query's mean, how labels are distributed, several labels of one document as one.

Pure functions over judgments. A failed judgment is no label: it is left out, and what is left out is counted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from judges.types import JudgeFailure, Judgment, Retrieved, label_of

Result: TypeAlias = Judgment | JudgeFailure | None
"""A relevance judgment, a failure, or ``None`` where the judge has not been asked yet."""


class MeanLabel(Struct, frozen=True):
    """The mean of the labels there are.

    Attributes:
        mean: on the prompt's scale; ``None`` where nothing is judged.
        judged: documents with a label.
        of: documents that were to be judged, failed ones included.
    """

    mean: float | None
    judged: int
    of: int

    @property
    def coverage(self) -> float:
        """Judged divided by all that were to be judged; 1 where there was nothing to judge."""
        return self.judged / self.of if self.of else 1.0


class LabelDistribution(Struct, frozen=True):
    """How often each label was given.

    Attributes:
        counts: by label, in ascending order; labels never given are absent.
        failed: documents whose judgment failed.
        left: documents not asked about yet.
    """

    counts: Mapping[int, int]
    failed: int
    left: int


def mean_label(results: Iterable[Result]) -> MeanLabel:
    """The score of a query whose retrieved documents were judged one by one (seed 003, section 3: mean ``overall``).

    The published code enters a failed document as -1; here it is left out of the mean and missing in the coverage.
    """
    given = list(results)
    labels = _labels(given)
    return MeanLabel(mean(labels) if labels else None, len(labels), len(given))


def label_distribution(results: Iterable[Result]) -> LabelDistribution:
    """How often each label was given, and how many documents have none."""
    given = list(results)
    counts = Counter(_labels(given))
    failed = sum(isinstance(result, JudgeFailure) for result in given)
    return LabelDistribution(dict(sorted(counts.items())), failed, sum(result is None for result in given))


def results_by_query(results: Mapping[tuple[str, str], Result]) -> dict[str, list[Result]]:
    """The results of each query's documents.

    Args:
        results: by (query_id, doc_id).
    """
    found: defaultdict[str, list[Result]] = defaultdict(list)
    for (query_id, _), result in results.items():
        found[query_id].append(result)
    return dict(found)


def results_by_agent(
    results: Mapping[tuple[str, str], Result], retrieved: Iterable[Retrieved]
) -> dict[str, list[Result]]:
    """The results of the documents that each agent retrieved, over all queries.

    Args:
        results: by (query_id, doc_id); a document without an entry counts as not asked about yet.
        retrieved: each agent's documents, once each.
    """
    found: defaultdict[str, list[Result]] = defaultdict(list)
    for entry in retrieved:
        found[entry.agent].append(results.get((entry.query_id, entry.doc_id)))
    return dict(found)


def majority(labels: Sequence[float]) -> float:
    """The most frequent label; of several equally frequent ones the lowest.

    The lowest, since a document should not become relevant by a tie among its judges.

    Raises:
        ValueError: no labels.
    """
    counts = Counter(_some(labels))
    most = max(counts.values())
    return min(label for label, count in counts.items() if count == most)


def median(labels: Sequence[float]) -> float:
    """The lower median: the highest label that more than half of the judges gave or exceeded.

    With an even number of labels the two in the middle may differ. Their mean may lie off the scale, and the upper one
    would need the voice of only half of the judges.

    Raises:
        ValueError: no labels.
    """
    return sorted(_some(labels))[(len(labels) - 1) // 2]


def mean(labels: Sequence[float]) -> float:
    """The mean, which need not lie on the scale.

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
