"""Adaptive schedules: choose the games that tell most about the order of the agents, and stop once it is decided.

``Fixtures`` fixes the order of queries for each pair of agents before the run. All pairs go through the same seeded
shuffle of the queries, but start at different positions, so that games spread evenly over the queries. A pair's queries
are therefore a random sample in random order, chosen without looking at any outcome, which the evidence needs. A run
judges ``next_games(fixtures, asked, outcomes, settings)`` until the list is empty.

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

Evidence. The evidence that one agent beats another is valid at any time. For agents a and b let x_1, x_2, ... in [0, 1]
be a's scores on the queries on which the two meet, in the order that ``Fixtures`` fixes before the run. If a is not
better than b, that is E x <= 1/2 over the population of queries, the capital of a gambler who stakes a fixed share of
it on a each time,

    M_n(s) = prod_{i <= n} (1 + s (x_i - 1/2)),   0 < s < 2,

is a nonnegative supermartingale that starts at 1, and so is the mean M_n of such capitals over several stakes s. By
Ville's inequality the probability that it ever reaches c is at most 1/c. This is "testing by betting" as in
Waudby-Smith and Ramdas (2024, JRSS B 86, sections 3 and 4); a mean over stakes is Robbins's mixture (1970, Annals of
Mathematical Statistics 41). It is exact: no normal approximation, no variance to estimate, and ties (x = 1/2) change
nothing.

Two properties of this form matter here. First, the gambler ignores all other pairs, and x_1, x_2, ... is a fixed
sequence; the schedule only decides how much of it is played. So the bound on the whole sequence holds for any rule that
chooses the next pair, and although verdicts of different pairs on one query depend on each other. It would fail if bets
used the games of other pairs, or if queries were chosen by their outcomes. Second, the stakes do not depend on past
games, so the order in which verdicts arrive changes nothing, and a resumed run needs only the verdicts.

Claims. Agent a beats b once the evidence for it reaches K / alpha, for K agents. The first place goes to an agent that
beats all others, the second to an agent that beats all but the first, and so on: a place is *decided* once its agent
beats every agent that is not placed above it. So the games between two agents decide their order. Nothing is inferred
by transitivity or from a rating model. Agents without an order get no place: if three agents beat each other in a
circle, each on a majority of the queries, no amount of evidence places them.

With probability of at least 1 - alpha *all* places ever claimed, at all looks, are right. Proof. Call a truly better
than b if its expected score is above 1/2, and let t_1, ..., t_r be the longest chain in which t_i is truly better than
everybody but t_1, ..., t_{i-1}; it may be empty. Every agent a except t_1 has an opponent o(a) that it is not truly
better than: for t_k this is t_{k-1}; for an agent outside the chain it is another agent outside, which exists, since
otherwise a would continue the chain. Suppose the first wrong place, number i, goes to a. The places above are right, so
the claim is that a beats everybody except t_1, ..., t_{i-1}. As a is none of t_1, ..., t_i, its o(a) is none of
t_1, ..., t_{i-1}, and so one of the claims is "a beats o(a)", which is false. There are at most K such false claims,
fixed by the truth and not by the data, and each ever occurs with a probability of at most alpha / K (Ville). QED.

So the threshold accounts for K comparisons, not for K (K - 1) / 2 pairs in two directions, and it covers agents that
are equally good. It covers places only: between two agents without a place, ``beats`` shows progress and is no claim.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.games import Games
from retrieval_eval.stats import Floats, Int32s, paired

_PRIOR_VARIANCE = 1.0
"""Prior variance of a strength in log-odds: a standard deviation of 174 Elo."""
_LARGEST_STEP = 1.0
"""Longest Newton step, in log-odds. The log-posterior is concave, so a step this short always climbs."""
_DIGITS = 9
"""Gains are rounded to this many digits, so that rounding errors never decide between two pairs."""


class Belief(Struct):
    """Normal posterior of the agents' strengths in log-odds; ``covariance`` has the shape (agents, agents)."""

    mean: Floats
    covariance: Floats

    def gap(self, a: Int32s, b: Int32s) -> tuple[Floats, Floats]:
        """Mean and variance of the strength of ``a`` minus that of ``b``, for pairs of agents."""
        variance = np.diag(self.covariance)
        return self.mean[a] - self.mean[b], variance[a] + variance[b] - 2 * self.covariance[a, b]

    def expect_game(self, a: int, b: int) -> None:
        """Update the covariance for one more game between a and b, whose outcome does not affect the covariance."""
        gap_covariance = self.covariance[:, a] - self.covariance[:, b]
        information = _bernoulli(self.mean[a] - self.mean[b])
        self.covariance -= (
            np.outer(gap_covariance, gap_covariance)
            * information
            / (1 + information * (gap_covariance[a] - gap_covariance[b]))
        )


