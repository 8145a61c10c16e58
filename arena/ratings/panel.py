"""Panel ratings: strengths of agents and discriminations of judges, fitted together to the same games.

The pairwise model of Chen, Bennett, Collins-Thompson and Horvitz (2013, WSDM, "Pairwise ranking aggregation in a
crowdsourced setting"), with the discrimination parameter of item response theory: judge j prefers agent a, of strength
t_a, over b with probability

    P = 1 / (1 + exp(-g_j (t_a - t_b)))

and a tie is half a win for each. The discrimination is 1 for the average judge, 0 for random verdicts and negative for
a judge who prefers the worse answer. Verdicts depend only on strengths times discriminations, so the mean |g_j| is
fixed at 1 and the sum of g_j must be positive, which means trust in the panel as a whole.
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
"""Virtual drawn games of each agent against an average agent, per judge. They keep strengths and discriminations finite
for any verdicts, and do not change their scale or order."""
_MOST_ITERATIONS, _TOLERANCE, _CONVERGED = 500, 1e-9, 1e-4
"""Limits of the optimiser: it stops at a gradient of ``_TOLERANCE`` games; up to ``_CONVERGED`` the fit is accepted."""


class DiscriminationModel:
    """Negative log-posterior and its derivatives; the parameters are the strengths, then the discriminations.

    Each row has a judge and a contrast of strengths: one per judge and pair of agents with games, then one per judge
    and agent for the virtual draws against the average. So the prior depends only on discrimination times strength.
    """

    def __init__(self, games: Games, judge: Int32s, judges: int, prior_games: float) -> None:
        """Count the games by judge and pair; ``judge`` is the number of each game's judge."""
        agents = len(games.agents)
        self.games, self.judge, self.agents, self.judges = games, judge, agents, judges
        codes = (judge.astype(np.int64) * agents + games.a) * agents + games.b
        kinds, kind = np.unique(codes, return_inverse=True)
        kind_judge, a, b = kinds // agents**2, kinds // agents % agents, kinds % agents
        played = np.bincount(kind, minlength=kinds.size).astype(np.float64)
        contrasts = np.zeros((kinds.size, agents))
        contrasts[np.arange(kinds.size), a], contrasts[np.arange(kinds.size), b] = 1.0, -1.0
        average = np.eye(agents) - 1 / agents
        self._contrasts = np.vstack([contrasts, *[average] * judges])
        self._judge = np.concatenate([kind_judge, np.repeat(np.arange(judges), agents)])
        self._played = np.concatenate([played, np.full(judges * agents, prior_games)])
        won = np.bincount(kind, games.score, kinds.size)
        self._won = np.concatenate([won, np.full(judges * agents, prior_games / 2)])

    def gaps(self, x: Floats) -> Floats:
        """Difference of strengths in each game, without the discrimination, shape (games,)."""
        gaps: Floats = x[self.games.a] - x[self.games.b]
        return gaps

    def loss(self, x: Floats) -> float:
        eta = self._eta(x)
        return float((self._played * np.logaddexp(0.0, eta) - self._won * eta).sum())

    def slope(self, x: Floats) -> Floats:
        """Gradient of ``loss``, shape (agents + judges,)."""
        excess = self._played * scipy.special.expit(self._eta(x)) - self._won
        agent_slope = self._contrasts.T @ (x[self.agents :][self._judge] * excess)
        judge_slope = np.bincount(self._judge, self._contrasts @ x[: self.agents] * excess, self.judges)
        return np.concatenate([agent_slope, judge_slope])

    def curvature(self, x: Floats) -> Floats:
        """Hessian of ``loss``: singular along the mean level and the scale, and indefinite far from a minimum."""
        gap, discrimination = self._contrasts @ x[: self.agents], x[self.agents :][self._judge]
        p = scipy.special.expit(discrimination * gap)
        weight, excess = self._played * p * (1 - p), self._played * p - self._won
        result = np.zeros((x.size, x.size))
        result[: self.agents, : self.agents] = self._contrasts.T @ (
            self._contrasts * (discrimination**2 * weight)[:, np.newaxis]
        )
        cross = self._contrasts * (discrimination * weight * gap + excess)[:, np.newaxis]
        for judge in range(self.judges):
            column = cross[self._judge == judge].sum(axis=0)
            result[: self.agents, self.agents + judge] = result[self.agents + judge, : self.agents] = column
        diagonal = np.arange(self.agents, x.size)
        result[diagonal, diagonal] = np.bincount(self._judge, weight * gap**2, self.judges)
        return result

    def normalised(self, x: Floats) -> Floats:
        """An equivalent fit: strengths with mean 0, discriminations with mean absolute value 1 and a positive sum."""
        strengths, discriminations = x[: self.agents] - x[: self.agents].mean(), x[self.agents :]
        factor = float(np.abs(discriminations).mean()) * (1 if discriminations.sum() >= 0 else -1)
        return np.concatenate([strengths * factor, discriminations / factor]) if factor else x

    def spread(self, x: Floats) -> Floats | None:
        """Half the width of each discrimination's interval at a normalised ``x``, by a sandwich clustered by query.

        ``None`` for fewer than two queries.
        """
        clusters, cluster = np.unique(np.asarray(self.games.cluster), return_inverse=True)
        if clusters.size < 2:
            return None
        gap, discrimination = self.gaps(x), x[self.agents :][self.judge]
        excess = self.games.score - scipy.special.expit(discrimination * gap)
        scores = np.zeros((clusters.size, x.size))
        np.add.at(scores, (cluster, self.games.a), discrimination * excess)
        np.add.at(scores, (cluster, self.games.b), -discrimination * excess)
        np.add.at(scores, (cluster, self.agents + self.judge), gap * excess)
        deviations = scores @ np.linalg.pinv(self.curvature(x), rcond=1e-10, hermitian=True) @ self._gauge(x).T
        variance = (deviations**2).sum(axis=0) * clusters.size / (clusters.size - 1)
        half: Floats = student(0.95, clusters.size) * np.sqrt(variance)
        return half[self.agents :]

    def _gauge(self, x: Floats) -> Floats:
        """Jacobian of ``normalised`` at a normalised ``x``."""
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
    """Discrimination of one judge of the panel.

    Attributes:
        games: number of games that the judge judged.
        discrimination: 1 for the average judge, 0 for random verdicts, negative for a preference for worse answers.
        low, high: interval of the discrimination, clustered by query (or game, if there are no queries); ``None`` with
            fewer than two.
        upsets: share of the judge's games, with ties as half, in which the lower-rated agent won.
        bounded: whether the judge's games limit the discrimination; otherwise, for example without an upset, only the
            prior does.
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
        ratings: ratings in points, on the scale of the average judge, shape (agents,).
        judges: one per judge, in the order of their names.
        problems: why the pooled games of all judges have no maximum without a prior; empty if they have one.
        converged: whether the optimiser ended at a maximum.
    """

    agents: tuple[str, ...]
    ratings: Floats
    judges: tuple[JudgeWeight, ...]
    problems: tuple[Problem, ...]
    converged: bool


