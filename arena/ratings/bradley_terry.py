"""Bradley-Terry ratings by maximum likelihood, with ties and an order effect, and their covariance.

Log-strengths are shown on the Elo scale: 400 / ln 10 points per unit, so that 400 points are odds of ten to one.

The covariance allows verdicts on one query to depend on each other. It is the cluster-robust sandwich (Liang and Zeger
1986, Biometrika 73): H^-1 (sum over queries of u u') H^-1, where H is the curvature of the log-likelihood and u a
query's score, times n / (n - 1) for n queries.
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
    """How ratings are fitted and shown.

    Attributes:
        ties: ``davidson`` and ``rao-kupper`` model ties; ``half`` counts one as half a win each.
        position: whether an advantage of being shown first is estimated along.
        centre: the mean rating, or the rating of ``anchor``.
        anchor: the agent held at ``centre``, ``None`` for the mean of all.
        scale: points per factor of ten in odds.
        prior_games: virtual drawn games against an average agent, of those agents alone that the likelihood does not
            settle.
        max_iterations, tolerance: of Newton's method; the tolerance is the largest last step, in log-odds.
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
    """Fitted ratings.

    Attributes:
        agents: names, in the order of ``ratings``.
        position_effect: advantage of being shown first in points, ``None`` where not estimated.
        tie_parameter: Davidson's nu (0 where no game is a tie), or Rao and Kupper's theta, the ratio of strengths
            at which the stronger agent wins half of the games (1 where none is a tie); ``None`` with half-win ties.
        problems: why the likelihood has no maximum; empty if it has.
        prior: virtual games behind each parameter, shape (parameters,); all 0 is plain maximum likelihood.
        iterations, gradient_norm, converged: how Newton's method ended; the norm is in games.
        form, counts, x: the model fitted, what it was fitted to, and its parameters, shape (parameters,).
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
        """In points, shape (agents,)."""
        return self.to_points(self.x)

    def to_points(self, x: Floats) -> Floats:
        """Ratings of parameter vectors, shape (..., parameters) to (..., agents)."""
        strengths = x[..., : len(self.agents)]
        if self.settings.anchor is None:
            level = strengths.mean(axis=-1, keepdims=True)
        else:
            level = strengths[..., [self.agents.index(self.settings.anchor)]]
        points: Floats = self.settings.centre + self.settings.points * (strengths - level)
        return points

    def model_covariance(self) -> Floats:
        """Covariance of ratings if all games were independent and the model true, shape (agents, agents)."""
        return self.in_points(np.asarray(np.linalg.inv(self.curvature()), np.float64))

    @property
    def position_model_sd(self) -> float:
        """Standard error of the order effect in points under the same assumptions; 0 where it was not estimated."""
        if not self.form.position:
            return 0.0
        at = self.form.agents
        return float(self.settings.points * np.sqrt(np.linalg.inv(self.curvature())[at, at]))

    def curvature(self) -> Floats:
        """Negative Hessian at the fit, shape (parameters, parameters)."""
        curvature: Floats = information(self.form, self.counts, self.x[np.newaxis], self.prior[np.newaxis])[0]
        return curvature

    def in_points(self, covariance: Floats) -> Floats:
        """Covariance of ratings from one of parameters."""
        per_parameter = self.to_points(np.eye(self.form.size)) - self.settings.centre
        ratings: Floats = per_parameter.T @ covariance @ per_parameter
        return ratings


def bradley_terry(
    games: Games, settings: BradleyTerrySettings | None = None, *, start: Floats | None = None
) -> BradleyTerry:
    """Fit ratings to games; ``start`` is a fit of nearly the same games, from which the way is shorter.

    Where the likelihood has no maximum (an agent without a loss or a win, sets of agents that never met, all games
    tied) ``problems`` says why and for whom, and those parameters get the weak prior of the settings.

    Raises:
        ValueError: there are no games, an agent has none, the anchor is unknown, or an order effect is wanted of
            games without order.
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
    """Nu or theta: of both the parameter fitted is the logarithm."""
    if not form.has_tie_parameter:
        return None
    return float(np.exp(tie_values(form, counts, x[np.newaxis])[0, 0]))


class Sandwich(Struct, frozen=True, eq=False):
    """Covariance of ratings.

    Attributes:
        covariance: of ratings in points, shape (agents, agents).
        position_sd: standard error of the order effect in points, ``None`` where it was not estimated.
        clusters: independent units: queries, or games.
        per_agent: those on which each agent has a game, shape (agents,).
    """

    covariance: Floats
    position_sd: float | None
    clusters: int
    per_agent: NDArray[np.int64]


