"""Ratings controlled for properties that may sway the judge: length, citations, list items or any other number.

Bradley-Terry with covariates: the gap of a game is t_a - t_b + g + z . beta, where z holds differences between the two
answers (a minus b). Controlled ratings tell which agent would win if both answers had equal covariates; the raw ratings
ignore covariates. Games with different z cannot share a count, so the log-likelihood (model and prior as in
``likelihood``) is a sum over games, computed in blocks that fit the processor's cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.ratings.bradley_terry import BradleyTerry, BradleyTerrySettings, Problem, bradley_terry
from arena.ratings.games import NO_SPREAD, Games, without_preferences
from arena.ratings.likelihood import (
    NO_TIES,
    Curvatures,
    Outcomes,
    ParameterForm,
    curvatures,
    game_clusters,
    prior_curvature,
    prior_pull,
    slopes,
)
from judges.writing import count_words
from retrieval_eval.stats import Floats

_LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+", re.MULTILINE)
_CITATION = re.compile(r"\[\d+(?:\s*,\s*\d+)*\]")
_CONFIDENT = re.compile(
    r"\b(?:certainly|clearly|definitely|obviously|undoubtedly|always|never|surely|without (?:a )?doubt|of course)\b"
)

QUALITIES: Final[Mapping[str, Callable[[str], float]]] = {
    "log_length": lambda text: float(np.log(max(1, count_words(text)))),
    "list_items": lambda text: float(len(_LIST_ITEM.findall(text))),
    "citations": lambda text: float(len(_CITATION.findall(text))),
    "confident_words": lambda text: float(len(_CONFIDENT.findall(text.lower()))),
}
"""Covariates computed from an answer's text, by name; lengths are in words."""


_SAMPLE = 16
_SAMPLED_FROM = 200_000
"""With this many games or more, a fit to every sixteenth game gives the starting point."""
_NOT_IDENTIFIED = 1e-8
"""If agents and order explain all of a covariate's variance but less than this share, its effect is not identified."""
_NOT_HELD = 1e-3
"""A covariate's coefficient has no finite maximum if its information (games per squared unit) is below this."""


class Effect(Struct, frozen=True):
    """Effect of a covariate, such as the length of answers, on the outcome of games.

    Attributes:
        points: advantage in rating points per unit by which the covariate of one answer exceeds that of the other.
        sd: sandwich standard error, clustered by query; ``None`` for a single query (or game).
    """

    name: str
    points: float
    sd: float | None


class ControlledRating(Struct, frozen=True):
    """An agent's controlled rating, its clustered standard error, and the agent's raw rating, all in points."""

    agent: str
    rating: float
    standard_error: float | None
    raw: float


class Controlled(Struct, frozen=True):
    """Ratings controlled for covariates, beside the raw ratings.

    Attributes:
        agents: one row per agent, best first.
        position_effect, position_sd: advantage of being shown first in points, and its standard error; ``None`` without
            a position term. The standard error is also ``None`` if verdicts never vary with the position.
        tie_parameter: as in ``BradleyTerry``.
        problems: problems of the raw fit, and ``covariates`` if a coefficient has no maximum and rests on the weak
            prior.
        clusters: number of independent units for the standard errors.
    """

    agents: tuple[ControlledRating, ...]
    effects: tuple[Effect, ...]
    position_effect: float | None
    position_sd: float | None
    tie_parameter: float | None
    problems: tuple[Problem, ...]
    converged: bool
    clusters: int


def standardised_difference(of_a: Floats, of_b: Floats, *, log: bool = False) -> Floats:
    """Difference of a covariate between the two answers of each game, in its standard deviations over all answers.

    ``of_a`` and ``of_b`` are the covariate's values for the two answers, shape (n,). ``log`` takes their logarithms
    first, as for lengths; values below 1 count as 1.
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

    ``covariates`` has, by name of covariate, the difference a minus b of each game, shape (n,); see
    ``standardised_difference``.

    Raises:
        ValueError: there are no covariates, one has the wrong shape or a value that is not finite, or the effect of
            one is not identified beside the agents' strengths, the order shown and the other covariates. Also the
            errors of ``bradley_terry``.
    """
    games, rows, by_query = without_preferences(games, by_query=by_query)
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
    points = raw.settings.points
    return Controlled(
        agents=_rows(raw, fit.x, covariance),
        effects=_effects(form, scales, points * fit.x, None if covariance is None else points**2 * covariance),
        position_effect=float(points * fit.x[form.agents]) if form.position else None,
        position_sd=_position_sd(form, covariance, points),
        tie_parameter=float(np.exp(data.tie(fit.x)[0])) if form.has_tie_parameter else None,
        problems=problems,
        converged=fit.converged,
        clusters=units,
    )


