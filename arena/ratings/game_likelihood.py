"""The likelihood of games one by one, whose gaps covariates shift so that no two games need be alike.

Sums run over blocks of games small enough to stay near the processor. ``likelihood`` has the model and the prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.ratings.bradley_terry import BradleyTerrySettings
from arena.ratings.counts import game_clusters
from arena.ratings.games import Floats, Games
from arena.ratings.likelihood import (
    NO_TIES,
    Curvatures,
    Form,
    Outcomes,
    curvatures,
    prior_curvature,
    prior_pull,
    slopes,
)

_BLOCK = 8192
"""Games handled at once."""
_LARGEST_STEP = 4.0


class GameData(NamedTuple):
    """Games as the sums read them: agents, twice the score of a, covariates with the order effect first, weights."""

    form: Form
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    twice: NDArray[np.int8]
    z: Floats
    weight: Floats | None
    ties: bool

    def every(self, step: int) -> GameData:
        """A systematic sample of the games."""
        weight = None if self.weight is None else self.weight[::step]
        twice = self.twice[::step]
        return GameData(
            self.form, self.a[::step], self.b[::step], twice, self.z[::step], weight, bool((twice == 1).any())
        )

    def blocks(self) -> Iterator[GameData]:
        """The games, some thousands at a time."""
        for start in range(0, self.a.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            weight = None if self.weight is None else self.weight[part]
            yield GameData(self.form, self.a[part], self.b[part], self.twice[part], self.z[part], weight, self.ties)

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
    """Where the method stopped: parameters, negative Hessian there, and how it ended."""

    x: Floats
    information: Floats
    iterations: int
    gradient_norm: float
    converged: bool


def game_data(games: Games, form: Form, columns: list[Floats]) -> GameData:
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
    converged, iterations = False, 0
    while iterations < settings.max_iterations and not converged:
        iterations += 1
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
    return Fit(x, information(data, x, prior), iterations, float(np.abs(slope).max()), converged)


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