def sandwich(games: Games, fitted: BradleyTerry, *, by_query: bool = True) -> Sandwich | None:
    """Sandwich covariance of ``fitted``, which must come from ``games``.

    The scores of n clusters vary by (n - 1) / n too little around the fit. Of each agent that n is the number of its
    own clusters: one that plays on 5 of 40 queries is known from 5.

    Games whose query is not known count as independent. ``None`` where there are fewer than two units, which say
    nothing about variation.
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
    of_parameters = bread @ (scores.T @ scores) @ bread * units / (units - 1)
    position_sd = None
    if fitted.form.position:
        variance = max(0.0, of_parameters[fitted.form.agents, fitted.form.agents])  # none, but for rounding
        position_sd = float(fitted.settings.points * np.sqrt(variance))
    few = np.sqrt((1 + 1 / (np.maximum(per_agent, 2) - 1)) / (units / (units - 1)))
    return Sandwich(fitted.in_points(of_parameters) * np.outer(few, few), position_sd, units, per_agent)


def _clusters_per_agent(games: Games) -> NDArray[np.int64]:
    """On how many clusters each agent has a game, shape (agents,)."""
    cluster, clusters = game_clusters(games)
    played = np.zeros((clusters, len(games.agents)), np.bool_)
    real = games.weights > 0
    played[cluster[real], games.a[real]] = played[cluster[real], games.b[real]] = True
    return np.asarray(played.sum(axis=0), np.int64)


def cluster_scores(games: Games, fitted: BradleyTerry) -> Floats:
    """Gradient of each query's log-likelihood at the fit, shape (queries, parameters).

    Queries that hold a game come in ascending order.
    """
    form, pairs = fitted.form, fitted.counts
    cell = game_cells(games, pairs, ordered=form.position)
    cluster, clusters = game_clusters(games)
    of_gap, of_tie = (np.concatenate(part) for part in single_game_slopes(fitted))
    pull = of_gap[cell] if games.weight is None else of_gap[cell] * games.weight
    flat = cluster * form.agents

    def summed(place: NDArray[np.int64], size: int, values: Floats) -> Floats:
        return np.bincount(place, values, size).astype(np.float64)

    low, high = (np.tile(side, 3)[cell] for side in (pairs.a, pairs.b))
    cells = clusters * form.agents
    columns = [(summed(flat + low, cells, pull) - summed(flat + high, cells, pull)).reshape(clusters, form.agents)]
    if form.position:
        columns.append(summed(cluster, clusters, pull)[:, np.newaxis])
    if form.has_tie_parameter:
        columns.append(summed(cluster, clusters, of_tie[cell] * games.weights)[:, np.newaxis])
    return np.hstack(columns)


def _game_scores(fitted: BradleyTerry) -> Floats:
    """One row per pair and outcome, scaled so that the rows' squares sum to those of all games."""
    form, pairs = fitted.form, fitted.counts
    observed = np.concatenate([pairs.wins_a[0], pairs.wins_b[0], pairs.ties[0]])
    of_gap, of_tie = (np.concatenate(part) for part in single_game_slopes(fitted))
    columns = [scipy.sparse.vstack([incidence(pairs)] * 3).toarray() * of_gap[:, np.newaxis]]
    if form.position:
        columns.append(of_gap[:, np.newaxis])
    if form.has_tie_parameter:
        columns.append(of_tie[:, np.newaxis])
    scores: Floats = np.sqrt(observed)[:, np.newaxis] * np.hstack(columns)
    return scores[observed > 0]


def single_game_slopes(fitted: BradleyTerry) -> tuple[list[Floats], list[Floats]]:
    """Slopes in the gap and in the tie parameter of one win of a, one of b and one tie of each pair."""
    form, pairs, x = fitted.form, fitted.counts, fitted.x
    gap = x[pairs.a] - x[pairs.b] + (x[form.agents] if form.position else 0.0)
    tie = tie_values(form, pairs, x[np.newaxis])[0]
    one, none = np.ones(gap.size), np.zeros(gap.size)
    of_each = [
        slopes(form.ties, gap, tie, Outcomes(*seen))
        for seen in ((one, none, none), (none, one, none), (none, none, one))
    ]
    estimated = form.tie_parameter(pairs)[0]
    return [each.gap for each in of_each], [each.tie * estimated for each in of_each]
