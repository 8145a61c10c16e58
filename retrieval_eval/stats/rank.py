"""Rank correlation: Kendall's tau-b and Spearman's rho of two scores of the same runs, with tests and intervals.

Kendall (1945, Biometrika 33), where pairs tied in both scores are ignored:

    tau = (concordant - discordant) / sqrt(pairs not tied in a * pairs not tied in b)

Scores of one topic depend on each other, so the bootstrap resamples topics. An interval covers the correlation that
the same number of other topics would give. It is not an interval of the correlation of the true orders, which it covers
in 77.5 % of simulations: noise in the scores makes two orders differ, so the true orders are probably more alike. A
resample of topics is noisier than the topics and noise lowers a correlation, so the samples are shifted until their
mean is the estimate (``benchmarks/coverage`` measures the coverage).

p-values are computed only where the observations can be assumed independent: for runs, and for the taus of the topics
(t test of a mean of 0), but not for all (run, topic) pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import permutations
from typing import Literal

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import (
    estimates,
    numbered,
    sums_by_unit,
    unit_weights,
    units_with,
    weighted_means,
    without_nan,
)
from retrieval_eval.stats.estimate import NO_COEFFICIENT, Coefficient, Estimate

_DECIMALS = 12
"""Decimals to which scores are rounded before ranking: the same sum in another order differs in the last bits."""
_CELLS_IN_MEMORY = 2_000_000
_FEW_CELLS = 144
"""Largest number of combinations of two scores' values for which ``pair_sums`` uses tables (12 labels each)."""
_MOST_PERMUTED = 7
"""Largest number of runs for which Spearman's test enumerates all orders; the usual approximation gives p = 0 for the
full agreement of five runs."""
_SMALLEST = 1e-300


class RankCorrelation(Struct, frozen=True):
    """Rank correlation of two scores of the same runs, such as scores by two sets of labels.

    Attributes:
        kendall: tau-b of the runs' mean scores.
        spearman: rho of the runs' mean scores.
        resampled: what the bootstrap for ``kendall`` and ``spearman`` draws: topics, or runs if topics are unknown.
        pairs: number of (run, topic) pairs; 0 if topics are unknown.
        pairs_kendall: tau-b over all these pairs of run and topic.
        topics: number of topics where tau-b is defined.
        topics_kendall: mean of the topics' taus.
        by_topic: tau-b of each topic, NaN where undefined, shape (topics,).
        head: correlations of the runs' mean scores in which the runs that are best by the second score count more.
    """

    runs: int
    kendall: Coefficient
    spearman: Coefficient
    resampled: Literal["topic", "run"]
    pairs: int = 0
    pairs_kendall: Coefficient = NO_COEFFICIENT
    topics: int = 0
    topics_kendall: Coefficient = NO_COEFFICIENT
    by_topic: tuple[float, ...] = ()
    head: HeadWeighted | None = None


def rank_correlations(
    a: Floats, b: Floats, a_drawn: Floats, b_drawn: Floats, units: int
) -> tuple[Coefficient, Coefficient]:
    """Kendall's tau-b and Spearman's rho between two scores of the same runs, with intervals and tests.

    Args:
        a: first score of each run, shape (runs,).
        b: second score of each run, shape (runs,).
        a_drawn: first scores on resampled units, shape (samples, runs); samples with a NaN in either score are dropped.
        b_drawn: second scores on the same resampled units, shape (samples, runs).
        units: number of units, usually topics.

    Raises:
        ValueError: there are fewer than two runs, or a run has no score.
    """
    for scores in (a, b):
        if scores.ndim != 1 or scores.size < 2 or np.isnan(scores).any():
            raise ValueError("a correlation needs at least two runs, each with a score")
    complete = without_nan(a_drawn, b_drawn)
    values = np.concatenate([kendall_taus(a, b), spearmans(a, b)])
    sampled = np.stack(
        [coefficient(a_drawn[complete], b_drawn[complete]) for coefficient in (kendall_taus, spearmans)], axis=1
    )
    kendall, spearman = estimates(values, sampled, units, centred=True)
    return _tested(kendall, _kendall_p(a, b)), _tested(spearman, _spearman_p(a, b))


