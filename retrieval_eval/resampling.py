"""How far a figure would move had other queries been asked: the bootstrap over queries.

Labels, ranks and scores of one query depend on each other, so whole queries are drawn with replacement (Efron and
Tibshirani 1993, *An Introduction to the Bootstrap*, chapter 8): a sample is how often each query was drawn.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from retrieval_eval.stats.estimate import Estimate

Floats: TypeAlias = NDArray[np.float64]


def query_weights(queries: int, samples: int, seed: int) -> Floats:
    """How often each query is drawn in each sample, shape (samples, queries); rows add up to ``queries``."""
    rng = np.random.default_rng(seed)
    if queries == 0:
        return np.zeros((samples, 0))
    return rng.multinomial(queries, np.full(queries, 1 / queries), size=samples).astype(np.float64)


def weighted_means(values: Floats, weights: Floats) -> Floats:
    """Weighted means over queries of what is defined, shapes (runs, queries), (samples, queries) to (samples, runs)."""
    defined = ~np.isnan(values)
    used = weights @ defined.T.astype(np.float64)
    sums = weights @ np.where(defined, values, 0.0).T
    return np.where(used > 0, sums / np.where(used > 0, used, 1.0), np.nan)


def estimates(values: Floats, samples: Floats, queries: int, level: float = 0.95) -> tuple[Estimate, ...]:
    """Percentile intervals, widened for few queries.

    A resample of n queries varies by (n - 1) / n too little, and percentiles are quantiles of a normal where those of
    Student's t are due. Both are put right by taking percentiles further out (Hesterberg 2015, The American
    Statistician 69, "What teachers should know about the bootstrap", section 4.1).

    Args:
        values: the figures, shape (figures,); NaN is not defined.
        samples: the same of resampled queries, shape (samples, figures); NaN where a sample does not define it.
        queries: number of queries drawn from.
        level: of the intervals.

    Returns:
        One estimate per figure; without an interval for fewer than two queries or two samples.
    """
    bounds = np.full((2, values.size), np.nan)
    if queries > 1:
        tail = 1 - (1 + level) / 2
        far = math.sqrt(queries / (queries - 1)) * float(scipy.special.stdtrit(queries - 1, tail))
        tail = float(scipy.special.ndtr(far))
        for place, column in enumerate(samples.T):
            defined = column[~np.isnan(column)]
            if defined.size > 1:
                bounds[:, place] = np.quantile(defined, [tail, 1 - tail])
    return tuple(
        Estimate(None) if math.isnan(value) else Estimate(value, _number(low), _number(high))
        for value, low, high in zip(values.tolist(), *bounds.tolist(), strict=True)
    )


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
