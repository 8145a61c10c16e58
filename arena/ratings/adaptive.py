"""Adaptive schedules: choose the games that tell most about the order of the agents, and stop once it is decided.

``Fixtures`` fixes the order of queries for each pair of agents before the run. All pairs go through the same seeded
shuffle of the queries, but start at different positions, so that games spread evenly over the queries. A pair's queries
are therefore a random sample in random order, chosen without looking at any outcome. The confidence sequences of
``evidence`` need this. A run judges ``next_games(fixtures, asked, outcomes, settings)`` until the list is empty.

The next games are those with the highest expected information about which agent of a pair is better. The agents'
strengths have a normal posterior: the Laplace approximation of a Bradley-Terry posterior with half-win ties. The gain
of a game between a and b is the expected drop in the entropy of the sign of their difference (the criterion of Houlsby
et al. 2011, arXiv 1112.5745). If the game removes the share r of the variance of the difference, the gain is, to first
order in r and in nats,

    gain = r phi(z)^2 / (2 Phi(z) Phi(-z)),   z = mean / sd of the difference,

by expanding the entropy h(Phi(z')) around z, where z' after the game has mean z / sqrt(1 - r) and variance r / (1 - r).
The gain is large for close pairs with few games and near 0 for pairs that are clearly apart. The games of a batch are
chosen one by one; after each choice the variance shrinks. The posterior only chooses games. It ignores that verdicts
on one query depend on each other: a poor choice costs games but never lowers the confidence.
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
"""Prior variance of a strength in log-odds: a standard deviation of 174 Elo."""
_LARGEST_STEP = 1.0
"""Longest Newton step, in log-odds. The log-posterior is concave, so a step this short always climbs."""
_DIGITS = 9
"""Gains are rounded to this many digits, so that rounding errors never decide between two pairs."""


class Belief(Struct):
    """Normal posterior of the agents' strengths in log-odds: shapes (agents,) and (agents, agents)."""

    mean: Floats
    covariance: Floats

    def gap(self, a: Int32s, b: Int32s) -> tuple[Floats, Floats]:
        """Mean and variance of each pair's difference."""
        variance = np.diag(self.covariance)
        return self.mean[a] - self.mean[b], variance[a] + variance[b] - 2 * self.covariance[a, b]

    def expect_game(self, a: int, b: int) -> None:
        """Shrink the covariance as a game between a and b would; the outcome does not matter."""
        gap_covariance = self.covariance[:, a] - self.covariance[:, b]
        information = _bernoulli(self.mean[a] - self.mean[b])
        self.covariance -= (
            np.outer(gap_covariance, gap_covariance)
            * information
            / (1 + information * (gap_covariance[a] - gap_covariance[b]))
        )


def belief(outcomes: Games) -> Belief:
    """Laplace approximation of the posterior: its mode and the inverse curvature there."""
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
    """Log of the expected information, in nats, of one more game about which agent of a pair is better.

    Args:
        mean: mean difference of each pair in log-odds, shape (pairs,).
        variance: variance of each difference, shape (pairs,).
    """
    z = mean / np.sqrt(variance)
    ratio = variance * _bernoulli(mean)
    log_share = np.log(ratio) - np.log1p(ratio)
    two_phi_squared = -(z**2) - np.log(2 * np.pi)
    gain: Floats = log_share + two_phi_squared - np.log(2) - scipy.special.log_ndtr(z) - scipy.special.log_ndtr(-z)
    return gain


def next_games(
    fixtures: Fixtures, asked: Sequence[Meeting], outcomes: Games, settings: AdaptiveSettings
) -> list[Meeting]:
    """The next batch of games; empty once the order is decided or no useful game remains.

    The same arguments give the same batch, so a resumed run with the same verdicts plays the same games.

    Args:
        fixtures: all possible games.
        asked: the games of all batches so far; a game without a verdict does not come again.
        outcomes: the asked games that have a verdict.
        settings: batch size, decision to reach and limit of games.
    """
    so_far = decision(outcomes, settings)
    played = fixtures.played(asked)
    remaining = len(fixtures) if settings.max_games is None else settings.max_games - len(asked)
    budget = min(settings.batch, remaining)
    if so_far.decided or budget <= 0:
        return []
    posterior = belief(outcomes)
    needed = _needed(so_far, posterior, settings)[fixtures.a, fixtures.b]
    batch: list[Meeting] = []
    while len(batch) < budget and (eligible := needed & (played < fixtures.available)).any():
        gain = np.round(log_gain(*posterior.gap(fixtures.a, fixtures.b)), _DIGITS)
        pair = int(np.argmax(np.where(eligible, gain, -np.inf)))
        chosen = fixtures.meetings(pair, int(played[pair]))
        if len(batch) + len(chosen) > remaining:
            break  # evidence from half a conversation would change once the other half is judged
        batch += chosen
        posterior.expect_game(int(fixtures.a[pair]), int(fixtures.b[pair]))
        played[pair] += 1
    return batch


