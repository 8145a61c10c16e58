"""Bradley-Terry ratings by maximum likelihood, with ties and an order effect, and their covariance.

Ratings are log-strengths on the Elo scale: 400 / ln 10 points per unit, so that 400 points are odds of ten to one.

The covariance allows verdicts on one query to depend on each other. It is the cluster-robust sandwich (Liang and Zeger
1986, Biometrika 73): H^-1 (sum over queries of u u') H^-1, where H is the curvature of the log-likelihood and u the
score of a query (the gradient of its log-likelihood), times n / (n - 1) for n queries.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.counts import PairCounts, game_cells, game_clusters, pair_counts
from arena.ratings.existence import Problem, problems, unsettled
from arena.ratings.games import Games
from arena.ratings.likelihood import (
    Outcomes,
    ParameterForm,
    TieModel,
    incidence,
    information,
    maximise,
    slopes,
    tie_values,
)
from retrieval_eval.stats.arrays import Floats


class BradleyTerrySettings(Struct, frozen=True):
    """Settings of the Bradley-Terry model, of its rating scale and of Newton's method.

    Attributes:
        ties: ``davidson`` and ``rao-kupper`` model ties; ``half`` counts a tie as half a win for each agent.
        position: estimate the advantage of being shown first.
        centre: the mean rating, or the rating of ``anchor``.
        anchor: the agent whose rating is fixed at ``centre``; ``None`` fixes the mean of all agents.
        scale: points per factor of ten in odds.
        prior_games: number of virtual draws against an average agent, only for agents without a finite maximum.
        max_iterations, tolerance: limits of Newton's method; it stops once the largest step, in log-odds, is below
            ``tolerance``.
    """

    ties: TieModel = "davidson"
    position: bool = False
    centre: float = 1000.0
    anchor: str | None = None
    scale: float = 400.0
    prior_games: float = 1.0
    max_iterations: int = 100
    tolerance: float = 1e-8

    @property
    def points(self) -> float:
        """Rating points per unit of log-odds."""
        return self.scale / math.log(10)


class BradleyTerry(Struct, frozen=True, eq=False):
    """A fitted Bradley-Terry model.

    Attributes:
        agents: names, in the order of ``ratings``.
        position_effect: advantage of being shown first in points; ``None`` if not estimated.
        tie_parameter: Davidson's nu (0 without ties), or Rao and Kupper's theta, the ratio of strengths at which the
            stronger agent wins half of the games (1 without ties); ``None`` with half-win ties.
        problems: why the likelihood has no maximum; empty if it has one.
        prior: number of virtual games for each parameter, shape (parameters,); all 0 for plain maximum likelihood.
        iterations, gradient_norm, converged: how Newton's method ended; the norm is in games.
        form, counts, x: the model, the counts that it was fitted to, and its parameters, shape (parameters,).
    """

    agents: tuple[str, ...]
    position_effect: float | None
    tie_parameter: float | None
    problems: tuple[Problem, ...]
    prior: Floats
    iterations: int
    gradient_norm: float
    converged: bool
    settings: BradleyTerrySettings
    form: ParameterForm
    counts: PairCounts
    x: Floats

    @property
    def ratings(self) -> Floats:
        """Ratings in points, shape (agents,)."""
        return self.to_points(self.x)

    def to_points(self, x: Floats) -> Floats:
        """Convert parameters to ratings in points: shape (..., parameters) to (..., agents)."""
        strengths = x[..., : len(self.agents)]
        if self.settings.anchor is None:
            level = strengths.mean(axis=-1, keepdims=True)
        else:
            level = strengths[..., [self.agents.index(self.settings.anchor)]]
        points: Floats = self.settings.centre + self.settings.points * (strengths - level)
        return points

    def model_covariance(self) -> Floats:
        """Covariance of ratings if all games are independent and the model is true, shape (agents, agents)."""
        return self.in_points(np.asarray(np.linalg.inv(self.curvature()), np.float64))

    @property
    def position_model_sd(self) -> float:
        """Standard error of the order effect in points, by ``model_covariance``; 0 if not estimated."""
        if not self.form.position:
            return 0.0
        index = self.form.agents
        return float(self.settings.points * np.sqrt(np.linalg.inv(self.curvature())[index, index]))

    def curvature(self) -> Floats:
        """Negative Hessian at the fit, shape (parameters, parameters)."""
        curvature: Floats = information(self.form, self.counts, self.x[np.newaxis], self.prior[np.newaxis])[0]
        return curvature

    def in_points(self, covariance: Floats) -> Floats:
        """Convert a covariance of parameters to one of ratings in points."""
        per_parameter = self.to_points(np.eye(self.form.size)) - self.settings.centre
        ratings: Floats = per_parameter.T @ covariance @ per_parameter
        return ratings


def bradley_terry(
    games: Games, settings: BradleyTerrySettings | None = None, *, start: Floats | None = None
) -> BradleyTerry:
    """Fit ratings to games; ``start``, the parameters of a fit to similar games, saves iterations.

    If the likelihood has no maximum (an agent without a loss or a win, sets of agents that never met, all games tied),
    ``problems`` names the cause and the agents, and their parameters get the weak prior of the settings.

    Raises:
        ValueError: there are no games, an agent has no game, the anchor is unknown, or ``position`` is on but the games
            do not record which agent was shown first.
    """
    chosen = settings or BradleyTerrySettings()
    idle = [name for name, count in zip(games.agents, games.per_agent(), strict=True) if count == 0]
    if idle or not games.agents:
        raise ValueError(f"agents without games cannot be rated: {', '.join(idle) or 'there are none at all'}")
    if chosen.anchor is not None and chosen.anchor not in games.agents:
        raise ValueError(f"the anchor {chosen.anchor!r} is not among the agents")
    counts = pair_counts(games, ordered=chosen.position)
    form = ParameterForm(counts.agents, chosen.position, chosen.ties)
    prior = chosen.prior_games * unsettled(form, counts).astype(np.float64)
    best = maximise(
        form,
        counts,
        np.zeros((1, form.size)) if start is None else start[np.newaxis],
        prior,
        max_iterations=chosen.max_iterations,
        tolerance=chosen.tolerance,
    )
    x = best.x[0]
    return BradleyTerry(
        agents=games.agents,
        position_effect=float(chosen.points * x[form.agents]) if form.position else None,
        tie_parameter=_tie_parameter(form, counts, x),
        problems=problems(form, counts, games.agents),
        prior=prior[0],
        iterations=int(best.iterations[0]),
        gradient_norm=float(best.gradient_norm[0]),
        converged=bool(best.converged[0]),
        settings=chosen,
        form=form,
        counts=counts,
        x=x,
    )


def _tie_parameter(form: ParameterForm, counts: PairCounts, x: Floats) -> float | None:
    """Nu or theta; the fitted parameter is its logarithm."""
    if not form.has_tie_parameter:
        return None
    return float(np.exp(tie_values(form, counts, x[np.newaxis])[0, 0]))


class Sandwich(Struct, frozen=True, eq=False):
    """Sandwich covariance of ratings.

    Attributes:
        covariance: covariance of ratings in points, shape (agents, agents).
        position_sd: standard error of the order effect in points; ``None`` if not estimated.
        clusters: number of independent units: queries, or games.
        per_agent: number of units with a game of each agent, shape (agents,).
    """

    covariance: Floats
    position_sd: float | None
    clusters: int
    per_agent: NDArray[np.int64]


def sandwich(games: Games, fitted: BradleyTerry, *, by_query: bool = True) -> Sandwich | None:
    """Sandwich covariance of ``fitted``, which must come from ``games``.

    The scores of n clusters vary by (n - 1) / n too little around the fit. For each agent, n is the number of clusters
    on which it plays: 5 for an agent with games on 5 of 40 queries.

    Games without a query count as independent. Returns ``None`` for fewer than two units, which show no variation.
    """
    if by_query and games.cluster is not None:
        scores = cluster_scores(games, fitted)
        units, per_agent = len(scores), _clusters_per_agent(games)
    else:
        scores = _game_scores(fitted)
        units = round(float(fitted.counts.games.sum()))
        per_agent = np.round(games.per_agent()).astype(np.int64)
    if units < 2:
        return None
    bread = np.linalg.inv(fitted.curvature())
    parameter_covariance = bread @ (scores.T @ scores) @ bread * units / (units - 1)
    position_sd = None
    if fitted.form.position:
        variance = max(0.0, parameter_covariance[fitted.form.agents, fitted.form.agents])  # negative only by rounding
        position_sd = float(fitted.settings.points * np.sqrt(variance))
    small_sample = np.sqrt((1 + 1 / (np.maximum(per_agent, 2) - 1)) / (units / (units - 1)))
    return Sandwich(
        fitted.in_points(parameter_covariance) * np.outer(small_sample, small_sample), position_sd, units, per_agent
    )


def _clusters_per_agent(games: Games) -> NDArray[np.int64]:
    """Number of clusters with a game of each agent, shape (agents,)."""
    cluster, clusters = game_clusters(games)
    played = np.zeros((clusters, len(games.agents)), np.bool_)
    real = games.weights > 0
    played[cluster[real], games.a[real]] = played[cluster[real], games.b[real]] = True
    return np.asarray(played.sum(axis=0), np.int64)


def cluster_scores(games: Games, fitted: BradleyTerry) -> Floats:
    """Gradient of each query's log-likelihood at the fit, shape (queries, parameters).

    Rows are the queries with a game, in ascending order.
    """
    form, pairs = fitted.form, fitted.counts
    cell = game_cells(games, pairs, ordered=form.position)
    cluster, clusters = game_clusters(games)
    gap_slope, tie_slope = (np.concatenate(part) for part in single_game_slopes(fitted))
    weighted_slope = gap_slope[cell] if games.weight is None else gap_slope[cell] * games.weight
    flat = cluster * form.agents

    def summed(place: NDArray[np.int64], size: int, values: Floats) -> Floats:
        return np.bincount(place, values, size).astype(np.float64)

    low, high = (np.tile(side, 3)[cell] for side in (pairs.a, pairs.b))
    cells = clusters * form.agents
    columns = [
        (summed(flat + low, cells, weighted_slope) - summed(flat + high, cells, weighted_slope)).reshape(
            clusters, form.agents
        )
    ]
    if form.position:
        columns.append(summed(cluster, clusters, weighted_slope)[:, np.newaxis])
    if form.has_tie_parameter:
        columns.append(summed(cluster, clusters, tie_slope[cell] * games.weights)[:, np.newaxis])
    return np.hstack(columns)


def _game_scores(fitted: BradleyTerry) -> Floats:
    """One row per pair and outcome, scaled so that the sum of squares equals that over single games."""
    form, pairs = fitted.form, fitted.counts
    observed = np.concatenate([pairs.wins_a[0], pairs.wins_b[0], pairs.ties[0]])
    gap_slope, tie_slope = (np.concatenate(part) for part in single_game_slopes(fitted))
    columns = [scipy.sparse.vstack([incidence(pairs)] * 3).toarray() * gap_slope[:, np.newaxis]]
    if form.position:
        columns.append(gap_slope[:, np.newaxis])
    if form.has_tie_parameter:
        columns.append(tie_slope[:, np.newaxis])
    scores: Floats = np.sqrt(observed)[:, np.newaxis] * np.hstack(columns)
    return scores[observed > 0]


def single_game_slopes(fitted: BradleyTerry) -> tuple[list[Floats], list[Floats]]:
    """Slopes of the log-likelihood of one game per pair: by the gap and by the tie parameter.

    Each list holds the slopes for a win of a, a win of b and a tie, in this order.
    """
    form, pairs, x = fitted.form, fitted.counts, fitted.x
    gap = x[pairs.a] - x[pairs.b] + (x[form.agents] if form.position else 0.0)
    tie = tie_values(form, pairs, x[np.newaxis])[0]
    one, zero = np.ones(gap.size), np.zeros(gap.size)
    per_outcome = [
        slopes(form.ties, gap, tie, Outcomes(*outcome))
        for outcome in ((one, zero, zero), (zero, one, zero), (zero, zero, one))
    ]
    estimated = form.tie_parameter(pairs)[0]
    return [slope.gap for slope in per_outcome], [slope.tie * estimated for slope in per_outcome]
