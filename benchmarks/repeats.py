"""Repeated answers: A/A comparisons, coverage, the noise floor and the answers' part: ``python -m benchmarks.repeats``.

Each table is of 30 queries. A query is as hard for a system as a draw from a beta distribution says; each of the
system's answers to it is worth another draw around that, and gets a grade of 0 to 4 quarters. A game goes to the better
answer, with some noise of the judge, and is a tie where the two hardly differ.

- *Better*, *worse*: one system under two names, each with other answers, called different (at most 3.2 % each). With
  several repeats also ``compare X X``, its first repeats against the others.
- *Covers*: 95 % intervals of the difference of two systems, one better, that hold the true difference.
- *Next runs*: pairs of new runs of one system whose difference is within the noise floor; *floor*: intervals of the
  noise floor that hold the true one; *part*: intervals of the answers' part of the variance that hold the true one.
- *Two levels*: width of a bootstrap of queries and of repeats, divided by that of queries alone.
- *Worth*: variance of a mean difference with these repeats, divided by that of as many games on new queries.
"""

from __future__ import annotations

import argparse
import math
from typing import Final

import numpy as np

from arena.ratings.adaptive import outcomes_of
from arena.ratings.results import RatingSettings
from arena.results.games import GameTable
from retrieval_eval.stats import Floats
from retrieval_eval.stats.components import ANSWERS, parts, with_answers
from retrieval_eval.stats.paired import Paired, paired
from retrieval_eval.stats.repeats import averaged, halves, noise
from retrieval_eval.stats.scores import Scores

QUERIES: Final = 30
MARGIN: Final = 0.05
_SPREAD: Final = 4.0
"""Concentration of queries' hardness; that of answers around it is chosen so that answers make two thirds of the
variance of one answer's difference, where three repeats are worth 1.67."""
_AROUND: Final = 2.0
_STEPS: Final = 4


def hardness(rng: np.random.Generator, queries: int, mean: float) -> Floats:
    return rng.beta(_SPREAD * mean, _SPREAD * (1 - mean), queries)


def answers(rng: np.random.Generator, means: Floats, repeats: int) -> Floats:
    """What each answer is worth, shape (queries, repeats)."""
    centre = np.clip(means, 1e-3, 1 - 1e-3)[:, np.newaxis]
    return rng.beta(_AROUND * centre, _AROUND * (1 - centre), (means.size, repeats))


def grades(rng: np.random.Generator, worth: Floats) -> Floats:
    return rng.binomial(_STEPS, worth) / _STEPS


def variance_of_grade(means: Floats) -> Floats:
    """Variance between the grades of one system's answers to a query."""
    centre = np.clip(means, 1e-3, 1 - 1e-3)
    return centre * (1 - centre) / _STEPS * (1 + (_STEPS - 1) / (_AROUND + 1))


def scores(one: Floats, other: Floats) -> Scores:
    """Grades of two agents, shape (queries, repeats) each, as they come from a store."""
    queries, repeats = one.shape
    suffixes = ["", *(f" (repeat {number})" for number in range(2, repeats + 1))]
    names = tuple(f"{agent}{suffix}" for agent in ("one", "other") for suffix in suffixes)
    return averaged(Scores("grade", names, tuple(f"q{n:03}" for n in range(queries)), np.vstack([one.T, other.T])))


def games(rng: np.random.Generator, one: Floats, other: Floats) -> GameTable:
    queries, repeats = one.shape
    gap = (one - other).ravel() + rng.normal(0, 0.1, one.size)
    outcome = np.where(np.abs(gap) < 0.1, 0, np.sign(gap)).astype(np.int8)
    zeros = np.zeros(one.size, np.int32)
    return GameTable(
        *(("one", "other"), tuple(f"q{n:03}" for n in range(queries)), ("judge",), zeros, zeros + 1),
        *(np.repeat(np.arange(queries, dtype=np.int32), repeats), zeros, np.stack([outcome, outcome], axis=1)),
        np.zeros(one.size, np.bool_),
        repeat=None if repeats == 1 else np.tile(np.arange(1, repeats + 1, dtype=np.int32), queries),
    )


def by_grades(table: Scores) -> Paired:
    new, old = table.values
    return paired(new - old, MARGIN)


def by_games(table: GameTable) -> Paired:
    rated = table.rated(RatingSettings())
    assert rated is not None
    return paired(outcomes_of(rated, ("one", "other")).score - 0.5, MARGIN, reach=0.5)


def verdicts(results: list[Paired]) -> str:
    better, worse = (np.mean([each.verdict == verdict for each in results]) for verdict in ("better", "worse"))
    return f"{better:6.1%} {worse:6.1%}"


