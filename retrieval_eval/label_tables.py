"""Two sets of labels as tables of counts with Cohen's kappa, for a paper (001, Table 5; 000, Table 4).

``label_agreement`` counts and says how sure its figures are; here its counts are grouped and named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_eval.stats.agreement import LabelAgreement
from retrieval_eval.stats.coefficients import cohen_kappa


@dataclass(frozen=True)
class LabelTable:
    """How often a group of the first side's labels met a group of the second side's.

    Attributes:
        rows: names of the first side's groups, such as ``4-5``.
        columns: names of the second side's.
        counts: shape (rows, columns).
        kappa: Cohen's kappa, where rows and columns mean the same; ``None`` where it is not defined.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: NDArray[np.int64]
    kappa: float | None


def graded_table(agreement: LabelAgreement) -> LabelTable:
    """Every label that the first side gave against every one of the second, the highest first; kappa as they are."""
    counts = _counts(agreement)[::-1, ::-1]
    labels = np.array(agreement.scale[::-1], np.int64)
    rows, columns = counts.any(axis=1), counts.any(axis=0)
    return LabelTable(
        tuple(map(str, labels[rows].tolist())),
        tuple(map(str, labels[columns].tolist())),
        counts[rows][:, columns],
        agreement.kappa.value,
    )


def binarised_table(agreement: LabelAgreement, *, least_first: int, least_second: int) -> LabelTable:
    """Relevant or not on each side: labels of at least the given ones count as relevant."""
    counts, scale = _counts(agreement), np.array(agreement.scale, np.int64)
    sides = [[scale >= least, scale < least] for least in (least_first, least_second)]
    table = [[counts[np.ix_(row, column)].sum() for column in sides[1]] for row in sides[0]]
    given = [scale[counts.any(axis=1 - side)].tolist() for side in (0, 1)]
    return table_of_counts(table, _sides(given[0], least_first), _sides(given[1], least_second))


def table_of_counts(counts: ArrayLike, rows: Sequence[str], columns: Sequence[str]) -> LabelTable:
    """A table whose counts are already there, relevant first on both sides, with its kappa.

    Raises:
        ValueError: the counts are not square, or have another size than the names.
    """
    table = np.asarray(counts, np.int64)
    if table.shape != (len(rows), len(columns)) or len(rows) != len(columns):
        raise ValueError("kappa needs as many groups of the one side's labels as of the other's")
    return LabelTable(tuple(rows), tuple(columns), table, cohen_kappa(table))


def _counts(agreement: LabelAgreement) -> NDArray[np.int64]:
    size = len(agreement.scale)
    return np.array(agreement.confusion, np.int64).reshape(size, size)


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
