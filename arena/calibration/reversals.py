"""Where a way of scoring orders two agents the other way round than another does, beyond chance.

Two agents depart where the intervals of both differences, by the one way and by the other, leave out 0 on opposite
sides. The intervals of all differences of a way hold at once (``arena.ratings.ranks.joint_differences``, which the rank
intervals of the leaderboard rest on), and each way has its share of the 5 % that is left for error. So all departures
that are told are true at once with a probability of 95 %: for one to be false, one of these intervals has to miss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.ranks import joint_differences
from arena.ratings.results import fewest_queries
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import whole
from retrieval_eval.stats.estimate import Drawn

LEVEL = 0.95
"""Probability that no departure is false."""
_SCALE = 1e4
"""What scores are multiplied by: intervals are made for points, and take a spread below 0.001 for none."""
_LEAST_DRAWN = 0.5
"""Share of samples that have to score all agents."""


class Departure(Struct, frozen=True):
    """Two agents that a way of scoring orders the other way round.

    Attributes:
        raised: the agent that it places above the other one.
        lowered: the other, which the first way places above.
    """

    way: str
    raised: str
    lowered: str


class Departures(Struct, frozen=True):
    """All departures from one way of scoring.

    Attributes:
        first: the way that others are held against.
        tested: ways that could be.
        found: by way, then by the order of agents.
    """

    first: str
    tested: tuple[str, ...] = ()
    found: tuple[Departure, ...] = ()


def departures(drawn: Sequence[Drawn], seen: Mapping[str, Mapping[str, int]]) -> Departures:
    """Departures of all other ways from the first.

    Args:
        drawn: scores on the same draws of queries.
        seen: by way and agent, the number of queries that its score rests on. Agents that have too few of them for
            so many agents (``fewest_queries``) are left out.
    """
    first, *others = drawn
    level = 1 - (1 - LEVEL) / len(drawn)
    tested, found = [], []
    for other in others:
        agents = _comparable((first, other), seen)
        if len(agents) < 2:
            continue
        tested.append(other.name)
        by_first, by_other = (_surely_above(own, agents, seen[own.name], level) for own in (first, other))
        for raised, lowered in zip(*np.nonzero(by_other & by_first.T), strict=True):
            found.append(Departure(other.name, agents[raised], agents[lowered]))
    return Departures(first.name, tuple(tested), tuple(found))


def _comparable(ways: Sequence[Drawn], seen: Mapping[str, Mapping[str, int]]) -> list[str]:
    agents = [name for name in ways[0].agents if all(seen[own.name].get(name, 0) > 1 for own in ways)]
    enough = fewest_queries(len(agents))
    agents = [name for name in agents if all(seen[own.name][name] >= enough for own in ways)]
    return agents if all(len(_whole(_chosen(own, agents))) > 1 for own in ways) else []


def _surely_above(way: Drawn, agents: Sequence[str], seen: Mapping[str, int], level: float) -> NDArray[np.bool_]:
    """Whether the row's agent is better than the column's, shape (agents, agents)."""
    columns = [way.agents.index(name) for name in agents]
    samples, units = _whole(_chosen(way, agents)), min(seen[name] for name in agents)
    joint = joint_differences(_SCALE * way.points[columns], (_SCALE * samples,), units, level)
    return np.asarray(joint.different & (joint.difference > 0), np.bool_)


def _chosen(way: Drawn, agents: Sequence[str]) -> Floats:
    return way.samples[:, [way.agents.index(name) for name in agents]]


def _whole(samples: Floats) -> Floats:
    """The samples that score every agent; none where most do not."""
    found = samples[whole(samples)]
    return found if len(found) >= _LEAST_DRAWN * len(samples) else found[:0]
