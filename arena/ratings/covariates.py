"""Ratings controlled for what the judge may like besides quality: length, citations, list items, any number.

Bradley-Terry with covariates: the gap of a game is t_a - t_b + g + z . beta, where z holds differences between the two
answers (a minus b). Controlled ratings say which agent would win between answers alike in all covariates; raw ratings,
without them, stand beside. Games with different z cannot be counted together, so ``game_likelihood`` sums over games.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from arena.ratings.bradley_terry import BradleyTerry, BradleyTerrySettings, bradley_terry
from arena.ratings.existence import Problem
from arena.ratings.game_likelihood import Fit, GameData, design_products, game_data, maximise_over_games, score_products
from arena.ratings.games import NO_SPREAD, Floats, Games
from arena.ratings.likelihood import Form
from arena.ratings.preferences import counted

_SAMPLE = 16
_SAMPLED_FROM = 200_000
"""From this many games on, every sixteenth gives the starting point."""
_NOT_IDENTIFIED = 1e-8
"""Share of a covariate's variance, not explained by the agents, below which it has no effect of its own."""
_NOT_HELD = 1e-3
"""Information, in games per squared standard deviation, below which a coefficient runs away."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a covariate is worth.

    Attributes:
        name: of the covariate.
        points: rating points per unit of its difference.
        sd: standard error by the sandwich, clustered by query; ``None`` where a single query (game) shows no variation.
    """

    name: str
    points: float
    sd: float | None


@dataclass(frozen=True, slots=True)
class ControlledRating:
    """One agent's rating controlled for covariates, its standard error (see ``Effect``), and the raw one, in points."""

    agent: str
    rating: float
    standard_error: float | None
    raw: float


@dataclass(frozen=True, slots=True)
class ControlledBoard:
    """What ``Controlled`` comes to, as plain values.

    Attributes:
        agents: best first.
        effects: one per covariate.
        position_effect, position_sd: advantage of being shown first in points, with its standard error, ``None`` where
            verdicts never vary with the place, so that nothing says how far it may be off.
        tie_parameter: as in ``BradleyTerry``.
        problems: why to read the ratings with care, in words.
        converged: whether the method did.
    """

    agents: tuple[ControlledRating, ...]
    effects: tuple[Effect, ...]
    position_effect: float | None
    position_sd: float | None
    tie_parameter: float | None
    problems: tuple[str, ...]
    converged: bool


@dataclass(frozen=True, slots=True, eq=False)
class Controlled:
    """Raw and controlled ratings side by side.

    Attributes:
        raw: the fit without covariates.
        ratings: controlled, in points, shape (agents,).
        covariance: of the controlled ratings by the clustered sandwich, ``None`` where there are fewer than two units.
        effects: one per covariate.
        position_effect: advantage of being shown first in points, ``None`` where not estimated.
        position_sd: its standard error as those of effects.
        tie_parameter: as in ``BradleyTerry``.
        problems: of the raw fit, and ``covariates`` where a coefficient has no maximum and rests on the weak prior.
        clusters: independent units behind the covariance.
        iterations, gradient_norm, converged: how the method ended; the norm is in games, per standard deviation of each
            covariate.
    """

    raw: BradleyTerry
    ratings: Floats
    covariance: Floats | None
    effects: tuple[Effect, ...]
    position_effect: float | None
    position_sd: float | None
    tie_parameter: float | None
    problems: tuple[Problem, ...]
    clusters: int
    iterations: int
    gradient_norm: float
    converged: bool

    def board(self) -> ControlledBoard:
        """The same without what it was computed from."""
        variances = None if self.covariance is None else np.maximum(np.diag(self.covariance), 0.0).tolist()
        rows = [
            ControlledRating(agent, rating, None if variances is None else math.sqrt(variances[place]), raw)
            for place, (agent, rating, raw) in enumerate(
                zip(self.raw.agents, self.ratings.tolist(), self.raw.ratings.tolist(), strict=True)
            )
        ]
        return ControlledBoard(
            agents=tuple(sorted(rows, key=lambda row: -row.rating)),
            effects=self.effects,
            position_effect=self.position_effect,
            position_sd=self.position_sd,
            tie_parameter=self.tie_parameter,
            problems=tuple(problem.message for problem in self.problems),
            converged=self.converged,
        )


