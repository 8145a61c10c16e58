"""The one sentence on top of the page: it must never say more than the numbers do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import pytest

from arena.agents.board import cost_board
from arena.conclusion import Conclusion, conclude
from arena.dataset import Dataset
from arena.leaderboard import Leaderboard
from arena.ratings.games import GameVerdict
from arena.ratings.rate import RatingSettings, rate
from judges.types import Answer, Query, Verdict


def concluded(verdicts: Sequence[GameVerdict], **settings: int) -> Conclusion:
    ratings = rate(verdicts, RatingSettings(bootstrap=100, tournaments=5, **settings)) if verdicts else None
    return conclude(Leaderboard("t", ratings, {}, {}, {}, {}, {}))


def league(strengths: dict[str, float], queries: int) -> list[GameVerdict]:
    """Every pair on every query; the stronger wins more often the wider the gap."""
    noise = random.Random(1)
    verdicts = []
    for query in range(queries):
        for a, b in combinations(strengths, 2):
            won = strengths[a] - strengths[b] + noise.gauss(0, 1) > 0
            verdicts.append(GameVerdict(f"q{query}", a, b, Verdict.A if won else Verdict.B))
    return verdicts


def test_an_agent_ahead_of_all_others_is_a_clear_leader() -> None:
    found = concluded(league({"best": 1.2, "middle": 0.0, "last": -1.2}, 40))
    assert (found.kind, found.headline) == ("leader", "Clear leader")
    assert found.sentence.startswith("best leads, ")
    assert "above middle" in found.sentence
    assert "120 games on 40 queries" in found.sentence


def test_equals_above_a_weaker_one_are_a_tie_at_the_top() -> None:
    found = concluded(league({"one": 1.5, "two": 1.5, "last": -1.5}, 30))
    assert found.kind == "tie"
    assert "one" in found.sentence
    assert "two" in found.sentence
    assert "last" not in found.sentence


def test_where_nobody_can_be_told_apart_there_is_not_enough_signal() -> None:
    found = concluded(league({"one": 0.1, "two": 0.0, "three": 0.0}, 8))
    assert (found.kind, found.headline) == ("unclear", "Not enough signal")


def test_a_missing_interval_never_makes_a_winner() -> None:
    on_one_query = [GameVerdict("q", "best", other, Verdict.A) for other in ("x", "y", "z")]
    assert concluded(on_one_query).kind == "unclear"
    many = league({"best": 3.0, "last": -3.0}, 40)
    settings = RatingSettings(bootstrap=0, tournaments=5)
    board = Leaderboard("t", rate(many, settings), {}, {}, {}, {}, {})
    assert conclude(board).kind == "unclear"


def test_agents_that_never_met_are_not_compared() -> None:
    apart = league({"a": 2.0, "b": 0.0}, 30) + league({"c": 0.5, "d": 0.0}, 30)
    found = concluded(apart)
    assert found.kind == "unclear"
    assert "never met" in found.sentence


def test_no_verdict_is_no_conclusion() -> None:
    assert concluded([]).kind == "empty"


@pytest.mark.parametrize("size", [7, 12])
def test_many_tied_agents_are_counted_not_listed(size: int) -> None:
    found = concluded(league({**{f"agent{i:02}": 1.0 for i in range(size)}, "last": -0.8}, 25))
    assert found.kind == "tie"
    assert f"{size - 5} more" in found.sentence


def test_where_quality_ties_the_cheaper_and_the_faster_are_named() -> None:
    verdicts = league({"one": 1.5, "two": 1.5, "last": -1.5}, 30)
    ratings = rate(verdicts, RatingSettings(bootstrap=100, tournaments=5))
    took = {"one": ("2.5", "0.01"), "two": ("0.5", "0.03"), "last": ("0.1", "0.001")}
    answers = {
        ("q0", agent): Answer("q0", agent, "so", {"latency_s": latency, "cost_usd": cost})
        for agent, (latency, cost) in took.items()
    }
    costs = cost_board(Dataset({"q0": Query("q0", "why?")}, {}, answers), ratings.agents, {})
    sentence = conclude(Leaderboard("t", ratings, {}, {}, {}, {}, {}, costs=costs)).sentence
    assert sentence.endswith("; of these two is the fastest (0.50 s) and one is the cheapest ($0.010 a query).")
