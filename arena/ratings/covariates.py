"""Ratings controlled for what the judge may like besides quality: length, citations, list items, any number.

Bradley-Terry with covariates: the gap of a game is t_a - t_b + g + z . beta, where z holds differences between the two
answers (a minus b). Controlled ratings say which agent would win between answers alike in all covariates; raw ratings,
without them, stand beside. Games with different z cannot be counted together, so the likelihood, whose model and prior
``likelihood`` has, is summed over games, in blocks small enough to stay near the processor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.ratings.bradley_terry import BradleyTerry, BradleyTerrySettings, bradley_terry
from arena.ratings.counts import game_clusters
from arena.ratings.existence import Problem
from arena.ratings.games import NO_SPREAD, Games, counted
from arena.ratings.likelihood import (
    NO_TIES,
    Curvatures,
    Outcomes,
    ParameterForm,
    curvatures,
    prior_curvature,
    prior_pull,
    slopes,
)
from judges.writing import count_words
from retrieval_eval.stats.arrays import Floats

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
"""By name, of an answer's text; lengths are in words."""


_SAMPLE = 16
_SAMPLED_FROM = 200_000
"""From this many games on, every sixteenth gives the starting point."""
_NOT_IDENTIFIED = 1e-8
"""Share of a covariate's variance, not explained by the agents, below which it has no effect of its own."""
_NOT_HELD = 1e-3
"""Information, in games per squared standard deviation, below which a coefficient runs away."""


class Effect(Struct, frozen=True):
    """What a covariate is worth.

    Attributes:
        points: rating points per unit of its difference.
        sd: standard error by the sandwich, clustered by query; ``None`` where a single query (game) shows no variation.
    """

    name: str
    points: float
    sd: float | None


class ControlledRating(Struct, frozen=True):
    """One agent's rating controlled for covariates, its standard error (see ``Effect``), and the raw one, in points."""

    agent: str
    rating: float
    standard_error: float | None
    raw: float


class Controlled(Struct, frozen=True):
    """Raw and controlled ratings side by side.

    Attributes:
        agents: best first.
        effects: one per covariate.
        position_effect, position_sd: advantage of being shown first in points, with its standard error, ``None`` where
            verdicts never vary with the place, so that nothing says how far it may be off.
        tie_parameter: as in ``BradleyTerry``.
        problems: why to read the ratings with care: those of the raw fit, and ``covariates`` where a coefficient has no
            maximum and rests on the weak prior.
        converged: whether the method did.
        clusters: independent units behind the standard errors.
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
        shown = raw.to_points(np.eye(raw.form.agents)) - raw.settings.centre
        errors = np.sqrt(np.maximum(np.diag(shown.T @ covariance[agents, agents] @ shown), 0.0)).tolist()
    ratings = raw.to_points(x[agents]).tolist()
    rows = map(ControlledRating, raw.agents, ratings, errors, raw.ratings.tolist())
    return tuple(sorted(rows, key=lambda row: -row.rating))


def refuse_unusable(games: Games, covariates: Mapping[str, Floats], *, position: bool = False) -> None:
    """See to it that covariates can have an effect of their own in these games, whoever wins them.

    Raises:
        ValueError: as ``controlled_ratings``.
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


def _left_for_covariates(form: ParameterForm, information: Floats) -> Floats:
    """Information on the covariates that strengths and the order effect leave them (a Schur complement)."""
    known = form.agents + form.position
    end = known + form.covariates
    cross = information[known:end, :known]
    explained = np.linalg.pinv(information[:known, :known], rcond=1e-10, hermitian=True)
    left: Floats = information[known:end, known:end] - cross @ explained @ cross.T
    return left


def _effects(
    form: ParameterForm, scales: Mapping[str, float], x: Floats, covariance: Floats | None
) -> tuple[Effect, ...]:
    """Effects per unit of each covariate, of parameters and their covariance in points."""
    found = []
    for at, (name, scale) in enumerate(scales.items(), start=form.agents + form.position):
        sd = None if covariance is None else float(np.sqrt(covariance[at, at])) / scale
        found.append(Effect(name, float(x[at]) / scale, sd))
    return tuple(found)


_BLOCK = 8192
"""Games handled at once."""
_LARGEST_STEP = 4.0


class GameData(NamedTuple):
    """Games as the sums read them: agents, twice the score of a, covariates with the order effect first, weights."""

    form: ParameterForm
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    twice: NDArray[np.int8]
    z: Floats
    weight: Floats | None
    ties: bool

    def every(self, step: int) -> GameData:
        """A systematic sample of the games."""
        part = self._part(slice(None, None, step))
        return part._replace(ties=bool((part.twice == 1).any()))

    def blocks(self) -> Iterator[GameData]:
        """The games, some thousands at a time."""
        for start in range(0, self.a.size, _BLOCK):
            yield self._part(slice(start, start + _BLOCK))

    def _part(self, rows: slice) -> GameData:
        weight = None if self.weight is None else self.weight[rows]
        return GameData(self.form, self.a[rows], self.b[rows], self.twice[rows], self.z[rows], weight, self.ties)

    @property
    def has_ties(self) -> bool:
        """Whether the tie parameter is estimated: without a tie its maximum is that of no ties."""
        return self.form.has_tie_parameter and self.ties

    def outcomes(self) -> Outcomes:
        """Each game, or its weight, under its outcome."""
        marks = [(self.twice == value).astype(np.float64) for value in (2, 0, 1)]
        return Outcomes(*(marks if self.weight is None else [mark * self.weight for mark in marks]))

    def gaps(self, x: Floats) -> Floats:
        """Gap of each game under parameters ``x``."""
        agents, extra = self.form.agents, self.z.shape[1]
        gaps: Floats = x[self.a] - x[self.b] + self.z @ x[agents : agents + extra]
        return gaps

    def tie(self, x: Floats) -> Floats:
        """The tie parameter, or the value that stands for no ties."""
        return np.array([x[-1] if self.has_ties else NO_TIES[self.form.ties]])


