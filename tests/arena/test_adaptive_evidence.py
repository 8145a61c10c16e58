"""Evidence that may be looked at at any time, and the places it decides."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.ratings.evidence import STAKES, AdaptiveSettings, decision, log_evidence, outcomes_of
from arena.ratings.games import Games, GameVerdict, reconcile
from judges.errors import InputError
from judges.types import Verdict

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


@given(scores, st.randoms(use_true_random=False))
def test_neither_ties_nor_the_order_of_games_change_the_evidence(score: list[float], rng: object) -> None:
    shuffled = [*score, 0.5, 0.5]
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    np.testing.assert_allclose(log_evidence(between_two(shuffled)), log_evidence(between_two(score)), atol=1e-9)


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


def test_more_confidence_and_more_agents_need_more_games() -> None:
    def needed(agents: str, confidence: float) -> int:
        settings = AdaptiveSettings("top", confidence)
        games = range(1, 60)
        return next(
            n for n in games if decision(won(agents, {f"a{loser}": n for loser in agents[1:]}), settings).decided
        )

    assert needed("ab", 0.8) < needed("ab", 0.95) < needed("ab", 0.999)
    assert needed("ab", 0.95) < needed("abcdefgh", 0.95)


def test_all_pairs_of_a_decided_order_have_games_of_their_own() -> None:
    agents = "abcde"
    results = dict.fromkeys(map("".join, combinations(agents, 2)), 30)
    assert decision(won(agents, results), AdaptiveSettings()).decided
    for pair in results:
        assert not decision(won(agents, {**results, pair: 2}), AdaptiveSettings()).decided


@pytest.mark.parametrize(
    "wrong", [{"decide": "both"}, {"confidence": 1.0}, {"confidence": 0.0}, {"batch": 0}, {"max_games": 0}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        AdaptiveSettings(**wrong)  # type: ignore[arg-type]
