"""Agreement of two sets of labels, or of any number of raters, with intervals over queries.

Cohen (1960, Educational and Psychological Measurement 20) and, weighted, Cohen (1968, Psychological Bulletin 70):

    kappa = 1 - sum(w * observed) / sum(w * expected),   expected from the product of the two raters' margins

Krippendorff (2004, *Content Analysis*, chapter 11), for any number of raters and with missing labels:

    alpha = 1 - (n - 1) * sum(o_ck * d_ck) / sum(n_c * n_k * d_ck)

where o counts the ordered pairs of labels within units (pairs of a unit with m labels have weight 1 / (m - 1)), n_c is
a margin of o, n the total, and d the squared difference for the measurement level. Functions with plural names take
stacks of tables with any leading axes, for the jackknife over queries; they return NaN for undefined coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from judges.errors import InputError
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import ALONE, COEFFICIENT, Clusters, jackknife_estimate, share_estimate
from retrieval_eval.stats.estimate import Estimate

Weights: TypeAlias = Literal["none", "linear", "quadratic"]
MeasurementLevel: TypeAlias = Literal["nominal", "ordinal", "interval"]


def cohen_kappa(table: ArrayLike, weights: Weights = "none") -> float | None:
    """Cohen's kappa of one confusion table, shape (labels, labels) with labels in order; ``None`` if undefined."""
    kappa = float(cohen_kappas(np.asarray(table, np.float64), weights))
    return None if np.isnan(kappa) else kappa


def cohen_kappas(tables: Floats, weights: Weights = "none") -> Floats:
    """Cohen's kappa of each confusion table, shape (..., labels, labels) to (...); NaN where undefined.

    ``weights`` is the cost of a disagreement: 1 (``none``), the distance between the two labels on the scale, or its
    square.
    """
    places = np.arange(tables.shape[-1])
    distance = np.abs(places[:, np.newaxis] - places).astype(np.float64)
    cost = {"none": np.sign(distance), "linear": distance, "quadratic": distance**2}[weights]
    rows, columns = tables.sum(axis=-1), tables.sum(axis=-2)
    expected = (cost * rows[..., :, np.newaxis] * columns[..., np.newaxis, :]).sum(axis=(-2, -1))
    observed = (cost * tables).sum(axis=(-2, -1)) * tables.sum(axis=(-2, -1))
    return _one_minus_ratio(observed, expected)


def coincidences(ratings: Floats, labels: Floats) -> Floats:
    """Coincidence matrix (Krippendorff) of each unit, shape (units, labels, labels); 0 for units with below two labels.

    Args:
        ratings: each rater's label for each unit as a number, shape (raters, units); NaN if missing.
        labels: all possible labels, ascending.
    """
    counts = (ratings[:, :, np.newaxis] == labels).sum(axis=0).astype(np.float64)
    pairs = counts[:, :, np.newaxis] * counts[:, np.newaxis, :]
    diagonal = np.arange(labels.size)
    pairs[:, diagonal, diagonal] -= counts
    partners = np.maximum(counts.sum(axis=1) - 1, 1)
    matrices: Floats = pairs / partners[:, np.newaxis, np.newaxis]
    return matrices


def krippendorff_alphas(tables: Floats, labels: Floats, level: MeasurementLevel = "nominal") -> Floats:
    """Krippendorff's alpha of each coincidence matrix, shape (..., labels, labels) to (...); NaN where undefined."""
    margins = tables.sum(axis=-1)
    size = margins.sum(axis=-1)
    difference = _difference(margins, labels, level)
    expected = (difference * margins[..., :, np.newaxis] * margins[..., np.newaxis, :]).sum(axis=(-2, -1))
    observed = (difference * tables).sum(axis=(-2, -1)) * (size - 1)
    return _one_minus_ratio(observed, expected)


