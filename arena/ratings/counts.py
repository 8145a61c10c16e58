"""Games collapsed to counts: a likelihood of paired comparisons needs no more than these."""

from __future__ import annotations

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.games import Games, distinct
from retrieval_eval.stats.arrays import Floats, Int32s

_OUTCOMES = np.array([1, 2, 0, 0, 2, 1])
"""Which of the blocks (wins of the first, wins of the second, ties) twice the score of a belongs to, and from 3 on
where a is the pair's second."""


_FULL = 0.25
"""Share of counts that are not 0 above which a product with all of them is quicker than with those alone."""


class PairCounts(Struct, frozen=True, eq=False):
    """Outcomes of each pair of agents that met, in one or many samples of the same games.

    Attributes:
        agents: number of agents.
        a, b: agents of each pair, shape (pairs,). Where order matters (a, b) has ``a`` shown first and (b, a) is a
            pair of its own; where it does not, a < b.
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
        """The counts of some samples only, which stay last in memory; of a slice no copies."""
        return self.replaced(*(seen.T[:, chosen].T for seen in (self.wins_a, self.wins_b, self.ties)))

    def replaced(self, wins_a: Floats, wins_b: Floats, ties: Floats) -> PairCounts:
        """The same pairs with other counts."""
        return PairCounts(self.agents, self.a, self.b, wins_a, wins_b, ties)


def pair_counts(games: Games, *, ordered: bool) -> PairCounts:
    """Collapse games to one sample of counts; ``ordered`` keeps (a, b) and (b, a) apart.

    Raises:
        ValueError: order is wanted of games that have none.
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
    """To which nodes a path of one edge or more leads from each, both shapes (nodes, nodes).

    scipy knows it too, and takes longer to import than this to compute.
    """
    reach = edges
    while True:
        steps = reach.astype(np.float32)
        farther = reach | (steps @ steps > 0)
        if (farther == reach).all():
            return reach
        reach = farther


def game_cells(games: Games, counts: PairCounts, *, ordered: bool) -> NDArray[np.int64]:
    """Outcome and pair of each game as one number: 0.. for a win of a, from ``pairs`` on of b, then ties, shape (n,).

    ``counts`` are of the same games, and made with the same ``ordered``.
    """
    code, outcome = _oriented(games, ordered)
    known = counts.a.astype(np.int64) * counts.agents + counts.b
    if counts.agents**2 <= 2 * code.size + 1_000_000:
        place = np.zeros(counts.agents**2, np.int64)
        place[known] = np.arange(known.size)
        pair = place[code]
    else:
        pair = np.searchsorted(known, code)
    cells: NDArray[np.int64] = pair + known.size * outcome
    return cells


def game_clusters(games: Games) -> tuple[NDArray[np.int64], int]:
    """Clusters numbered anew without gaps, shape (n,), and how many there are that hold a game of any weight.

    Games without weight get the number 0, where they change nothing.

    Raises:
        ValueError: the games have no cluster.
    """
    if games.cluster is None:
        raise ValueError("these games have no cluster")
    if games.weight is None:
        found, cluster = distinct(games.cluster, int(games.cluster.max(initial=-1)) + 1)
        return cluster, found.size
    played = games.weight > 0
    found, of_played = distinct(games.cluster[played], int(games.cluster.max(initial=-1)) + 1)
    cluster = np.zeros(len(games), np.int64)
    cluster[played] = of_played
    return cluster, found.size


def cluster_counts(games: Games, counts: PairCounts, *, ordered: bool) -> Floats | scipy.sparse.csr_array:
    """The same counts split by cluster (query), shape (3 x pairs, clusters that hold a game); sparse where most are 0.

    Rows are wins of the pairs' first agents, of their second, and ties.

    Raises:
        ValueError: the games have no cluster.
    """
    cluster, clusters = game_clusters(games)
    cells = game_cells(games, counts, ordered=ordered).astype(np.int32)
    shape = (3 * counts.a.size, clusters)
    found = scipy.sparse.csr_array((games.weights, (cells, cluster.astype(np.int32))), shape=shape)
    return found if found.nnz < _FULL * shape[0] * shape[1] else found.toarray()


def weighted(cells: Floats | scipy.sparse.csr_array, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Wins of a, wins of b and ties of each pair if cluster q counts ``weights[s, q]`` times in sample s.

    Returns:
        Three arrays of shape (samples, pairs), samples last in memory.
    """
    counted = cells @ np.ascontiguousarray(weights.T, np.float64)
    pairs = len(counted) // 3
    return counted[:pairs].T, counted[pairs : 2 * pairs].T, counted[2 * pairs :].T


def _oriented(games: Games, ordered: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each game's pair as one number, and its outcome, as shown or with the lower agent first.

    The outcome is 0 for a win of the pair's first agent, 1 for one of the second, 2 for a tie.
    """
    size = len(games.agents)
    twice = games.twice()
    if ordered:
        return games.a * np.int64(size) + games.b, _OUTCOMES[twice]
    twice += np.int8(3) * (games.a > games.b)
    return np.minimum(games.a, games.b) * np.int64(size) + np.maximum(games.a, games.b), _OUTCOMES[twice]
