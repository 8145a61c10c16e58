"""Rank correlation of two conditions that score the same runs: over runs, over all (run, topic) pairs, and by topic.

Kendall's tau-b (Kendall 1945, Biometrika 33), where pairs tied in both scores count nowhere:

    tau = (concordant - discordant) / sqrt(pairs not tied in a * pairs not tied in b)

Scores of one topic depend on each other, so topics are resampled. An interval says what as many other topics would have
given. A resample of topics is noisier than the topics themselves and noise lowers a correlation, so the percentiles of
the bootstrap are moved until their mean is the estimate: in simulation (30 runs, 21 topics) 95 % intervals then held
that figure in 96 % of 200 cases, where percentiles as they are held it in 70 to 78 %.

p-values are given where the observations can be taken as independent: of runs, and of the topics' own taus (t test
against a mean of 0), not of all (run, topic) pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from retrieval_eval.resampling import Floats, weighted_means
from retrieval_eval.stats.estimate import NO_COEFFICIENT, Coefficient

_LEVEL = 0.95
_DECIMALS = 12
"""Means of the same scores in another order differ in the last bits; they are ties all the same."""
_CELLS_IN_MEMORY = 4_000_000


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """How alike two conditions order runs.

    Attributes:
        runs: number of runs.
        kendall: tau-b over the runs' scores.
        spearman: over the runs' scores.
        resampled: what the intervals of these two come from: other topics, or other runs where topics are not known.
        pairs: number of (run, topic) pairs; 0 where topics are not known.
        pairs_kendall: tau-b over all of them.
        topics: topics on which tau-b is defined.
        topics_kendall: mean of their taus.
        by_topic: tau-b of each topic, NaN where not defined, shape (topics,).
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


def correlate_runs(a: Floats, b: Floats, samples: int = 1000, seed: int = 0) -> RankCorrelation:
    """Correlate two scores of each run, shape (runs,), of which no topics are known.

    Raises:
        ValueError: fewer than two runs.
    """
    drawn = np.random.default_rng(seed).integers(a.size, size=(samples, a.size))
    return correlate_resampled(a, b, a[drawn], b[drawn], "run")


def correlate_resampled(
    a: Floats, b: Floats, a_drawn: Floats, b_drawn: Floats, resampled: Literal["topic", "run"]
) -> RankCorrelation:
    """Correlate two scores of each run, shape (runs,), given those of resampled topics or runs, (samples, runs).

    Raises:
        ValueError: fewer than two runs, or one without a score.
    """
    a, b = _required(a), _required(b)
    return RankCorrelation(
        a.size,
        coefficient(kendall_taus(a, b), kendall_taus(a_drawn, b_drawn), _kendall_p(a, b)),
        coefficient(spearmans(a, b), spearmans(a_drawn, b_drawn), _spearman_p(a, b)),
        resampled,
    )


def correlate_topics(
    a: Floats, b: Floats, answered: NDArray[np.bool_], samples: int = 1000, seed: int = 0
) -> RankCorrelation:
    """Correlate two scores of each run and topic, shape (runs, topics), NaN where one is not defined.

    Args:
        a: scores in the first condition; 0 where the run did not answer. Every run has one at least.
        b: scores in the second.
        answered: whether the run answered, shape (runs, topics); what is missing counts in the runs' means alone, since
            two zeros of one missing answer are no agreement.
        samples: bootstrap samples.
        seed: of the samples.

    Raises:
        ValueError: fewer than two runs.
    """
    topics = a.shape[1]
    drawn = np.random.default_rng(seed).multinomial(topics, np.full(topics, 1 / topics), size=samples)
    weights = drawn.astype(np.float64) if topics > 1 else np.empty((0, topics))
    once = np.ones((1, topics))
    own = [_required(weighted_means(part, once)[0]) for part in (a, b)]
    sampled = [weighted_means(part, weights) for part in (a, b)]
    whole = ~np.isnan(np.hstack(sampled)).any(axis=1)  # a sample may hold no topic on which a run has a score
    x, y = (part[whole] for part in sampled)
    used = answered & ~np.isnan(a) & ~np.isnan(b)
    sums = pair_sums(a[used], b[used], np.nonzero(used)[1], topics)
    taus = _ratio(*(np.diagonal(part) for part in sums))
    defined = ~np.isnan(taus)
    of_one = weights[:0]  # a single topic says nothing of others
    by_pairs = weights if used.any(axis=0).sum() > 1 else of_one
    by_taus = weights if defined.sum() > 1 else of_one
    mean = float(taus[defined].mean()) if defined.any() else np.nan
    return RankCorrelation(
        len(own[0]),
        coefficient(kendall_taus(*own), kendall_taus(x, y), _kendall_p(*own)),
        coefficient(spearmans(*own), spearmans(x, y), _spearman_p(*own)),
        "topic",
        int(used.sum()),
        coefficient(weighted_taus(sums, once)[0], weighted_taus(sums, by_pairs), np.nan),
        int(defined.sum()),
        coefficient(mean, weighted_means(taus[np.newaxis], by_taus)[:, 0], _mean_p(taus[defined])),
        tuple(taus.tolist()),
    )


