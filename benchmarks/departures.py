"""How often a score is said to disagree with the games without cause: ``python -m benchmarks.departures``.

Agents play each other on every query, and a second score sees the same queries with noise of its own. Of the worlds in
which the true orders agree, or in which all agents are equal by one of the two, it prints in how many tournaments some
pair is said to be ordered otherwise (5 % are allowed), and of those in which one agent is planted too high, in how many
it is found.
"""

from __future__ import annotations

import argparse

import numpy as np

from arena.calibration.methods import Played, draw, pair_orders
from arena.ratings.bradley_terry import BradleyTerrySettings
from arena.ratings.games import Games
from retrieval_eval.stats.scores import Scores

WORLDS = {
    "both equal": (0.0, 0.0, False),
    "games apart, score equal": (0.5, 0.0, False),
    "games equal, score apart": (0.0, 0.3, False),
    "same order": (0.5, 0.3, False),
    "one agent planted too high": (0.5, 0.3, True),
}
"""Distance of neighbours in log-odds by the games, and by the score; whether the score puts the last agent first."""
SHARED_SD, NOISE_SD, SAMPLES = 0.8, 0.5, 400


def told(world: tuple[float, float, bool], agents: int, queries: int, seed: int) -> bool:
    by_games, by_score, planted = world
    rng = np.random.default_rng([seed, agents, queries])
    names, topics = tuple(f"a{at:02}" for at in range(agents)), tuple(f"q{at:04}" for at in range(queries))
    shared = rng.normal(0, SHARED_SD, (agents, queries))  # what an agent does better or worse on a query
    strength = by_games * np.arange(agents, 0, -1)[:, np.newaxis] + shared
    pairs = np.array(np.triu_indices(agents, k=1), np.int32)
    a, b = np.tile(pairs, queries)
    query = np.repeat(np.arange(queries, dtype=np.int32), pairs.shape[1])
    won = (rng.random(a.size) < 1 / (1 + np.exp(strength[b, query] - strength[a, query]))).astype(np.float64)
    level = by_score * np.arange(agents, 0, -1)[:, np.newaxis] * np.ones(queries)
    if planted:
        level[-1] = by_score * (agents + 1)
    values = level + 0.5 * shared + rng.normal(0, NOISE_SD, (agents, queries))
    games = Played("games", Games(names, a, b, won, query), topics, BradleyTerrySettings())
    methods = (games, Scores("score", names, topics, values))
    seen = {own.name: dict(zip(own.agents, own.seen().sum(axis=1).tolist(), strict=True)) for own in methods}
    return any(orders.departures for orders in pair_orders([draw(own, topics, SAMPLES, seed) for own in methods], seen))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=300)
    parser.add_argument("--sizes", nargs="+", default=["4x25", "4x100", "8x40", "8x100"], help="agents x queries")
    given = parser.parse_args()
    print("| world | " + " | ".join(given.sizes) + " |")
    print("|---" * (len(given.sizes) + 1) + "|")
    for name, world in WORLDS.items():
        print(f"| {name} |", end="", flush=True)
        for size in given.sizes:
            agents, queries = map(int, size.split("x"))
            found = sum(told(world, agents, queries, seed) for seed in range(given.simulations))
            print(f" {found / given.simulations:.1%} |", end="", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
