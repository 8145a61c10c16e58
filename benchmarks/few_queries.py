"""How often equal agents are told apart, and rank intervals miss, where there are few queries.

Prints the table of benchmarks/README.md: ``python -m benchmarks.few_queries``. Of the intervals as they are it says
in how many tournaments they call some two equal agents separable, and in brackets, where it differs, in how many they
leave out a true rank. ``fewest_queries`` of ``arena/ratings/ranks.py`` follows from it: below that many nobody is
told apart.
"""

from __future__ import annotations

import argparse

import numpy as np
from msgspec import Struct

from arena.ratings.bootstrap import bootstrap
from arena.ratings.bradley_terry import bradley_terry
from arena.ratings.games import Games
from arena.ratings.ranks import competition_ranks, joint_differences, rank_intervals
from arena.ratings.results import fewest_queries


class World(Struct, frozen=True):
    """Agents that play every pair on every query.

    Attributes:
        strengths: log-odds of the agents on the average query.
        times: games of each pair on each query, as of so many judges.
        query_sd: standard deviation of an agent's strength over queries, in log-odds; all games on a query share it.
        ties: Davidson's nu.
    """

    name: str
    strengths: tuple[float, ...]
    times: int
    query_sd: float
    ties: float = 0.5


WORLDS = (
    World("2 equal, 1 game", (0, 0), 1, 0.6),
    World("2 equal, 6 games", (0, 0), 6, 2.0),
    World("2 equal, 6 games that agree", (0, 0), 6, 50.0, 0.0),
    World("3 equal, 1 game a pair", (0, 0, 0), 1, 0.6),
    World("4 equal, 3 games a pair", (0, 0, 0, 0), 3, 2.0),
    World("6 equal, 1 game a pair", (0,) * 6, 1, 0.6),
    World("6 equal, 3 games a pair that agree", (0,) * 6, 3, 50.0, 0.0),
    World("3 equal, 3 games a pair that agree", (0,) * 3, 3, 50.0, 0.0),
    World("12 equal, 1 game a pair", (0,) * 12, 1, 0.6),
    World("24 equal, 1 game a pair", (0,) * 24, 1, 0.6),
    World("5 equal and a far weaker one", (0, 0, 0, 0, 0, -4), 1, 1.0),
)

SAMPLES = 500
"""Number of bootstrap samples."""


def simulated(world: World, queries: int, rng: np.random.Generator) -> Games:
    agents = len(world.strengths)
    pairs = np.array(np.triu_indices(agents, k=1), np.int32)
    a, b = np.tile(pairs, queries * world.times)
    query = np.repeat(np.arange(queries, dtype=np.int32), world.times * pairs.shape[1])
    strength = np.array(world.strengths) + rng.normal(0, world.query_sd, (queries, agents))
    half = (strength[query, a] - strength[query, b]) / 2
    win, loss = np.exp(half), np.exp(-half)
    draw = rng.random(query.size) * (win + loss + world.ties)
    score = np.where(draw < win, 1.0, np.where(draw < win + world.ties, 0.5, 0.0))
    return Games(tuple("abcdefghijklmnopqrstuvwx"[:agents]), a, b, score, query)


def errors(
    world: World, queries: int, simulations: int, seed: int = 0, fewest: int | None = None
) -> tuple[float, float]:
    """Share of tournaments in which some equal pair is called separable, and in which some rank interval misses.

    With fewer queries than ``fewest`` no two agents are told apart: 0 for the plain intervals, ``None`` for the usual
    rule.
    """
    rng = np.random.default_rng([seed, queries])
    truth = np.array(world.strengths)
    best, worst = competition_ranks(truth), truth.size + 1 - competition_ranks(-truth)
    equal = truth[:, np.newaxis] == truth
    told = missed = 0
    for number in range(simulations):
        games = simulated(world, queries, rng)
        fitted = bradley_terry(games)
        drawn = bootstrap(games, fitted, SAMPLES, number)
        assert drawn is not None
        joint = joint_differences(fitted.ratings, drawn.sample_sets, queries, fewest=fewest)
        low, high = rank_intervals(joint)
        told += bool((joint.different & equal).any())
        missed += bool((low > best).any() or (high < worst).any())
    return told / simulations, missed / simulations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=500)
    parser.add_argument("--queries", type=int, nargs="+", default=[2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40])
    parser.add_argument("--worlds", type=int, nargs="+", default=list(range(len(WORLDS))))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| agents | " + " | ".join(f"{queries} queries" for queries in given.queries) + " | needed |")
    print("|---" * (len(given.queries) + 2) + "|")
    for world in (WORLDS[number] for number in given.worlds):
        print(f"| {world.name} |", end="", flush=True)
        for queries in given.queries:
            told, missed = errors(world, queries, given.simulations, given.seed, fewest=0)
            print(f" {told:.1%}{'' if told == missed else f' ({missed:.1%})'} |", end="", flush=True)
        print(f" {fewest_queries(len(world.strengths))} |", flush=True)


if __name__ == "__main__":
    main()
