"""Groups of queries: how often a planted collapse is found, and how often an alarm is false: ``-m benchmarks.groups``.

Each table has two agents or more, groups of queries of equal size, and one judge that sees both orders; a game whose
orders disagree is a tie. The first agent's expected share of the points against every other is that of the group.
*Check* is the trust check on the leader's games; *gate* is what ``gate --by`` tests on the games of the first two
agents: whether the first is worse on some group.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from arena.results.games import GameTable
from arena.results.groups import leader_by_group
from judges.types import Query
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.paired import holm_levels, symmetric_interval


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
    shares = games.scores("tie")[(games.a == 0) & (games.b == 1)].reshape(groups, -1)

    def is_apart(test: int, level: float) -> bool:
        low, high = symmetric_interval(shares[test], level)
        return not low <= 0.5 <= high

    levels = holm_levels(groups, is_apart)
    return any(symmetric_interval(share, level)[1] < 0.5 for share, level in zip(shares, levels, strict=True))


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
    print(f"{'case':40} {'check':>7} {'gate':>7}")
    for name, chances, queries, agents in cases:
        rng = np.random.default_rng(options.seed)
        counts = np.zeros(2)
        for _ in range(options.tables):
            games = table(rng, chances, queries, agents)
            counts += alarm(games, len(chances)), collapse(games, len(chances))
        check, gate = counts / options.tables
        print(f"{name:40} {check:7.1%} {gate:7.1%}")


if __name__ == "__main__":
    main()
