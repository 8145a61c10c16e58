"""Several judges as one panel: strengths of agents and discriminations of judges fitted to the same games.

The pairwise model of Chen, Bennett, Collins-Thompson and Horvitz (2013, WSDM, "Pairwise ranking aggregation in a
crowdsourced setting"), with the discrimination parameter of item response theory: judge j says that agent a, of
strength t_a, beats b with probability

    P = 1 / (1 + exp(-g_j (t_a - t_b)))

and a tie is half a win for each. A discrimination is 1 for the average judge, 0 for one who throws a coin and negative
for one who prefers the worse. Strengths times discriminations are all that verdicts show: the scale is fixed by a mean
|g_j| of 1, the sign by a positive sum, that is, by trust in the panel as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import scipy
from msgspec import Struct
from msgspec.structs import replace

from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry
from arena.ratings.existence import Problem
from arena.ratings.games import Games, GameVerdict, VerdictTable, as_games, tabulate
from arena.ratings.judges import judged_games
from retrieval_eval.stats.arrays import Floats, Int32s
from retrieval_eval.stats.bootstrap import student

_CENTRE, _SCALE = 1000.0, 400.0
"""The mean rating, and points per factor of ten in the odds of the average judge."""
_PRIOR_GAMES = 0.1
"""Virtual drawn games of each agent against an average one before each judge. They keep strengths and discriminations
finite whatever the verdicts, and change neither their scale nor their order."""
_MOST_ITERATIONS, _TOLERANCE, _CONVERGED = 500, 1e-9, 1e-4
"""Of the optimiser; the tolerance is the largest gradient, in games."""


class DiscriminationModel:
    """Negative log-posterior of strengths, then discriminations, in one vector, and its derivatives.

    Rows are judge and contrast of strengths: one per game, then each judge's virtual draws of all agents against the
    average, so that the prior depends on products of discrimination and strength alone.
    """

    def __init__(self, games: Games, judge: Int32s, judges: int, prior_games: float) -> None:
        """Take the games with the number of each one's judge."""
        agents = len(games.agents)
        self.games, self.judge, self.agents, self.judges = games, judge, agents, judges
        codes = (judge.astype(np.int64) * agents + games.a) * agents + games.b
        kinds, kind = np.unique(codes, return_inverse=True)
        of_kind, a, b = kinds // agents**2, kinds // agents % agents, kinds % agents
        played = np.bincount(kind, minlength=kinds.size).astype(np.float64)
        contrasts = np.zeros((kinds.size, agents))
        contrasts[np.arange(kinds.size), a], contrasts[np.arange(kinds.size), b] = 1.0, -1.0
        average = np.eye(agents) - 1 / agents
        self._contrasts = np.vstack([contrasts, *[average] * judges])
        self._judge = np.concatenate([of_kind, np.repeat(np.arange(judges), agents)])
        self._played = np.concatenate([played, np.full(judges * agents, prior_games)])
        won = np.bincount(kind, games.score, kinds.size)
        self._won = np.concatenate([won, np.full(judges * agents, prior_games / 2)])

    def gaps(self, x: Floats) -> Floats:
        """Difference of strengths in each game, shape (games,)."""
        gaps: Floats = x[self.games.a] - x[self.games.b]
        return gaps

    def loss(self, x: Floats) -> float:
        """Negative log-posterior."""
        eta = self._eta(x)
        return float((self._played * np.logaddexp(0.0, eta) - self._won * eta).sum())

    def slope(self, x: Floats) -> Floats:
        """Gradient of ``loss``, shape (agents + judges,)."""
        excess = self._played * scipy.special.expit(self._eta(x)) - self._won
        of_agents = self._contrasts.T @ (x[self.agents :][self._judge] * excess)
        of_judges = np.bincount(self._judge, self._contrasts @ x[: self.agents] * excess, self.judges)
        return np.concatenate([of_agents, of_judges])

    def curvature(self, x: Floats) -> Floats:
        """Hessian of ``loss``; singular along the common level and the scale, and indefinite far from a minimum."""
        gap, own = self._contrasts @ x[: self.agents], x[self.agents :][self._judge]
        p = scipy.special.expit(own * gap)
        weight, excess = self._played * p * (1 - p), self._played * p - self._won
        result = np.zeros((x.size, x.size))
        result[: self.agents, : self.agents] = self._contrasts.T @ (self._contrasts * (own**2 * weight)[:, np.newaxis])
        cross = self._contrasts * (own * weight * gap + excess)[:, np.newaxis]
        for judge in range(self.judges):
            column = cross[self._judge == judge].sum(axis=0)
            result[: self.agents, self.agents + judge] = result[self.agents + judge, : self.agents] = column
        diagonal = np.arange(self.agents, x.size)
        result[diagonal, diagonal] = np.bincount(self._judge, weight * gap**2, self.judges)
        return result

    def normalised(self, x: Floats) -> Floats:
        """The same fit with strengths of mean 0 and discriminations of mean absolute value 1 and positive sum."""
        strengths, own = x[: self.agents] - x[: self.agents].mean(), x[self.agents :]
        size = float(np.abs(own).mean()) * (1 if own.sum() >= 0 else -1)
        return np.concatenate([strengths * size, own / size]) if size else x

    def spread(self, x: Floats) -> Floats | None:
        """Half the width of each discrimination's interval by the sandwich by query, at a normalised ``x``."""
        clusters, cluster = np.unique(np.asarray(self.games.cluster), return_inverse=True)
        if clusters.size < 2:
            return None
        gap, own = self.gaps(x), x[self.agents :][self.judge]
        excess = self.games.score - scipy.special.expit(own * gap)
        scores = np.zeros((clusters.size, x.size))
        np.add.at(scores, (cluster, self.games.a), own * excess)
        np.add.at(scores, (cluster, self.games.b), -own * excess)
        np.add.at(scores, (cluster, self.agents + self.judge), gap * excess)
        moved = scores @ np.linalg.pinv(self.curvature(x), rcond=1e-10, hermitian=True) @ self._gauge(x).T
        variance = (moved**2).sum(axis=0) * clusters.size / (clusters.size - 1)
        half: Floats = student(0.95, clusters.size) * np.sqrt(variance)
        return half[self.agents :]

    def _gauge(self, x: Floats) -> Floats:
        """Derivative of ``normalised`` where it leaves ``x`` as it is."""
        result = np.eye(x.size)
        result[: self.agents, : self.agents] -= 1 / self.agents
        signs = np.sign(x[self.agents :]) / self.judges
        result[: self.agents, self.agents :] = np.outer(x[: self.agents], signs)
        result[self.agents :, self.agents :] -= np.outer(x[self.agents :], signs)
        return result

    def _eta(self, x: Floats) -> Floats:
        eta: Floats = x[self.agents :][self._judge] * (self._contrasts @ x[: self.agents])
        return eta