def standardised_difference(of_a: Floats, of_b: Floats, *, log: bool = False) -> Floats:
    """Difference between the two answers of each game, in standard deviations over all answers, shape (n,).

    Args:
        of_a: the quantity for the answers of the games' first agents.
        of_b: the same for the second.
        log: of logarithms, as for lengths; 0 counts as 1.
    """
    first, second = (np.log(np.maximum(side, 1.0)) if log else np.asarray(side, np.float64) for side in (of_a, of_b))
    spread = float(np.concatenate([first, second]).std())
    difference: Floats = (first - second) / (spread or 1.0)
    return difference


def controlled_ratings(
    games: Games,
    covariates: Mapping[str, Floats],
    settings: BradleyTerrySettings | None = None,
    *,
    by_query: bool = True,
) -> Controlled:
    """Fit ratings together with the effect of each covariate.

    Args:
        games: the games; with a position term they must say which agent was shown first.
        covariates: difference a minus b of each game by name, shape (n,), see ``standardised_difference``.
        settings: as for ``bradley_terry``.
        by_query: cluster standard errors by query where queries are known.

    Raises:
        ValueError: there are no covariates, one has a wrong shape or a value that is not finite, or one cannot be told
            from the agents' strengths, the order shown and the others; also what ``bradley_terry`` refuses.
    """
    games, rows, by_query = counted(games, by_query=by_query)
    if rows is not None:
        covariates = {name: values[rows] for name, values in covariates.items()}
    raw = bradley_terry(games, settings)
    scales = _scales(games, covariates)
    form = replace(raw.form, covariates=len(covariates))
    data = game_data(games, form, [covariates[name] / scale for name, scale in scales.items()])
    _refuse_unidentified(data, tuple(scales))
    fit, problems = _fit(data, raw, tuple(scales))
    inverse = np.linalg.inv(fit.information)
    products, units = score_products(games, data, fit.x, by_query=by_query)
    covariance = inverse @ products @ inverse * units / (units - 1) if units > 1 else None
    points, agents = raw.settings.points, slice(0, form.agents)
    shown = raw.to_points(np.eye(form.agents)) - raw.settings.centre
    return Controlled(
        raw=raw,
        ratings=raw.to_points(fit.x[agents]),
        covariance=None if covariance is None else shown.T @ covariance[agents, agents] @ shown,
        effects=_effects(form, scales, points * fit.x, None if covariance is None else points**2 * covariance),
        position_effect=float(points * fit.x[form.agents]) if form.position else None,
        position_sd=_position_sd(form, covariance, points),
        tie_parameter=float(np.exp(data.tie(fit.x)[0])) if form.has_tie_parameter else None,
        problems=problems,
        clusters=units,
        iterations=fit.iterations,
        gradient_norm=fit.gradient_norm,
        converged=fit.converged,
    )


def refuse_unusable(games: Games, covariates: Mapping[str, Floats], *, position: bool = False) -> None:
    """See to it that covariates can have an effect of their own in these games, whoever wins them.

    Raises:
        ValueError: as ``controlled_ratings``.
    """
    scales = _scales(games, covariates)
    form = Form(len(games.agents), position, "half", len(covariates))
    data = game_data(games, form, [covariates[name] / scale for name, scale in scales.items()])
    _refuse_unidentified(data, tuple(scales))


def _position_sd(form: Form, covariance: Floats | None, points: float) -> float | None:
    if covariance is None or not form.position:
        return None
    spread = float(points * np.sqrt(max(0.0, covariance[form.agents, form.agents])))
    return spread if spread >= NO_SPREAD else None


