"""Which queries stand out by more than chance, in simulated tournaments whose truth is known."""

import numpy as np
import pytest

from arena.ratings.games import Games
from arena.ratings.separation import unlike

AGENTS = 5
QUERIES = 20


def tournament(
    seed: int, *, gap: float, ties: float = 1.0, noise: float = 0.0, judges: int = 1, reversed_query: int | None = None
) -> Games:
    """All pairs on all queries.

    Strengths lie ``gap`` apart, an answer's own differs by ``noise``, and all are the other way round on one query.
    """
    draws = np.random.default_rng(seed)
    first, second = (np.tile(side, QUERIES) for side in np.triu_indices(AGENTS, 1))
    query = np.repeat(np.arange(QUERIES), AGENTS * (AGENTS - 1) // 2)
    strength = gap * np.arange(AGENTS) + noise * draws.normal(size=(QUERIES, AGENTS))
    if reversed_query is not None:
        strength[reversed_query] *= -1
    d = np.tile(strength[query, first] - strength[query, second], judges)
    win, loss = np.exp(d / 2), np.exp(-d / 2)
    drawn = draws.random(d.size) * (win + loss + ties)
    score = np.where(drawn < win, 1.0, np.where(drawn < win + ties, 0.5, 0.0))
    a, b, cluster = (np.tile(column, judges).astype(np.int32) for column in (first, second, query))
    return Games(tuple(f"agent {number}" for number in range(AGENTS)), a, b, score, cluster)


@pytest.mark.parametrize(
    "world",
    [{"gap": 0.5}, {"gap": 0.0}, {"gap": 1.2, "ties": 0.0}, {"gap": 0.5, "noise": 0.7}, {"gap": 0.5, "judges": 3}],
    ids=["an order", "all equal", "a clear order", "answers that vary", "three judges"],
)
def test_a_query_stands_out_in_at_most_one_of_twenty_tournaments_whose_queries_are_alike(
    world: dict[str, float],
) -> None:
    marked = [unlike(tournament(seed, **world), QUERIES) for seed in range(60)]
    assert sum(any(of_query) for of_query in marked) <= 3


@pytest.mark.parametrize("world", [{"gap": 1.0}, {"gap": 1.5, "noise": 0.5}, {"gap": 1.0, "judges": 3}])
def test_a_query_that_is_truly_reversed_is_named(world: dict[str, float]) -> None:
    marked = [unlike(tournament(seed, reversed_query=7, **world), QUERIES) for seed in range(20)]
    assert sum(of_query[7] == "reversed" for of_query in marked) >= 18
    assert not any("reversed" in of_query[:7] + of_query[8:] for of_query in marked)


def test_a_query_on_which_the_better_agent_always_wins_stands_out_where_agents_hardly_differ_elsewhere() -> None:
    slight = tournament(3, gap=0.3)
    clear = np.where(slight.cluster == 4, 0.0, slight.score)
    games = Games(slight.agents, slight.a, slight.b, clear, slight.cluster)
    assert unlike(games, QUERIES) == [None] * 4 + ["more"] + [None] * 15


@pytest.mark.parametrize("agents", [1, 2])
def test_too_few_agents_say_nothing(agents: int) -> None:
    one = np.zeros(1, np.int32)
    games = Games(("a", "b"), one, one + 1, np.ones(1), one) if agents == 2 else None
    assert unlike(games, 3) == [None] * 3
