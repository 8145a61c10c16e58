"""Anytime-valid evidence that one agent beats another, and the places in the order that it decides.

Evidence. For agents a and b let x_1, x_2, ... in [0, 1] be a's scores on the queries on which the two meet, in the
order that ``Fixtures`` fixes before the run. If a is not better than b, that is E x <= 1/2 over the population of
queries, the capital of a gambler who stakes a fixed share of it on a each time,

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
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.games import Games
from retrieval_eval.stats import paired
from retrieval_eval.stats.arrays import Floats

STAKES: Floats = 2 * paired.STAKES
"""Stakes for win shares p from 51 % to 99 %: the best stake for p is about 2 (2p - 1)."""


def outcomes_of(games: Games, agents: Sequence[str]) -> Games:
    """One outcome in [0, 1] per cluster and pair: the mean over its games.

    A pair has several games on a cluster with several judges, or if the cluster is a conversation of several turns.

    Args:
        games: reconciled games with their queries.
        agents: all agents of the tournament, also those without a game.

    Raises:
        ValueError: the games have no query, or one of their agents is not in ``agents``.
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
        confidence: least probability that all claims at all looks are right.
        batch: number of games chosen at a time; a game is one pair on one query, in both orders.
        max_games: limit of games; ``None`` for all pairs on all queries.
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
    """The places that these outcomes decide; the error probability holds even if you look after every batch."""
    size = len(outcomes.agents)
    threshold = math.log(max(size, 1) / (1 - settings.confidence))
    beats = log_evidence(outcomes) >= threshold
    placed = _places(beats)
    decided = len(placed) == size if settings.decide == "order" else bool(placed) or not size
    return Decision(outcomes.agents, tuple(outcomes.agents[a] for a in placed), beats, decided, len(outcomes))


def _places(beats: NDArray[np.bool_]) -> list[int]:
    """Agents in the order of their decided places: each beats every agent not placed above it."""
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