class Fit(NamedTuple):
    """Where the method stopped: parameters, negative Hessian there, and whether it converged."""

    x: Floats
    information: Floats
    converged: bool


def game_data(games: Games, form: ParameterForm, columns: list[Floats]) -> GameData:
    """Games with a column per covariate, in the order of the form's parameters."""
    order = [np.ones(len(games))] if form.position else []
    twice = games.twice()
    z = np.column_stack([*order, *columns])
    ties = bool((games.weights[twice == 1] > 0).any())
    return GameData(form, games.a.astype(np.int64), games.b.astype(np.int64), twice, z, games.weight, ties)


def maximise_over_games(data: GameData, start: Floats, prior: Floats, settings: BradleyTerrySettings) -> Fit:
    """Newton's method that keeps a matrix of second derivatives as long as steps shrink tenfold with it.

    The function is concave, so a step went too far exactly if the slope along it has turned and grown.
    """
    x, slope = start, gradient(data, start, prior)
    curvature, fresh, last = information(data, x, prior), True, np.inf
    converged = False
    for _ in range(settings.max_iterations):
        step = np.asarray(np.linalg.solve(curvature, slope), np.float64)
        size = float(np.abs(step).max())
        if not fresh and size > last / 10 and size > settings.tolerance:
            curvature, fresh = information(data, x, prior), True
            continue
        length, ahead = _reach(data, x, step), float(slope @ step)
        while True:
            trial = x + length * step
            new = gradient(data, trial, prior)
            if float(new @ step) >= -0.5 * ahead or length < 1e-12:
                break
            length /= 2
        converged = size <= settings.tolerance
        x, slope, fresh, last = trial, new, False, size
        if converged:
            break
    return Fit(x, information(data, x, prior), converged)


def gradient(data: GameData, x: Floats, prior: Floats) -> Floats:
    """Gradient of the log-likelihood and prior, shape (parameters,)."""
    agents, extra = data.form.agents, data.z.shape[1]
    result = np.zeros(data.form.size)
    for block in data.blocks():
        slope = slopes(data.form.ties, block.gaps(x), block.tie(x), block.outcomes())
        result[:agents] += _leaning(block, slope.gap)
        result[agents : agents + extra] += slope.gap @ block.z
        if data.has_ties:
            result[-1] += slope.tie.sum()
    pulled: Floats = result - prior_pull(data.form, x[np.newaxis], prior[np.newaxis])[0]
    return pulled


def information(data: GameData, x: Floats, prior: Floats) -> Floats:
    """Negative Hessian, the agents' common level pinned as in ``likelihood.information``."""
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
    """Squares and products of the columns that gaps are made of, summed over games, shape (parameters, parameters)."""
    result = np.zeros((data.form.size, data.form.size))
    for block in data.blocks():
        weight = np.ones(block.a.size) if block.weight is None else block.weight
        _add(result, block, Curvatures(weight, 0 * weight, 0 * weight))
    return result


def score_products(games: Games, data: GameData, x: Floats, *, by_query: bool) -> tuple[Floats, int]:
    """Sum over queries of u u', with u the gradient of a query's log-likelihood, and the number of queries.

    Without queries it is the sum over games, in which a row of weight w is w games.
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
    """Shape (clusters, parameters)."""
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
    """How much of a step to try: no parameter jumps, and a threshold of ties stays positive."""
    length = min(1.0, _LARGEST_STEP / max(float(np.abs(step).max()), 1e-300))
    if data.form.ties == "rao-kupper" and data.has_ties and x[-1] + length * step[-1] <= 0:
        length = min(length, -0.9 * x[-1] / step[-1])
    return length


def _add(result: Floats, block: GameData, of: Curvatures) -> None:
    """Add to a symmetric matrix what the games of a block give if each weighs as ``of`` says."""
    agents, inside = block.form.agents, slice(block.form.agents, block.form.agents + block.z.shape[1])
    met = np.bincount(block.a * agents + block.b, of.gap, agents**2).reshape(agents, agents)
    result[:agents, :agents] -= met + met.T
    diagonal = np.arange(agents)
    result[diagonal, diagonal] += met.sum(axis=0) + met.sum(axis=1)
    weighted = block.z * of.gap[:, np.newaxis]
    cross = np.column_stack([_leaning(block, column) for column in weighted.T])
    result[:agents, inside] += cross
    result[inside, :agents] += cross.T
    result[inside, inside] += block.z.T @ weighted
    if block.has_ties:
        column = np.concatenate([_leaning(block, of.cross), of.cross @ block.z])
        result[:-1, -1] += column
        result[-1, :-1] += column
        result[-1, -1] += of.tie.sum()


def _leaning(block: GameData, values: Floats) -> Floats:
    """Sum over games of each agent, with the opposite sign where it is b, shape (agents,)."""
    agents = block.form.agents
    first, second = (np.bincount(side, values, agents).astype(np.float64) for side in (block.a, block.b))
    return first - second
