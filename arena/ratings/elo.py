"""Elo ratings, averaged over many random orders of the same games.

Elo (1978), *The Rating of Chessplayers*: the expected score of a is E = 1 / (1 + 10^((R_b - R_a) / scale)), and a
game moves a by K (S - E) and b by as much the other way, so that the sum of ratings is conserved. The rating
depends on the order of games; the mean over seeded orders (500 in the RAGElo paper) removes most of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from arena.ratings.games import Floats, Games, Ints

_ORDERS_IN_MEMORY = 64_000_000
"""Game numbers (4 bytes each) held at once; more tournaments than fit are replayed in chunks."""


@dataclass(frozen=True, slots=True)
class EloSettings:
    """K-factor, starting rating, points per factor of ten in odds, number of random orders, and their seed."""

    k: float = 32.0
    initial: float = 1000.0
    scale: float = 400.0
    tournaments: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        if self.k <= 0 or self.scale <= 0:
            raise ValueError("k and scale must be positive")
        if self.tournaments < 1 or self.seed < 0:
            raise ValueError("tournaments must be at least 1 and the seed not negative")


@dataclass(frozen=True, slots=True, eq=False)
class EloRatings:
    """Mean ratings over random orders.

    Attributes:
        agents: names, in the order of ``ratings``.
        ratings: mean rating, shape (agents,).
        order_sd: sample standard deviation over orders, shape (agents,). It says how much the order of games
            matters, not how certain the rating is: it is no confidence interval.
        games: number of games replayed in each tournament.
    """

    agents: tuple[str, ...]
    ratings: Floats
    order_sd: Floats
    settings: EloSettings
    games: int


def elo(
    games: Games,
    *,
    k: float = 32.0,
    initial: float = 1000.0,
    scale: float = 400.0,
    tournaments: int = 500,
    seed: int = 0,
) -> EloRatings:
    """Mean Elo ratings over ``tournaments`` random orders of the games.

    Games are sorted before they are shuffled and each tournament has a seed of its own, so the result depends
    neither on the order of rows nor on how tournaments are spread over memory.

    Raises:
        ValueError: a setting is out of range, or a weight is no whole number of games.
    """
    settings = EloSettings(k, initial, scale, tournaments, seed)
    rows = _sorted(_unrolled(games))
    finals = np.empty((tournaments, len(games.agents)))
    chunk = max(1, _ORDERS_IN_MEMORY // max(1, len(rows.a)))
    for start in range(0, tournaments, chunk):
        numbers = range(start, min(start + chunk, tournaments))
        orders = np.stack([np.random.default_rng([seed, t]).permutation(rows.a.size).astype(np.int32) for t in numbers])
        finals[start : start + len(numbers)] = _replay(rows, orders, len(games.agents), settings)
    spread = finals.std(axis=0, ddof=1) if tournaments > 1 else np.zeros(len(games.agents))
    return EloRatings(games.agents, finals.mean(axis=0), spread, settings, rows.a.size)


def elo_online(games: Games, *, k: float = 32.0, initial: float = 1000.0, scale: float = 400.0) -> Floats:
    """Ratings after one pass over the games in the order given, shape (agents,)."""
    rows = _unrolled(games)
    one_order = np.arange(rows.a.size, dtype=np.int32)[np.newaxis]
    ratings: Floats = _replay(rows, one_order, len(games.agents), EloSettings(k, initial, scale, 1))[0]
    return ratings


def expected_score(rating: Floats, opponent: Floats, scale: float = 400.0) -> Floats:
    """Expected score of ``rating`` against ``opponent``: above a half for the higher rating."""
    return 1.0 / (1.0 + 10.0 ** ((opponent - rating) / scale))


def _replay(rows: _Rows, orders: Ints, agents: int, settings: EloSettings) -> Floats:
    """Final ratings of each tournament, shape (tournaments, agents): one step per game, all tournaments at once."""
    tournaments, length = orders.shape
    ratings = np.full(tournaments * agents, settings.initial)
    own = np.arange(tournaments) * agents
    for step in range(length):
        game = orders[:, step]
        of_a, of_b = own + rows.a[game], own + rows.b[game]
        gain = settings.k * (rows.score[game] - expected_score(ratings[of_a], ratings[of_b], settings.scale))
        ratings[of_a] += gain
        ratings[of_b] -= gain
    return ratings.reshape(tournaments, agents)


class _Rows(NamedTuple):
    """Agents and score of single games."""

    a: Ints
    b: Ints
    score: Floats


def _unrolled(games: Games) -> _Rows:
    """One row per game: a row of weight 3 is played three times, a row of weight 0 not at all."""
    if games.weight is None:
        return _Rows(games.a, games.b, games.score)
    if not games.are_whole:
        raise ValueError("Elo replays single games: weights must be whole numbers")
    times = games.weight.astype(np.int64)
    return _Rows(np.repeat(games.a, times), np.repeat(games.b, times), np.repeat(games.score, times))


def _sorted(rows: _Rows) -> _Rows:
    """Games with the lower-numbered agent as ``a``, in an order that depends on nothing but the games."""
    low, high = np.minimum(rows.a, rows.b), np.maximum(rows.a, rows.b)
    score_of_low = np.where(rows.a < rows.b, rows.score, 1.0 - rows.score)
    order = np.lexsort((score_of_low, high, low))
    return _Rows(low[order], high[order], score_of_low[order])
