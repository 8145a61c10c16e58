"""Elo ratings, averaged over many random orders of the same games.

Elo (1978), *The Rating of Chessplayers*: the expected score of a is E = 1 / (1 + 10^((R_b - R_a) / scale)), and a
game moves a by K (S - E) and b by as much the other way, so that the sum of ratings is conserved. The rating
depends on the order of games; the mean over seeded orders (500 in the RAGElo paper) removes most of that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from arena.ratings.games import Floats, Games
from arena.ratings.replay import Packed, Rule, pack, replay, replay_each, starts


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
    threads: int | None = None,
) -> EloRatings:
    """Mean Elo ratings over ``tournaments`` random orders of the games.

    Games are sorted before they are shuffled and each tournament has a seed of its own, so the result depends
    neither on the order of rows nor on how tournaments are spread over memory and threads (all processors if
    ``threads`` is absent), nor on whether the optional numba is there to make large jobs fast.

    Raises:
        ValueError: a setting is out of range, or a weight is no whole number of games.
    """
    settings = EloSettings(k, initial, scale, tournaments, seed)
    played = _sorted(games)
    finals = replay(played, _rule(settings), starts(seed, tournaments), threads=threads)
    spread = finals.std(axis=0, ddof=1) if tournaments > 1 else np.zeros(len(games.agents))
    return EloRatings(games.agents, finals.mean(axis=0), spread, settings, played.codes.size)


def resampled_elo(games: Games, weights: Floats, settings: EloSettings) -> Floats:
    """Mean Elo ratings where each game counts as often as each sample says, as ``elo`` gives them with such weights.

    Args:
        games: of any weight, which is not looked at.
        weights: whole numbers, shape (samples, games).
        settings: the random orders are the same for all samples.

    Returns:
        Shape (samples, agents).
    """
    codes = _packed(replace(games, weight=None))
    order = np.argsort(codes.codes, kind="stable")
    times = weights[:, order].astype(np.int64)
    samples = [codes._replace(codes=np.repeat(codes.codes[order], row)) for row in times]
    if not samples:
        return np.empty((0, len(games.agents)))
    means: Floats = replay_each(samples, _rule(settings), starts(settings.seed, settings.tournaments)).mean(axis=1)
    return means


def _rule(settings: EloSettings) -> Rule:
    return Rule(float(settings.initial), float(settings.k), float(settings.scale))


def _sorted(games: Games) -> Packed:
    """Games in an order that depends on nothing but the games."""
    packed = _packed(games)
    packed.codes.sort()
    return packed


def _packed(games: Games) -> Packed:
    """Games with the lower-numbered agent as ``a``."""
    flip = games.a > games.b
    score = np.where(flip, 1.0 - games.score, games.score)
    low, high = np.minimum(games.a, games.b), np.maximum(games.a, games.b)
    return _unrolled(replace(games, a=low, b=high, score=score))


def _unrolled(games: Games) -> Packed:
    """One code per game: a row of weight 3 is played three times, a row of weight 0 not at all."""
    packed = pack(games.a, games.b, games.score, len(games.agents))
    if games.weight is None:
        return packed
    if not games.are_whole:
        raise ValueError("Elo replays single games: weights must be whole numbers")
    return packed._replace(codes=np.repeat(packed.codes, games.weight.astype(np.int64)))
