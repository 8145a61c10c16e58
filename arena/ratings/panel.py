"""Several judges as one panel: ratings that weigh each judge by its discrimination.

A discrimination is 1 for the average judge, 0 for one who throws a coin and negative for one who prefers the worse;
the model is in ``arena.ratings.discrimination``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry
from arena.ratings.discrimination import DiscriminationModel, JudgedScores
from arena.ratings.existence import Problem
from arena.ratings.games import Floats, Games, GameVerdict, VerdictTable, as_games, tabulate
from arena.ratings.judges import judged_games


@dataclass(frozen=True, slots=True)
class PanelSettings:
    """How the panel's ratings are fitted and shown.

    Attributes:
        centre: the mean rating.
        scale: points per factor of ten in the odds of the average judge.
        prior_games: virtual drawn games of each agent against an average one before each judge. They keep strengths
            and discriminations finite whatever the verdicts, and change neither their scale nor their order.
        level: of intervals.
        max_iterations: of the optimiser.
        tolerance: largest gradient, in games, that counts as converged.
    """

    centre: float = 1000.0
    scale: float = 400.0
    prior_games: float = 0.1
    level: float = 0.95
    max_iterations: int = 500
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        if not (self.scale > 0 and self.prior_games > 0 and self.max_iterations > 0 and self.tolerance > 0):
            raise ValueError("scale, prior_games, max_iterations and tolerance must be positive")
        if not 0 < self.level < 1:
            raise ValueError("level must lie between 0 and 1")


@dataclass(frozen=True, slots=True)
class JudgeWeight:
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


@dataclass(frozen=True, slots=True, eq=False)
class PanelRatings:
    """Ratings of agents and judges fitted together.

    Attributes:
        agents: names, in the order of ``ratings``.
        ratings: in points as the average judge sees them, shape (agents,).
        low, high: their intervals, clustered as those of the judges, ``None`` with fewer than two clusters.
        judges: in the order of their names.
        problems: what keeps ratings without the prior from existing, were all judges' games pooled.
        iterations, gradient_norm, converged: how the optimiser ended; the norm is in games.
    """

    agents: tuple[str, ...]
    ratings: Floats
    low: Floats | None
    high: Floats | None
    judges: tuple[JudgeWeight, ...]
    problems: tuple[Problem, ...]
    iterations: int
    gradient_norm: float
    converged: bool
    settings: PanelSettings


def panel_ratings(
    verdicts: Iterable[GameVerdict] | VerdictTable, settings: PanelSettings | None = None
) -> PanelRatings:
    """Fit agents' strengths and judges' discriminations together.

    The likelihood may have several maxima; the one found is uphill of all judges being equal.

    Args:
        verdicts: each judge's two orders are reconciled; without queries every verdict is a game.
        settings: the defaults if absent.
    """
    from scipy.optimize import minimize

    chosen = settings or PanelSettings()
    table = verdicts if isinstance(verdicts, VerdictTable) else tabulate(verdicts)
    games = _judged(table)
    pooled_games = Games(table.agents, games.a, games.b, games.score)
    pooled = bradley_terry(pooled_games, BradleyTerrySettings(ties="half", centre=0.0, scale=math.log(10)))
    model = DiscriminationModel(games, len(table.agents), len(table.judges), chosen.prior_games)
    found = minimize(
        model.loss,
        np.concatenate([pooled.ratings, np.ones(len(table.judges))]),
        jac=model.slope,
        hess=model.curvature,
        method="trust-exact",
        options={"maxiter": chosen.max_iterations, "gtol": chosen.tolerance},
    )
    x = model.normalised(np.asarray(found.x, np.float64))
    spread = model.spread(x, chosen.level)
    points = chosen.scale / math.log(10)
    ratings = chosen.centre + points * x[: model.agents]
    norm = float(np.abs(model.slope(x)).max())
    return PanelRatings(
        agents=table.agents,
        ratings=ratings,
        low=None if spread is None else ratings - points * spread[: model.agents],
        high=None if spread is None else ratings + points * spread[: model.agents],
        judges=_weights(table.judges, model, x, spread),
        problems=pooled.problems,
        iterations=int(found.nit),
        gradient_norm=norm,
        converged=norm <= 10 * chosen.tolerance,
        settings=chosen,
    )


def _judged(table: VerdictTable) -> JudgedScores:
    if table.query is None:
        shown = as_games(table)
        return JudgedScores(table.judge, shown.a, shown.b, shown.score, np.arange(len(table), dtype=np.int32))
    games = judged_games(table)
    return JudgedScores(games.judge, games.a, games.b, (games.outcome + 1) / 2, games.query)


def _weights(
    names: tuple[str, ...], model: DiscriminationModel, x: Floats, spread: Floats | None
) -> tuple[JudgeWeight, ...]:
    games, gap = model.games, model.gaps(x)[: model.games.a.size]
    upset = np.where(gap > 0, 1 - games.score, np.where(gap < 0, games.score, 0.5))
    counts = np.bincount(games.judge, minlength=model.judges)
    upsets = np.bincount(games.judge, upset, model.judges)
    against = np.bincount(games.judge, np.where(gap > 0, games.score, 1 - games.score), model.judges)
    found = []
    for number, name in enumerate(names):
        value = float(x[model.agents + number])
        half = None if spread is None else float(spread[model.agents + number])
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
