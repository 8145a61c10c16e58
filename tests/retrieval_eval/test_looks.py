"""Several looks: what each may spend, and that all of them together err as one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from retrieval_eval.stats.paired import level_of_look


def quantiles(times: list[float], level: float = 0.95) -> list[float]:
    return [float(ndtri((1 + level_of_look(times[: number + 1], level)) / 2)) for number in range(len(times))]


def test_boundaries_are_those_of_lan_and_demets() -> None:
    """Jennison and Turnbull 2000, chapter 7, as every program for group sequential designs prints them."""
    assert quantiles([0.2, 0.4, 0.6, 0.8, 1.0]) == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=0.001)
    assert quantiles([0.5, 1.0]) == pytest.approx([2.963, 1.969], abs=0.001)


def test_one_look_at_the_end_is_one_look() -> None:
    assert level_of_look([1.0], 0.95) == pytest.approx(0.95)
    assert level_of_look([1.0], 0.9) == pytest.approx(0.9)


def test_all_looks_together_err_as_one() -> None:
    looks = [20, 50, 60, 120, 200]
    bar = quantiles([look / 200 for look in looks])
    walks = np.random.default_rng(0).normal(size=(40_000, 200)).cumsum(axis=1)[:, np.array(looks) - 1]
    assert (walks / np.sqrt(looks) > bar).any(axis=1).mean() == pytest.approx(0.025, abs=0.0025)


def test_many_looks_leave_the_last_nearly_whole() -> None:
    times = [look / 50 for look in range(1, 51)]
    assert 0.965 < level_of_look(times, 0.95) < 0.975


@pytest.mark.parametrize("times", [[], [0.5, 0.5], [0.6, 0.4], [0.5, 1.2], [0.0, 1.0]])
def test_times_that_do_not_rise_are_refused(times: list[float]) -> None:
    with pytest.raises(ValueError, match="must be ascending"):
        level_of_look(times, 0.95)
