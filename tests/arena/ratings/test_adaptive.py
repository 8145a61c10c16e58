"""Adaptive schedules: which games are chosen, evidence that may be looked at at any time, and the places it decides."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from arena.ratings.adaptive import (
    STAKES,
    AdaptiveSettings,
    Fixtures,
    Meeting,
    belief,
    decision,
    log_evidence,
    log_gain,
    next_games,
    outcomes_of,
)
from arena.ratings.games import Games, GameVerdict, reconcile
from judges.types import Verdict

AGENTS = ("a", "b", "c", "d")


def everybody(queries: int = 40, agents: tuple[str, ...] = AGENTS) -> dict[str, tuple[str, ...]]:
    return {f"q{number}": agents for number in range(queries)}


def played(fixtures: Fixtures, asked: list[Meeting], share: dict[str, float], seed: int = 0) -> Games:
    """Outcomes by win shares that follow from the agents' strengths; the same for the same meetings."""
    strength = np.array([share[name] for name in fixtures.agents])
    number = {name: code for code, name in enumerate(fixtures.agents)}
    a = np.array([number[meeting.agent_a] for meeting in asked], np.int32)
    b = np.array([number[meeting.agent_b] for meeting in asked], np.int32)
    draw = np.array([np.random.default_rng([seed, *map(ord, "".join(meeting))]).random() for meeting in asked])
    return Games(fixtures.agents, a, b, (draw < special.expit(strength[a] - strength[b])) * 1.0, soft=True)


def tournament(share: dict[str, float], settings: AdaptiveSettings, queries: int = 200) -> list[list[Meeting]]:
    fixtures = Fixtures(everybody(queries, tuple(share)), settings.seed)
    asked: list[Meeting] = []
    batches = []
    while batch := next_games(fixtures, asked, played(fixtures, asked, share), settings):
        batches.append(batch)
        asked += batch
    return batches


def test_each_pair_meets_once_on_every_query_that_both_answered() -> None:
    answering = {**everybody(30), "rare": ("a", "c"), "alone": ("b",)}
    fixtures = Fixtures(answering, 3)
    assert len(fixtures) == 30 * 6 + 1
    for pair in range(6):
        names = {fixtures.agents[fixtures.a[pair]], fixtures.agents[fixtures.b[pair]]}
        queries = [fixtures.meetings(pair, nth)[0].query_id for nth in range(fixtures.available[pair])]
        assert sorted(queries) == sorted(query for query, present in answering.items() if names <= set(present))


def test_the_first_round_touches_no_query_twice() -> None:
    fixtures = Fixtures(everybody(40), 1)
    assert max(Counter(fixtures.meetings(pair, 0)[0].query_id for pair in range(6)).values()) == 1


