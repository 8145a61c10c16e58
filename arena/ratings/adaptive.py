"""Adaptive schedules: play the games that say most about the order, stop once it is decided.

``Fixtures`` fixes beforehand on which queries each pair of agents would meet, and in which order: all pairs go through
one seeded shuffle of the queries, each from a place of its own, so that games spread over the queries. A pair's queries
are therefore a random sample in random order, and none is chosen for what happened on it: that is what ``evidence``,
which says what may be claimed at whatever moment one looks, rests on. A run judges ``next_games(fixtures, asked,
outcomes, settings)`` until that is empty.

The next games are those from which most is to be learnt about who is better. What is known of the agents' strengths is
held as a normal distribution, the Laplace approximation of a Bradley-Terry posterior with half-win ties. A game between
a and b is worth the information it is expected to give on the sign of their difference: the entropy of that sign now,
less its expectation after the game (the criterion of Houlsby et al. 2011, arXiv 1112.5745). To first order in the share
r of the difference's variance that the game removes that is, in nats,

    gain = r phi(z)^2 / (2 Phi(z) Phi(-z)),   z = mean / sd of the difference,

by expanding the entropy h(Phi(z')) around z, where z' after the game has mean z / sqrt(1 - r) and variance r / (1 - r).
It is large for pairs that are close and little known and vanishes for those known to be apart. Games of a batch are
chosen one after another, each time with the variance that is left after those chosen so far. The distribution is used
for choosing only. It ignores that verdicts on one query depend on each other: a poor choice costs games, never the
confidence.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.evidence import AdaptiveSettings, Decision, decision
from arena.ratings.games import Games
from retrieval_eval.stats.arrays import Floats, Int32s

_PRIOR_VARIANCE = 1.0
"""Of a strength in log-odds: a standard deviation of 174 Elo."""
_LARGEST_STEP = 1.0
"""In log-odds, of one Newton iteration; the log-posterior is concave, so steps this small always climb."""
_DIGITS = 9
"""Gains equal to this many digits are equal, so that rounding errors do not choose."""


class Belief(Struct):
    """Normal distribution of the agents' strengths in log-odds: shapes (agents,) and (agents, agents)."""

    mean: Floats
    covariance: Floats

    def gap(self, a: Int32s, b: Int32s) -> tuple[Floats, Floats]:
        """Mean and variance of each pair's difference."""
        own = np.diag(self.covariance)
        return self.mean[a] - self.mean[b], own[a] + own[b] - 2 * self.covariance[a, b]

    def expect_game(self, a: int, b: int) -> None:
        """Shrink the covariance as a game between the two will, whoever wins."""
        lean = self.covariance[:, a] - self.covariance[:, b]
        information = _bernoulli(self.mean[a] - self.mean[b])
        self.covariance -= np.outer(lean, lean) * information / (1 + information * (lean[a] - lean[b]))


def belief(outcomes: Games) -> Belief:
    """Posterior mode and inverse curvature of the strengths."""
    size = len(outcomes.agents)
    mean = np.zeros(size)
    for _ in range(100):
        p = scipy.special.expit(mean[outcomes.a] - mean[outcomes.b])
        excess, weight = outcomes.score - p, p * (1 - p)
        slope = np.bincount(outcomes.a, excess, size) - np.bincount(outcomes.b, excess, size) - mean / _PRIOR_VARIANCE
        pairs = np.bincount(outcomes.a.astype(np.int64) * size + outcomes.b, weight, size * size).reshape(size, size)
        pairs = pairs + pairs.T
        curvature = np.diag(pairs.sum(axis=1) + 1 / _PRIOR_VARIANCE) - pairs
        step = np.linalg.solve(curvature, slope)
        mean += step * min(1.0, _LARGEST_STEP / max(float(np.abs(step).max(initial=0.0)), _LARGEST_STEP))
        if np.abs(step).max(initial=0.0) < 1e-9:
            break
    return Belief(mean, np.asarray(np.linalg.inv(curvature), np.float64))


def log_gain(mean: Floats, variance: Floats) -> Floats:
    """Log of the information, in nats, expected from one more game on which agent of a pair is better.

    Args:
        mean: of the pairs' differences in log-odds, shape (pairs,).
        variance: of the same.
    """
    z = mean / np.sqrt(variance)
    known = variance * _bernoulli(mean)
    removed = np.log(known) - np.log1p(known)
    two_phi_squared = -(z**2) - np.log(2 * np.pi)
    gain: Floats = removed + two_phi_squared - np.log(2) - scipy.special.log_ndtr(z) - scipy.special.log_ndtr(-z)
    return gain


def next_games(
    fixtures: Fixtures, asked: Sequence[Meeting], outcomes: Games, settings: AdaptiveSettings
) -> list[Meeting]:
    """The next batch; empty once decided, or when no game is left that could help.

    The same arguments give the same batch, so a run that begins again from the same verdicts takes the same way.

    Args:
        fixtures: all possible games.
        asked: all batches so far. A game that was asked without a verdict is not asked again.
        outcomes: of those that have a verdict.
        settings: how to choose and when to stop.
    """
    so_far = decision(outcomes, settings)
    played = fixtures.played(asked)
    left = len(fixtures) if settings.max_games is None else settings.max_games - len(asked)
    budget = min(settings.batch, left)
    if so_far.decided or budget <= 0:
        return []
    known = belief(outcomes)
    needed = _needed(so_far, known, settings)[fixtures.a, fixtures.b]
    batch: list[Meeting] = []
    while len(batch) < budget and (eligible := needed & (played < fixtures.available)).any():
        gain = np.round(log_gain(*known.gap(fixtures.a, fixtures.b)), _DIGITS)
        pair = int(np.argmax(np.where(eligible, gain, -np.inf)))
        chosen = fixtures.meetings(pair, int(played[pair]))
        if len(batch) + len(chosen) > left:
            break  # half a conversation would be evidence that changes later
        batch += chosen
        known.expect_game(int(fixtures.a[pair]), int(fixtures.b[pair]))
        played[pair] += 1
    return batch


