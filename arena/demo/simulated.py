"""Verdicts that nobody gave: drawn from a known truth, to see what a decided result looks like and that it is found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Final

from retrieval_eval.data.files import open_replacing

STRENGTHS: Final = {"simulated-best": 1.2, "simulated-good": 0.4, "simulated-fair": -0.4, "simulated-poor": -1.2}
"""The truth: log-odds of each agent on the average query, best first."""

QUERIES: Final = 80
QUERY_SD: Final = 0.5
"""An agent is better at some queries than at others: the standard deviation of its strength over queries."""

TIES: Final = 0.5
"""Davidson's nu: about a fifth of all verdicts are ties."""

SURE: Final = 0.8
"""Share of games that are judged alike in both orders; the others are drawn again."""

JUDGE: Final = "simulated"
COLUMNS: Final = ("qid", "agent_a", "agent_b", "verdict", "judge")


def simulated_verdicts(seed: int = 0) -> Iterator[tuple[str, ...]]:
    """A verdict on every pair of agents on every query, in both orders: rows of ``COLUMNS``."""
    rng = Random(seed)  # noqa: S311 - no secret
    for number in range(1, QUERIES + 1):
        strength = {agent: rng.gauss(mean, QUERY_SD) for agent, mean in STRENGTHS.items()}
        for one, other in combinations(STRENGTHS, 2):
            ahead = strength[one] - strength[other]
            winner = _winner(rng, ahead)
            again = winner if rng.random() < SURE else _winner(rng, ahead)
            yield f"s{number}", one, other, {1: "A", 0: "TIE", -1: "B"}[winner], JUDGE
            yield f"s{number}", other, one, {1: "B", 0: "TIE", -1: "A"}[again], JUDGE


def write_simulated(file: Path) -> None:
    """The verdicts as a CSV file for ``ragleague rate`` and ``ragleague import``."""
    with open_replacing(file) as out:
        out.writelines(f"{','.join(row)}\n".encode() for row in (COLUMNS, *simulated_verdicts()))


def _winner(rng: Random, ahead: float) -> int:
    """1, -1 or 0, by Davidson's model, of two agents so far apart."""
    win = math.exp(ahead / 2)
    drawn = rng.random() * (win + 1 / win + TIES)
    return 1 if drawn < win else 0 if drawn < win + TIES else -1
