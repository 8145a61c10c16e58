"""Bradley-Terry ratings by maximum likelihood, with ties and an order effect.

Log-strengths are shown on the Elo scale: 400 / ln 10 points per unit, so that 400 points are odds of ten to one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias, get_args

import numpy as np

from arena.ratings.counts import PairCounts, pair_counts
from arena.ratings.existence import Problem, problems, unsettled
from arena.ratings.games import Floats, Games
from arena.ratings.likelihood import Form, information, maximise, tie_values
from arena.ratings.ties import TieModel

Ties: TypeAlias = TieModel


@dataclass(frozen=True, slots=True)
class BradleyTerrySettings:
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

    ties: Ties = "davidson"
    position: bool = False
    centre: float = 1000.0
    anchor: str | None = None
    scale: float = 400.0
    prior_games: float = 1.0
    max_iterations: int = 100
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        if self.ties not in get_args(TieModel):
            raise ValueError(f"ties must be one of {', '.join(get_args(TieModel))}, not {self.ties!r}")
        if not (self.scale > 0 and self.prior_games > 0 and self.max_iterations > 0 and self.tolerance > 0):
            raise ValueError("scale, prior_games, max_iterations and tolerance must be positive")

    @property
    def points(self) -> float:
        """Rating points per unit of log-odds."""
        return self.scale / math.log(10)


@dataclass(frozen=True, slots=True, eq=False)
class BradleyTerry:
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
    form: Form
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


def bradley_terry(games: Games, settings: BradleyTerrySettings | None = None) -> BradleyTerry:
    """Fit ratings to games.

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
    form = Form(counts.agents, chosen.position, chosen.ties)
    prior = chosen.prior_games * unsettled(form, counts).astype(np.float64)
    best = maximise(
        form,
        counts,
        np.zeros((1, form.size)),
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


def _tie_parameter(form: Form, counts: PairCounts, x: Floats) -> float | None:
    """Nu or theta: of both the parameter fitted is the logarithm."""
    if not form.has_tie_parameter:
        return None
    return float(np.exp(tie_values(form, counts, x[np.newaxis])[0, 0]))