def _needed(so_far: Decision, known: Belief, settings: AdaptiveSettings) -> NDArray[np.bool_]:
    """Pairs whose decision is called for: all undecided ones, or those of the agent that may be first."""
    if settings.decide == "order":
        return so_far.undecided
    unbeaten = ~so_far.beats.any(axis=0)
    needed = np.zeros_like(so_far.undecided)
    if unbeaten.any():  # else they beat each other in a circle, and nobody is first
        leader = int(np.argmax(np.where(unbeaten, known.mean, -np.inf)))
        needed[leader] = needed[:, leader] = so_far.undecided[leader]
    return needed


def _bernoulli(gap: Floats) -> Floats:
    """Information of one game on a difference in log-odds."""
    result: Floats = scipy.special.expit(gap) * scipy.special.expit(-gap)
    return result


class Meeting(NamedTuple):
    """One pair of agents on one query; ``agent_a`` sorts before ``agent_b``."""

    query_id: str
    agent_a: str
    agent_b: str


class Fixtures:
    """All meetings that are possible.

    Two agents meet on all turns of a conversation that both answered before they meet in another one: it is
    conversations that are independent.

    Attributes:
        agents: names, sorted.
        a, b: agents of each pair, a < b, in an order drawn by the seed, shape (pairs,).
        available: queries, or conversations, in which both agents of each pair answered, shape (pairs,).
    """

    def __init__(
        self, answering: Mapping[str, Sequence[str]], seed: int, clusters: Mapping[str, str] | None = None
    ) -> None:
        """Draw the order.

        Args:
            answering: for each query the agents that answered it.
            seed: of the draw.
            clusters: the conversation of each query that is a turn of one.
        """
        self.agents = tuple(sorted({agent for present in answering.values() for agent in present}))
        number = {agent: code for code, agent in enumerate(self.agents)}
        self._cluster = {query_id: (clusters or {}).get(query_id, query_id) for query_id in answering}
        drawn = {cluster: (_drawn(seed, cluster), cluster) for cluster in self._cluster.values()}
        self._queries = sorted(answering, key=lambda query_id: drawn[self._cluster[query_id]])  # turns in their order
        self._present = np.zeros((len(self._queries), len(self.agents)), np.bool_)
        for row, query_id in enumerate(self._queries):
            self._present[row, [number[agent] for agent in answering[query_id]]] = True
        pairs = list(combinations(range(len(self.agents)), 2))
        pairs.sort(key=lambda pair: _drawn(seed, self.agents[pair[0]], self.agents[pair[1]]))
        self.a: Int32s
        self.b: Int32s
        self.a, self.b = np.array(pairs, np.int32).reshape(-1, 2).T
        common = self._present.T.astype(np.int32) @ self._present.astype(np.int32)
        self._orders: dict[int, list[list[str]]] = {}
        self.available: Int32s = common[self.a, self.b]
        self._meetings = int(self.available.sum())
        if clusters:
            self.available = np.array([len(self._order(pair)) for pair in range(len(pairs))], np.int32)
        self._number = {self._names(pair): pair for pair in range(len(pairs))}

    def __len__(self) -> int:
        """All meetings together."""
        return self._meetings

    def meetings(self, pair: int, nth: int) -> list[Meeting]:
        """The ``nth`` query or conversation of a pair, from 0: a meeting for each turn."""
        return [Meeting(query_id, *self._names(pair)) for query_id in self._order(pair)[nth]]

    def played(self, meetings: Sequence[Meeting]) -> Int32s:
        """On how many of ``available`` each pair has met in these, shape (pairs,)."""
        met = {(self._number[own.agent_a, own.agent_b], self._cluster[own.query_id]) for own in meetings}
        return np.bincount([pair for pair, _ in met], minlength=self.a.size).astype(np.int32)

    def _order(self, pair: int) -> list[list[str]]:
        if pair not in self._orders:
            both = self._present[:, self.a[pair]] & self._present[:, self.b[pair]]
            # Starting places are spread evenly, so that the first round of all pairs touches each query alike.
            start = pair * len(self._queries) // self.a.size
            places = np.roll(np.arange(len(self._queries)), -start)
            turns: dict[str, list[int]] = {}
            for place in places[both[places]].tolist():
                turns.setdefault(self._cluster[self._queries[place]], []).append(place)
            self._orders[pair] = [[self._queries[place] for place in sorted(own)] for own in turns.values()]
        return self._orders[pair]

    def _names(self, pair: int) -> tuple[str, str]:
        return self.agents[self.a[pair]], self.agents[self.b[pair]]


def _drawn(seed: int, *names: str) -> float:
    """A number in [0, 1) that depends on the seed and the names alone, not on what else there is."""
    return random.Random("\x00".join([str(seed), *names])).random()  # noqa: S311 - reproducible, not secret