class JudgeWeight(Struct, frozen=True):
    """What the panel's ratings make of one judge.

    Attributes:
        games: that it judged.
        discrimination: 1 for the average judge, 0 for a coin, negative for one who prefers the worse.
        low, high: its interval, clustered by query (or by game, where there are none); ``None`` with fewer than two.
        upsets: share of its games, ties counted half, in which the lower rated agent won.
        bounded: whether its own games limit its discrimination; if not, as without an upset, the prior does.
    """

    judge: str
    games: int
    discrimination: float
    low: float | None
    high: float | None
    upsets: float
    bounded: bool


class PanelRatings(Struct, frozen=True, eq=False):
    """Ratings of agents and judges fitted together.

    Attributes:
        agents: names, in the order of ``ratings``.
        ratings: in points as the average judge sees them, shape (agents,).
        judges: in the order of their names.
        problems: what keeps ratings without the prior from existing, were all judges' games pooled.
        converged: whether the optimiser ended at a maximum.
    """

    agents: tuple[str, ...]
    ratings: Floats
    judges: tuple[JudgeWeight, ...]
    problems: tuple[Problem, ...]
    converged: bool


def panel_ratings(verdicts: Iterable[GameVerdict] | VerdictTable) -> PanelRatings:
    """Fit agents' strengths and judges' discriminations together.

    Each judge's two orders are reconciled; without queries every verdict is a game. The likelihood may have several
    maxima; the one found is uphill of all judges being equal.
    """
    from scipy.optimize import minimize

    table = tabulate(verdicts)
    games, judge = _judged(table)
    pooled = bradley_terry(games, BradleyTerrySettings(ties="half", centre=0.0, scale=math.log(10)))
    model = DiscriminationModel(games, judge, len(table.judges), _PRIOR_GAMES)
    found = minimize(
        model.loss,
        np.concatenate([pooled.ratings, np.ones(len(table.judges))]),
        jac=model.slope,
        hess=model.curvature,
        method="trust-exact",
        options={"maxiter": _MOST_ITERATIONS, "gtol": _TOLERANCE},
    )
    x = model.normalised(np.asarray(found.x, np.float64))
    return PanelRatings(
        agents=table.agents,
        ratings=_CENTRE + _SCALE / math.log(10) * x[: model.agents],
        judges=_weights(table.judges, model, x),
        problems=pooled.problems,
        converged=float(np.abs(model.slope(x)).max()) <= _CONVERGED,
    )


def _judged(table: VerdictTable) -> tuple[Games, Int32s]:
    """Games as single judges saw them, and the number of each one's judge."""
    if table.query is None:
        return replace(as_games(table), cluster=np.arange(len(table), dtype=np.int32)), table.judge
    own = judged_games(table)
    score, cluster = (own.outcome + 1) / 2, table.units[1][own.query]
    return Games(table.agents, own.a, own.b, score, cluster), own.judge


def _weights(names: tuple[str, ...], model: DiscriminationModel, x: Floats) -> tuple[JudgeWeight, ...]:
    games, gap, spread = model.games, model.gaps(x), model.spread(x)
    upset = np.where(gap > 0, 1 - games.score, np.where(gap < 0, games.score, 0.5))
    counts = np.bincount(model.judge, minlength=model.judges)
    upsets = np.bincount(model.judge, upset, model.judges)
    against = np.bincount(model.judge, np.where(gap > 0, games.score, 1 - games.score), model.judges)
    found = []
    for number, name in enumerate(names):
        value = float(x[model.agents + number])
        half = None if spread is None else float(spread[number])
        weight = JudgeWeight(
            judge=name,
            games=int(counts[number]),
            discrimination=value,
            low=None if half is None else value - half,
            high=None if half is None else value + half,
            upsets=float(upsets[number] / counts[number]),
            bounded=bool(upsets[number] > 0 and against[number] > 0),
        )
        found.append(weight)
    return tuple(found)
