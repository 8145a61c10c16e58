"""Groups of queries: the permutation test holds its level and finds what differs; shrinking keeps order and bounds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retrieval_eval.stats.groups import interaction, shrunk
from retrieval_eval.stats.paired import holm_levels, symmetric_interval


def test_two_groups_of_three_have_the_p_value_of_all_twenty_assignments() -> None:
    p = interaction(np.array([0.0, 0.1, 0.2, 0.8, 0.9, 1.0]), np.array([0, 0, 0, 1, 1, 1]))
    assert p is not None
    assert abs(p - 2 / 20) < 0.02


def test_values_that_are_equal_or_of_one_group_have_no_p_value() -> None:
    assert interaction(np.ones(6), np.array([0, 0, 0, 1, 1, 1])) is None
    assert interaction(np.arange(6.0), np.zeros(6, np.int64)) is None


@given(st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 3)), min_size=4, max_size=40))
def test_a_shrunken_mean_lies_between_the_groups_mean_and_the_common_mean(rows: list[tuple[float, int]]) -> None:
    values, group = np.array([value for value, _ in rows]), np.array([number for _, number in rows])
    overall = values.mean()
    for number, figure in enumerate(shrunk(values, group)):
        if (own := values[group == number]).size:
            assert min(own.mean(), overall) - 1e-9 <= figure <= max(own.mean(), overall) + 1e-9
        else:
            assert np.isnan(figure)


def test_levels_are_those_of_holm() -> None:
    p = [0.001, 0.2, 0.012, 0.03]  # rejected at 0.05/4 and 0.05/3; then 0.03 > 0.05/2
    levels = holm_levels(4, lambda test, level: p[test] <= 1 - level + 1e-12)
    assert np.allclose(levels, [1 - 0.05 / 4, 1 - 0.05 / 2, 1 - 0.05 / 4, 1 - 0.05 / 2])


def test_figures_that_are_all_equal_have_an_interval_of_some_width() -> None:
    low, high = symmetric_interval(np.ones(12), 0.95)
    assert low < 1 == high
