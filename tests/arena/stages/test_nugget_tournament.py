"""Ratings beside nugget scores of the same runs."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from arena.ratings.games import GameVerdict
from benchmarks.against_ratings import against_ratings
from benchmarks.nugget_tournament import play
from judges.errors import InputError
from judges.types import Verdict
from retrieval_eval.nuggets.scores import ScoreTable, score_table
from retrieval_eval.nuggets.types import Assignment, Importance, Support, make_nuggets

RUNS = ("r0", "r1", "r2", "r3", "r4")
QUERIES = tuple(f"q{number}" for number in range(8))


def scores() -> ScoreTable:
    """Run r<n> states n of four vital nuggets of every query."""
    nuggets = make_nuggets("q", ["a", "b", "c", "d"], [Importance.VITAL] * 4)
    return score_table(
        [
            Assignment(query, run, nuggets, (Support.FULL,) * best + (Support.NONE,) * (4 - best), 5)
            for query in QUERIES
            for best, run in enumerate(RUNS)
        ]
    )


def verdicts(better: dict[str, float], odd: tuple[str, ...] = ("q0",)) -> list[GameVerdict]:
    """Every pair meets on every query in both orders; the better one wins, but on odd queries, where it loses."""
    return [
        GameVerdict(query, a, b, Verdict.A if (better[a] > better[b]) is (query not in odd) else Verdict.B)
        for query in QUERIES
        for pair in combinations(RUNS, 2)
        for a, b in (pair, pair[::-1])
    ]


def test_the_same_order_correlates_fully_and_the_reverse_order_not_at_all() -> None:
    same = against_ratings(verdicts({run: at for at, run in enumerate(RUNS)}), scores(), samples=50)
    assert same.runs == RUNS[::-1]
    assert same.scores.tolist() == [1, 0.75, 0.5, 0.25, 0]
    assert same.ratings.tolist() == sorted(same.ratings, reverse=True)
    assert (same.correlation.kendall.value, same.games) == (1, 80)
    reverse = against_ratings(verdicts({run: -at for at, run in enumerate(RUNS)}), scores(), samples=50)
    assert reverse.correlation.kendall.value == -1


def test_the_interval_holds_the_estimate_and_is_the_same_again() -> None:
    mixed = verdicts(dict(zip(RUNS, (0, 2, 1, 4, 3), strict=True)), ("q0", "q1", "q2"))
    found = against_ratings(mixed, scores(), samples=50, seed=3).correlation
    assert found.kendall.value == pytest.approx(0.6)
    assert found.kendall.low is not None
    assert found.kendall.high is not None
    assert found.kendall.low < 0.6 < found.kendall.high
    assert found == against_ratings(mixed, scores(), samples=50, seed=3).correlation


def test_runs_and_queries_that_one_side_lacks_are_left_out() -> None:
    more = [GameVerdict("elsewhere", "r0", "stranger", Verdict.B), *verdicts(dict.fromkeys(RUNS, 0) | {"r4": 1})]
    assert set(against_ratings(more, scores(), samples=20).runs) == set(RUNS)
    with pytest.raises(InputError, match="fewer than two runs"):
        against_ratings([GameVerdict("q1", "x", "y", Verdict.A)], scores())


def test_recorded_runs_are_played_offline_and_what_words_alone_say_is_next_to_nothing(shared: Path) -> None:
    found = play(shared / "data" / "trec_rag24_nuggets", games=10, samples=100)
    assert (len(found.runs), found.games) == (30, 21 * 10)
    scored = dict(zip(found.runs, np.round(found.scores, 4), strict=True))
    assert scored["neuragfix"] == 0.6372
    own = found.correlation.kendall
    assert own.value == pytest.approx(0.108, abs=5e-4)
    assert own.low is not None
    assert own.high is not None
    assert own.low < own.value < own.high < 0.4
