"""Intervals hold the truth as often as they say: the analytic half of benchmarks/coverage.py, seed fixed."""

from benchmarks.coverage import analytic


def test_intervals_by_query_hold_the_truth_as_often_as_they_say_and_others_do_not() -> None:
    found = analytic(simulations=400, queries=40, per_query=50, seed=0)
    assert 0.92 <= found["sandwich by query"].covered <= 0.97
    assert found["sandwich by game"].covered < 0.87
    assert found["model (Fisher), independent games"].covered < 0.87
