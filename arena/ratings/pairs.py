"""Games of each pair of agents: win counts, significance, and circles that contradict a single order.

Ratings order all agents on one line. No line fits the games if x surely beats y, y surely beats z and z surely beats x,
or if an agent surely beats another that is surely rated above it. "Surely" means that the interval of an agent's
share of the points, clustered by query and Bonferroni-corrected for the number of pairs, excludes one half.
If a single line is true, a circle of sure results requires at least one of them to be wrong, and the level bounds the
probability of this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

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


class Circles(Struct, frozen=True):
    """Number of triples of agents that all met; how many surely are circles, and how many surely are not."""

    triples: int
    surely: int
    surely_not: int


class DirectGames(Struct, frozen=True):
    """Number of rated games between two agents; wins and losses are those of ``one``.

    ``low`` and ``high`` are the interval of the share of the points that ``one`` won, where a tie counts half. The
    intervals hold for all pairs at once, at the level of the settings. They are ``None`` for a single query (or game),
    which shows no variation.
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
    """Number of games of each pair of agents that met, sorted by name; intervals are simultaneous at ``level``."""
    if not len(games):
        return ()
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
    """Agents on a circle of sure results, in the order of ``agents``; no ranking fits such a circle. Usually empty.

    In each pair of ``above``, the first agent is surely rated above the second.
    """
    beats = _surely_beats(agents, direct)
    number = {agent: index for index, agent in enumerate(agents)}
    for better, worse in above:
        beats[number[better], number[worse]] = True
    on_circle = reachable(beats).diagonal()
    return tuple(agent for agent, is_circular in zip(agents, on_circle, strict=True) if is_circular)


def circles(agents: Sequence[str], direct: Collection[DirectGames]) -> Circles:
    """Count the triples of agents that all met, those that surely are circles, and those that surely are not.

    A triple surely is not a circle if one agent surely beats both others, or surely loses to both.
    """
    number = {agent: index for index, agent in enumerate(agents)}
    played = np.zeros((len(agents), len(agents)))
    for pair in direct:
        one, other = number[pair.one], number[pair.other]
        played[one, other] = played[other, one] = 1.0
    beats = _surely_beats(agents, direct).astype(np.float64)
    circular = float(np.trace(beats @ beats @ beats)) / 3
    decided = beats + beats.T
    in_line = float(np.trace(decided @ decided @ decided)) / 6 - circular
    beats_both, loses_to_both = (float(np.trace(m @ played @ m.T)) / 2 for m in (beats, beats.T))
    return Circles(
        round(float(np.trace(played @ played @ played)) / 6),
        round(circular),
        round(beats_both + loses_to_both - in_line),
    )


def _surely_beats(agents: Sequence[str], direct: Iterable[DirectGames]) -> NDArray[np.bool_]:
    number = {agent: index for index, agent in enumerate(agents)}
    beats = np.zeros((len(agents), len(agents)), np.bool_)
    for pair in direct:
        if pair.low is not None and pair.high is not None:
            one, other = number[pair.one], number[pair.other]
            beats[one, other], beats[other, one] = pair.low > 0.5, pair.high < 0.5
    return beats