def _rows(raw: BradleyTerry, x: Floats, covariance: Floats | None) -> tuple[ControlledRating, ...]:
    agents = slice(0, raw.form.agents)
    errors: list[float | None] = [None] * raw.form.agents
    if covariance is not None:
        errors = np.sqrt(np.maximum(np.diag(raw.in_points(covariance[agents, agents])), 0.0)).tolist()
    ratings = raw.to_points(x[agents]).tolist()
    rows = map(ControlledRating, raw.agents, ratings, errors, raw.ratings.tolist())
    return tuple(sorted(rows, key=lambda row: -row.rating))


def refuse_unusable(games: Games, covariates: Mapping[str, Floats], *, position: bool = False) -> None:
    """Check that the effects of the covariates are identified in these games, whatever the outcomes.

    Raises:
        ValueError: as in ``controlled_ratings``.
    """
    scales = _scales(games, covariates)
    form = ParameterForm(len(games.agents), position, "half", len(covariates))
    data = game_data(games, form, [covariates[name] / scale for name, scale in scales.items()])
    _refuse_unidentified(data, tuple(scales))


def _position_sd(form: ParameterForm, covariance: Floats | None, points: float) -> float | None:
    if covariance is None or not form.position:
        return None
    spread = float(points * np.sqrt(max(0.0, covariance[form.agents, form.agents])))
    return spread if spread >= NO_SPREAD else None


def _scales(games: Games, covariates: Mapping[str, Floats]) -> dict[str, float]:
    """Root mean square of each covariate, by which the fit divides its values."""
    if not covariates:
        raise ValueError("there are no covariates: give at least one, or use bradley_terry")
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
    """Raise an error if a covariate follows from the agents of a game, such as each agent's mean length."""
    for step in (_SAMPLE, 1) if data.a.size >= _SAMPLED_FROM else (1,):
        sample = data.every(step)
        unexplained = _covariate_information(data.form, design_products(sample))
        values, vectors = np.linalg.eigh(unexplained)
        if values[0] > _NOT_IDENTIFIED * sample.a.size:
            return
    worst = np.abs(vectors[:, 0])
    listed = ", ".join(repr(name) for name, sample in zip(names, worst, strict=True) if sample > 0.1 * worst.max())
    raise ValueError(
        f"the effect of {listed} cannot be separated from the agents' strengths, the order or each other: leave one out"
    )


def _fit(data: GameData, raw: BradleyTerry, names: tuple[str, ...]) -> tuple[Fit, tuple[Problem, ...]]:
    """Fit the model and find the fit's problems; covariates get a weak prior if the likelihood has no maximum."""
    form, without_covariates = data.form, data.form.agents + data.form.position
    prior, start = np.zeros(form.size), np.zeros(form.size)
    prior[:without_covariates], start[:without_covariates] = raw.prior[:without_covariates], raw.x[:without_covariates]
    if form.has_tie_parameter:
        prior[-1], start[-1] = raw.prior[-1], raw.x[-1]
    if data.a.size >= _SAMPLED_FROM:
        sample = data.every(_SAMPLE)
        if sample.ties == data.ties:
            start = maximise_over_games(sample, start, np.maximum(prior, 1.0), raw.settings).x
    fit = maximise_over_games(data, start, prior, raw.settings)
    bounded = np.linalg.eigvalsh(_covariate_information(form, fit.information))[0] > _NOT_HELD
    if fit.converged and bounded:
        return fit, raw.problems
    prior[form.agents :] = raw.settings.prior_games
    message = f"the winners can be told by {', '.join(names)} alone, or nearly: the effect has no limit"
    problems = (*raw.problems, Problem("covariates", raw.agents, message))
    return maximise_over_games(data, start, prior, raw.settings), problems


def _covariate_information(form: ParameterForm, information: Floats) -> Floats:
    """Information on the covariates' coefficients, given the strengths and the order effect (a Schur complement)."""
    start = form.agents + form.position
    end = start + form.covariates
    cross = information[start:end, :start]
    inverse = np.linalg.pinv(information[:start, :start], rcond=1e-10, hermitian=True)
    complement: Floats = information[start:end, start:end] - cross @ inverse @ cross.T
    return complement


def _effects(
    form: ParameterForm, scales: Mapping[str, float], x: Floats, covariance: Floats | None
) -> tuple[Effect, ...]:
    """Effect of each covariate per unit, from the parameters ``x`` and their covariance, both in points."""
    return tuple(
        Effect(name, float(x[at]) / scale, None if covariance is None else float(np.sqrt(covariance[at, at])) / scale)
        for at, (name, scale) in enumerate(scales.items(), start=form.agents + form.position)
    )


