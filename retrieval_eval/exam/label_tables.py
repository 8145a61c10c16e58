"""Agreement of predicted relevance labels with people's, as tables with counts (001, Table 5; 000, Table 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_eval.agreement import cohen_kappa, confusion, krippendorff_alpha

Labels: TypeAlias = Mapping[str, Mapping[str, int]]
"""By query and passage."""


@dataclass(frozen=True)
class PairedLabels:
    """The pairs of query and passage that both sides labelled.

    Attributes:
        predicted: their predicted labels.
        judged: their labels by people, in the same order.
        only_predicted: pairs that people did not label.
        only_judged: pairs that have no predicted label.
    """

    predicted: tuple[int, ...]
    judged: tuple[int, ...]
    only_predicted: int
    only_judged: int


@dataclass(frozen=True)
class LabelTable:
    """How often a group of predicted labels met a group of people's labels.

    Attributes:
        rows: names of the predicted groups, such as ``4-5``.
        columns: names of people's groups.
        counts: shape (rows, columns).
        kappa: Cohen's kappa, where rows and columns mean the same; ``None`` where it is not defined.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: NDArray[np.int64]
    kappa: float | None


@dataclass(frozen=True)
class LabelAgreement:
    """Agreement on the labels as they are.

    Attributes:
        n: pairs with both labels.
        labels: every whole number from the lowest label to the highest, of either side.
        confusion: counts, rows predicted, columns people, shape (labels, labels).
        kappa: Cohen's, plain.
        kappa_linear: weighted by the difference of the labels.
        kappa_quadratic: weighted by its square.
        alpha: Krippendorff's, ordinal.
    """

    n: int
    labels: tuple[int, ...]
    confusion: NDArray[np.int64]
    kappa: float | None
    kappa_linear: float | None
    kappa_quadratic: float | None
    alpha: float | None


def pair_labels(predicted: Labels, judged: Labels) -> PairedLabels:
    """Bring two sides' labels together."""
    ours = {(query_id, passage): label for query_id, known in predicted.items() for passage, label in known.items()}
    theirs = {(query_id, passage): label for query_id, known in judged.items() for passage, label in known.items()}
    both = [pair for pair in ours if pair in theirs]
    return PairedLabels(
        tuple(ours[pair] for pair in both),
        tuple(theirs[pair] for pair in both),
        len(ours) - len(both),
        len(theirs) - len(both),
    )


def label_agreement(pairs: PairedLabels) -> LabelAgreement:
    """Agreement of the labels as they are; coefficients are ``None`` where nothing could have disagreed."""
    if not pairs.predicted:
        return LabelAgreement(0, (), np.zeros((0, 0), np.int64), None, None, None, None)
    both = (*pairs.predicted, *pairs.judged)
    labels = tuple(range(min(both), max(both) + 1))
    table = confusion(pairs.predicted, pairs.judged, labels)
    return LabelAgreement(
        len(pairs.predicted),
        labels,
        table,
        cohen_kappa(table),
        cohen_kappa(table, "linear"),
        cohen_kappa(table, "quadratic"),
        krippendorff_alpha([pairs.predicted, pairs.judged], "ordinal"),
    )


def graded_table(pairs: PairedLabels) -> LabelTable:
    """Every predicted label that occurs against every label of people, the highest first; kappa as the labels are."""
    rows, columns = (sorted(set(side), reverse=True) for side in (pairs.predicted, pairs.judged))
    counts = np.zeros((len(rows), len(columns)), np.int64)
    for ours, theirs in zip(pairs.predicted, pairs.judged, strict=True):
        counts[rows.index(ours), columns.index(theirs)] += 1
    return LabelTable(tuple(map(str, rows)), tuple(map(str, columns)), counts, label_agreement(pairs).kappa)


def binarised_table(pairs: PairedLabels, *, least_predicted: int, least_judged: int) -> LabelTable:
    """Relevant or not on each side: labels of at least the given ones count as relevant."""
    counts = np.zeros((2, 2), np.int64)
    for ours, theirs in zip(pairs.predicted, pairs.judged, strict=True):
        counts[int(ours < least_predicted), int(theirs < least_judged)] += 1
    return table_of_counts(counts, _sides(pairs.predicted, least_predicted), _sides(pairs.judged, least_judged))


def table_of_counts(counts: ArrayLike, rows: Sequence[str], columns: Sequence[str]) -> LabelTable:
    """A table whose counts are already there, relevant first on both sides, with its kappa.

    Raises:
        ValueError: the counts are not square, or have another size than the names.
    """
    table = np.asarray(counts, np.int64)
    if table.shape != (len(rows), len(columns)) or len(rows) != len(columns):
        raise ValueError("kappa needs as many predicted groups as groups of people's labels")
    return LabelTable(tuple(rows), tuple(columns), table, cohen_kappa(table))


def _sides(labels: Sequence[int], least: int) -> tuple[str, str]:
    """Names of the labels from ``least`` up, and of those below it, as they occur."""
    return (
        _span([label for label in labels if label >= least], f">={least}"),
        _span([label for label in labels if label < least], f"<{least}"),
    )


def _span(labels: Sequence[int], otherwise: str) -> str:
    if not labels:
        return otherwise
    low, high = min(labels), max(labels)
    return str(low) if low == high else f"{low}-{high}"
