"""The files of a small real tournament for trying the tool, and simulated verdicts of agents of known strength."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import resources
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Final

from judges.errors import InputError, reason
from retrieval_eval.data.files import open_replacing

FILES = ("queries.csv", "documents.csv", "answers.csv", "exam.csv", "nuggets.jsonl", "tournament.yaml")


def copy_demo(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {reason(error)}") from error
    for name in FILES:
        if not (folder / name).exists():
            with open_replacing(folder / name) as file:  # a partial file would never be replaced
                file.write(resources.files("arena.demo").joinpath(name).read_bytes())
    return folder / "tournament.yaml"


STRENGTHS: Final = {"simulated-best": 1.2, "simulated-good": 0.4, "simulated-fair": -0.4, "simulated-poor": -1.2}
"""True strength of each simulated agent in log-odds, averaged over queries; best agent first."""

QUERIES: Final = 80
QUERY_SD: Final = 0.5
"""Standard deviation of a simulated agent's strength from query to query."""

TIES: Final = 0.5
"""Parameter nu of Davidson's model of ties; at this value, about a fifth of the simulated verdicts are ties."""

SURE: Final = 0.8
"""Share of games whose second verdict, in the other order, repeats the first; else it is drawn independently."""

JUDGE: Final = "simulated"
COLUMNS: Final = ("qid", "agent_a", "agent_b", "verdict", "judge")


def simulated_verdicts(seed: int = 0) -> Iterator[tuple[str, ...]]:
    """Simulate verdicts on every pair of agents, on every query and in both orders; yield rows with ``COLUMNS``."""
    rng = Random(seed)  # noqa: S311 - no secret
    for number in range(1, QUERIES + 1):
        strength = {agent: rng.gauss(mean, QUERY_SD) for agent, mean in STRENGTHS.items()}
        for first, second in combinations(STRENGTHS, 2):
            difference = strength[first] - strength[second]
            winner = _winner(rng, difference)
            second_winner = winner if rng.random() < SURE else _winner(rng, difference)
            yield f"s{number}", first, second, {1: "A", 0: "TIE", -1: "B"}[winner], JUDGE
            yield f"s{number}", second, first, {1: "B", 0: "TIE", -1: "A"}[second_winner], JUDGE


def write_simulated(file: Path) -> None:
    """Write simulated verdicts to a CSV file, to try ``ragleague rate`` and ``ragleague import verdicts``."""
    with open_replacing(file) as out:
        out.writelines(f"{','.join(row)}\n".encode() for row in (COLUMNS, *simulated_verdicts()))


def _winner(rng: Random, difference: float) -> int:
    """Draw a game's winner by Davidson's model: 1 if the first agent wins, -1 if the second does, 0 for a tie."""
    win = math.exp(difference / 2)
    point = rng.random() * (win + 1 / win + TIES)
    return 1 if point < win else 0 if point < win + TIES else -1
