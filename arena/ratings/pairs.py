"""Each two agents by their own games: who won how many, whether that tells them apart, whether one line fits all.

Ratings order all agents on one line. Where x surely beats y, y surely beats z and z surely beats x, or an agent surely
beats one that is surely rated above it, no line describes the games. "Surely": the interval of the share of points in
their own games, clustered by query and corrected by Bonferroni for the number of pairs, leaves out one half. If one
line is true, a circle of sure results needs one of them to be wrong, which is no more likely than the level allows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.counts import pair_counts, reachable
from arena.ratings.games import Games, distinct
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import share_intervals, wilson
from retrieval_eval.stats.significance import holm

ROUNDING: Final = 0.101
"""Two percentages rounded to one decimal may together exceed 100 by 0.1."""
_NOTHING: Final = 1e-9
"""Percent of ties that only the sum of two numbers made."""


class WinMatrix(Struct, frozen=True, eq=False):
    """Games won by the row agent against the column agent, ties and games of each pair, shape (agents, agents)."""

    agents: tuple[str, ...]
    wins: Floats
    ties: Floats
    games: Floats


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
        ValueError: the shape is wrong, one direction is missing, or a pair's percentages leave 0..100 by more than
            rounding explains.
    """
    if percentages.shape != (len(agents), len(agents)) or n_queries <= 0:
        raise ValueError(f"need a square matrix for {len(agents)} agents and a positive number of queries")
    a, b = np.triu_indices(len(agents), k=1)
    won, lost = percentages[a, b], percentages[b, a]
    if (np.isnan(won) != np.isnan(lost)).any():
        raise ValueError("a pair has a percentage in one direction only")
    met = ~np.isnan(won)
    a, b, won, lost = a[met], b[met], won[met], lost[met]
    together = won + lost
    if min(won.min(initial=0), lost.min(initial=0)) < 0 or together.max(initial=0) > 100 + ROUNDING:
        raise ValueError("percentages of a pair must lie in 0..100 and sum to at most 100")
    tied = 100.0 - together
    tied[tied < _NOTHING] = 0.0
    won, lost = (part * np.minimum(1.0, 100.0 / np.maximum(together, 1.0)) for part in (won, lost))
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


class PairResults(Struct, frozen=True, eq=False):
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


class Circles(Struct, frozen=True):
    """How many sets of three agents that all met are surely circles, and how many are surely none."""

    triples: int
    surely: int
    surely_not: int


class DirectGames(Struct, frozen=True):
    """What two agents did against each other alone.

    Attributes:
        games, wins, ties, losses: their games, as they are rated; wins and losses are those of ``one``.
        low, high: interval of the share of points that ``one`` takes, a tie half; those of all pairs hold at once at
            the level of the settings; ``None`` where a single query (game) shows no variation.
    """

    one: str
    other: str
    games: float
    wins: float
    ties: float
    losses: float
    low: float | None
    high: float | None


def direct_games(games: Games, level: float, *, by_query: bool) -> tuple[DirectGames, ...]:
    """The games of every two agents that met, in the order of their names.

    The intervals of all pairs hold at once with ``level``.
    """
    if not len(games):
        return ()
    size, weight, flip = len(games.agents), games.weights, games.a > games.b
    low, high = np.where(flip, games.b, games.a), np.where(flip, games.a, games.b)
    score = np.where(flip, 1 - games.score, games.score)
    pairs, pair = distinct(low * np.int64(size) + high, size**2)
    played, points = (np.bincount(pair, own, pairs.size) for own in (weight, weight * score))
    wins, losses = (np.bincount(pair, weight * (score == said), pairs.size) for said in (1.0, 0.0))
    alone = 1 - (1 - level) / pairs.size
    if by_query and games.cluster is not None:
        queries = int(games.cluster.max()) + 1
        cells, cell = distinct(pair * queries + games.cluster, pairs.size * queries)
        parts, wholes = (np.bincount(cell, own, cells.size).astype(np.float64) for own in (weight * score, weight))
        bounds = share_intervals(parts, wholes, cells // queries, pairs.size, alone)
    else:
        squares = np.bincount(pair, weight * (score - (points / played)[pair]) ** 2, pairs.size)
        bounds = [
            wilson(part / whole, square / whole / (whole - 1), whole, whole, alone) if whole > 1 else None
            for part, whole, square in zip(points.tolist(), played.tolist(), squares.tolist(), strict=True)
        ]
    columns = (
        column.tolist() for column in (pairs // size, pairs % size, played, wins, played - wins - losses, losses)
    )
    return tuple(
        DirectGames(games.agents[one], games.agents[other], *counts, *(interval or (None, None)))
        for one, other, *counts, interval in zip(*columns, bounds, strict=True)
    )


def contradicted(
    agents: Sequence[str], direct: Iterable[DirectGames], above: Iterable[tuple[str, str]]
) -> tuple[str, ...]:
    """Agents that no single line describes, in the order given: those on a circle of sure results; often none.

    In each pair of ``above``, the first is surely rated above the second.
    """
    beats = _surely_beats(agents, direct)
    number = {agent: at for at, agent in enumerate(agents)}
    for better, worse in above:
        beats[number[better], number[worse]] = True
    circular = reachable(beats).diagonal()
    return tuple(agent for agent, around in zip(agents, circular, strict=True) if around)


def circles(agents: Sequence[str], direct: Collection[DirectGames]) -> Circles:
    """Sets of three agents, each pair of which met, counted by what their sure results leave possible.

    A set is surely none where one of the three surely beats, or surely loses to, both of the others: then neither way
    round is left for a circle.
    """
    number = {agent: at for at, agent in enumerate(agents)}
    met = np.zeros((len(agents), len(agents)))
    for own in direct:
        one, other = number[own.one], number[own.other]
        met[one, other] = met[other, one] = 1.0
    beats = _surely_beats(agents, direct).astype(np.float64)
    around = float(np.trace(beats @ beats @ beats)) / 3
    decided = beats + beats.T
    in_line = float(np.trace(decided @ decided @ decided)) / 6 - around
    beats_both, loses_to_both = (float(np.trace(m @ met @ m.T)) / 2 for m in (beats, beats.T))
    return Circles(
        round(float(np.trace(met @ met @ met)) / 6), round(around), round(beats_both + loses_to_both - in_line)
    )


def _surely_beats(agents: Sequence[str], direct: Iterable[DirectGames]) -> NDArray[np.bool_]:
    number = {agent: at for at, agent in enumerate(agents)}
    beats = np.zeros((len(agents), len(agents)), np.bool_)
    for own in direct:
        if own.low is not None and own.high is not None:
            one, other = number[own.one], number[own.other]
            beats[one, other], beats[other, one] = own.low > 0.5, own.high < 0.5
    return beats
