"""Groups of queries: how often a planted collapse is found, and how often an alarm is false: ``-m benchmarks.groups``.

Each table has two agents or more, groups of queries of equal size, and one judge that sees both orders; a game whose
orders disagree is a tie. The first agent's expected share of the points against every other is that of the group.
*Check* is the trust check on the leader's games; *gate* is what ``gate --by`` tests on the games of the first two
agents: whether the first is worse on some group, by one look at all games, or by looks after each batch of 20 queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache

import numpy as np

from arena.results.games import GameTable
from arena.results.groups import leader_by_group
from judges.types import Query
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.paired import holm_levels, level_of_look, symmetric_interval

BATCH = 20
at_look = cache(level_of_look)


def table(rng: np.random.Generator, chances: Sequence[float], queries: int, agents: int = 2) -> GameTable:
    """Games of every two agents; the first wins against the others with the chance of the query's group."""
    names = tuple(f"a{number}" for number in range(agents))
    pairs = [(i, j) for i in range(agents) for j in range(i + 1, agents)]
    ids = tuple(f"q{number:05}" for number in range(len(chances) * queries))
    of_query = np.repeat(np.asarray(chances), queries)
    rows = []
    for i, j in pairs:
        share = of_query if i == 0 else np.full(of_query.size, 0.5)
        outcome = np.where(rng.random((share.size, 2)) < share[:, None], 1, -1)
        rows.append((np.full(share.size, i), np.full(share.size, j), np.arange(share.size), outcome))
    a, b, query, outcome = (np.concatenate(column) for column in zip(*rows, strict=True))
    return GameTable(
        names,
        ids,
        ("judge",),
        a.astype(np.int32),
        b.astype(np.int32),
        query.astype(np.int32),
        np.zeros(a.size, np.int32),
        outcome.astype(np.int8),
        np.zeros(a.size, np.bool_),
    )


def alarm(games: GameTable, groups: int) -> bool:
    size = len(games.queries) // groups
    queries = {name: Query(name, name, {"topic": f"t{n // size}"}) for n, name in enumerate(games.queries)}
    scores = games.scores("tie")
    points = [scores[games.a == n].sum() + (1 - scores[games.b == n]).sum() for n in range(len(games.agents))]
    leader = leader_by_group(games, queries, games.agents[int(np.argmax(points))], "tie")
    return leader is not None and bool(leader.reversed)


def collapse(games: GameTable, groups: int) -> bool:
    return collapsed(games.scores("tie")[(games.a == 0) & (games.b == 1)].reshape(groups, -1), (1.0,))


def looked(rng: np.random.Generator, games: GameTable, groups: int) -> bool:
    """Whether ``gate --by`` calls a group worse after one of the batches of an adaptive schedule, in random order."""
    shares = games.scores("tie")[(games.a == 0) & (games.b == 1)]
    order = rng.permutation(shares.size)
    sizes = [*range(BATCH, shares.size, BATCH), shares.size]
    times = tuple(size / shares.size for size in sizes)
    for look, size in enumerate(sizes, 1):
        judged = order[:size]
        parts = [shares[judged[judged // (shares.size // groups) == group]] for group in range(groups)]
        parts = [part for part in parts if part.size >= FEW_QUERIES]

        if collapsed(parts, times[:look]):
            return True
    return False


def collapsed(parts: Sequence[Floats], looks: tuple[float, ...]) -> bool:
    def ends(test: int, level: float) -> tuple[float, float]:
        return symmetric_interval(parts[test], at_look(looks, level))

    def is_apart(test: int, level: float) -> bool:
        low, high = ends(test, level)
        return not low <= 0.5 <= high

    return any(ends(test, level)[1] < 0.5 for test, level in enumerate(holm_levels(len(parts), is_apart)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cases = [
        ("alike, 2 agents, 4 groups of 25", [0.5] * 4, 25, 2),
        ("alike, 4 agents, 6 groups of 12", [0.5] * 6, 12, 4),
        ("alike, 2 agents, 8 groups of 10", [0.5] * 8, FEW_QUERIES, 2),
        ("22:78 and 78:22, groups of 25", [0.22, 0.78], 25, 2),
        ("one of 6 at 22:78, groups of 25", [0.22] + [0.62] * 5, 25, 2),
        ("one of 6 at 38:62, groups of 25", [0.38] + [0.62] * 5, 25, 2),
        ("one of 6 at 38:62, groups of 100", [0.38] + [0.62] * 5, 100, 2),
    ]
    print(f"{'case':40} {'check':>7} {'gate':>7} {'looks':>7}")
    for name, chances, queries, agents in cases:
        rng, order = (np.random.default_rng(options.seed + number) for number in (0, 1))
        counts = np.zeros(3)
        for _ in range(options.tables):
            games = table(rng, chances, queries, agents)
            counts += alarm(games, len(chances)), collapse(games, len(chances)), looked(order, games, len(chances))
        check, gate, looks = counts / options.tables
        print(f"{name:40} {check:7.1%} {gate:7.1%} {looks:7.1%}")


if __name__ == "__main__":
    main()
