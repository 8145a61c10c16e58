"""Covariance of fitted ratings that allows verdicts on one query to depend on each other.

The cluster-robust sandwich (Liang and Zeger 1986, Biometrika 73): H^-1 (sum over queries of u u') H^-1, where H is the
curvature of the log-likelihood and u a query's score, times n / (n - 1) for n queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from arena.ratings.bradley_terry import BradleyTerry
from arena.ratings.counts import ClusterCounts, PairCounts, cluster_counts
from arena.ratings.games import Floats, Games
from arena.ratings.likelihood import incidence, probabilities


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
        scores = _cluster_scores(fitted, cluster_counts(games, fitted.counts, ordered=fitted.form.position))
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


def _cluster_scores(fitted: BradleyTerry, counts: ClusterCounts) -> Floats:
    """Gradient of each cluster's log-likelihood, shape (clusters, parameters)."""
    p = probabilities(fitted.form, fitted.counts, fitted.x[np.newaxis])
    win, loss, tie = p.wins_a[0], p.wins_b[0], p.ties[0]
    excess = (
        counts.wins_a.multiply(loss + tie / 2)
        - counts.wins_b.multiply(win + tie / 2)
        - counts.ties.multiply((win - loss) / 2)
    )
    decided = counts.wins_a + counts.wins_b
    return _columns(fitted, sparse.csr_array(excess), sparse.csr_array(counts.ties.multiply(1 - tie) - decided * tie))


def _game_scores(fitted: BradleyTerry) -> Floats:
    """One row per pair and outcome, scaled so that the rows' squares sum to those of all games."""
    pairs = fitted.counts
    observed = np.concatenate([pairs.wins_a[0], pairs.wins_b[0], pairs.ties[0]])
    rows = np.flatnonzero(observed)
    scores: Floats = np.sqrt(observed[rows])[:, np.newaxis] * _cluster_scores(fitted, _single_games(pairs, rows))
    return scores


def _single_games(pairs: PairCounts, rows: NDArray[np.intp]) -> ClusterCounts:
    """Clusters of one game each: row r is a win, a loss or a tie of a pair as r lies in thirds of 3 x pairs."""
    size = pairs.a.size
    every = sparse.csr_array(sparse.eye_array(3 * size))[rows]
    return ClusterCounts(every[:, :size], every[:, size : 2 * size], every[:, 2 * size :])


def _columns(fitted: BradleyTerry, excess: sparse.csr_array, excess_ties: sparse.csr_array) -> Floats:
    columns = [(excess @ incidence(fitted.counts)).toarray()]
    if fitted.form.position:
        columns.append(excess.sum(axis=1).reshape(-1, 1))
    if fitted.form.davidson:
        estimated = fitted.form.tie_parameter(fitted.counts)[0]
        columns.append(excess_ties.sum(axis=1).reshape(-1, 1) * estimated)
    return np.hstack(columns)
