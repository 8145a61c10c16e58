"""Places on a leaderboard, and how far two leaderboards agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Correlation:
    """Agreement of two leaderboards on the agents that stand on both.

    Attributes:
        n: those agents.
        spearman: correlation of the average ranks; ``None`` below two agents or where all are tied.
        kendall: tau-b; likewise.
        only_first: agents that the second leaderboard lacks.
        only_second: agents that the first one lacks.
    """

    n: int
    spearman: float | None
    kendall: float | None
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()


def places(scores: Mapping[str, float]) -> dict[str, float]:
    """Places from 1, the highest score first; agents with equal scores share the average of their places."""
    # Scores that differ by rounding alone are equal: sums over queries depend on their order.
    ranks = _average_ranks([-round(score, 12) for score in scores.values()])
    return dict(zip(scores, ranks.tolist(), strict=True))


def correlate(first: Mapping[str, float], second: Mapping[str, float]) -> Correlation:
    """Compare two leaderboards given as places, where 1 is best (see ``places`` for scores)."""
    common = [agent for agent in first if agent in second]
    ours, theirs = ([float(side[agent]) for agent in common] for side in (first, second))
    return Correlation(
        len(common),
        _pearson_of_ranks(ours, theirs),
        _tau_b(ours, theirs),
        tuple(sorted(first.keys() - second.keys())),
        tuple(sorted(second.keys() - first.keys())),
    )


def _pearson_of_ranks(first: list[float], second: list[float]) -> float | None:
    if _constant(first) or _constant(second):
        return None
    return float(np.corrcoef(_average_ranks(first), _average_ranks(second))[0, 1])


def _average_ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """As scipy's ``rankdata``, whose import takes longer than all scores of a large study."""
    _, group, size = np.unique(np.asarray(values, np.float64), return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(size) - (size - 1) / 2)[group]
    return ranks


def _tau_b(first: list[float], second: list[float]) -> float | None:
    from scipy.stats import kendalltau

    if _constant(first) or _constant(second):
        return None
    tau = float(kendalltau(first, second).statistic)
    return None if math.isnan(tau) else tau


def _constant(values: list[float]) -> bool:
    return len(set(values)) < 2
