"""Whether as many more queries as are said to be needed do tell two agents apart.

Prints a table of the kinds of tournament below: ``python -m benchmarks.queries_needed``. To the queries of a tournament
others are added, drawn from its queries with replacement, and all are rated anew; the number that suffices in four
cases out of five is searched for and stands beside the estimate.
"""

from __future__ import annotations

import argparse
import bisect
from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.ratings.games import Games
from arena.ratings.rate import rate_games
from arena.ratings.results import PairDifference, RatingSettings
from benchmarks.few_queries import World, simulated

SETTINGS = RatingSettings(tournaments=0, fragility="none")


class State(Struct, frozen=True):
    name: str
    games: Games


def counted(name: str, wins: int, losses: int, ties: int = 0, times: int = 1) -> State:
    score = np.repeat([1.0, 0.0, 0.5], [wins, losses, ties])
    query = np.repeat(np.arange(score.size, dtype=np.int32), times)
    a = np.zeros(query.size, np.int32)
    return State(name, Games(("a", "b"), a, a + 1, score.repeat(times), query))


def drawn(world: World, queries: int, seed: int) -> State:
    games = simulated(world, queries, np.random.default_rng(seed))
    return State(f"{world.name}, {queries} queries", games)


def states() -> Iterator[State]:
    yield counted("3 won of 3", 3, 0)
    yield counted("2 won of 3", 2, 1)
    yield counted("4 won of 5", 4, 1)
    yield counted("7 won of 10", 7, 3)
    yield counted("9 won of 12", 9, 3)
    yield counted("12 won of 20", 12, 8)
    yield counted("57 won of 100", 57, 43)
    yield counted("6 won, 2 lost, 12 ties", 6, 2, 12)
    yield counted("18 won, 10 lost, 72 ties", 18, 10, 72)
    yield counted("7 won of 10, 5 games each that agree", 7, 3, times=5)
    yield drawn(World("3 agents", (0.0, 0.5, 1.0), 1, 0.6), 20, 1)
    yield drawn(World("4 agents, 3 games a pair", (0.0, 0.3, 0.6, 0.9), 3, 1.0), 30, 2)
    yield drawn(World("6 agents", (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), 1, 0.6), 40, 3)


def first_pair(games: Games) -> PairDifference:
    return rate_games(games, SETTINGS).neighbours[0]


def power(games: Games, pair: PairDifference, more: int, simulations: int, seed: int = 0) -> float:
    """How often ``more`` queries drawn from those there are make the pair separable, in its order."""
    rng = np.random.default_rng([seed, more])
    apart = 0
    for _ in range(simulations):
        told = next(
            own
            for own in rate_games(with_more(games, more, rng), SETTINGS).pairs
            if {own.better, own.worse} == {pair.better, pair.worse}
        )
        apart += told.separable and told.better == pair.better
    return apart / simulations


def with_more(games: Games, more: int, rng: np.random.Generator) -> Games:
    """The games, and those of as many queries drawn with replacement, each a query of its own."""
    assert games.cluster is not None
    queries = int(games.cluster.max()) + 1
    taken = [np.flatnonzero(games.cluster == query) for query in range(queries)]
    parts = [np.arange(len(games)), *(taken[query] for query in rng.integers(0, queries, more))]
    rows = np.concatenate(parts)
    extra = np.repeat(np.arange(queries, queries + more), [part.size for part in parts[1:]])
    cluster = np.concatenate([games.cluster, extra]).astype(np.int32)
    return replace(games, a=games.a[rows], b=games.b[rows], score=games.score[rows], cluster=cluster)


def sufficient(games: Games, pair: PairDifference, simulations: int, most: int = 4096) -> int | None:
    """The fewest more queries with a power of 0.8, within the noise of simulation; ``None`` if above ``most``."""
    top = 1
    while power(games, pair, top, simulations) < 0.8:
        top *= 2
        if top > most:
            return None
    low = top // 2 + 1
    return low + bisect.bisect_left(
        range(low, top), True, key=lambda more: power(games, pair, more, simulations) >= 0.8
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=200)
    given = parser.parse_args()
    print("| tournament | said | simulated | power with as many as said |")
    print("|---|---|---|---|")
    for state in states():
        pair = first_pair(state.games)
        if pair.queries_needed is None:
            print(f"| {state.name} | nothing | | |", flush=True)
            continue
        high = "no end" if pair.queries_needed_high is None else f"{pair.queries_needed_high:,}"
        said = f"{pair.queries_needed:,} ({pair.queries_needed_low:,} to {high})"
        number = sufficient(state.games, pair, given.simulations)
        share = power(state.games, pair, pair.queries_needed, given.simulations, seed=1)
        print(f"| {state.name} | {said} | {number} | {share:.0%} |", flush=True)


if __name__ == "__main__":
    main()
