"""Ratings of a tournament beside the nugget scores of the same runs, and how far the two orders agree."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.ratings.bradley_terry import bradley_terry
from arena.ratings.games import Games, GameVerdict, reconcile, tabulate
from judges.errors import InputError
from retrieval_eval.nuggets.scores import ScoreTable
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import weighted_means
from retrieval_eval.stats.rank import RankCorrelation, rank_correlations


class AgainstRatings(Struct, frozen=True):
    """Two scores of each run.

    Attributes:
        runs: best rating first.
        ratings: Bradley-Terry ratings in points, shape (runs,).
        scores: nugget scores, shape (runs,).
        games: reconciled games behind the ratings.
        correlation: with intervals over queries, which are drawn for both at once.
    """

    runs: tuple[str, ...]
    ratings: Floats
    scores: Floats
    games: int
    correlation: RankCorrelation


def against_ratings(
    verdicts: Iterable[GameVerdict], table: ScoreTable, column: str = "v_strict", samples: int = 200, seed: int = 0
) -> AgainstRatings:
    """Rate runs, and hold the order against a nugget score of the same queries.

    Queries are weighed by exponentials (Rubin 1981, the Bayesian bootstrap), since a query that is left out may hold a
    run's only games; games and scores of a query get the same weight.

    Args:
        verdicts: of the tournament.
        table: nugget scores; runs without a game are left out.
        column: which score.
        samples: of the bootstrap.
        seed: of the samples.

    Raises:
        InputError: fewer than two runs have both, or the score of one is not defined.
    """
    verdict_table = tabulate(verdicts)
    games = reconcile(verdict_table)
    if games.cluster is None or verdict_table.queries is None:
        raise InputError("verdicts without queries cannot be held against scores of queries")
    values = table.score(column).values
    queries = [table.topics.index(name) if name in table.topics else -1 for name in verdict_table.queries]
    both = [at for at, name in enumerate(games.agents) if name in table.runs]
    rows = [table.runs.index(games.agents[at]) for at in both]
    if len(both) < 2 or np.isnan(values[rows]).all(axis=1).any():
        raise InputError(f"fewer than two runs have games and a score {column!r}, or one has no score at all")
    rng = np.random.default_rng(seed)
    drawn = rng.standard_exponential((samples, len(table.topics)))
    # Queries that only the games know, if any, have weights of their own.
    of_games = np.where(
        [at >= 0 for at in queries], drawn[:, queries], rng.standard_exponential((samples, len(queries)))
    )
    ratings = bradley_terry(games).ratings[both]
    resampled = np.array([_ratings(games, weights)[both] for weights in of_games]).reshape(samples, len(both))
    scores = weighted_means(values[rows], np.ones((1, len(table.topics))))[0]
    drawn_scores, topics = weighted_means(values[rows], drawn), len(table.topics)
    correlations = rank_correlations(ratings, scores, resampled, drawn_scores, topics)
    correlation = RankCorrelation(len(both), *correlations, "topic")
    order = np.argsort(-ratings, kind="stable")
    runs = tuple(games.agents[both[at]] for at in order)
    return AgainstRatings(runs, ratings[order], scores[order], len(games), correlation)


def _ratings(games: Games, weights: Floats) -> Floats:
    assert games.cluster is not None
    return bradley_terry(replace(games, weight=games.weights * weights[games.cluster])).ratings