_BLOCK = 8192
"""Number of games that are processed together."""
_LARGEST_STEP = 4.0


class GameData(NamedTuple):
    """Games as arrays: agents, twice the score of a, design columns ``z``, weights, and whether any game is a tie.

    The columns of ``z`` are a column of ones for the order effect, if it is estimated, and the covariates.
    """

    form: ParameterForm
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    twice: NDArray[np.int8]
    z: Floats
    weight: Floats | None
    ties: bool

    def every(self, step: int) -> GameData:
        sample = self._part(slice(None, None, step))
        return sample._replace(ties=bool((sample.twice == 1).any()))

    def blocks(self) -> Iterator[GameData]:
        for start in range(0, self.a.size, _BLOCK):
            yield self._part(slice(start, start + _BLOCK))

    def _part(self, rows: slice) -> GameData:
        weight = None if self.weight is None else self.weight[rows]
        return GameData(self.form, self.a[rows], self.b[rows], self.twice[rows], self.z[rows], weight, self.ties)

    @property
    def has_ties(self) -> bool:
        """Whether to estimate the tie parameter; if no game is a tie, its value is known."""
        return self.form.has_tie_parameter and self.ties

    def outcomes(self) -> Outcomes:
        """Weight of each game (1 without weights) in the array of its outcome, and 0 in the two other arrays."""
        columns = [(self.twice == value).astype(np.float64) for value in (2, 0, 1)]
        return Outcomes(*(columns if self.weight is None else [column * self.weight for column in columns]))

    def gaps(self, x: Floats) -> Floats:
        """Gap (see module) of each game at the parameters ``x``, shape (n,)."""
        agents, extra = self.form.agents, self.z.shape[1]
        gaps: Floats = x[self.a] - x[self.b] + self.z @ x[agents : agents + extra]
        return gaps

    def tie(self, x: Floats) -> Floats:
        """The tie parameter of ``x``, or the value that excludes ties if no game is a tie, shape (1,)."""
        return np.array([x[-1] if self.has_ties else NO_TIES[self.form.ties]])


class Fit(NamedTuple):
    """Result of Newton's method: the parameters, the negative Hessian at them, and whether the method converged."""

    x: Floats
    information: Floats
    converged: bool


def game_data(games: Games, form: ParameterForm, columns: list[Floats]) -> GameData:
    """Convert games to arrays for the fit; ``columns`` has the values of each covariate."""
    order = [np.ones(len(games))] if form.position else []
    twice = games.twice()
    z = np.column_stack([*order, *columns])
    ties = bool((games.weights[twice == 1] > 0).any())
    return GameData(form, games.a.astype(np.int64), games.b.astype(np.int64), twice, z, games.weight, ties)


def maximise_over_games(data: GameData, start: Floats, prior: Floats, settings: BradleyTerrySettings) -> Fit:
    """Maximise the likelihood by Newton's method; a Hessian is reused while each step is at most a tenth of the last.

    The function is concave, so a step is too long only if the slope along it has changed sign; it is halved until the
    new slope is at most half as large as the old one.
    """
    x, slope = start, gradient(data, start, prior)
    curvature, fresh, last_size = information(data, x, prior), True, np.inf
    converged = False
    for _ in range(settings.max_iterations):
        step = np.asarray(np.linalg.solve(curvature, slope), np.float64)
        size = float(np.abs(step).max())
        if not fresh and size > last_size / 10 and size > settings.tolerance:
            curvature, fresh = information(data, x, prior), True
            continue
        length, slope_along = _reach(data, x, step), float(slope @ step)
        while True:
            trial = x + length * step
            new_slope = gradient(data, trial, prior)
            if float(new_slope @ step) >= -0.5 * slope_along or length < 1e-12:
                break
            length /= 2
        converged = size <= settings.tolerance
        x, slope, fresh, last_size = trial, new_slope, False, size
        if converged:
            break
    return Fit(x, information(data, x, prior), converged)


def gradient(data: GameData, x: Floats, prior: Floats) -> Floats:
    """Gradient of the log-likelihood plus log-prior, shape (parameters,)."""
    agents, extra = data.form.agents, data.z.shape[1]
    result = np.zeros(data.form.size)
    for block in data.blocks():
        slope = slopes(data.form.ties, block.gaps(x), block.tie(x), block.outcomes())
        result[:agents] += _signed_sum(block, slope.gap)
        result[agents : agents + extra] += slope.gap @ block.z
        if data.has_ties:
            result[-1] += slope.tie.sum()
    pulled: Floats = result - prior_pull(data.form, x[np.newaxis], prior[np.newaxis])[0]
    return pulled


