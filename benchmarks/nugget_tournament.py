"""Recorded answers of the TREC 2024 RAG track as a tournament: what do ratings have in common with nugget scores?

``python -m benchmarks.nugget_tournament FOLDER`` plays the 30 runs of ``trec_rag24_nuggets`` against each other, judged
offline by shared words, and prints Bradley-Terry ratings beside V strict by NIST's assessors with their correlation.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.cli.progress import watching
from arena.config.schema import Config, load_config
from arena.ratings.bradley_terry import bradley_terry
from arena.ratings.games import Games, GameVerdict, reconcile, tabulate
from arena.run import judging as tournament
from arena.store import Store
from arena.store.outcomes import game_verdicts
from judges.errors import InputError
from judges.types import Task
from retrieval_eval.nuggets.files import read_assignments
from retrieval_eval.nuggets.scores import ScoreTable, score_table
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import weighted_means
from retrieval_eval.stats.rank import RankCorrelation, rank_correlations


class AgainstRatings(Struct, frozen=True):
    """Ratings and scores of each run, best rating first.

    Attributes:
        ratings: Bradley-Terry ratings in points, shape (runs,).
        scores: nugget scores, shape (runs,).
        games: number of reconciled games behind the ratings.
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
    """Correlate the ratings of runs with a nugget score of the same queries; runs without a game are left out.

    Queries are weighed by exponentials (Rubin 1981, the Bayesian bootstrap), since a query that is left out may hold a
    run's only games; games and scores of a query get the same weight.

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


CONFIG = """
name: trec-rag-2024
store: games.db
data: {{queries: '{folder}/topics.tsv', answers: '{folder}/nugget_assignment.jsonl.gz'}}
judges: {{baseline: {{provider: lexical}}}}
pairwise: {{judges: baseline, schedule: {{kind: random, games_per_query: {games}, seed: 0}}}}
"""


def play(folder: Path, games: int, samples: int = 200) -> AgainstRatings:
    """Play ``games`` games per query, each in both orders, and correlate the ratings with V strict."""
    assignments = read_assignments([folder / "nugget_assignment.jsonl.gz"])
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "tournament.yaml"
        path.write_text(CONFIG.format(folder=folder.resolve(), games=games), encoding="utf-8")
        config: Config = load_config(path)
        with watching(shown=False) as bars:
            tournament.run(config, bars)
        with closing(Store.open(config.store)) as store:
            verdicts = list(game_verdicts(store.outcomes(config.name, Task.PAIRWISE)))
    return against_ratings(verdicts, score_table(assignments), samples=samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--games", type=int, default=30, help="per query")
    options = parser.parse_args()
    started = time.perf_counter()
    found = play(options.folder, options.games)
    print(f"{'run':<56} {'rating':>8} {'V strict':>9}")
    for run, rating, score in zip(found.runs, found.ratings, found.scores, strict=True):
        print(f"{run:<56} {rating:8.1f} {score:9.4f}")
    print(f"\n{found.games} games, {time.perf_counter() - started:.0f} s")
    for name, own in (("Kendall's tau", found.correlation.kendall), ("Spearman's rho", found.correlation.spearman)):
        print(f"{name} {own.value:.3f} ({own.low:.3f}..{own.high:.3f}), p {own.p_value:.2g}")


if __name__ == "__main__":
    main()
