"""Schedules that are known from the start: which agents meet on which query."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

from msgspec import Struct

from arena.data.dataset import Dataset
from judges.errors import ConfigError
from judges.sections import nearest


class Game(Struct, frozen=True):
    """A comparison of two agents on one query; ``swapped`` shows the answer of ``agent_b`` first."""

    query_id: str
    agent_a: str
    agent_b: str
    swapped: bool


class Schedule(Struct, frozen=True):
    """A rule that chooses the pairs of agents to compare.

    Attributes:
        kind: whether to use all pairs, ``games_per_query`` random pairs, or all agents against ``baseline``.
        both_orders: whether to show each pair in both orders; otherwise in one order drawn at random.
        seed: seed of the random draws.
    """

    kind: Literal["all", "random", "baseline"] = "all"
    games_per_query: int | None = None
    baseline: str | None = None
    both_orders: bool = True
    seed: int = 0


def answering(data: Dataset) -> dict[str, list[str]]:
    """The agents that answered each query, sorted."""
    present: dict[str, list[str]] = {query_id: [] for query_id in data.queries}
    for query_id, agent in sorted(data.answers):
        present[query_id].append(agent)
    return present


def games(schedule: Schedule, agents: Mapping[str, Sequence[str]]) -> Iterator[Game]:
    """All games, query by query.

    Args:
        schedule: how to choose pairs.
        agents: the agents that answered each query.

    Raises:
        ConfigError: the baseline answered no query.
    """
    if schedule.kind == "baseline" and not any(schedule.baseline in present for present in agents.values()):
        known = nearest(schedule.baseline, {agent for present in agents.values() for agent in present})
        raise ConfigError(f"pairwise.schedule.baseline: no answers by an agent named {schedule.baseline!r}{known}")
    rng, draws = random.Random(), not schedule.both_orders or schedule.games_per_query is not None  # noqa: S311
    for query_id, present in agents.items():
        if draws:  # seeding takes longer than listing a query's games
            rng.seed(f"{schedule.seed}\x00{query_id}")
        for agent_a, agent_b in _pairs(schedule, sorted(present), rng):
            orders = (False, True) if schedule.both_orders else (rng.random() < 0.5,)
            for swapped in orders:
                yield Game(query_id, agent_a, agent_b, swapped)


def _pairs(schedule: Schedule, agents: Sequence[str], rng: random.Random) -> Sequence[tuple[str, str]]:
    if schedule.kind == "baseline":
        if schedule.baseline is None or schedule.baseline not in agents:
            return []
        return [(schedule.baseline, agent) for agent in agents if agent != schedule.baseline]
    pairs = list(combinations(agents, 2))
    if schedule.kind == "all" or schedule.games_per_query is None:
        return pairs
    return rng.sample(pairs, min(schedule.games_per_query, len(pairs)))