def correlate_runs(a: Floats, b: Floats, samples: int = 1000, seed: int = 0) -> RankCorrelation:
    """Correlate two scores of at least two runs, shape (runs,), whose scores by topic are unknown."""
    drawn = np.random.default_rng(seed).integers(a.size, size=(samples, a.size))
    return RankCorrelation(
        a.size, *rank_correlations(a, b, a[drawn], b[drawn], a.size), "run", head=head_weighted(a, b)
    )


def correlate_topics(
    a: Floats,
    b: Floats,
    answered: NDArray[np.bool_],
    samples: int = 1000,
    seed: int = 0,
    *,
    unit: NDArray[np.int64] | None = None,
) -> RankCorrelation:
    """Correlate two scores of each run and topic, shape (runs, topics), NaN where undefined.

    Args:
        a: each run's first score on each topic; 0 if the run did not answer. Every run needs at least one score.
        b: each run's second score on each topic.
        answered: whether the run answered, shape (runs, topics). A missing answer counts in the runs' means only,
            because its two zeros are not an agreement.
        samples: number of bootstrap samples.
        seed: seed of the bootstrap.
        unit: the cluster of each topic, see ``units_of``; by default each topic is its own cluster.
    """
    topics = a.shape[1]
    unit = np.arange(topics) if unit is None else unit
    weights = unit_weights(unit, samples, seed)
    ones = np.ones((1, topics))
    x, y = (weighted_means(part, np.vstack([ones, weights])) for part in (a, b))
    kendall, spearman = rank_correlations(x[0], y[0], x[1:], y[1:], int(unit.max(initial=-1)) + 1)
    paired = answered & ~np.isnan(a) & ~np.isnan(b)
    sums = pair_sums(a[paired], b[paired], np.nonzero(paired)[1], topics)
    taus = _ratio(*(np.diagonal(part) for part in sums))
    defined = ~np.isnan(taus)
    weights = np.vstack([ones, weights])
    figures = np.column_stack([weighted_taus(sums, weights), weighted_means(taus[np.newaxis], weights)[:, 0]])
    units = units_with(np.array([paired.any(axis=0), defined]), unit)
    # Topics of one cluster are not independent, so the test is of the clusters' sums.
    sums_by_cluster = sums_by_unit(taus[np.newaxis, defined], numbered(unit[defined].tolist()))[0]
    pairs_estimate, topics_estimate = estimates(figures[0], figures[1:], units, centred=True)
    return RankCorrelation(
        len(a),
        kendall,
        spearman,
        "topic",
        int(paired.sum()),
        _tested(pairs_estimate, np.nan),
        int(defined.sum()),
        _tested(topics_estimate, _mean_p(sums_by_cluster)),
        tuple(taus.tolist()),
        head_weighted(y[0], x[0]),
    )


def kendall_taus(x: Floats, y: Floats) -> Floats:
    """Tau-b along the last axis, shape (n,) or (samples, n) to (samples,); NaN if all of ``x`` or of ``y`` is tied."""
    return np.concatenate(
        [_ratio((a * b).sum(axis=(1, 2)), (a**2).sum(axis=(1, 2)), (b**2).sum(axis=(1, 2))) for a, b in _signs(x, y)]
    )


def spearmans(x: Floats, y: Floats) -> Floats:
    """Spearman's rho along the last axis, with mean ranks for ties; shapes as in ``kendall_taus``."""
    # The number of lower values minus the number of higher ones is twice the centred mean rank.
    ranks = ([part.sum(axis=2) for part in pair] for pair in _signs(x, y))
    return np.concatenate([_ratio((a * b).sum(axis=1), (a**2).sum(axis=1), (b**2).sum(axis=1)) for a, b in ranks])


