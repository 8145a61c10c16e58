"""Significant reversals: pairs of agents that two scoring methods rank in opposite orders, beyond chance.

A pair is reversed if the intervals of its difference by the two methods lie on opposite sides of 0. The intervals of
all differences by a method hold simultaneously (``arena.ratings.ranks.joint_differences``, as for the rank intervals of
the leaderboard), and the 5 % error probability is divided among the methods. With a probability of 95 % all reported
reversals are therefore true: one can be false only if one of these intervals misses its true value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.ranks import joint_differences
from arena.ratings.results import fewest_queries
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import without_nan
from retrieval_eval.stats.estimate import Drawn

LEVEL = 0.95
"""Probability that no reported reversal is false."""
_SCALE = 1e4
"""Factor that turns scores into points: the interval code is made for points and treats a spread below 0.001 as 0."""
_LEAST_DRAWN = 0.5
"""Share of samples that must score all agents."""


class Departure(Struct, frozen=True):
    """Two agents that a scoring method ranks in the opposite order of the reference method.

    Attributes:
        way: the scoring method.
        raised: the agent that this method ranks above the other agent.
        lowered: the other agent, which the reference method ranks higher.
    """

    way: str
    raised: str
    lowered: str


class Departures(Struct, frozen=True):
    """The significant reversals between a reference method and all others.

    Attributes:
        first: the reference method.
        tested: methods that could be compared with the reference method.
        pairs: the reversed pairs of agents, sorted by method, then in the order of the agents.
    """

    first: str
    tested: tuple[str, ...] = ()
    pairs: tuple[Departure, ...] = ()


def departures(drawn: Sequence[Drawn], seen: Mapping[str, Mapping[str, int]]) -> Departures:
    """Find the significant reversals between the first method and each other one.

    Args:
        drawn: scores of all methods on the same resampled queries; the first method is the reference.
        seen: by method and agent, the number of queries from which the score is computed. Agents with too few queries
            for this number of agents (``fewest_queries``) are excluded.
    """
    first, *others = drawn
    level = 1 - (1 - LEVEL) / len(drawn)
    tested, pairs = [], []
    for other in others:
        agents = _comparable((first, other), seen)
        if len(agents) < 2:
            continue
        tested.append(other.name)
        by_first, by_other = (
            _significantly_above(method, agents, seen[method.name], level) for method in (first, other)
        )
        for raised, lowered in zip(*np.nonzero(by_other & by_first.T), strict=True):
            pairs.append(Departure(other.name, agents[raised], agents[lowered]))
    return Departures(first.name, tuple(tested), tuple(pairs))


def _comparable(methods: Sequence[Drawn], seen: Mapping[str, Mapping[str, int]]) -> list[str]:
    agents = [name for name in methods[0].agents if all(seen[method.name].get(name, 0) > 1 for method in methods)]
    enough = fewest_queries(len(agents))
    agents = [name for name in agents if all(seen[method.name][name] >= enough for method in methods)]
    return agents if all(len(_complete(_samples_of(method, agents))) > 1 for method in methods) else []


def _significantly_above(
    method: Drawn, agents: Sequence[str], seen: Mapping[str, int], level: float
) -> NDArray[np.bool_]:
    """Whether the agent of the row is significantly better than the agent of the column, shape (agents, agents)."""
    columns = [method.agents.index(name) for name in agents]
    samples, units = _complete(_samples_of(method, agents)), min(seen[name] for name in agents)
    joint = joint_differences(_SCALE * method.points[columns], (_SCALE * samples,), units, level)
    return np.asarray(joint.different & (joint.difference > 0), np.bool_)


def _samples_of(method: Drawn, agents: Sequence[str]) -> Floats:
    return method.samples[:, [method.agents.index(name) for name in agents]]


def _complete(samples: Floats) -> Floats:
    """The samples that score every agent; none if fewer than half do."""
    complete = samples[without_nan(samples)]
    return complete if len(complete) >= _LEAST_DRAWN * len(samples) else complete[:0]