def kendall_taus(x: Floats, y: Floats) -> Floats:
    """Tau-b of the last axis, shape (..., n) to (...); NaN where one side is all tied."""
    x, y = np.atleast_2d(np.round(x, _DECIMALS)), np.atleast_2d(np.round(y, _DECIMALS))
    first, second = np.triu_indices(x.shape[-1], 1)
    taus = np.empty(len(x))
    chunk = max(1, _CELLS_IN_MEMORY // max(1, first.size))
    for start in range(0, len(x), chunk):
        rows = slice(start, start + chunk)
        signs = [np.sign(part[rows][:, first] - part[rows][:, second]) for part in (x, y)]
        taus[rows] = _ratio((signs[0] * signs[1]).sum(axis=1), *((sign != 0).sum(axis=1) for sign in signs))
    return taus


def pair_sums(x: Floats, y: Floats, unit: NDArray[np.int64], units: int) -> tuple[Floats, Floats, Floats]:
    """For each two units what pairs of an observation of one with an observation of the other sum up to.

    Tau-b of observations, each as often as its unit is drawn, is a ratio of quadratic forms in these matrices.

    Args:
        x: one score of each observation, shape (n,).
        y: the other.
        unit: the unit that each observation belongs to.
        units: how many there are.

    Returns:
        Concordant less discordant pairs, pairs not tied in ``x``, pairs not tied in ``y``, each (units, units).
    """
    (x_all, x_at), (y_all, y_at) = (np.unique(np.round(part, _DECIMALS), return_inverse=True) for part in (x, y))
    agreeing, untied_x, untied_y = np.zeros((3, units, units))
    for own in range(units):
        chosen = unit == own
        x_own, y_own = x_all[np.unique(x_at[chosen])], y_all[np.unique(y_at[chosen])]
        x_low, x_high = (np.searchsorted(x_own, x_all, side)[x_at] for side in ("left", "right"))
        y_low, y_high = (np.searchsorted(y_own, y_all, side)[y_at] for side in ("left", "right"))
        below = np.zeros((x_own.size + 1, y_own.size + 1))  # how many of this unit lie under a place in both scores
        np.add.at(below, (x_high[chosen], y_high[chosen]), 1)
        below = below.cumsum(axis=0).cumsum(axis=1)
        total = float(chosen.sum())
        under_x, upto_x, under_y, upto_y = below[x_low, -1], below[x_high, -1], below[-1, y_low], below[-1, y_high]
        concordant = below[x_low, y_low] + total - upto_x - upto_y + below[x_high, y_high]
        discordant = under_x - below[x_low, y_high] + under_y - below[x_high, y_low]
        agreeing[:, own] = np.bincount(unit, concordant - discordant, units)
        untied_x[:, own] = np.bincount(unit, total - (upto_x - under_x), units)
        untied_y[:, own] = np.bincount(unit, total - (upto_y - under_y), units)
    return agreeing, untied_x, untied_y


def weighted_taus(sums: tuple[Floats, Floats, Floats], weights: Floats) -> Floats:
    """Tau-b with every unit as often as its weight, weights of shape (samples, units) to (samples,)."""
    return _ratio(*(((weights @ part) * weights).sum(axis=1) for part in sums))


def spearmans(x: Floats, y: Floats) -> Floats:
    """Spearman's rho of the last axis, shape (..., n) to (...); NaN where one side is all tied."""
    from scipy.stats import rankdata

    ranked = [rankdata(np.round(part, _DECIMALS), axis=-1) for part in (x, y)]
    centred = [part - part.mean(axis=-1, keepdims=True) for part in ranked]
    return _ratio((centred[0] * centred[1]).sum(axis=-1), *((part**2).sum(axis=-1) for part in centred))


def _kendall_p(x: Floats, y: Floats) -> float:
    from scipy.stats import kendalltau

    return float(kendalltau(x, y).pvalue)


def _spearman_p(x: Floats, y: Floats) -> float:
    from scipy.stats import spearmanr

    untied = all(np.ptp(np.round(part, _DECIMALS)) > 0 for part in (x, y))
    return float(spearmanr(x, y).pvalue) if untied and x.size > 2 else np.nan


def _mean_p(taus: Floats) -> float:
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(taus, 0.0).pvalue) if taus.size > 1 and np.ptp(taus) > 0 else np.nan


def _ratio(agreeing: Floats, untied_x: Floats, untied_y: Floats) -> Floats:
    scale = np.sqrt(np.asarray(untied_x, np.float64) * np.asarray(untied_y, np.float64))
    return np.where(scale > 0, agreeing / np.where(scale > 0, scale, 1.0), np.nan)


def _required(scores: Floats) -> Floats:
    if scores.ndim != 1 or scores.size < 2 or np.isnan(scores).any():
        raise ValueError("a correlation needs two runs or more, each with a score")
    return np.round(scores, _DECIMALS)


def coefficient(of: Floats | float, sampled: Floats, p_value: float) -> Coefficient:
    """A correlation with the interval that its bootstrap samples give, moved until their mean is the estimate."""
    estimate = float(np.squeeze(of))
    known = sampled[~np.isnan(sampled)]
    ends = [np.nan, np.nan]
    if known.size:
        tails = np.percentile(known, [50 * (1 - _LEVEL), 50 * (1 + _LEVEL)])
        ends = np.clip(tails - known.mean() + estimate, -1.0, 1.0).tolist()
    value, low, high, p = (None if np.isnan(part) else part for part in (estimate, *ends, p_value))
    return Coefficient(value, low, high, p_value=p)
