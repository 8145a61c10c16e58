"""Elo by one pass over the games as they come, to hold the mean over random orders against."""

from __future__ import annotations

import numpy as np

from arena.ratings.elo import pack, play
from arena.ratings.games import Games
from arena.ratings.results import RatingSettings
from retrieval_eval.stats import Floats


def elo_online(games: Games, *, k: float = 32.0, initial: float = 1000.0, scale: float = 400.0) -> Floats:
    """Ratings after one pass over the games in the order given, shape (agents,)."""
    packed = pack(games.a, games.b, games.score, len(games.agents))
    ratings: Floats = np.full((len(games.agents), 1), float(initial))
    play([packed.codes[:, np.newaxis]], packed, RatingSettings(k, initial, scale), ratings)
    return ratings[:, 0]


def expected_score(rating: float, opponent: float, scale: float = 400.0) -> float:
    """Expected score of ``rating`` against ``opponent``: above a half for the higher rating."""
    return 1.0 / (1.0 + 10.0 ** ((opponent - rating) / scale))