def test_the_order_of_queries_is_drawn_by_the_seed_alone() -> None:
    orders = [[Fixtures(everybody(), seed).meetings(0, nth)[0].query_id for nth in range(40)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_gain_is_the_expected_fall_of_entropy_of_who_is_better() -> None:
    def entropy(p: np.ndarray) -> np.ndarray:
        return special.entr(p) + special.entr(1 - p)

    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    for mean, variance in ((0.0, 0.01), (0.1, 0.02), (-0.3, 0.01)):
        information = special.expit(mean) * special.expit(-mean)
        after = variance / (1 + variance * information)
        later = mean + np.sqrt(variance - after) * nodes
        expected = weights @ entropy(special.ndtr(later / np.sqrt(after))) / weights.sum()
        exact = entropy(special.ndtr(np.array(mean / np.sqrt(variance)))) - expected
        found = np.exp(log_gain(np.array([mean]), np.array([variance])))[0]
        assert found == pytest.approx(exact, rel=0.02)


def test_gain_stays_finite_for_pairs_far_apart() -> None:
    gains = log_gain(np.array([0.0, 1.0, 20.0]), np.full(3, 0.01))
    assert np.isfinite(gains).all()
    assert (np.diff(gains) < 0).all()


def test_the_belief_is_the_ridge_penalised_maximum() -> None:
    rng = np.random.default_rng(4)
    a, b = np.array([(i, j) for i in range(5) for j in range(i + 1, 5)] * 7, np.int32).T
    outcomes = Games(tuple("abcde"), a, b, rng.choice([0.0, 0.5, 1.0], a.size), soft=True)
    known = belief(outcomes)

    def log_posterior(x: np.ndarray) -> float:
        gap = x[a] - x[b]
        return float((outcomes.score * gap - np.logaddexp(0, gap)).sum() - (x**2).sum() / 2)

    best = log_posterior(known.mean)
    assert all(log_posterior(known.mean + step) < best for step in rng.normal(0, 0.01, (50, 5)))
    # The covariance that a game leaves behind is the one of the curvature with this game in it.
    p = special.expit(known.mean[0] - known.mean[1])
    lean = np.array([1.0, -1.0, 0.0, 0.0, 0.0])
    direct = np.linalg.inv(np.linalg.inv(known.covariance) + p * (1 - p) * np.outer(lean, lean))
    known.expect_game(0, 1)
    np.testing.assert_allclose(known.covariance, direct, atol=1e-12)


def test_with_nothing_known_all_pairs_play_alike() -> None:
    fixtures = Fixtures(everybody(), 0)
    batch = next_games(fixtures, [], played(fixtures, [], dict.fromkeys(AGENTS, 0.0)), AdaptiveSettings(batch=18))
    assert set(Counter((meeting.agent_a, meeting.agent_b) for meeting in batch).values()) == {3}


def test_close_neighbours_play_more_than_agents_far_apart() -> None:
    batches = tournament({"a": 4.0, "b": 2.0, "c": 1.6, "d": -1.0}, AdaptiveSettings(batch=20, max_games=300))
    games = Counter((meeting.agent_a, meeting.agent_b) for batch in batches for meeting in batch)
    assert games["b", "c"] > 4 * max(games[pair] for pair in games if pair != ("b", "c"))


def test_for_the_top_the_leader_plays() -> None:
    batches = tournament({"a": 2.0, "b": 1.2, "c": 0.0, "d": -1.0}, AdaptiveSettings("top", batch=20), queries=400)
    later = [meeting for batch in batches[2:] for meeting in batch]
    assert later
    assert all("a" in (meeting.agent_a, meeting.agent_b) for meeting in later)


def test_no_game_is_asked_twice_and_none_beyond_the_limit() -> None:
    batches = tournament(dict.fromkeys(AGENTS, 0.0), AdaptiveSettings(batch=25, max_games=110), queries=40)
    asked = [meeting for batch in batches for meeting in batch]
    assert len(asked) == len(set(asked)) == 110
    assert [len(batch) for batch in batches] == [25, 25, 25, 25, 10]


def test_a_game_without_a_verdict_is_not_asked_again() -> None:
    fixtures = Fixtures(everybody(3, ("a", "b")), 0)
    nothing = played(fixtures, [], {"a": 0.0, "b": 0.0})
    settings = AdaptiveSettings(batch=2)
    first = next_games(fixtures, [], nothing, settings)
    second = next_games(fixtures, first, nothing, settings)
    assert len({*first, *second}) == 3
    assert next_games(fixtures, first + second, nothing, settings) == []


def test_one_agent_or_none_needs_no_games() -> None:
    for agents in ((), ("a",)):
        fixtures = Fixtures(everybody(3, agents), 0)
        nothing = Games(fixtures.agents, *(np.zeros(0, np.int32) for _ in "ab"), np.zeros(0), soft=True)
        assert next_games(fixtures, [], nothing, AdaptiveSettings()) == []


scores = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=30)


def between_two(score: list[float]) -> Games:
    zeros = np.zeros(len(score), np.int32)
    return Games(("x", "y"), zeros, zeros + 1, np.array(score, np.float64), soft=True)


def won(agents: str, results: dict[str, int]) -> Games:
    """``{"xy": 20}`` is twenty wins of x over y."""
    rows = [(agents.index(pair[0]), agents.index(pair[1])) for pair, games in results.items() for _ in range(games)]
    a, b = np.array(rows, np.int32).reshape(-1, 2).T
    return Games(tuple(agents), np.minimum(a, b), np.maximum(a, b), (a < b) * 1.0, soft=True)


@given(scores)
def test_evidence_is_the_mean_capital_of_gamblers_with_fixed_stakes(score: list[float]) -> None:
    capital = [math.prod(1 + stake * (x - 0.5) for x in score) for stake in STAKES]
    found = log_evidence(between_two(score))
    assert found[0, 1] == pytest.approx(math.log(sum(capital) / len(capital)), abs=1e-9)
    assert found[0, 0] == found[1, 1] == 0


@pytest.mark.parametrize(("win", "tie"), [(0.5, 0.0), (0.35, 0.3), (0.1, 0.8)])
def test_expected_capital_against_an_equal_agent_is_one(win: float, tie: float) -> None:
    chance = {1.0: win, 0.5: tie, 0.0: 1 - win - tie}
    expected = sum(
        math.prod(chance[x] for x in score) * math.exp(log_evidence(between_two(list(score)))[0, 1])
        for score in product(chance, repeat=6)
    )
    assert expected == pytest.approx(1)


def test_judges_of_one_query_are_one_outcome() -> None:
    verdicts = [
        GameVerdict("q1", "y", "x", Verdict.A, "first"),
        GameVerdict("q1", "x", "y", Verdict.TIE, "second"),
        GameVerdict("q2", "x", "y", Verdict.A, "first"),
    ]
    found = outcomes_of(reconcile(verdicts), ("w", "x", "y"))
    assert sorted(found.score) == [0.25, 1.0]
    assert set(zip(found.a, found.b, strict=True)) == {(1, 2)}


def test_games_without_a_query_or_of_a_stranger_are_refused() -> None:
    zeros = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="do not name their query"):
        outcomes_of(Games(("x", "y"), zeros, zeros + 1, np.ones(1)), ("x", "y"))
    with pytest.raises(ValueError, match="not in the tournament: y"):
        outcomes_of(Games(("x", "y"), zeros, zeros + 1, np.ones(1), zeros), ("x", "z"))