def _scales(games: Games, covariates: Mapping[str, Floats]) -> dict[str, float]:
    """Root mean square of each covariate; fits work in its units."""
    if not covariates:
        raise ValueError("give at least one covariate; without any, bradley_terry has the ratings")
    scales = {}
    for name, values in covariates.items():
        if values.shape != (len(games),):
            raise ValueError(f"covariate {name!r}: {values.shape} values for {len(games)} games")
        if not np.isfinite(values).all():
            raise ValueError(f"covariate {name!r}: value {int(np.flatnonzero(~np.isfinite(values))[0]) + 1} is missing")
        scales[name] = float(np.sqrt(np.mean(values**2)))
        if not scales[name]:
            raise ValueError(f"covariate {name!r} is the same for both answers of every game, so it has no effect")
    return scales


def _refuse_unidentified(data: GameData, names: tuple[str, ...]) -> None:
    """A covariate that strengths imitate game by game, as agents' mean lengths would, has no effect of its own."""
    for step in (_SAMPLE, 1) if data.a.size >= _SAMPLED_FROM else (1,):
        part = data.every(step)
        left = _left_for_covariates(data.form, design_products(part))
        values, vectors = np.linalg.eigh(left)
        if values[0] > _NOT_IDENTIFIED * part.a.size:
            return
    worst = np.abs(vectors[:, 0])
    listed = ", ".join(repr(name) for name, part in zip(names, worst, strict=True) if part > 0.1 * worst.max())
    raise ValueError(f"the effect of {listed} cannot be told from the agents' strengths, the order or each other")


def _fit(data: GameData, raw: BradleyTerry, names: tuple[str, ...]) -> tuple[Fit, tuple[Problem, ...]]:
    """The maximum; with a weak prior on the covariates where it does not exist without."""
    form, known = data.form, data.form.agents + data.form.position
    prior, start = np.zeros(form.size), np.zeros(form.size)
    prior[:known], start[:known] = raw.prior[:known], raw.x[:known]
    if form.has_tie_parameter:
        prior[-1], start[-1] = raw.prior[-1], raw.x[-1]
    if data.a.size >= _SAMPLED_FROM:
        part = data.every(_SAMPLE)
        if part.ties == data.ties:
            start = maximise_over_games(part, start, np.maximum(prior, 1.0), raw.settings).x
    fit = maximise_over_games(data, start, prior, raw.settings)
    held = np.linalg.eigvalsh(_left_for_covariates(form, fit.information))[0] > _NOT_HELD
    if fit.converged and held:
        return fit, raw.problems
    prior[form.agents :] = raw.settings.prior_games
    message = f"the winners can be told by {', '.join(names)} alone, or nearly: the effect has no limit"
    problems = (*raw.problems, Problem("covariates", raw.agents, message))
    return maximise_over_games(data, start, prior, raw.settings), problems


def _left_for_covariates(form: Form, information: Floats) -> Floats:
    """Information on the covariates that strengths and the order effect leave them (a Schur complement)."""
    known = form.agents + form.position
    end = known + form.covariates
    cross = information[known:end, :known]
    explained = np.linalg.pinv(information[:known, :known], rcond=1e-10, hermitian=True)
    left: Floats = information[known:end, known:end] - cross @ explained @ cross.T
    return left


def _effects(form: Form, scales: Mapping[str, float], x: Floats, covariance: Floats | None) -> tuple[Effect, ...]:
    """Effects per unit of each covariate, of parameters and their covariance in points."""
    found = []
    for at, (name, scale) in enumerate(scales.items(), start=form.agents + form.position):
        sd = None if covariance is None else float(np.sqrt(covariance[at, at])) / scale
        found.append(Effect(name, float(x[at]) / scale, sd))
    return tuple(found)
