"""How far any number of judges agree on relevance labels, where each may have left out some documents."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from retrieval_eval.agreement import Level, coincidences, krippendorff_alphas
from retrieval_eval.resampling import Floats, estimates, query_weights
from retrieval_eval.stats.estimate import Estimate

Item = TypeVar("Item", bound=Hashable)


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
    weights = np.vstack([np.ones(len(tables)), query_weights(len(tables), samples, seed)])
    drawn = np.tensordot(weights, stacked, axes=1)
    levels: tuple[Level, Level] = ("nominal", "ordinal")
    alphas = np.stack([krippendorff_alphas(drawn, labels, level) for level in levels], axis=1)
    return RaterAgreement(documents, len(tables), *estimates(alphas[0], alphas[1:], len(tables)))


def _ratings(raters: Sequence[Mapping[Item, int]]) -> Floats:
    """Labels of one query's documents, shape (raters, documents), NaN where there is none."""
    doc_ids = dict.fromkeys(doc_id for own in raters for doc_id in own)
    return np.array([[own.get(doc_id, np.nan) for doc_id in doc_ids] for own in raters], np.float64)
