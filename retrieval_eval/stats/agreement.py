"""How far two sets of labels agree, or the labels of any number of raters, with intervals over queries."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from judges.errors import InputError
from retrieval_eval.stats.bootstrap import Floats, estimates, query_weights
from retrieval_eval.stats.coefficients import Level, cohen_kappas, coincidences, krippendorff_alphas
from retrieval_eval.stats.estimate import Estimate

Item = TypeVar("Item", bound=Hashable)
_MOST_LABELS = 100
"""A scale with more steps than this is no scale of labels."""


@dataclass(frozen=True, slots=True)
class Binarised:
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


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Two sets of labels, the first being the reference. Intervals are bootstrapped over queries.

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
    samples: int = 1000,
    seed: int = 0,
) -> LabelAgreement:
    """Compare two sets of labels, each by query and thing.

    Args:
        first: the reference.
        second: the other set.
        scale: all labels there are, if others than those from the lowest to the highest given.
        mirrored: labels are verdicts, 1 for one side, -1 for the other and 0 for a tie. Which side an answer is
            written on says nothing, so coefficients are of the counts averaged with their mirror image; the confusion
            is of the labels as given, and there is nothing to binarise.
        samples: bootstrap samples of the intervals.
        seed: of the samples.

    Raises:
        InputError: the labels reach over more steps than any scale has.
    """
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
    stack = _with_samples(tables, samples, seed)
    n = int(stack[0].sum())
    same, kappa, linear, quadratic, alpha, ordinal = _estimates(
        len(tables),
        stack,
        [
            _agreements,
            cohen_kappas,
            lambda drawn: cohen_kappas(drawn, "linear"),
            lambda drawn: cohen_kappas(drawn, "quadratic"),
            lambda drawn: _alphas(drawn, scale, "nominal"),
            lambda drawn: _alphas(drawn, scale, "ordinal"),
        ],
    )
    return LabelAgreement(
        n=n,
        queries=len(tables),
        first_only=_size(first) - n,
        second_only=_size(second) - n,
        scale=tuple(scale),
        confusion=tuple(tuple(int(count) for count in row) for row in given),
        agreement=same,
        kappa=kappa,
        kappa_linear=linear,
        kappa_quadratic=quadratic,
        alpha=alpha,
        alpha_ordinal=ordinal,
        binarised=()
        if mirrored
        else tuple(_binarised(scale[place], stack, place, len(tables)) for place in range(1, len(scale))),
    )


def _binarised(threshold: int, stack: Floats, place: int, queries: int) -> Binarised:
    """Relevant are the labels from ``place`` of the scale on."""
    halves = [slice(None, place), slice(place, None)]
    cells = [[stack[:, row, column].sum(axis=(1, 2)) for column in halves] for row in halves]
    tables = np.moveaxis(np.array(cells), -1, 0)
    (kappa,) = _estimates(queries, tables, [cohen_kappas])
    (neither, second_only), (first_only, both) = tables[0].astype(int).tolist()
    return Binarised(threshold, both, first_only, second_only, neither, kappa)


def _with_samples(tables: Floats, samples: int, seed: int) -> Floats:
    """The table of all queries, then that of each sample, from one table a query, shape (1 + samples, ...)."""
    weights = np.vstack([np.ones(len(tables)), query_weights(len(tables), samples, seed)])
    drawn: Floats = np.tensordot(weights, tables, axes=1)
    return drawn


def _estimates(queries: int, stack: Floats, statistics: Iterable[Callable[[Floats], Floats]]) -> tuple[Estimate, ...]:
    """The statistics of the first table of the stack, with intervals from the others."""
    figures = np.stack([statistic(stack) for statistic in statistics], axis=1)
    return estimates(figures[0], figures[1:], queries)


def _agreements(tables: Floats) -> Floats:
    totals = tables.sum(axis=(1, 2))
    same = np.trace(tables, axis1=1, axis2=2)
    return np.where(totals > 0, same / np.maximum(totals, 1), np.nan)


def _alphas(tables: Floats, scale: range, level: Level) -> Floats:
    """Of two raters that both labelled a pair, each pair's two labels coincide once either way round."""
    return krippendorff_alphas(tables + tables.swapaxes(1, 2), np.array(scale, np.float64), level)


def _tables(pairs: list[list[tuple[int, int]]], scale: range) -> Floats:
    """Confusion counts per query, shape (queries, labels, labels)."""
    tables = np.zeros((len(pairs), len(scale), len(scale)))
    for table, own in zip(tables, pairs, strict=True):
        places: NDArray[np.int64] = np.array(own, np.int64) - scale.start
        np.add.at(table, (places[:, 0], places[:, 1]), 1)
    return tables


def _scale(labels: Iterable[int]) -> range:
    found = set(labels)
    if not found:
        return range(0)
    scale = range(min(found), max(found) + 1)
    if len(scale) > _MOST_LABELS:
        raise InputError(f"labels from {scale[0]} to {scale[-1]} are no scale: at most {_MOST_LABELS} steps")
    return scale


def _size(labels: Mapping[str, Mapping[Item, int]]) -> int:
    return sum(map(len, labels.values()))


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """Krippendorff's alpha; intervals are bootstrapped over queries.

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
    raters: Sequence[Mapping[str, Mapping[Item, int]]], *, mirrored: bool = False, samples: int = 1000, seed: int = 0
) -> RaterAgreement:
    """Compare the labels of two judges or more, each by query and document (or any other thing).

    Args:
        raters: the labels of each.
        mirrored: labels are verdicts, counted alike for both sides, see ``label_agreement``.
        samples: bootstrap samples of the intervals.
        seed: of the samples.
    """
    labels = np.array(sorted({label for own in raters for by_doc in own.values() for label in by_doc.values()}), float)
    if mirrored:
        labels = np.union1d(labels, -labels)
    documents, tables = 0, []
    for query_id in dict.fromkeys(query_id for own in raters for query_id in own):
        ratings = _ratings([own.get(query_id, {}) for own in raters])
        ratings = ratings[:, (~np.isnan(ratings)).sum(axis=0) > 1]
        if ratings.shape[1]:
            documents += ratings.shape[1]
            tables.append(coincidences(ratings, labels).sum(axis=0))
    stacked = np.array(tables).reshape(len(tables), labels.size, labels.size)
    if mirrored:
        stacked = (stacked + stacked[:, ::-1, ::-1]) / 2
    nominal, ordinal = _estimates(
        len(tables),
        _with_samples(stacked, samples, seed),
        [
            lambda drawn: krippendorff_alphas(drawn, labels, "nominal"),
            lambda drawn: krippendorff_alphas(drawn, labels, "ordinal"),
        ],
    )
    return RaterAgreement(documents, len(tables), nominal, ordinal)


def _ratings(raters: Sequence[Mapping[Item, int]]) -> Floats:
    """Labels of one query's documents, shape (raters, documents), NaN where there is none."""
    doc_ids = dict.fromkeys(doc_id for own in raters for doc_id in own)
    return np.array([[own.get(doc_id, np.nan) for doc_id in doc_ids] for own in raters], np.float64)