def same(rng: np.random.Generator, repeats: int, tables: int) -> list[str]:
    """Rows of A/A comparisons."""
    grade_results, game_results = list[Paired](), list[Paired]()
    itself, itself_games = list[Paired](), list[Paired]()
    for _ in range(tables):
        means = hardness(rng, QUERIES, 0.6)
        one, other = (answers(rng, means, repeats) for _ in range(2))
        table, played = scores(grades(rng, one), grades(rng, other)), games(rng, one, other)
        grade_results.append(by_grades(table))
        game_results.append(by_games(played))
        if repeats > 1:
            itself.append(by_grades(halves(table, "one", repeats)))
            itself_games.append(by_grades(halves(played.points("tie"), "one", repeats)))
    rows = [f"{repeats:7} {'grades, two names':22} {verdicts(grade_results)}"]
    rows.append(f"{repeats:7} {'games, two names':22} {verdicts(game_results)}")
    if repeats > 1:
        rows.append(f"{repeats:7} {'grades, compare X X':22} {verdicts(itself)}")
        rows.append(f"{repeats:7} {'games, compare X X':22} {verdicts(itself_games)}")
    return rows


def two_levels(rng: np.random.Generator, differences: Floats, samples: int = 300) -> float:
    """Width of a bootstrap of queries and of repeats within them, divided by that of queries."""
    queries, repeats = differences.shape
    drawn = rng.integers(0, queries, (samples, queries))
    within = rng.integers(0, repeats, (samples, queries, repeats))
    both = differences[drawn[..., np.newaxis], within].mean(axis=(1, 2))
    return float(both.std() / differences.mean(axis=1)[drawn].mean(axis=1).std())


def different(rng: np.random.Generator, repeats: int, tables: int) -> str:
    """A row of coverages for two systems of which one is better by 0.1, and for the noise of one."""
    held = np.zeros(4)
    wider, means_of_repeats, means_of_new = [], [], []
    between = (0.6 * 0.4 + 0.5 * 0.5) / (_SPREAD + 1)  # variance of the difference between queries
    for _ in range(tables):
        better, worse = hardness(rng, QUERIES, 0.6), hardness(rng, QUERIES, 0.5)
        one, other = (grades(rng, answers(rng, means, repeats)) for means in (better, worse))
        table = scores(one, other)
        difference = by_grades(table).difference
        held[0] += (difference.low or 0) <= 0.1 <= (difference.high or 0)
        means_of_repeats.append(difference.value or 0.0)
        new = [grades(rng, answers(rng, hardness(rng, QUERIES * repeats, mean), 1)).mean() for mean in (0.6, 0.5)]
        means_of_new.append(new[0] - new[1])
        if (floor := noise(table)) is None:
            continue
        truth = np.mean([variance_of_grade(means).mean() for means in (better, worse)])
        true_floor = 1.959964 * math.sqrt(2 * truth / QUERIES)
        held[2] += (floor.floor.low or 0) <= true_floor <= (floor.floor.high or 0)
        runs = grades(rng, answers(rng, better, 2)).mean(axis=0)
        held[1] += abs(runs[0] - runs[1]) <= (floor.floor.value or 0)
        cells = (one - other)[np.newaxis, :, np.newaxis, :]
        share = parts(with_answers((cells - cells.mean()) / cells.size))[0][ANSWERS]
        of_answers = 2 * _mean_variance() / repeats
        held[3] += (share.low or 0) <= of_answers / (of_answers + between) <= (share.high or 0)
        wider.append(two_levels(rng, one - other))
    worth = np.var(means_of_repeats) / np.var(means_of_new)
    shares = [f"{share:6.1%}" for share in held / tables]
    cells_of_row = [shares[0], *(shares[1:] if wider else ["-"] * 3), f"{np.mean(wider):.2f}" if wider else "-"]
    return f"{repeats:7} " + " ".join(f"{cell:>10}" for cell in (*cells_of_row, f"{worth:.2f}"))


def _mean_variance() -> float:
    """Mean variance between the grades of one system's answers to a query, of both systems."""
    of_hardness = [mean * (1 - mean) * _SPREAD / (_SPREAD + 1) for mean in (0.6, 0.5)]
    return float(np.mean(of_hardness)) / _STEPS * (1 + (_STEPS - 1) / (_AROUND + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print(f"{'repeats':>7} {'A/A':22} {'better':>6} {'worse':>6}")
    for repeats in (1, 2, 3, 5):
        for row in same(rng, repeats, options.tables):
            print(row)
    names = ("covers", "next runs", "floor", "part", "two levels", "worth")
    print(f"{'repeats':>7} " + " ".join(f"{name:>10}" for name in names))
    for repeats in (1, 2, 3, 5):
        print(different(rng, repeats, options.tables))


if __name__ == "__main__":
    main()
