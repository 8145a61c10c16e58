"""Strengths of agents and discriminations of judges from the same games.

The pairwise model of Chen, Bennett, Collins-Thompson and Horvitz (2013, WSDM, "Pairwise ranking aggregation in a
crowdsourced setting"), with the discrimination parameter of item response theory: judge j says that agent a, of
strength t_a, beats b with probability

    P = 1 / (1 + exp(-g_j (t_a - t_b)))

and a tie is half a win for each. Strengths times discriminations are all that verdicts show: the scale is fixed by a
mean |g_j| of 1, the sign by a positive sum, that is, by trust in the panel as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from arena.ratings.games import Floats, Ints
from retrieval_eval.stats.bootstrap import student


@dataclass(frozen=True, slots=True, eq=False)
class JudgedScores:
    """Games as single judges saw them: numbers of judge, agents and query, and the score of ``a``, each shape (n,)."""

    judge: Ints
    a: Ints
    b: Ints
    score: Floats
    cluster: Ints


class DiscriminationModel:
    """Negative log-posterior of strengths, then discriminations, in one vector, and its derivatives.

    Rows are judge and contrast of strengths: one per game, then each judge's virtual draws of all agents against the
    average, so that the prior depends on products of discrimination and strength alone.
    """

    def __init__(self, games: JudgedScores, agents: int, judges: int, prior_games: float) -> None:
        self.games, self.agents, self.judges = games, agents, judges
        codes = (games.judge.astype(np.int64) * agents + games.a) * agents + games.b
        kinds, kind = np.unique(codes, return_inverse=True)
        judge, a, b = kinds // agents**2, kinds // agents % agents, kinds % agents
        played = np.bincount(kind, minlength=kinds.size).astype(np.float64)
        contrasts = np.zeros((kinds.size, agents))
        contrasts[np.arange(kinds.size), a], contrasts[np.arange(kinds.size), b] = 1.0, -1.0
        average = np.eye(agents) - 1 / agents
        self._contrasts = np.vstack([contrasts, *[average] * judges])
        self._judge = np.concatenate([judge, np.repeat(np.arange(judges), agents)])
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

    def spread(self, x: Floats, level: float) -> Floats | None:
        """Half the width of each parameter's interval by the sandwich clustered by query, at a normalised ``x``."""
        clusters, cluster = np.unique(self.games.cluster, return_inverse=True)
        if clusters.size < 2:
            return None
        gap, own = self.gaps(x), x[self.agents :][self.games.judge]
        excess = self.games.score - scipy.special.expit(own * gap)
        scores = np.zeros((clusters.size, x.size))
        np.add.at(scores, (cluster, self.games.a), own * excess)
        np.add.at(scores, (cluster, self.games.b), -own * excess)
        np.add.at(scores, (cluster, self.agents + self.games.judge), gap * excess)
        moved = scores @ np.linalg.pinv(self.curvature(x), rcond=1e-10, hermitian=True) @ self._gauge(x).T
        variance = (moved**2).sum(axis=0) * clusters.size / (clusters.size - 1)
        half: Floats = student(level, clusters.size) * np.sqrt(variance)
        return half

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