class HeadWeighted(Struct, frozen=True):
    """Rank correlations in which the best runs count more, as in ``autojudge-evaluate``; ``None`` where undefined.

    Attributes:
        tau_ap: AP correlation with ties, the mean of both directions (Urbano and Marrero 2017, ``tauapb``).
        tau_gap: share of the gaps between true scores that the other order keeps, by place (Gao and Oard 2015). Runs
            with the same score in that order keep the order in which they are given.
        tau_at_10: Kendall's tau-b of the ten runs that are best by the true scores.
    """

    tau_ap: float | None
    tau_gap: float | None
    tau_at_10: float | None


def head_weighted(truth: Floats, predicted: Floats) -> HeadWeighted:
    """Correlations of predicted with true scores that weigh the best runs most; both of shape (runs,), without NaN."""
    ((x,), (y,)) = next(_signs(truth, predicted))
    order = np.argsort(-np.round(predicted, _DECIMALS), kind="stable")
    gaps = np.triu(truth[order, np.newaxis] - truth[order])  # from each run to those placed below it
    total = np.abs(gaps).sum(axis=0)
    kept = np.maximum(gaps, 0).sum(axis=0)[total > 0] / total[total > 0]
    best = np.argsort(-np.round(truth, _DECIMALS), kind="stable")[:10]
    taus = (
        (_above(x, y) + _above(y, x)) / 2,
        2 * float(kept.mean()) - 1 if kept.size else np.nan,
        float(kendall_taus(truth[best], predicted[best])[0]),
    )
    return HeadWeighted(*(None if np.isnan(tau) else tau for tau in taus))


def _above(x: Floats, y: Floats) -> float:
    """AP correlation of two matrices of ``_signs``: how many of the runs above each in ``y`` are above it in ``x``."""
    above = (y < 0).sum(axis=1)
    both = ((y < 0) & (x < 0)).sum(axis=1)[above > 0]
    return 2 * float((both / above[above > 0]).mean()) - 1 if both.size else np.nan


def mean_ranks(scores: Floats) -> Floats:
    """Ranks from 1, highest score first, shape (n,); equal scores share their mean rank."""
    ((signs, _),) = _signs(scores, scores)
    ranks: Floats = (scores.size + 1 - signs[0].sum(axis=1)) / 2
    return ranks


