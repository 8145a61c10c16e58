"""On which queries each pair of agents would meet, and in which order: fixed before the first verdict.

All pairs go through one seeded shuffle of the queries, each from a place of its own, so that games spread over the
queries. A pair's queries are therefore a random sample in random order, and none is chosen for what happened on it:
that is what the stopping rule rests on (see ``evidence``).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from arena.ratings.games import Ints


class Meeting(NamedTuple):
    """One pair of agents on one query; ``agent_a`` sorts before ``agent_b``."""

    query_id: str
    agent_a: str
    agent_b: str


class Fixtures:
    """All meetings that are possible.

    Attributes:
        agents: names, sorted.
        a, b: agents of each pair, a < b, in an order drawn by the seed, shape (pairs,).
        available: queries that both agents of each pair answered, shape (pairs,).
    """

    def __init__(self, answering: Mapping[str, Sequence[str]], seed: int) -> None:
        """Draw the order.

        Args:
            answering: for each query the agents that answered it.
            seed: of the draw.
        """
        self.agents = tuple(sorted({agent for present in answering.values() for agent in present}))
        number = {agent: code for code, agent in enumerate(self.agents)}
        self._queries = sorted(answering, key=lambda query_id: (_drawn(seed, query_id), query_id))
        self._present = np.zeros((len(self._queries), len(self.agents)), np.bool_)
        for row, query_id in enumerate(self._queries):
            self._present[row, [number[agent] for agent in answering[query_id]]] = True
        pairs = list(combinations(range(len(self.agents)), 2))
        pairs.sort(key=lambda pair: _drawn(seed, self.agents[pair[0]], self.agents[pair[1]]))
        self.a: Ints
        self.b: Ints
        self.a, self.b = np.array(pairs, np.int32).reshape(-1, 2).T
        common = self._present.T.astype(np.int32) @ self._present.astype(np.int32)
        self.available: Ints = common[self.a, self.b]
        self._number = {self._names(pair): pair for pair in range(len(pairs))}
        self._orders: dict[int, list[str]] = {}

    def __len__(self) -> int:
        """All meetings together."""
        return int(self.available.sum())

    def meeting(self, pair: int, nth: int) -> Meeting:
        """The ``nth`` meeting of a pair, from 0."""
        return Meeting(self._order(pair)[nth], *self._names(pair))

    def played(self, meetings: Sequence[Meeting]) -> Ints:
        """How many meetings of each pair are among these, shape (pairs,)."""
        pairs = [self._number[meeting.agent_a, meeting.agent_b] for meeting in meetings]
        return np.bincount(pairs, minlength=self.a.size).astype(np.int32)

    def _order(self, pair: int) -> list[str]:
        if pair not in self._orders:
            both = self._present[:, self.a[pair]] & self._present[:, self.b[pair]]
            # Starting places are spread evenly, so that the first round of all pairs touches each query alike.
            start = pair * len(self._queries) // self.a.size
            places = np.roll(np.arange(len(self._queries)), -start)
            self._orders[pair] = [self._queries[place] for place in places[both[places]]]
        return self._orders[pair]

    def _names(self, pair: int) -> tuple[str, str]:
        return self.agents[self.a[pair]], self.agents[self.b[pair]]


def _drawn(seed: int, *names: str) -> float:
    """A number in [0, 1) that depends on the seed and the names alone, not on what else there is."""
    return random.Random("\x00".join([str(seed), *names])).random()  # noqa: S311 - reproducible, not secret