def test_places_are_decided_from_the_first_down() -> None:
    results = {"ab": 30, "ac": 30, "ad": 30, "bc": 30, "bd": 30}
    found = decision(won("abcd", results), AdaptiveSettings())
    assert found.places == ("a", "b")
    assert not found.decided
    assert [tuple(pair) for pair in np.argwhere(np.triu(found.undecided))] == [(2, 3)]
    assert decision(won("abcd", {**results, "dc": 30}), AdaptiveSettings()).places == ("a", "b", "d", "c")


def test_no_place_is_inferred_by_transitivity() -> None:
    found = decision(won("abc", {"ab": 30, "bc": 30}), AdaptiveSettings())
    assert found.places == ()
    assert decision(won("abc", {"ab": 30, "bc": 30, "ac": 30}), AdaptiveSettings()).decided


def test_agents_that_beat_each_other_in_a_circle_get_no_place() -> None:
    found = decision(won("abc", {"ab": 50, "bc": 50, "ca": 50}), AdaptiveSettings())
    assert (found.places, found.decided, found.undecided.any()) == ((), False, False)


def test_the_top_needs_the_first_place_alone() -> None:
    outcomes = won("abc", {"ba": 30, "bc": 30})
    assert decision(outcomes, AdaptiveSettings("top")).decided
    assert not decision(outcomes, AdaptiveSettings("order")).decided
