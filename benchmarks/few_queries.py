"""How often equal agents are told apart, and rank intervals miss, where there are few queries.

Prints the table of docs/interval-coverage.md: ``python -m benchmarks.few_queries``. The number of queries from which on
no column passes 5 % is ``FEWEST_QUERIES`` of ``arena/ratings/ranks.py``.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from arena.ratings.games import Games
from arena.ratings.ranks import competition_ranks
from arena.ratings.rate import RatingSettings, rate_games


@dataclass(frozen=True)
class World:
    """Agents who play every pair on every query.

    Attributes:
        name: of the world.
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

SETTINGS = RatingSettings(tournaments=0, fragility="none")


def simulated(world: World, queries: int, rng: np.random.Generator) -> Games:
    """Games of every pair on every query."""
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


def errors(world: World, queries: int, simulations: int, seed: int = 0) -> tuple[float, float]:
    """Share of tournaments in which some equal pair is called separable, and in which some rank interval misses."""
    rng = np.random.default_rng([seed, queries])
    truth = np.array(world.strengths)
    best, worst = competition_ranks(truth), truth.size + 1 - competition_ranks(-truth)
    strength = dict(zip("abcdefghijklmnopqrstuvwx", world.strengths, strict=False))
    told = missed = 0
    for _ in range(simulations):
        rated = rate_games(simulated(world, queries, rng), SETTINGS)
        told += any(pair.separable and strength[pair.better] == strength[pair.worse] for pair in rated.pairs)
        rows = sorted(rated.agents, key=lambda row: row.agent)
        missed += any(
            row.rank_low is not None and (row.rank_low > best[i] or (row.rank_high or 0) < worst[i])
            for i, row in enumerate(rows)
        )
    return told / simulations, missed / simulations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--queries", type=int, nargs="+", default=[2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| queries | " + " | ".join(world.name for world in WORLDS) + " |")
    print("|---" * (len(WORLDS) + 1) + "|")
    for queries in given.queries:
        found = [errors(world, queries, given.simulations, given.seed) for world in WORLDS]
        print(f"| {queries} | " + " | ".join(f"{told:.1%} / {missed:.1%}" for told, missed in found) + " |", flush=True)


if __name__ == "__main__":
    main()
