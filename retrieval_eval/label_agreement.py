"""How far a judge's relevance labels agree with people's, on the pairs that both labelled."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from judges.errors import InputError
from retrieval_eval.agreement import Level, cohen_kappas, krippendorff_alphas
from retrieval_eval.resampling import Floats, estimates, query_weights
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
        n: (query, document) pairs that both labelled; all figures are of these.
        queries: queries they belong to.
        first_only, second_only: pairs that only one of the sets has.
        scale: every whole number from the lowest to the highest label of these pairs.
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
    mirrored: bool = False,
    samples: int = 1000,
    seed: int = 0,
) -> LabelAgreement:
    """Compare two sets of labels, each by query and thing.

    Args:
        first: the reference.
        second: the other set.
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
    scale = _scale(label for own in pairs for pair in own for label in pair)
    if mirrored and scale:
        scale = range(-max(map(abs, scale)), max(map(abs, scale)) + 1)
    tables = _tables(pairs, scale)
    given = tables.sum(axis=0)
    if mirrored:
        tables = (tables + tables[:, ::-1, ::-1]) / 2
    whole = tables.sum(axis=0)
    weights = query_weights(len(tables), samples, seed)
    stack = np.concatenate([whole[np.newaxis], np.tensordot(weights, tables, axes=1)])
    n = int(whole.sum())
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
