"""How far two sets of labels agree, or the labels of any number of raters, with intervals over queries.

Cohen (1960, Educational and Psychological Measurement 20) and, weighted, Cohen (1968, Psychological Bulletin 70):

    kappa = 1 - sum(w * observed) / sum(w * expected),   expected from the product of the two raters' margins

Krippendorff (2004, *Content Analysis*, chapter 11), for any number of raters and with missing labels:

    alpha = 1 - (n - 1) * sum(o_ck * d_ck) / sum(n_c * n_k * d_ck)

where o counts the ordered pairs of labels within units, a unit of m labels with weight 1 / (m - 1), n_c is a margin of
o, n their total, and d the squared difference of the level. Functions in the plural take stacks of tables with any
leading axes, which is what a jackknife over queries needs; there NaN stands for a coefficient that is not defined.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from judges.errors import InputError
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import ALONE, COEFFICIENT, Clusters, jackknife_estimate, share_estimate
from retrieval_eval.stats.estimate import Estimate

Weights: TypeAlias = Literal["none", "linear", "quadratic"]
MeasurementLevel: TypeAlias = Literal["nominal", "ordinal", "interval"]


def cohen_kappa(table: ArrayLike, weights: Weights = "none") -> float | None:
    """Cohen's kappa of one confusion table, shape (labels, labels), labels in their order where weights are used.

    Returns:
        ``None`` where the table is empty or chance alone agrees fully: both raters gave one and the same label.
    """
    return _defined(cohen_kappas(np.asarray(table, np.float64), weights))


def cohen_kappas(tables: Floats, weights: Weights = "none") -> Floats:
    """Cohen's kappa of each table, shape (..., labels, labels) to (...); NaN where it is not defined.

    Args:
        tables: counts, fractions allowed.
        weights: cost of a disagreement: all alike, or by the distance of the labels' places, or by its square.
    """
    places = np.arange(tables.shape[-1])
    distance = np.abs(places[:, np.newaxis] - places).astype(np.float64)
    cost = {"none": np.sign(distance), "linear": distance, "quadratic": distance**2}[weights]
    rows, columns = tables.sum(axis=-1), tables.sum(axis=-2)
    expected = (cost * rows[..., :, np.newaxis] * columns[..., np.newaxis, :]).sum(axis=(-2, -1))
    observed = (cost * tables).sum(axis=(-2, -1)) * tables.sum(axis=(-2, -1))
    return _one_minus_ratio(observed, expected)


def coincidences(ratings: Floats, labels: Floats) -> Floats:
    """Pairs of labels within each unit, shape (units, labels, labels); zero where a unit has fewer than two labels.

    Args:
        ratings: labels as numbers, shape (raters, units), NaN where missing.
        labels: all labels there are, ascending.
    """
    given = (ratings[:, :, np.newaxis] == labels).sum(axis=0).astype(np.float64)
    pairs = given[:, :, np.newaxis] * given[:, np.newaxis, :]
    own = np.arange(labels.size)
    pairs[:, own, own] -= given
    partners = np.maximum(given.sum(axis=1) - 1, 1)
    result: Floats = pairs / partners[:, np.newaxis, np.newaxis]
    return result


def krippendorff_alphas(tables: Floats, labels: Floats, level: MeasurementLevel = "nominal") -> Floats:
    """Krippendorff's alpha of each matrix of coincidences, shape (..., labels, labels) to (...); NaN if not defined."""
    margins = tables.sum(axis=-1)
    size = margins.sum(axis=-1)
    difference = _difference(margins, labels, level)
    expected = (difference * margins[..., :, np.newaxis] * margins[..., np.newaxis, :]).sum(axis=(-2, -1))
    observed = (difference * tables).sum(axis=(-2, -1)) * (size - 1)
    return _one_minus_ratio(observed, expected)


def _difference(margins: Floats, labels: Floats, level: MeasurementLevel) -> Floats:
    """Squared difference of each two labels, shape (labels, labels) or, where it depends on margins, (..., same)."""
    if level == "nominal":
        return 1.0 - np.eye(labels.size)
    if level == "interval":
        return np.asarray((labels[:, np.newaxis] - labels) ** 2, np.float64)
    # The labels between c and k, both ends with half their weight, which is a difference of mid-ranks.
    middle = margins.cumsum(axis=-1) - margins / 2
    return np.asarray((middle[..., :, np.newaxis] - middle[..., np.newaxis, :]) ** 2, np.float64)