def _difference(margins: Floats, labels: Floats, level: MeasurementLevel) -> Floats:
    """Krippendorff's difference d of every two labels, (labels, labels); for ordinal ones (..., labels, labels)."""
    if level == "nominal":
        return 1.0 - np.eye(labels.size)
    if level == "interval":
        return np.asarray((labels[:, np.newaxis] - labels) ** 2, np.float64)
    # The ordinal difference sums the margins from c to k, with half of each end; that is a difference of mid-ranks.
    middle = margins.cumsum(axis=-1) - margins / 2
    return np.asarray((middle[..., :, np.newaxis] - middle[..., np.newaxis, :]) ** 2, np.float64)


def _one_minus_ratio(observed: Floats, expected: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.asarray(observed) / np.asarray(expected)
    return np.where(np.asarray(expected) > 0, 1.0 - ratio, np.nan)


Item = TypeVar("Item", bound=Hashable)
_NO_WIDTH = 1e-9
_MOST_LABELS = 101
"""Largest number of labels that a scale may have, enough for labels from 0 to 100."""


class Binarised(Struct, frozen=True):
    """Agreement on which documents are relevant, that is, have a label of at least ``threshold``.

    Documents are counted by whether both sets of labels call them relevant, only the first, only the second, or
    neither.
    """

    threshold: int
    both: int
    first_only: int
    second_only: int
    neither: int
    kappa: Estimate


class LabelAgreement(Struct, frozen=True):
    """Agreement of two sets of labels, the first of which is the reference.

    Intervals are over queries: Wilson's for the share, the jackknife on Fisher's scale for coefficients.

    Attributes:
        n: number of items (such as documents) with a label in both sets; all figures use only these.
        queries: number of queries that these items belong to.
        first_only, second_only: number of items with a label in only one set.
        scale: every whole number from the lowest to the highest label.
        confusion: counts of items; rows are labels of the first set, columns labels of the second.
        agreement: share of items with equal labels.
        kappa, kappa_linear, kappa_quadratic: Cohen's kappa, unweighted and with weights.
        alpha, alpha_ordinal: Krippendorff's alpha for nominal and for ordinal labels.
        binarised: agreement on which items are relevant, with each label except the lowest as the lowest relevant one.
    """

    n: int
    queries: int
    first_only: int
    second_only: int
    scale: tuple[int, ...]
    confusion: tuple[tuple[int, ...], ...]
    agreement: Estimate
    kappa: Estimate
    kappa_linear: Estimate
    kappa_quadratic: Estimate
    alpha: Estimate
    alpha_ordinal: Estimate
    binarised: tuple[Binarised, ...]


def label_agreement(
    first: Mapping[str, Mapping[Item, int]],
    second: Mapping[str, Mapping[Item, int]],
    *,
    scale: range | None = None,
    mirrored: bool = False,
    clusters: Clusters = ALONE,
) -> LabelAgreement:
    """Compare two sets of labels, each by query and item; the first is the reference.

    ``scale`` has all possible labels; by default it goes from the lowest to the highest label in the sets. With
    ``mirrored`` the labels are verdicts: 1 for one side, -1 for the other and 0 for a tie. The side of an answer is
    arbitrary, so coefficients use the average of the counts and their mirror image; the confusion uses the labels
    unchanged, and ``binarised`` is empty. ``clusters`` are groups of queries that depend on each other; with them,
    ``queries`` counts the groups.

    Raises:
        InputError: the labels span more than 101 values.
    """
    first, second = _clustered(first, clusters), _clustered(second, clusters)
    pairs = [
        [(label, second[query_id][item]) for item, label in labels.items() if item in second[query_id]]
        for query_id, labels in first.items()
        if query_id in second
    ]
    pairs = [query_pairs for query_pairs in pairs if query_pairs]
    scale = _scale(label for query_pairs in pairs for pair in query_pairs for label in pair) if scale is None else scale
    if mirrored and scale:
        scale = range(-max(map(abs, scale)), max(map(abs, scale)) + 1)
    tables = _tables(pairs, scale)
    confusion = tables.sum(axis=0)
    if mirrored:
        tables = (tables + tables[:, ::-1, ::-1]) / 2
    n = int(confusion.sum())
    return LabelAgreement(
        n=n,
        queries=len(tables),
        first_only=sum(map(len, first.values())) - n,
        second_only=sum(map(len, second.values())) - n,
        scale=tuple(scale),
        confusion=tuple(tuple(int(count) for count in row) for row in confusion),
        agreement=share_estimate(np.trace(tables, axis1=1, axis2=2), tables.sum(axis=(1, 2))),
        kappa=_coefficient(cohen_kappas, tables),
        kappa_linear=_coefficient(partial(cohen_kappas, weights="linear"), tables),
        kappa_quadratic=_coefficient(partial(cohen_kappas, weights="quadratic"), tables),
        alpha=_coefficient(partial(_alphas, scale=scale, level="nominal"), tables),
        alpha_ordinal=_coefficient(partial(_alphas, scale=scale, level="ordinal"), tables),
        binarised=() if mirrored else tuple(_binarised(scale[place], tables, place) for place in range(1, len(scale))),
    )


def _binarised(threshold: int, tables: Floats, place: int) -> Binarised:
    """Agreement if labels of at least ``threshold``, which has index ``place`` in the scale, count as relevant."""
    halves = [slice(None, place), slice(place, None)]
    cells = [[tables[:, row, column].sum(axis=(1, 2)) for column in halves] for row in halves]
    halved = np.moveaxis(np.array(cells), -1, 0)
    (neither, second_only), (first_only, both) = halved.sum(axis=0).astype(int).tolist()
    return Binarised(threshold, both, first_only, second_only, neither, _coefficient(cohen_kappas, halved))


def _coefficient(statistic: Callable[[Floats], Floats], tables: Floats) -> Estimate:
    """A coefficient of the sum of all queries' confusion tables; without an interval if no query changes its value."""
    return jackknife_estimate(statistic, tables, COEFFICIENT, narrowest=_NO_WIDTH)


def _alphas(tables: Floats, scale: range, level: MeasurementLevel) -> Floats:
    """Krippendorff's alpha of two raters: their coincidence matrix is the confusion table plus its transpose."""
    return krippendorff_alphas(tables + tables.swapaxes(1, 2), np.array(scale, np.float64), level)


def _tables(pairs: list[list[tuple[int, int]]], scale: range) -> Floats:
    tables = np.zeros((len(pairs), len(scale), len(scale)))
    for table, query_pairs in zip(tables, pairs, strict=True):
        places: NDArray[np.int64] = np.array(query_pairs, np.int64) - scale.start
        np.add.at(table, (places[:, 0], places[:, 1]), 1)
    return tables


def _scale(labels: Iterable[int]) -> range:
    distinct = set(labels)
    if not distinct:
        return range(0)
    lowest, highest = min(distinct), max(distinct)
    if highest - lowest >= _MOST_LABELS:
        raise InputError(
            f"the labels range from {lowest} to {highest}, but a scale has at most {_MOST_LABELS} labels; check them"
        )
    return range(lowest, highest + 1)


def _clustered(labels: Mapping[str, Mapping[Any, int]], clusters: Clusters) -> Mapping[str, Mapping[Any, int]]:
    """Group the labels by cluster of queries; items become (query_id, item)."""
    if not clusters:
        return labels
    by_cluster: dict[str, dict[Any, int]] = {}
    for query_id, query_labels in labels.items():
        cluster_labels = by_cluster.setdefault(clusters.get(query_id, query_id), {})
        cluster_labels.update({(query_id, item): label for item, label in query_labels.items()})
    return by_cluster


class RaterAgreement(Struct, frozen=True):
    """Krippendorff's alpha of several raters for nominal and for ordinal labels, with intervals over queries.

    ``documents`` is the number of (query, document) pairs with labels of at least two judges.
    """

    documents: int
    queries: int
    alpha: Estimate
    alpha_ordinal: Estimate


def rater_agreement(
    raters: Sequence[Mapping[str, Mapping[Item, int]]], *, mirrored: bool = False, clusters: Clusters = ALONE
) -> RaterAgreement:
    """Agreement of two or more judges, whose labels are by query and document (or another item).

    ``mirrored`` and ``clusters`` are explained in ``label_agreement``.
    """
    raters = [_clustered(rater, clusters) for rater in raters]
    labels = np.array(sorted({label for rater in raters for docs in rater.values() for label in docs.values()}), float)
    if mirrored:
        labels = np.union1d(labels, -labels)
    documents, tables = 0, []
    for query_id in dict.fromkeys(query_id for rater in raters for query_id in rater):
        ratings = _ratings([rater[query_id] for rater in raters if query_id in rater])
        ratings = ratings[:, (~np.isnan(ratings)).sum(axis=0) > 1]
        if ratings.shape[1]:
            documents += ratings.shape[1]
            tables.append(coincidences(ratings, labels).sum(axis=0))
    stacked = np.array(tables).reshape(len(tables), labels.size, labels.size)
    if mirrored:
        stacked = (stacked + stacked[:, ::-1, ::-1]) / 2
    return RaterAgreement(
        documents,
        len(tables),
        _coefficient(lambda totals: krippendorff_alphas(totals, labels, "nominal"), stacked),
        _coefficient(lambda totals: krippendorff_alphas(totals, labels, "ordinal"), stacked),
    )


def _ratings(raters: Sequence[Mapping[Item, int]]) -> Floats:
    column = {item: at for at, item in enumerate(dict.fromkeys(item for labels in raters for item in labels))}
    ratings = np.full((len(raters), len(column)), np.nan)
    for row, labels in zip(ratings, raters, strict=True):
        row[[column[item] for item in labels]] = list(labels.values())
    return ratings


class LabelTable(Struct, frozen=True):
    """Contingency table of two sets of labels; a row or column stands for one label or for a group of labels.

    Attributes:
        rows, columns: names of the groups of labels in the first and second set, such as ``4-5``.
        counts: number of items, shape (rows, columns).
        kappa: Cohen's kappa; ``None`` if undefined.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: NDArray[np.int64]
    kappa: float | None


def graded_table(agreement: LabelAgreement) -> LabelTable:
    """Contingency table with one row and column per label, highest first, and the unweighted kappa."""
    counts = _confusion(agreement)[::-1, ::-1]
    labels = np.array(agreement.scale[::-1], np.int64)
    rows, columns = counts.any(axis=1), counts.any(axis=0)
    return LabelTable(
        tuple(map(str, labels[rows].tolist())),
        tuple(map(str, labels[columns].tolist())),
        counts[rows][:, columns],
        agreement.kappa.value,
    )


def binarised_table(agreement: LabelAgreement, *, least_first: int, least_second: int) -> LabelTable:
    """Two-by-two table of relevant and other items; each set of labels has its own lowest relevant label."""
    counts, scale = _confusion(agreement), np.array(agreement.scale, np.int64)
    sides = [[scale >= threshold, scale < threshold] for threshold in (least_first, least_second)]
    table = [[counts[np.ix_(row, column)].sum() for column in sides[1]] for row in sides[0]]
    rows = _sides(scale[counts.any(axis=1)], least_first)
    columns = _sides(scale[counts.any(axis=0)], least_second)
    return LabelTable(rows, columns, np.array(table, np.int64), cohen_kappa(table))


def _confusion(agreement: LabelAgreement) -> NDArray[np.int64]:
    size = len(agreement.scale)
    return np.array(agreement.confusion, np.int64).reshape(size, size)


def _sides(labels: NDArray[np.int64], threshold: int) -> tuple[str, str]:
    upper, lower = labels[labels >= threshold], labels[labels < threshold]
    return _span(upper, f">={threshold}"), _span(lower, f"<{threshold}")


def _span(labels: NDArray[np.int64], otherwise: str) -> str:
    ends = dict.fromkeys((int(labels.min()), int(labels.max()))) if labels.size else {}
    return "-".join(map(str, ends)) or otherwise
