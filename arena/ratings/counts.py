"""Counts of outcomes per pair of agents: all that a likelihood of paired comparisons needs."""

from __future__ import annotations

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.games import Games, distinct
from retrieval_eval.stats.arrays import Floats, Int32s

_OUTCOMES = np.array([1, 2, 0, 0, 2, 1])
"""Block (0: win of the pair's first agent, 1: win of the second, 2: tie) by twice the score of a; the entries from 3 on
are for games in which a is the pair's second agent."""


_FULL = 0.25
"""Share of nonzero counts above which a dense product is faster than a sparse one."""


class PairCounts(Struct, frozen=True, eq=False):
    """Outcomes of each pair of agents that met, in one or more samples of the same games.

    Attributes:
        agents: number of agents.
        a, b: agents of each pair, shape (pairs,). If order matters, ``a`` is shown first, and (a, b) and (b, a) are two
            pairs; otherwise a < b.
        wins_a, wins_b, ties: games of each outcome, fractions allowed, shape (samples, pairs).
    """

    agents: int
    a: Int32s
    b: Int32s
    wins_a: Floats
    wins_b: Floats
    ties: Floats

    @property
    def games(self) -> Floats:
        """Games of each pair, shape (samples, pairs)."""
        return self.wins_a + self.wins_b + self.ties

    def sample(self, chosen: NDArray[np.intp] | NDArray[np.bool_] | slice) -> PairCounts:
        """The chosen samples only. Samples stay the last axis in memory; a slice copies nothing."""
        return self.replaced(*(cells.T[:, chosen].T for cells in (self.wins_a, self.wins_b, self.ties)))

    def replaced(self, wins_a: Floats, wins_b: Floats, ties: Floats) -> PairCounts:
        """The same pairs with other counts."""
        return PairCounts(self.agents, self.a, self.b, wins_a, wins_b, ties)


def pair_counts(games: Games, *, ordered: bool) -> PairCounts:
    """Count games by pair and outcome, as one sample; ``ordered`` counts (a, b) and (b, a) separately.

    Raises:
        ValueError: ``ordered`` is on but the games do not record which agent was shown first.
    """
    if ordered and not games.a_shown_first:
        raise ValueError("these games do not say which agent was shown first")
    size = len(games.agents)
    code, outcome = _oriented(games, ordered)
    codes, pair = distinct(code, size**2)
    cells = np.bincount(pair + codes.size * outcome, games.weight, 3 * codes.size)
    counts = cells.astype(np.float64).reshape(3, 1, codes.size)
    return PairCounts(size, (codes // size).astype(np.int32), (codes % size).astype(np.int32), *counts)


def reachable(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a path of one or more edges leads from each node to each other, shape (nodes, nodes).

    scipy has this too, but its import takes longer than this computation.
    """
    reach = edges
    while True:
        steps = reach.astype(np.float32)
        farther = reach | (steps @ steps > 0)
        if (farther == reach).all():
            return reach
        reach = farther


def game_cells(games: Games, counts: PairCounts, *, ordered: bool) -> NDArray[np.int64]:
    """Outcome and pair of each game as one number, shape (n,): pair + pairs x (0 for a win of a, 1 of b, 2 for a tie).

    ``counts`` must come from the same games with the same ``ordered``.
    """
    code, outcome = _oriented(games, ordered)
    pair_codes = counts.a.astype(np.int64) * counts.agents + counts.b
    if counts.agents**2 <= 2 * code.size + 1_000_000:
        place = np.zeros(counts.agents**2, np.int64)
        place[pair_codes] = np.arange(pair_codes.size)
        pair = place[code]
    else:
        pair = np.searchsorted(pair_codes, code)
    cells: NDArray[np.int64] = pair + pair_codes.size * outcome
    return cells


def game_clusters(games: Games) -> tuple[NDArray[np.int64], int]:
    """The games' clusters renumbered without gaps, shape (n,), and the number of clusters with positive weight.

    Games of weight 0 get the number 0: they add nothing to any sum.

    Raises:
        ValueError: the games have no cluster.
    """
    if games.cluster is None:
        raise ValueError("these games have no cluster")
    if games.weight is None:
        clusters, cluster = distinct(games.cluster, int(games.cluster.max(initial=-1)) + 1)
        return cluster, clusters.size
    played = games.weight > 0
    clusters, played_cluster = distinct(games.cluster[played], int(games.cluster.max(initial=-1)) + 1)
    cluster = np.zeros(len(games), np.int64)
    cluster[played] = played_cluster
    return cluster, clusters.size


def cluster_counts(games: Games, counts: PairCounts, *, ordered: bool) -> Floats | scipy.sparse.csr_array:
    """Counts by cluster (query), shape (3 x pairs, clusters with a game); sparse if most counts are 0.

    The rows are the wins of each pair's first agent, then of its second agent, then the ties.

    Raises:
        ValueError: the games have no cluster.
    """
    cluster, clusters = game_clusters(games)
    cells = game_cells(games, counts, ordered=ordered).astype(np.int32)
    shape = (3 * counts.a.size, clusters)
    matrix = scipy.sparse.csr_array((games.weights, (cells, cluster.astype(np.int32))), shape=shape)
    return matrix if matrix.nnz < _FULL * shape[0] * shape[1] else matrix.toarray()


def weighted(cells: Floats | scipy.sparse.csr_array, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Wins of a, wins of b and ties of each pair if cluster q counts ``weights[s, q]`` times in sample s.

    Returns:
        Three arrays of shape (samples, pairs); samples are the last axis in memory.
    """
    counted = cells @ np.ascontiguousarray(weights.T, np.float64)
    pairs = len(counted) // 3
    return counted[:pairs].T, counted[pairs : 2 * pairs].T, counted[2 * pairs :].T


def _oriented(games: Games, ordered: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each game's pair as one number, and its outcome: 0 for a win of the first agent, 1 of the second, 2 for a tie.

    With ``ordered`` the first agent is the one shown first, otherwise the lower-numbered one.
    """
    size = len(games.agents)
    twice = games.twice()
    if ordered:
        return games.a * np.int64(size) + games.b, _OUTCOMES[twice]
    twice += np.int8(3) * (games.a > games.b)
    return np.minimum(games.a, games.b) * np.int64(size) + np.maximum(games.a, games.b), _OUTCOMES[twice]