def _needed(so_far: Decision, posterior: Belief, settings: AdaptiveSettings) -> NDArray[np.bool_]:
    """Which pairs to decide: all undecided pairs, or only undecided pairs of the agent most likely to be first."""
    if settings.decide == "order":
        return so_far.undecided
    unbeaten = ~so_far.beats.any(axis=0)
    needed = np.zeros_like(so_far.undecided)
    if unbeaten.any():  # otherwise the agents beat each other in a circle and none is first
        leader = int(np.argmax(np.where(unbeaten, posterior.mean, -np.inf)))
        needed[leader] = needed[:, leader] = so_far.undecided[leader]
    return needed


def _bernoulli(gap: Floats) -> Floats:
    """Fisher information of one game about a difference in log-odds."""
    variance: Floats = scipy.special.expit(gap) * scipy.special.expit(-gap)
    return variance


class Meeting(NamedTuple):
    """One pair of agents on one query; ``agent_a`` sorts before ``agent_b``."""

    query_id: str
    agent_a: str
    agent_b: str


class Fixtures:
    """All possible meetings, in the order in which each pair would play them.

    Two agents meet on all turns of one conversation before they start another, because conversations are independent
    and turns are not.

    Attributes:
        agents: names, sorted.
        a, b: agents of each pair, a < b, in an order that depends on the seed, shape (pairs,).
        available: number of queries (or conversations) that both agents of a pair answered, shape (pairs,).
    """

    def __init__(
        self, answering: Mapping[str, Sequence[str]], seed: int, clusters: Mapping[str, str] | None = None
    ) -> None:
        """Shuffle the queries and the pairs.

        Args:
            answering: the agents that answered each query.
            seed: seed of the shuffle.
            clusters: the conversation of each query; queries outside conversations are absent.
        """
        self.agents = tuple(sorted({agent for present in answering.values() for agent in present}))
        number = {agent: code for code, agent in enumerate(self.agents)}
        self._cluster = {query_id: (clusters or {}).get(query_id, query_id) for query_id in answering}
        keys = {cluster: (_seeded_random(seed, cluster), cluster) for cluster in self._cluster.values()}
        self._queries = sorted(answering, key=lambda query_id: keys[self._cluster[query_id]])  # turns in their order
        self._present = np.zeros((len(self._queries), len(self.agents)), np.bool_)
        for row, query_id in enumerate(self._queries):
            self._present[row, [number[agent] for agent in answering[query_id]]] = True
        pairs = list(combinations(range(len(self.agents)), 2))
        pairs.sort(key=lambda pair: _seeded_random(seed, self.agents[pair[0]], self.agents[pair[1]]))
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
        return self._meetings

    def meetings(self, pair: int, nth: int) -> list[Meeting]:
        """Meetings of a pair on its ``nth`` query or conversation (from 0), one per turn."""
        return [Meeting(query_id, *self._names(pair)) for query_id in self._order(pair)[nth]]

    def played(self, meetings: Sequence[Meeting]) -> Int32s:
        """Number of queries (or conversations) on which each pair has met, shape (pairs,)."""
        pairs_met = {
            (self._number[meeting.agent_a, meeting.agent_b], self._cluster[meeting.query_id]) for meeting in meetings
        }
        return np.bincount([pair for pair, _ in pairs_met], minlength=self.a.size).astype(np.int32)

    def _order(self, pair: int) -> list[list[str]]:
        if pair not in self._orders:
            both_answered = self._present[:, self.a[pair]] & self._present[:, self.b[pair]]
            # Evenly spread starting positions, so that the first round of all pairs uses each query equally often.
            start = pair * len(self._queries) // self.a.size
            positions = np.roll(np.arange(len(self._queries)), -start)
            turns: dict[str, list[int]] = {}
            for position in positions[both_answered[positions]].tolist():
                turns.setdefault(self._cluster[self._queries[position]], []).append(position)
            self._orders[pair] = [
                [self._queries[position] for position in sorted(turn_positions)] for turn_positions in turns.values()
            ]
        return self._orders[pair]

    def _names(self, pair: int) -> tuple[str, str]:
        return self.agents[self.a[pair]], self.agents[self.b[pair]]


def _seeded_random(seed: int, *names: str) -> float:
    """A pseudo-random number in [0, 1) that depends only on the seed and the names, not on other agents or queries."""
    return random.Random("\x00".join([str(seed), *names])).random()  # noqa: S311 - reproducible, not secret
