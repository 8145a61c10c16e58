"""Places on a leaderboard, and how far two leaderboards agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from retrieval_eval.stats.bootstrap import Floats
from retrieval_eval.stats.rank import kendall_taus, mean_ranks, spearmans


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
    return dict(zip(scores, mean_ranks(np.array([*scores.values()], np.float64)).tolist(), strict=True))


def correlate(first: Mapping[str, float], second: Mapping[str, float]) -> Correlation:
    """Compare two leaderboards given as places, where 1 is best (see ``places`` for scores)."""
    common = [agent for agent in first if agent in second]
    ours, theirs = (np.array([side[agent] for agent in common], np.float64) for side in (first, second))
    return Correlation(
        len(common),
        _defined(spearmans(ours, theirs)),
        _defined(kendall_taus(ours, theirs)),
        tuple(sorted(first.keys() - second.keys())),
        tuple(sorted(second.keys() - first.keys())),
    )


def _defined(coefficients: Floats) -> float | None:
    (value,) = coefficients.tolist()
    return None if math.isnan(value) else value
