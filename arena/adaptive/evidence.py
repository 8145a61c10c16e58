"""How much the games between two agents speak for one of them, at any moment, however often one looks.

For agents a and b let x_1, x_2, ... in [0, 1] be a's scores on the queries on which the two meet, in the order fixed
beforehand by ``fixtures``. If a is not better than b, that is E x <= 1/2 over the queries that these were drawn from,
the capital of a gambler who stakes a fixed share of it on a each time,

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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from arena.ratings.games import Floats, Games, Ints

STAKES: Floats = np.geomspace(0.05, 1.8, 8)
"""From a preference of 51 % to one of 99 %: the best stake on a win share p is about 2 (2p - 1)."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What is known of meetings of two agents on one query, one row each.

    Attributes:
        agents: names; ``a`` and ``b`` index them, a < b.
        a, b: int32, shape (n,).
        score: score of ``a``, mean over judges, in [0, 1], shape (n,).
    """

    agents: tuple[str, ...]
    a: Ints
    b: Ints
    score: Floats

    def __len__(self) -> int:
        return self.a.size


def outcomes_of(games: Games, agents: Sequence[str]) -> Outcomes:
    """One outcome for each query and pair: the mean over its games, which are several if several judges decide.

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
    return Outcomes(tuple(agents), low[first][kept], high[first][kept], np.clip(score, 0.0, 1.0))


def log_evidence(outcomes: Outcomes) -> Floats:
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