def _signs(x: Floats, y: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield, chunk by chunk of samples, the signs of the differences of every two values in ``x`` and in ``y``.

    Both arrays have the shape (chunk, n, n).
    """
    x, y = np.atleast_2d(np.round(x, _DECIMALS)), np.atleast_2d(np.round(y, _DECIMALS))
    step = max(1, _CELLS_IN_MEMORY // max(1, x.shape[-1] ** 2))
    for start in range(0, max(1, len(x)), step):
        rows = slice(start, start + step)
        a, b = (np.sign(part[rows, :, np.newaxis] - part[rows, np.newaxis]) for part in (x, y))
        yield a, b


def pair_sums(x: Floats, y: Floats, unit: NDArray[np.int64], units: int) -> tuple[Floats, Floats, Floats]:
    """Count concordant and untied pairs of observations between every two units of the bootstrap (topics).

    Tau-b of resampled units is a ratio of quadratic forms in these matrices: concordant minus discordant pairs, pairs
    not tied in ``x``, and pairs not tied in ``y``, each (units, units). ``x`` and ``y`` are the two scores of each
    observation, and ``unit`` is the number of the unit that the observation belongs to.
    """
    (x_all, x_at), (y_all, y_at) = (np.unique(np.round(part, _DECIMALS), return_inverse=True) for part in (x, y))
    if x_all.size * y_all.size <= _FEW_CELLS:
        return _pair_sums_of_cells(x_at, y_at, unit, (units, x_all.size, y_all.size))
    agreeing, untied_x, untied_y = np.zeros((3, units, units))
    for number in range(units):
        chosen = unit == number
        x_values, y_values = x_all[np.unique(x_at[chosen])], y_all[np.unique(y_at[chosen])]
        x_low, x_high = (np.searchsorted(x_values, x_all, side)[x_at] for side in ("left", "right"))
        y_low, y_high = (np.searchsorted(y_values, y_all, side)[y_at] for side in ("left", "right"))
        below = np.zeros(
            (x_values.size + 1, y_values.size + 1)
        )  # number of this unit's observations below each place in both scores
        np.add.at(below, (x_high[chosen], y_high[chosen]), 1)
        below = below.cumsum(axis=0).cumsum(axis=1)
        total = float(chosen.sum())
        under_x, upto_x, under_y, upto_y = below[x_low, -1], below[x_high, -1], below[-1, y_low], below[-1, y_high]
        concordant = below[x_low, y_low] + total - upto_x - upto_y + below[x_high, y_high]
        discordant = under_x - below[x_low, y_high] + under_y - below[x_high, y_low]
        agreeing[:, number] = np.bincount(unit, concordant - discordant, units)
        untied_x[:, number] = np.bincount(unit, total - (upto_x - under_x), units)
        untied_y[:, number] = np.bincount(unit, total - (upto_y - under_y), units)
    return agreeing, untied_x, untied_y


def _pair_sums_of_cells(
    x_at: NDArray[np.int64], y_at: NDArray[np.int64], unit: NDArray[np.int64], shape: tuple[int, int, int]
) -> tuple[Floats, Floats, Floats]:
    """``pair_sums`` for scores with few distinct values, such as labels: each unit is a small table of counts."""
    counts = np.bincount(np.ravel_multi_index((unit, x_at, y_at), shape), minlength=math.prod(shape)).reshape(shape)
    tables = counts.astype(np.float64)
    x_sign, y_sign = (np.sign(np.subtract.outer(np.arange(kinds), np.arange(kinds))) for kinds in shape[1:])
    in_rows, in_columns, cells = tables.sum(axis=2), tables.sum(axis=1), tables.reshape(shape[0], -1)
    # Sums of whole numbers are exact in any order.
    return (
        cells @ np.kron(x_sign, y_sign) @ cells.T,
        in_rows @ np.abs(x_sign) @ in_rows.T,
        in_columns @ np.abs(y_sign) @ in_columns.T,
    )


def weighted_taus(sums: tuple[Floats, Floats, Floats], weights: Floats) -> Floats:
    """Tau-b from ``pair_sums`` if each unit occurs as often as its weight; weights (samples, units) give (samples,)."""
    return _ratio(*(((weights @ part) * weights).sum(axis=1) for part in sums))


def _kendall_p(x: Floats, y: Floats) -> float:
    """Two-sided p-value of Kendall's tau: exact for few untied runs, else by the normal approximation."""
    return float(scipy.stats.kendalltau(np.round(x, _DECIMALS), np.round(y, _DECIMALS)).pvalue)


def _spearman_p(x: Floats, y: Floats) -> float:
    if any(np.ptp(np.round(part, _DECIMALS)) == 0 for part in (x, y)):
        return np.nan
    if x.size > _MOST_PERMUTED:
        rho = float(spearmans(x, y)[0])
        return _student_p(rho * math.sqrt((x.size - 2) / max((1 - rho) * (1 + rho), _SMALLEST)), x.size - 2)
    least = np.abs(spearmans(x, y)) - 10.0**-_DECIMALS
    orders = np.array(list(permutations(range(y.size))))
    return float((np.abs(spearmans(np.tile(x, (len(orders), 1)), y[orders])) >= least).mean())


def _mean_p(taus: Floats) -> float:
    if taus.size < 2 or np.ptp(taus) == 0:
        return np.nan
    return _student_p(float(taus.mean() / taus.std(ddof=1)) * math.sqrt(taus.size), taus.size - 1)


def _student_p(t: float, freedom: int) -> float:
    return 2 * float(scipy.special.stdtr(freedom, -abs(t)))


def _ratio(agreeing: Floats, untied_x: Floats, untied_y: Floats) -> Floats:
    scale = np.sqrt(np.asarray(untied_x, np.float64) * np.asarray(untied_y, np.float64))
    return np.where(scale > 0, agreeing / np.where(scale > 0, scale, 1.0), np.nan)


def _tested(estimate: Estimate, p_value: float) -> Coefficient:
    p = None if np.isnan(p_value) else p_value
    return Coefficient(estimate.value, estimate.low, estimate.high, estimate.n, estimate.method, p)