def panel_ratings(verdicts: Iterable[GameVerdict] | VerdictTable) -> PanelRatings:
    """Fit agents' strengths and judges' discriminations together.

    The two orders of each judge are reconciled; without queries every verdict is a game. The likelihood may have
    several maxima; the search starts at equal discriminations.
    """
    from scipy.optimize import minimize

    table = tabulate(verdicts)
    games, judge = _judged(table)
    pooled = bradley_terry(games, BradleyTerrySettings(ties="half", centre=0.0, scale=math.log(10)))
    model = DiscriminationModel(games, judge, len(table.judges), _PRIOR_GAMES)
    optimum = minimize(
        model.loss,
        np.concatenate([pooled.ratings, np.ones(len(table.judges))]),
        jac=model.slope,
        hess=model.curvature,
        method="trust-exact",
        options={"maxiter": _MOST_ITERATIONS, "gtol": _TOLERANCE},
    )
    x = model.normalised(np.asarray(optimum.x, np.float64))
    return PanelRatings(
        agents=table.agents,
        ratings=_CENTRE + _SCALE / math.log(10) * x[: model.agents],
        judges=_weights(table.judges, model, x),
        problems=pooled.problems,
        converged=float(np.abs(model.slope(x)).max()) <= _CONVERGED,
    )


def _judged(table: VerdictTable) -> tuple[Games, Int32s]:
    """One game per judge, query and pair, and the number of each game's judge."""
    if table.query is None:
        return replace(as_games(table), cluster=np.arange(len(table), dtype=np.int32)), table.judge
    judge_games = judged_games(table)
    score, cluster = (judge_games.outcome + 1) / 2, table.units[1][judge_games.query]
    return Games(table.agents, judge_games.a, judge_games.b, score, cluster), judge_games.judge


def _weights(names: tuple[str, ...], model: DiscriminationModel, x: Floats) -> tuple[JudgeWeight, ...]:
    games, gap, spread = model.games, model.gaps(x), model.spread(x)
    upset = np.where(gap > 0, 1 - games.score, np.where(gap < 0, games.score, 0.5))
    counts = np.bincount(model.judge, minlength=model.judges)
    upsets = np.bincount(model.judge, upset, model.judges)
    against = np.bincount(model.judge, np.where(gap > 0, games.score, 1 - games.score), model.judges)
    weights = []
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
        weights.append(weight)
    return tuple(weights)
