"""Evidence that may be looked at at any time: how much games speak for an agent, and what may be claimed of the order.

Evidence. For agents a and b let x_1, x_2, ... in [0, 1] be a's scores on the queries on which the two meet, in the
order fixed beforehand by ``Fixtures``. If a is not better than b, that is E x <= 1/2 over the queries that these were
drawn from, the capital of a gambler who stakes a fixed share of it on a each time,

    M_n(s) = prod_{i <= n} (1 + s (x_i - 1/2)),   0 < s < 2,

is a nonnegative supermartingale that begins at 1, and so is the mean M_n of such capitals over several stakes s. By
Ville's inequality it ever reaches c with a probability of at most 1/c. That is "testing by betting" as in Waudby-Smith
and Ramdas (2024, JRSS B 86, sections 3 and 4); a mean over stakes is Robbins's mixture (1970, Annals of Mathematical
Statistics 41). It is exact: no normal approximation, no variance to estimate, and ties (x = 1/2) change nothing.

Two properties of this form matter here. The gambler is blind to all other pairs, and x_1, x_2, ... is a fixed sequence
of which adaptivity only decides how far it is uncovered. So the bound on the whole sequence stands whatever rule
chooses which pair plays on, and although verdicts of different pairs on one query depend on each other; bets that learn
from other pairs, or queries chosen by what happened on them, would lose that. And the stakes do not depend on
the past, so the order in which verdicts arrive changes nothing, and a restart needs no more than the verdicts.

Claims. Agent a is said to beat b once the evidence for it has reached K / alpha, for K agents. The first place is given
to an agent that beats all others, the second to one that beats all but the first, and so on: a place is *decided* once
its agent beats everybody who is not placed above it. So every pair in a claimed order has been decided by its own
games. Nothing is inferred by transitivity or from a rating model, and agents that have no order get none: where each of
three beats the next in a circle, on a majority of the queries, no evidence will ever place them.

With probability of at least 1 - alpha *all* places ever claimed, at all looks, are right. Proof. Call a truly better
than b if its expected score is above 1/2, and let t_1, ..., t_r be the longest chain in which t_i is truly better than
everybody but t_1, ..., t_{i-1}; it may be empty. Every agent a but t_1 has one opponent o(a) that it is not truly
better than: for t_k it is t_{k-1}; for an agent outside the chain it is some other one outside, which exists, since
else a would continue the chain. Suppose the first wrong place, number i, goes to a. The places above are right, so a
is claimed to beat everybody except t_1, ..., t_{i-1}. As a is none of t_1, ..., t_i, its o(a) is none of
t_1, ..., t_{i-1}, and so one of the claims is "a beats o(a)", which is false. These false claims are at most K, fixed
by the truth and not by the data, and each ever comes up with a probability of at most alpha / K (Ville). QED.

So the threshold pays for K comparisons, not for K (K - 1) / 2 pairs in two directions, and agents that tie are covered.
It pays for places only: of two agents without a place, that one ``beats`` the other is progress and not yet a claim.
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
"""From a preference of 51 % to one of 99 %: the best stake on a win share p is about 2 (2p - 1)."""


def outcomes_of(games: Games, agents: Sequence[str]) -> Games:
    """One outcome in [0, 1] for each cluster and pair: the mean over its games.

    These are several if several judges decide, or if the cluster is a conversation of several turns.

    Args:
        games: reconciled games; their query must be known.
        agents: all agents of the tournament, also those without a game.

    Raises:
        ValueError: the games have no query, or an agent that is not among ``agents``.
    """
    if games.cluster is None:
        raise ValueError("these games do not name their query, so they cannot be told from repetitions")
    number = {name: code for code, name in enumerate(agents)}
    if unknown := [name for name in games.agents if name not in number]:
        raise ValueError(f"games of agents that are not in the tournament: {', '.join(unknown)}")
    codes = np.array([number[name] for name in games.agents], np.int32)
    a, b = codes[games.a], codes[games.b]
    low, high = np.minimum(a, b), np.maximum(a, b)
    of_low = np.where(a < b, games.score, 1.0 - games.score)
    key = (games.cluster.astype(np.int64) * len(agents) + low) * len(agents) + high
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    weight = np.bincount(group, games.weights, first.size)
    kept = weight > 0
    score = np.bincount(group, games.weights * of_low, first.size)[kept] / weight[kept]
    return Games(tuple(agents), low[first][kept], high[first][kept], np.clip(score, 0.0, 1.0), soft=True)


def log_evidence(outcomes: Games) -> Floats:
    """Log of the capital M that bets on the row agent against the column agent, shape (agents, agents).

    0 where nothing is known and on the diagonal. Above log(1/p) the row agent is better, at p-value p, at any time.
    """
    size = len(outcomes.agents)
    rows = np.concatenate([outcomes.a, outcomes.b]).astype(np.int64)
    columns = np.concatenate([outcomes.b, outcomes.a])
    edge = np.concatenate([outcomes.score, 1.0 - outcomes.score]) - 0.5
    cell = rows * size + columns
    capital = np.array([np.bincount(cell, np.log1p(stake * edge), size * size) for stake in STAKES])
    mean: Floats = scipy.special.logsumexp(capital, axis=0) - np.log(STAKES.size)
    return mean.reshape(size, size)


Decide: TypeAlias = Literal["order", "top"]


class AdaptiveSettings(Struct, frozen=True):
    """How games are chosen and when they end.

    Attributes:
        decide: all places, or the first one alone.
        confidence: probability that nothing claimed is wrong, at all looks together.
        batch: games chosen at a time; a game is one pair on one query, in both orders.
        max_games: no more than these; ``None`` for as many as there are queries for.
        seed: of the queries' order and of choices between equals.
    """

    decide: Decide = "order"
    confidence: float = 0.95
    batch: int = 60
    max_games: int | None = None
    seed: int = 0


class Decision(Struct, frozen=True, eq=False):
    """What the games so far decide.

    Attributes:
        agents: names, the order of ``beats``.
        places: names of the agents whose place is decided, from the first place down.
        beats: which row agent has been decided to beat which column agent, shape (agents, agents).
        decided: whether what was asked for is decided.
        games: meetings behind it.
    """

    agents: tuple[str, ...]
    places: tuple[str, ...]
    beats: NDArray[np.bool_]
    decided: bool
    games: int

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Pairs of which neither has been decided to beat the other, shape (agents, agents)."""
        pairs: NDArray[np.bool_] = ~(self.beats | self.beats.T | np.eye(len(self.agents), dtype=np.bool_))
        return pairs


def decision(outcomes: Games, settings: AdaptiveSettings) -> Decision:
    """The places that these outcomes decide; look as often as you like."""
    size = len(outcomes.agents)
    threshold = math.log(max(size, 1) / (1 - settings.confidence))
    beats = log_evidence(outcomes) >= threshold
    placed = _places(beats)
    decided = len(placed) == size if settings.decide == "order" else bool(placed) or not size
    return Decision(outcomes.agents, tuple(outcomes.agents[a] for a in placed), beats, decided, len(outcomes))


def _places(beats: NDArray[np.bool_]) -> list[int]:
    """Each agent that beats everybody not placed yet."""
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
