"""What may be claimed about the order, at any moment, with one bound on the chance that anything claimed is wrong.

Agent a is said to beat b once the evidence for it (see ``evidence``) has reached K / alpha, for K agents. The first
place is given to an agent that beats all others, the second to one that beats all but the first, and so on: a place is
*decided* once its agent beats everybody who is not placed above it. So every pair in a claimed order has been decided
by its own games. Nothing is inferred by transitivity or from a rating model, and agents that have no order get none:
where each of three beats the next in a circle, on a majority of the queries, no evidence will ever place them.

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
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arena.adaptive.evidence import Outcomes, log_evidence
from judges.errors import InputError

Decide: TypeAlias = Literal["order", "top"]


@dataclass(frozen=True, slots=True)
class AdaptiveSettings:
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

    def __post_init__(self) -> None:
        if self.decide not in ("order", "top"):
            raise InputError(f"decide must be 'order' or 'top', not {self.decide!r}")
        if not 0 < self.confidence < 1:
            raise InputError(f"confidence must lie between 0 and 1, not {self.confidence}")
        if self.batch < 1 or (self.max_games is not None and self.max_games < 1):
            raise InputError("batch and max_games must be at least 1")


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
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


def decision(outcomes: Outcomes, settings: AdaptiveSettings) -> Decision:
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
