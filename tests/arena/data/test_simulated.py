"""The demo's decided board: verdicts simulated from a known truth, which it has to find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ragleague as rl
from arena.demo import COLUMNS, STRENGTHS, simulated_verdicts


@pytest.mark.parametrize("seed", range(8))
def test_the_truth_is_found_whatever_is_drawn(seed: int) -> None:
    found = rl.rate([dict(zip(COLUMNS, row, strict=True)) for row in simulated_verdicts(seed)], bootstrap=400)
    assert [row.agent for row in found.ratings.agents] == list(STRENGTHS)
    assert all(row.rank_low <= place <= row.rank_high for place, row in enumerate(found.ratings.agents, 1))


def test_the_demo_ends_with_a_decided_board_and_says_that_nobody_was_asked(
    played_demo: Path, cli: Callable[..., Any]
) -> None:
    _, _, shown = cli("demo", "--out", played_demo).out.partition("\nWhat a clear result looks like. ")
    assert shown.startswith("These verdicts are simulated: nobody was asked.\nThe truth is simulated-best > ")
    assert "Clear leader. simulated-best leads" in shown
    places = [shown.index(f"\n{rank}      {agent}") for rank, agent in enumerate(STRENGTHS, 1)]
    assert places == sorted(places)


def test_the_same_verdicts_are_drawn_everywhere() -> None:
    assert list(simulated_verdicts(7)) == list(simulated_verdicts(7))
    assert next(iter(simulated_verdicts())) == ("s1", "simulated-best", "simulated-good", "A", "simulated")
