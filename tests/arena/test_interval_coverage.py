"""Intervals hold the truth as often as they say: parts of benchmarks/coverage.py and few_queries.py, seeds fixed."""

import numpy as np
import pytest

from arena.ratings.ranks import fewest_queries
from arena.ratings.rate import RatingSettings, rate_games
from benchmarks.coverage import analytic, of_figures
from benchmarks.few_queries import World, errors, simulated


def test_intervals_by_query_hold_the_truth_as_often_as_they_say_and_others_do_not() -> None:
    found = analytic(simulations=400, queries=40, per_query=50, seed=0)
    assert 0.92 <= found["sandwich by query"].covered <= 0.97
    assert found["sandwich by game"].covered < 0.87
    assert found["model (Fisher), independent games"].covered < 0.87


def test_intervals_of_kappas_shares_means_and_rank_correlations_hold_the_truth() -> None:
    found = of_figures(simulations=60, queries=25, seed=0)
    assert min(found.values()) >= 0.87
    assert np.mean(list(found.values())) <= 0.98


def test_equal_agents_are_told_apart_on_few_queries_and_hardly_on_as_many_as_are_asked_for() -> None:
    world = World("6 equal", (0,) * 6, 3, 50.0, 0.0)
    told, missed = errors(world, 4, 40, fewest=0)
    assert told > 0.25
    assert missed > 0.25
    assert errors(world, 4, 5) == (0, 0)
    enough = fewest_queries(6)
    assert enough == 20
    told, missed = errors(world, enough, 60, fewest=0)
    assert told < 0.13
    assert missed < 0.13


@pytest.mark.parametrize(("agents", "enough"), [(2, 10), (3, 10), (4, 15), (6, 20), (24, 40)])
def test_more_agents_need_more_queries(agents: int, enough: int) -> None:
    assert fewest_queries(agents) == enough


def test_below_that_no_pair_is_separable_ranks_are_open_and_a_note_says_so() -> None:
    strengths = (0.0, 0.0, 9.0)
    few, enough = (
        rate_games(simulated(World("", strengths, 4, 0.1), n, np.random.default_rng(3)), RatingSettings(tournaments=0))
        for n in (9, 10)
    )
    assert not any(pair.separable for pair in few.pairs)
    assert {row.group for row in few.agents} == {"A"}
    assert {(row.rank_low, row.rank_high) for row in few.agents} == {(1, 3)}
    assert all(pair.low <= 0 <= pair.high for pair in few.pairs)
    said = "Too few queries (9): intervals miss too often, so no agent is told from another; 3 agents need at least 10."
    assert said in few.notes
    assert enough.agents[0].rank_high == 1
    assert not any(note.startswith("Too few") for note in enough.notes)
