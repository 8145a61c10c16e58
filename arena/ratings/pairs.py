"""Games of each pair of agents: win counts, significance, and circles that contradict a single order.

Ratings order all agents on one line. No line fits the games if x surely beats y, y surely beats z and z surely beats x,
or if an agent surely beats another that is surely rated above it. "Surely" means that the interval of an agent's
share of the points, clustered by query and Bonferroni-corrected for the number of pairs, excludes one half.
If a single line is true, a circle of sure results requires at least one of them to be wrong, and the level bounds the
probability of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from arena.ratings.games import Games, distinct
from arena.ratings.likelihood import pair_counts, reachable
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import share_intervals, wilson

ROUNDING: Final = 0.101
"""The sum of a pair's percentages may exceed 100 by this much, because each is rounded to one decimal."""
_NOTHING: Final = 1e-9
"""A percentage of ties below this is a rounding error and counts as 0."""


class WinMatrix(Struct, frozen=True, eq=False):
    """Results of each pair of agents, as matrices of shape (agents, agents); ``wins`` counts wins of the row agent."""

    agents: tuple[str, ...]
    wins: Floats
    ties: Floats
    games: Floats


def win_matrix(games: Games) -> WinMatrix:
    counts = pair_counts(games, ordered=False)
    size = (counts.agents, counts.agents)
    wins, ties = np.zeros(size), np.zeros(size)
    wins[counts.a, counts.b], wins[counts.b, counts.a] = counts.wins_a[0], counts.wins_b[0]
    ties[counts.a, counts.b] = ties[counts.b, counts.a] = counts.ties[0]
    return WinMatrix(games.agents, wins, ties, wins + wins.T + ties)


def from_win_matrix(agents: Sequence[str], percentages: Floats, n_queries: float) -> Games:
    """Convert a published table of win percentages to games, ``n_queries`` games of each pair.

    ``percentages[i, j]`` is the percentage of their games that agent i won against agent j; games that neither won are
    ties. NaN in both directions means no games. Each pair gets up to three rows, with the unrounded counts as weights.

    Raises:
        ValueError: the shape is wrong, one direction is missing, a percentage is negative, or the two percentages of a
            pair sum to more than 100 even after rounding.
    """
    if percentages.shape != (len(agents), len(agents)) or n_queries <= 0:
        raise ValueError(f"need a square matrix for {len(agents)} agents and a positive number of queries")
    a, b = np.triu_indices(len(agents), k=1)
    won, lost = percentages[a, b], percentages[b, a]
    if (np.isnan(won) != np.isnan(lost)).any():
        raise ValueError("a pair has a percentage in one direction only")
    played = ~np.isnan(won)
    a, b, won, lost = a[played], b[played], won[played], lost[played]
    total = won + lost
    if min(won.min(initial=0), lost.min(initial=0)) < 0 or total.max(initial=0) > 100 + ROUNDING:
        raise ValueError("percentages of a pair must lie in 0..100 and sum to at most 100")
    tied = 100.0 - total
    tied[tied < _NOTHING] = 0.0
    won, lost = (part * np.minimum(1.0, 100.0 / np.maximum(total, 1.0)) for part in (won, lost))
    weight = np.concatenate([won, lost, tied]) * n_queries / 100.0
    score = np.repeat([1.0, 0.0, 0.5], a.size)
    has_games = weight > 0
    return Games(
        tuple(agents),
        np.tile(a, 3)[has_games].astype(np.int32),
        np.tile(b, 3)[has_games].astype(np.int32),
        score[has_games],
        weight=weight[has_games],
    )


class DirectResults(Struct, frozen=True):
    """What the games within pairs of agents show.

    Attributes:
        triples: number of triples of agents that all met.
        circles, no_circles: how many of these surely are circles, and how many surely are not. A triple surely is not
            one if an agent surely beats both others, or surely loses to both.
        contradicted: agents on a circle of sure results and sure ratings (a beats b beats c beats a), best rated first;
            no ranking fits such a circle. Usually empty.
        games: number of rated games between the two agents rated highest.
        wins, ties, losses: those of the agent rated highest in these games.
        low, high: interval of its share of the points in them, where a tie counts half. ``None`` for a single query (or
            game), which shows no variation.
    """

    triples: int = 0
    circles: int = 0
    no_circles: int = 0
    contradicted: tuple[str, ...] = ()
    games: float = 0
    wins: float = 0
    ties: float = 0
    losses: float = 0
    low: float | None = None
    high: float | None = None