def belief(outcomes: Games) -> Belief:
    """Laplace approximation of the posterior of the agents' strengths: its mode and the inverse curvature there."""
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
    """Log of the information, in nats, that one more game of a pair is expected to give about which agent is better.

    ``mean`` and ``variance`` describe the difference in log-odds between the agents of each pair, shape (pairs,).
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

    ``asked`` are the games of all batches so far, ``outcomes`` the results of those with a verdict. A game that got no
    verdict is not chosen again. The same arguments give the same batch, so a resumed run with the same verdicts plays
    the same games.
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
    """Which pairs still need games, shape (agents, agents): all undecided pairs, or those of the likely winner."""
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
        """Number of queries (or conversations) on which each pair meets in ``meetings``, shape (pairs,)."""
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


STAKES: Floats = 2 * paired.STAKES
"""Stakes of the bets that give the evidence, for win shares p from 51 % to 99 %: the best stake is about 2 (2p - 1)."""


def outcomes_of(games: Games, agents: Sequence[str]) -> Games:
    """One outcome in [0, 1] per cluster and pair: the mean over its games.

    A pair has several games on a cluster with several judges, or if the cluster is a conversation of several turns.
    ``agents`` are all agents of the tournament, including those without a game. Games without a query, or of an agent
    that is not in ``agents``, raise a ``ValueError``.
    """
    if games.cluster is None:
        raise ValueError("these games do not name their query: add it, so that repeated games can be recognised")
    number = {name: code for code, name in enumerate(agents)}
    if unknown := [name for name in games.agents if name not in number]:
        raise ValueError(f"games of agents that are not in the tournament: {', '.join(unknown)}")
    codes = np.array([number[name] for name in games.agents], np.int32)
    a, b = codes[games.a], codes[games.b]
    low, high = np.minimum(a, b), np.maximum(a, b)
    score_of_low = np.where(a < b, games.score, 1.0 - games.score)
    key = (games.cluster.astype(np.int64) * len(agents) + low) * len(agents) + high
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    weight = np.bincount(group, games.weights, first.size)
    has_weight = weight > 0
    score = np.bincount(group, games.weights * score_of_low, first.size)[has_weight] / weight[has_weight]
    return Games(tuple(agents), low[first][has_weight], high[first][has_weight], np.clip(score, 0.0, 1.0), soft=True)


def log_evidence(outcomes: Games) -> Floats:
    """Log of the capital M from betting on the row agent against the column agent, shape (agents, agents).

    0 for pairs without games and on the diagonal. Above log(1/p) the row agent is better with p-value p, at any time.
    """
    size = len(outcomes.agents)
    rows = np.concatenate([outcomes.a, outcomes.b]).astype(np.int64)
    columns = np.concatenate([outcomes.b, outcomes.a])
    gain = np.concatenate([outcomes.score, 1.0 - outcomes.score]) - 0.5
    cell = rows * size + columns
    capital = np.array([np.bincount(cell, np.log1p(stake * gain), size * size) for stake in STAKES])
    mean: Floats = scipy.special.logsumexp(capital, axis=0) - np.log(STAKES.size)
    return mean.reshape(size, size)


Decide: TypeAlias = Literal["order", "top"]


class AdaptiveSettings(Struct, frozen=True):
    """Settings of an adaptive schedule.

    Attributes:
        decide: decide all places (``order``) or only the first (``top``).
        confidence: minimum probability that all places decided during the schedule are right.
        batch: number of games chosen at a time; a game is one pair on one query, in both orders.
        max_games: maximum number of games; ``None`` for all pairs on all queries.
        seed: seed of the shuffle of queries and pairs.
    """

    decide: Decide = "order"
    confidence: float = 0.95
    batch: int = 60
    max_games: int | None = None
    seed: int = 0


class Decision(Struct, frozen=True, eq=False):
    """Places that the games so far decide.

    Attributes:
        agents: names, in the order of ``beats``.
        places: names of the agents with a decided place, from the first place down.
        beats: whether the evidence shows that the row agent beats the column agent, shape (agents, agents).
        decided: whether the goal of the settings (all places, or the first) is reached.
        games: number of outcomes that the decision is based on.
    """

    agents: tuple[str, ...]
    places: tuple[str, ...]
    beats: NDArray[np.bool_]
    decided: bool
    games: int

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Pairs in which neither agent is decided to beat the other, shape (agents, agents)."""
        pairs: NDArray[np.bool_] = ~(self.beats | self.beats.T | np.eye(len(self.agents), dtype=np.bool_))
        return pairs


def decision(outcomes: Games, settings: AdaptiveSettings) -> Decision:
    """The ranks that these games decide.

    The probability that any decided rank is wrong is at most ``1 - confidence``, even if you test after every batch.
    """
    size = len(outcomes.agents)
    threshold = math.log(max(size, 1) / (1 - settings.confidence))
    beats = log_evidence(outcomes) >= threshold
    placed = _places(beats)
    decided = len(placed) == size if settings.decide == "order" else bool(placed) or not size
    return Decision(outcomes.agents, tuple(outcomes.agents[a] for a in placed), beats, decided, len(outcomes))


def _places(beats: NDArray[np.bool_]) -> list[int]:
    """Agents whose place is decided, from the first place down: each beats every agent that is not placed above it."""
    placed: list[int] = []
    unplaced = np.ones(len(beats), np.bool_)
    while unplaced.any():
        wins = beats[:, unplaced].sum(axis=1)
        (best,) = np.flatnonzero(unplaced & (wins == unplaced.sum() - 1))[:1].tolist() or [None]
        if best is None:
            break
        placed.append(best)
        unplaced[best] = False
    return placed