def information(data: GameData, x: Floats, prior: Floats) -> Floats:
    """Negative Hessian of log-likelihood and log-prior; the agents' mean is fixed as in ``likelihood.information``."""
    form, agents = data.form, data.form.agents
    result = np.zeros((form.size, form.size))
    for block in data.blocks():
        _add(result, block, curvatures(form.ties, block.gaps(x), block.tie(x), block.outcomes()))
    result[:agents, :agents] += np.trace(result[:agents, :agents]) / agents**2
    if form.has_tie_parameter and not data.ties:
        result[-1, -1] = 1.0
    curvature: Floats = result + prior_curvature(form, x[np.newaxis], prior[np.newaxis])[0]
    return curvature


def design_products(data: GameData) -> Floats:
    """Cross products of the model's design columns, summed over games, shape (parameters, parameters)."""
    result = np.zeros((data.form.size, data.form.size))
    for block in data.blocks():
        weight = np.ones(block.a.size) if block.weight is None else block.weight
        _add(result, block, Curvatures(weight, 0 * weight, 0 * weight))
    return result


def score_products(games: Games, data: GameData, x: Floats, *, by_query: bool) -> tuple[Floats, int]:
    """Sum over queries of u u', with u the gradient of a query's log-likelihood, and the number of queries.

    The sum is over games if these do not name their query or ``by_query`` is false; a row of weight w counts as w
    games.
    """
    if by_query and games.cluster is not None:
        scores = _cluster_scores(games, data, x)
        return scores.T @ scores, len(scores)
    result = np.zeros((data.form.size, data.form.size))
    for block in data.blocks():
        slope = slopes(data.form.ties, block.gaps(x), block.tie(x), block.outcomes())
        share = 1.0 if block.weight is None else 1 / np.maximum(block.weight, 1e-300)
        _add(result, block, Curvatures(slope.gap**2 * share, slope.gap * slope.tie * share, slope.tie**2 * share))
    return result, round(float(games.weights.sum()))


def _cluster_scores(games: Games, data: GameData, x: Floats) -> Floats:
    """Gradient of each cluster's log-likelihood, shape (clusters, parameters)."""
    form, agents = data.form, data.form.agents
    cluster, clusters = game_clusters(games)
    result = np.zeros((clusters, form.size))
    flat, start = result.reshape(-1), 0
    for block in data.blocks():
        slope = slopes(form.ties, block.gaps(x), block.tie(x), block.outcomes())
        row = cluster[start : start + block.a.size] * form.size
        start += block.a.size
        np.add.at(flat, row + block.a, slope.gap)
        np.add.at(flat, row + block.b, -slope.gap)
        for number, column in enumerate(block.z.T):
            np.add.at(flat, row + agents + number, slope.gap * column)
        if data.has_ties:
            np.add.at(flat, row + form.size - 1, slope.tie)
    return result


def _reach(data: GameData, x: Floats, step: Floats) -> float:
    """Fraction of a Newton step to try first; limits its largest component, keeps a Rao-Kupper threshold positive."""
    length = min(1.0, _LARGEST_STEP / max(float(np.abs(step).max()), 1e-300))
    if data.form.ties == "rao-kupper" and data.has_ties and x[-1] + length * step[-1] <= 0:
        length = min(length, -0.9 * x[-1] / step[-1])
    return length


def _add(result: Floats, block: GameData, curvature: Curvatures) -> None:
    """Add a block of games to a negative Hessian, in place; ``curvature`` has the second derivatives of each game."""
    agents, inside = block.form.agents, slice(block.form.agents, block.form.agents + block.z.shape[1])
    by_pair = np.bincount(block.a * agents + block.b, curvature.gap, agents**2).reshape(agents, agents)
    result[:agents, :agents] -= by_pair + by_pair.T
    diagonal = np.arange(agents)
    result[diagonal, diagonal] += by_pair.sum(axis=0) + by_pair.sum(axis=1)
    weighted = block.z * curvature.gap[:, np.newaxis]
    cross = np.column_stack([_signed_sum(block, column) for column in weighted.T])
    result[:agents, inside] += cross
    result[inside, :agents] += cross.T
    result[inside, inside] += block.z.T @ weighted
    if block.has_ties:
        column = np.concatenate([_signed_sum(block, curvature.cross), curvature.cross @ block.z])
        result[:-1, -1] += column
        result[-1, :-1] += column
        result[-1, -1] += curvature.tie.sum()


def _signed_sum(block: GameData, values: Floats) -> Floats:
    """Sum of the games' values for each agent, added if the agent is a and subtracted if it is b, shape (agents,)."""
    agents = block.form.agents
    first, second = (np.bincount(side, values, agents).astype(np.float64) for side in (block.a, block.b))
    return first - second
