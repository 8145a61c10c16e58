"""Do two sets of labels rank the runs alike? Kendall's tau-b and Spearman's rho, with intervals over queries."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from retrieval_eval.metrics import Metrics
from retrieval_eval.stats.bootstrap import Floats, estimates, query_weights, weighted_means
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.rank import kendall_taus, spearmans

_DIGITS = 12
"""Means that differ beyond this many decimals differ by rounding alone."""


@dataclass(frozen=True, slots=True)
class RankingAgreement:
    """Two rankings of the same runs by one measure.

    Attributes:
        topics: queries with labels in both sets; both rankings are of these alone.
        kendall_tau: tau-b, which takes account of ties.
        spearman: with mean ranks for ties.
        swapped: pairs of runs that the two rank the other way round, the better by the first set in front.
    """

    measure: str
    topics: int
    kendall_tau: Estimate
    spearman: Estimate
    swapped: tuple[tuple[str, str], ...]


def ranking_agreement(
    first: Metrics, second: Metrics, measure: str, *, samples: int = 1000, seed: int = 0
) -> RankingAgreement:
    """Compare how two sets of labels rank the same runs, on the queries that both label.

    Both rankings are drawn anew from the same resampled queries, so the interval says how the agreement would move had
    other queries been asked.

    Raises:
        ValueError: the two are of different runs.
    """
    if first.runs != second.runs:
        raise ValueError("the two sets of scores are of different runs")
    places = {query_id: place for place, query_id in enumerate(second.topics)}
    ours = [place for place, query_id in enumerate(first.topics) if query_id in places]
    theirs = [places[first.topics[place]] for place in ours]
    topics = len(ours)
    weights = np.vstack([np.ones(topics), query_weights(topics, samples, seed)])
    one = weighted_means(first.of_measure(measure)[:, ours], weights)
    other = weighted_means(second.of_measure(measure)[:, theirs], weights)
    coefficients = np.stack([kendall_taus(one, other), spearmans(one, other)], axis=1)
    tau, rho = estimates(coefficients[0], coefficients[1:], topics, centred=True)
    swapped = tuple(
        (first.runs[better], first.runs[worse])
        for better, worse in permutations(range(len(first.runs)), 2)
        if _above(one[0], better, worse) and _above(other[0], worse, better)
    )
    return RankingAgreement(measure, topics, tau, rho, swapped)


def _above(scores: Floats, better: int, worse: int) -> bool:
    return bool(np.round(scores[better], _DIGITS) > np.round(scores[worse], _DIGITS))