def direct_results(
    games: Games, level: float, ranked: Sequence[str], above: Iterable[tuple[str, str]], *, by_query: bool
) -> DirectResults:
    """Sum up the games within pairs; the intervals hold for all pairs at once, at ``level``.

    ``ranked`` are all agents, best rated first. In each pair of ``above``, the first is surely rated above the second.
    """
    if not len(games):
        return DirectResults()
    size, weight, flip = len(games.agents), games.weights, games.a > games.b
    low, high = np.where(flip, games.b, games.a), np.where(flip, games.a, games.b)
    score = np.where(flip, 1 - games.score, games.score)
    pairs, pair = distinct(low * np.int64(size) + high, size**2)
    played, points = (np.bincount(pair, values, pairs.size) for values in (weight, weight * score))
    wins, losses = (np.bincount(pair, weight * (score == outcome), pairs.size) for outcome in (1.0, 0.0))
    pair_level = 1 - (1 - level) / pairs.size
    if by_query and games.cluster is not None:
        queries = int(games.cluster.max()) + 1
        cells, cell = distinct(pair * queries + games.cluster, pairs.size * queries)
        parts, wholes = (
            np.bincount(cell, values, cells.size).astype(np.float64) for values in (weight * score, weight)
        )
        bounds = share_intervals(parts, wholes, cells // queries, pairs.size, pair_level)
    else:
        squares = np.bincount(pair, weight * (score - (points / played)[pair]) ** 2, pairs.size)
        bounds = [
            wilson(part / whole, square / whole / (whole - 1), whole, whole, pair_level) if whole > 1 else None
            for part, whole, square in zip(points.tolist(), played.tolist(), squares.tolist(), strict=True)
        ]
    one, other = pairs // size, pairs % size
    ends = np.array([interval or (np.nan, np.nan) for interval in bounds])
    met, beats = np.zeros((size, size)), np.zeros((size, size), np.bool_)
    met[one, other] = met[other, one] = 1.0
    beats[one, other], beats[other, one] = ends[:, 0] > 0.5, ends[:, 1] < 0.5
    number = {agent: index for index, agent in enumerate(games.agents)}
    counts = _circles(met, beats.astype(np.float64))
    for better, worse in above:
        beats[number[better], number[worse]] = True
    on_circle = reachable(beats).diagonal()
    contradicted = tuple(agent for agent in ranked if on_circle[number[agent]])
    top = sorted(number[agent] for agent in ranked[:2])
    for at in np.flatnonzero((one == top[0]) & (other == top[-1])).tolist():
        won, lost, (low_end, high_end) = float(wins[at]), float(losses[at]), bounds[at] or (None, None)
        tied = float(played[at] - wins[at] - losses[at])
        if top[0] != number[ranked[0]]:
            won, lost = lost, won
            low_end, high_end = (None if end is None else 1 - end for end in (high_end, low_end))
        return DirectResults(*counts, contradicted, float(played[at]), won, tied, lost, low_end, high_end)
    return DirectResults(*counts, contradicted)


def _circles(met: Floats, beats: Floats) -> tuple[int, int, int]:
    """The number of triples that all met, of sure circles among them, and of those that surely are none."""
    circular = float(np.trace(beats @ beats @ beats)) / 3
    decided = beats + beats.T
    in_line = float(np.trace(decided @ decided @ decided)) / 6 - circular
    beats_both, loses_to_both = (float(np.trace(m @ met @ m.T)) / 2 for m in (beats, beats.T))
    return round(float(np.trace(met @ met @ met)) / 6), round(circular), round(beats_both + loses_to_both - in_line)