def _one_minus_ratio(observed: Floats, expected: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.asarray(observed) / np.asarray(expected)
    return np.where(np.asarray(expected) > 0, 1.0 - ratio, np.nan)


def _defined(coefficient: Floats) -> float | None:
    value = float(coefficient)
    return None if np.isnan(value) else value


Item = TypeVar("Item", bound=Hashable)
_NO_WIDTH = 1e-9
_MOST_LABELS = 101
"""A scale with more labels than this, those from 0 to 100, is no scale of labels."""


class Binarised(Struct, frozen=True):
    """Agreement on which documents are relevant, where relevant is a label of at least ``threshold``.

    Attributes:
        both, first_only, second_only, neither: pairs that both call relevant, only one does, or none.
        kappa: Cohen's.
    """

    threshold: int
    both: int
    first_only: int
    second_only: int
    neither: int
    kappa: Estimate


class LabelAgreement(Struct, frozen=True):
    """Two sets of labels, the first being the reference.

    Intervals are over queries: Wilson's of the share, of coefficients the jackknife's on Fisher's scale.

    Attributes:
        n: things that both labelled, such as documents; all figures are of these.
        queries: queries they belong to.
        first_only, second_only: pairs that only one of the sets has.
        scale: every whole number from the lowest to the highest label.
        confusion: how often the first gave the row's label while the second gave the column's.
        agreement: share of pairs with the same label.
        kappa, kappa_linear, kappa_quadratic: Cohen's; disagreements all alike, by distance, by its square.
        alpha, alpha_ordinal: Krippendorff's; labels as names, labels as an order.
        binarised: agreement at each label of the scale but the lowest.
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
    """Compare two sets of labels, each by query and thing.

    Args:
        first: the reference.
        second: the other set.
        scale: all labels there are, if others than those from the lowest to the highest given.
        mirrored: labels are verdicts, 1 for one side, -1 for the other and 0 for a tie. Which side an answer is
            written on says nothing, so coefficients are of the counts averaged with their mirror image; the confusion
            is of the labels as given, and there is nothing to binarise.
        clusters: what queries are drawn in; where there are any, ``queries`` counts these.

    Raises:
        InputError: the labels reach over more steps than any scale has.
    """
    first, second = _clustered(first, clusters), _clustered(second, clusters)
    pairs = [
        [(label, second[query_id][doc_id]) for doc_id, label in own.items() if doc_id in second[query_id]]
        for query_id, own in first.items()
        if query_id in second
    ]
    pairs = [own for own in pairs if own]
    scale = _scale(label for own in pairs for pair in own for label in pair) if scale is None else scale
    if mirrored and scale:
        scale = range(-max(map(abs, scale)), max(map(abs, scale)) + 1)
    tables = _tables(pairs, scale)
    given = tables.sum(axis=0)
    if mirrored:
        tables = (tables + tables[:, ::-1, ::-1]) / 2
    n = int(given.sum())
    same = share_estimate(np.trace(tables, axis1=1, axis2=2), tables.sum(axis=(1, 2)))
    kappa, linear, quadratic, alpha, ordinal = (
        _coefficient(statistic, tables)
        for statistic in (
            cohen_kappas,
            lambda totals: cohen_kappas(totals, "linear"),
            lambda totals: cohen_kappas(totals, "quadratic"),
            lambda totals: _alphas(totals, scale, "nominal"),
            lambda totals: _alphas(totals, scale, "ordinal"),
        )
    )
    return LabelAgreement(
        n=n,
        queries=len(tables),
        first_only=sum(map(len, first.values())) - n,
        second_only=sum(map(len, second.values())) - n,
        scale=tuple(scale),
        confusion=tuple(tuple(int(count) for count in row) for row in given),
        agreement=same,
        kappa=kappa,
        kappa_linear=linear,
        kappa_quadratic=quadratic,
        alpha=alpha,
        alpha_ordinal=ordinal,
        binarised=() if mirrored else tuple(_binarised(scale[place], tables, place) for place in range(1, len(scale))),
    )


def _binarised(threshold: int, tables: Floats, place: int) -> Binarised:
    """Relevant are the labels from ``place`` of the scale on."""
    halves = [slice(None, place), slice(place, None)]
    cells = [[tables[:, row, column].sum(axis=(1, 2)) for column in halves] for row in halves]
    halved = np.moveaxis(np.array(cells), -1, 0)
    (neither, second_only), (first_only, both) = halved.sum(axis=0).astype(int).tolist()
    return Binarised(threshold, both, first_only, second_only, neither, _coefficient(cohen_kappas, halved))


def _coefficient(statistic: Callable[[Floats], Floats], tables: Floats) -> Estimate:
    """Of all tables together, from one table a query; no interval where no query changes it."""
    return jackknife_estimate(statistic, tables, COEFFICIENT, narrowest=_NO_WIDTH)


def _alphas(tables: Floats, scale: range, level: MeasurementLevel) -> Floats:
    """Of two raters that both labelled a pair, each pair's two labels coincide once either way round."""
    return krippendorff_alphas(tables + tables.swapaxes(1, 2), np.array(scale, np.float64), level)


def _tables(pairs: list[list[tuple[int, int]]], scale: range) -> Floats:
    tables = np.zeros((len(pairs), len(scale), len(scale)))
    for table, own in zip(tables, pairs, strict=True):
        places: NDArray[np.int64] = np.array(own, np.int64) - scale.start
        np.add.at(table, (places[:, 0], places[:, 1]), 1)
    return tables


def _scale(labels: Iterable[int]) -> range:
    found = set(labels)
    if not found:
        return range(0)
    least, most = min(found), max(found)
    if most - least >= _MOST_LABELS:
        raise InputError(f"labels from {least} to {most} are no scale: at most {_MOST_LABELS} labels")
    return range(least, most + 1)


def _clustered(labels: Mapping[str, Mapping[Any, int]], clusters: Clusters) -> Mapping[str, Mapping[Any, int]]:
    """The same by cluster, each thing with its query."""
    if not clusters:
        return labels
    found: dict[str, dict[Any, int]] = {}
    for query_id, own in labels.items():
        in_cluster = found.setdefault(clusters.get(query_id, query_id), {})
        in_cluster.update({(query_id, item): label for item, label in own.items()})
    return found


class RaterAgreement(Struct, frozen=True):
    """Krippendorff's alpha; intervals are the jackknife's over queries.

    Attributes:
        documents: (query, document) pairs that two judges or more labelled.
        queries: queries they belong to.
        alpha: labels as names.
        alpha_ordinal: labels as an order.
    """

    documents: int
    queries: int
    alpha: Estimate
    alpha_ordinal: Estimate


def rater_agreement(
    raters: Sequence[Mapping[str, Mapping[Item, int]]],
    *,
    mirrored: bool = False,
    clusters: Clusters = ALONE,
) -> RaterAgreement:
    """Compare the labels of two judges or more, each by query and document (or any other thing).

    Args:
        raters: the labels of each.
        mirrored: labels are verdicts, counted alike for both sides, see ``label_agreement``.
        clusters: as of ``label_agreement``.
    """
    raters = [_clustered(own, clusters) for own in raters]
    labels = np.array(sorted({label for own in raters for by_doc in own.values() for label in by_doc.values()}), float)
    if mirrored:
        labels = np.union1d(labels, -labels)
    documents, tables = 0, []
    for query_id in dict.fromkeys(query_id for own in raters for query_id in own):
        ratings = _ratings([own[query_id] for own in raters if query_id in own])
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
    place = {doc_id: at for at, doc_id in enumerate(dict.fromkeys(doc_id for own in raters for doc_id in own))}
    found = np.full((len(raters), len(place)), np.nan)
    for row, own in zip(found, raters, strict=True):
        row[[place[doc_id] for doc_id in own]] = list(own.values())
    return found


class LabelTable(Struct, frozen=True):
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
    """Relevant or not on each side: labels of at least the given ones count as relevant."""
    counts, scale = _confusion(agreement), np.array(agreement.scale, np.int64)
    sides = [[scale >= least, scale < least] for least in (least_first, least_second)]
    table = [[counts[np.ix_(row, column)].sum() for column in sides[1]] for row in sides[0]]
    given = [scale[counts.any(axis=1 - side)].tolist() for side in (0, 1)]
    rows, columns = _sides(given[0], least_first), _sides(given[1], least_second)
    return LabelTable(rows, columns, np.array(table, np.int64), cohen_kappa(table))


def _confusion(agreement: LabelAgreement) -> NDArray[np.int64]:
    size = len(agreement.scale)
    return np.array(agreement.confusion, np.int64).reshape(size, size)


def _sides(labels: Sequence[int], least: int) -> tuple[str, str]:
    return (
        _span([label for label in labels if label >= least], f">={least}"),
        _span([label for label in labels if label < least], f"<{least}"),
    )


def _span(labels: Sequence[int], otherwise: str) -> str:
    if not labels:
        return otherwise
    low, high = min(labels), max(labels)
    return str(low) if low == high else f"{low}-{high}"
