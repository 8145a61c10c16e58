"""Games collapsed to counts: a likelihood of paired comparisons needs no more than these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from arena.ratings.games import Floats, Games, Ints


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """Outcomes of each pair of agents that met, in one or many samples of the same games.

    Attributes:
        agents: number of agents.
        a, b: agents of each pair, shape (pairs,). Where order matters (a, b) has ``a`` shown first and (b, a) is a
            pair of its own; where it does not, a < b.
        wins_a, wins_b, ties: games of each outcome, fractions allowed, shape (samples, pairs).
    """

    agents: int
    a: Ints
    b: Ints
    wins_a: Floats
    wins_b: Floats
    ties: Floats

    @property
    def games(self) -> Floats:
        """Games of each pair, shape (samples, pairs)."""
        return self.wins_a + self.wins_b + self.ties

    def sample(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> PairCounts:
        """The counts of some samples only."""
        return self.replaced(self.wins_a[chosen], self.wins_b[chosen], self.ties[chosen])

    def replaced(self, wins_a: Floats, wins_b: Floats, ties: Floats) -> PairCounts:
        """The same pairs with other counts."""
        return PairCounts(self.agents, self.a, self.b, wins_a, wins_b, ties)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterCounts:
    """Outcomes per cluster (query) and pair: three sparse matrices of shape (clusters, pairs)."""

    wins_a: sparse.csr_array
    wins_b: sparse.csr_array
    ties: sparse.csr_array

    @property
    def clusters(self) -> int:
        """Number of clusters that hold a game."""
        return int(self.wins_a.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class WinMatrix:
    """Games won by the row agent against the column agent, ties and games of each pair, shape (agents, agents)."""

    agents: tuple[str, ...]
    wins: Floats
    ties: Floats
    games: Floats


def pair_counts(games: Games, *, ordered: bool) -> PairCounts:
    """Collapse games to one sample of counts; ``ordered`` keeps (a, b) and (b, a) apart.

    Raises:
        ValueError: order is wanted of games that have none.
    """
    if ordered and not games.a_shown_first:
        raise ValueError("these games do not say which agent was shown first")
    a, b, score = _oriented(games, ordered)
    size = len(games.agents)
    codes, pair = np.unique(a.astype(np.int64) * size + b, return_inverse=True)
    wins_a, wins_b, ties = (
        np.bincount(pair, np.where(score == value, games.weights, 0.0), codes.size).astype(np.float64)[np.newaxis]
        for value in (1.0, 0.0, 0.5)
    )
    first, second = (codes // size).astype(np.int32), (codes % size).astype(np.int32)
    return PairCounts(size, first, second, wins_a, wins_b, ties)


def cluster_counts(games: Games, counts: PairCounts, *, ordered: bool) -> ClusterCounts:
    """The same counts split by cluster.

    Raises:
        ValueError: the games have no cluster.
    """
    if games.cluster is None:
        raise ValueError("these games have no cluster")
    played = games.weights > 0
    a, b, score = _oriented(games, ordered)
    known = counts.a.astype(np.int64) * counts.agents + counts.b
    pair = np.searchsorted(known, a.astype(np.int64) * counts.agents + b)
    found, cluster = np.unique(games.cluster[played], return_inverse=True)
    shape = (found.size, counts.a.size)

    def matrix(value: float) -> sparse.csr_array:
        chosen = score[played] == value
        cells = (cluster[chosen], pair[played][chosen])
        return sparse.csr_array((games.weights[played][chosen], cells), shape=shape)

    return ClusterCounts(matrix(1.0), matrix(0.0), matrix(0.5))


def win_matrix(games: Games) -> WinMatrix:
    """Wins, ties and games of every ordered pair of agents, for a heat map."""
    counts = pair_counts(games, ordered=False)
    size = (counts.agents, counts.agents)
    wins, ties = np.zeros(size), np.zeros(size)
    wins[counts.a, counts.b], wins[counts.b, counts.a] = counts.wins_a[0], counts.wins_b[0]
    ties[counts.a, counts.b] = ties[counts.b, counts.a] = counts.ties[0]
    return WinMatrix(games.agents, wins, ties, wins + wins.T + ties)


def from_win_matrix(agents: Sequence[str], percentages: Floats, n_queries: float) -> Games:
    """Games from a published table of win percentages.

    Args:
        agents: names of rows and columns.
        percentages: how often, in percent, the row agent beat the column agent, shape (agents, agents); the rest
            of the pair's games were ties. The diagonal is not read; NaN both ways is a pair that never met.
        n_queries: games of each pair.

    Returns:
        Up to three rows a pair, whose weights are the counts, not rounded.

    Raises:
        ValueError: the shape is wrong, one direction is missing, or a pair's percentages leave 0..100.
    """
    if percentages.shape != (len(agents), len(agents)) or n_queries <= 0:
        raise ValueError(f"need a square matrix for {len(agents)} agents and a positive number of queries")
    a, b = np.triu_indices(len(agents), k=1)
    won, lost = percentages[a, b], percentages[b, a]
    if (np.isnan(won) != np.isnan(lost)).any():
        raise ValueError("a pair has a percentage in one direction only")
    met = ~np.isnan(won)
    a, b, won, lost = a[met], b[met], won[met], lost[met]
    tied = 100.0 - won - lost
    if min(won.min(initial=0), lost.min(initial=0), tied.min(initial=0)) < 0:
        raise ValueError("percentages of a pair must lie in 0..100 and sum to at most 100")
    weight = np.concatenate([won, lost, tied]) * n_queries / 100.0
    score = np.repeat([1.0, 0.0, 0.5], a.size)
    kept = weight > 0
    return Games(
        tuple(agents),
        np.tile(a, 3)[kept].astype(np.int32),
        np.tile(b, 3)[kept].astype(np.int32),
        score[kept],
        weight=weight[kept],
    )


def _oriented(games: Games, ordered: bool) -> tuple[Ints, Ints, Floats]:
    """Agents and score of each game as counted: as shown, or with the lower number first."""
    if ordered:
        return games.a, games.b, games.score
    flip = games.a > games.b
    low, high = np.minimum(games.a, games.b), np.maximum(games.a, games.b)
    return low, high, np.where(flip, 1.0 - games.score, games.score)
