"""Covariance of fitted ratings that allows verdicts on one query to depend on each other.

The cluster-robust sandwich (Liang and Zeger 1986, Biometrika 73): H^-1 (sum over queries of u u') H^-1, where H is the
curvature of the log-likelihood and u a query's score, times n / (n - 1) for n queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from arena.ratings.bradley_terry import BradleyTerry
from arena.ratings.counts import game_cells, game_clusters
from arena.ratings.games import Floats, Games
from arena.ratings.likelihood import incidence, tie_values
from arena.ratings.ties import Outcomes, slopes


@dataclass(frozen=True, slots=True, eq=False)
class Sandwich:
    """Covariance of ratings.

    Attributes:
        covariance: of ratings in points, shape (agents, agents); every row sums to 0 unless there is an anchor.
        position_sd: standard error of the order effect in points, ``None`` where it was not estimated.
        clusters: independent units: queries, or games where ``by_query`` is false.
        by_query: whether games were clustered by query.
    """

    covariance: Floats
    position_sd: float | None
    clusters: int
    by_query: bool


def sandwich(games: Games, fitted: BradleyTerry, *, by_query: bool = True) -> Sandwich | None:
    """Sandwich covariance of ``fitted``, which must come from ``games``.

    Games whose query is not known count as independent. ``None`` where there are fewer than two units, which say
    nothing about variation.
    """
    clustered = by_query and games.cluster is not None
    if clustered:
        scores = cluster_scores(games, fitted)
        units = len(scores)
    else:
        scores = _game_scores(fitted)
        units = round(float(fitted.counts.games.sum()))
    if units < 2:
        return None
    bread = np.linalg.inv(fitted.curvature())
    of_parameters = bread @ (scores.T @ scores) @ bread * units / (units - 1)
    position_sd = None
    if fitted.form.position:
        position_sd = float(fitted.settings.points * np.sqrt(of_parameters[fitted.form.agents, fitted.form.agents]))
    return Sandwich(fitted.in_points(of_parameters), position_sd, units, clustered)


def cluster_scores(games: Games, fitted: BradleyTerry) -> Floats:
    """Gradient of each query's log-likelihood at the fit, shape (queries, parameters).

    Args:
        games: with queries; those that hold a game come in ascending order.
        fitted: comes from ``games``.
    """
    form, pairs = fitted.form, fitted.counts
    cell = game_cells(games, pairs, ordered=form.position)
    cluster, clusters = game_clusters(games)
    of_gap, of_tie = (np.concatenate(part) for part in _single_game_slopes(fitted))
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
    of_gap, of_tie = (np.concatenate(part) for part in _single_game_slopes(fitted))
    columns = [scipy.sparse.vstack([incidence(pairs)] * 3).toarray() * of_gap[:, np.newaxis]]
    if form.position:
        columns.append(of_gap[:, np.newaxis])
    if form.has_tie_parameter:
        columns.append(of_tie[:, np.newaxis])
    scores: Floats = np.sqrt(observed)[:, np.newaxis] * np.hstack(columns)
    return scores[observed > 0]


def _single_game_slopes(fitted: BradleyTerry) -> tuple[list[Floats], list[Floats]]:
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
