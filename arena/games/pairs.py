"""Each two agents by their own games: who won how many, and whether that tells them apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from arena.ratings.counts import WinMatrix, win_matrix
from arena.ratings.games import Floats, Games
from retrieval_eval.stats.significance import holm


@dataclass(frozen=True, slots=True, eq=False)
class PairResults:
    """What each pair of agents did to each other.

    Attributes:
        wins: counts of all pairs.
        p: how likely so clear a difference would be between equals, see ``sign_tests``; shape (agents, agents).
    """

    wins: WinMatrix
    p: Floats


def pair_results(games: Games) -> PairResults:
    """Of all pairs; the games as they are rated, with their queries."""
    return PairResults(win_matrix(games), sign_tests(games))


def sign_tests(games: Games) -> Floats:
    """P-values of all pairs, corrected by Holm for the pairs that met; NaN for the others, shape (agents, agents).

    Games on one query are no independent evidence, whatever their number. So each query counts once, for the agent that
    took more of the pair's points on it, or not at all where both took as many; were both equally good, half of the
    queries that count would go to each (the exact two-sided sign test; Dixon and Mood 1946, JASA 41:557).

    Args:
        games: as they are rated, with their queries.
    """
    size = len(games.agents)
    assert games.cluster is not None
    lead = np.where(games.a < games.b, games.score - 0.5, 0.5 - games.score) * games.weights
    low, high = np.minimum(games.a, games.b).astype(np.int64), np.maximum(games.a, games.b)
    pairs, pair = np.unique(low * size + high, return_inverse=True)
    queries = int(games.cluster.max(initial=0)) + 1
    cells, cell = np.unique(pair * queries + games.cluster, return_inverse=True)
    ahead = np.sign(np.round(np.bincount(cell, lead, cells.size), 9))
    of_cell = cells // queries
    first = np.bincount(of_cell, ahead > 0, pairs.size)
    second = np.bincount(of_cell, ahead < 0, pairs.size)
    p = np.minimum(1.0, 2 * scipy.special.bdtr(np.minimum(first, second), (first + second).astype(np.int64), 0.5))
    found = np.full((size, size), np.nan)
    found[pairs // size, pairs % size] = found[pairs % size, pairs // size] = holm(p)
    return found
