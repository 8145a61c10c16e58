"""The likelihood of paired comparisons and its maximum, for many samples of counts at once.

Agents a and b with log-strengths t_a and t_b have the gap d = t_a - t_b + g, where g is the advantage of being shown
first (Davidson and Beaver 1977, Biometrics 33). The model of ties (``ties``) gives the probabilities of outcomes from
the gap and a tie parameter. The log-likelihood is concave in (t, g, tie parameter), so Newton's method finds the
maximum if there is one. The first axis of arrays is the sample; a point estimate is one sample.

With h the tie parameter, the models of ties are:

- ``davidson`` (Davidson 1970, JASA 65), h = log nu: P(a) : P(b) : P(tie) = e^(d/2) : e^(-d/2) : nu.
- ``half``: Bradley and Terry (1952), in which a tie adds half the log-probability of either win; the same expressions
  with nu = 0.
- ``rao-kupper`` (Rao and Kupper 1967, JASA 62), h = eta >= 0, a threshold: P(a) = s(d - eta), P(b) = s(-d - eta) with
  the logistic function s, so P(tie) = (e^(2 eta) - 1) P(a) P(b).

All are concave in (d, h). Arrays of gaps and outcomes have the same shape; h broadcasts to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.games import Games, distinct
from retrieval_eval.stats import Floats, Int32s

_OUTCOMES = np.array([1, 2, 0, 0, 2, 1])
"""Outcome number (0: win of the pair's first agent, 1: win of the second, 2: tie) by twice the score of a.

The last three entries are for games in which a is the pair's second agent."""


_FULL = 0.25
"""If a larger share of the counts is not 0, a dense matrix product is faster than a sparse one."""


class PairCounts(Struct, frozen=True, eq=False):
    """Number of wins and ties of each pair of agents that met, in one or more samples of the same games.

    Attributes:
        agents: number of agents.
        a, b: agents of each pair, shape (pairs,). If the order shown matters, ``a`` is shown first, and (a, b) and (b,
            a) are two pairs; otherwise a < b.
        wins_a, wins_b, ties: games of each outcome, fractions allowed, shape (samples, pairs).
    """

    agents: int
    a: Int32s
    b: Int32s
    wins_a: Floats
    wins_b: Floats
    ties: Floats

    @property
    def games(self) -> Floats:
        return self.wins_a + self.wins_b + self.ties

    def sample(self, chosen: NDArray[np.intp] | NDArray[np.bool_] | slice) -> PairCounts:
        """The counts of the chosen samples; a slice copies nothing, because samples are the last axis in memory."""
        return self.replaced(*(cells.T[:, chosen].T for cells in (self.wins_a, self.wins_b, self.ties)))

    def replaced(self, wins_a: Floats, wins_b: Floats, ties: Floats) -> PairCounts:
        return PairCounts(self.agents, self.a, self.b, wins_a, wins_b, ties)


def pair_counts(games: Games, *, ordered: bool) -> PairCounts:
    """Count games by pair and outcome, as one sample; ``ordered`` counts (a, b) and (b, a) separately.

    Raises:
        ValueError: ``ordered`` is on but the games do not record which agent was shown first.
    """
    if ordered and not games.a_shown_first:
        raise ValueError("these games do not say which agent was shown first")
    size = len(games.agents)
    code, outcome = _oriented(games, ordered)
    codes, pair = distinct(code, size**2)
    cells = np.bincount(pair + codes.size * outcome, games.weight, 3 * codes.size)
    counts = cells.astype(np.float64).reshape(3, 1, codes.size)
    return PairCounts(size, (codes // size).astype(np.int32), (codes % size).astype(np.int32), *counts)


def reachable(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a path of one or more edges leads from each node to each other, shape (nodes, nodes).

    scipy has this too, but its import takes longer than this computation.
    """
    reach = edges
    while True:
        steps = reach.astype(np.float32)
        farther = reach | (steps @ steps > 0)
        if (farther == reach).all():
            return reach
        reach = farther


def game_cells(games: Games, counts: PairCounts, *, ordered: bool) -> NDArray[np.int64]:
    """Number of each game's pair and outcome, shape (n,): pair + outcome x number of pairs.

    The outcome is 0 for a win of the pair's first agent, 1 for a win of the second and 2 for a tie. ``counts`` must be
    ``pair_counts`` of the same games with the same ``ordered``.
    """
    code, outcome = _oriented(games, ordered)
    pair_codes = counts.a.astype(np.int64) * counts.agents + counts.b
    if counts.agents**2 <= 2 * code.size + 1_000_000:
        place = np.zeros(counts.agents**2, np.int64)
        place[pair_codes] = np.arange(pair_codes.size)
        pair = place[code]
    else:
        pair = np.searchsorted(pair_codes, code)
    cells: NDArray[np.int64] = pair + pair_codes.size * outcome
    return cells


def game_clusters(games: Games) -> tuple[NDArray[np.int64], int]:
    """The games' clusters, renumbered without gaps, shape (n,), and the number of clusters with positive weight.

    Games of weight 0 get the cluster number 0, since they add nothing to any sum. Games without clusters raise a
    ``ValueError``.
    """
    if games.cluster is None:
        raise ValueError("these games have no cluster")
    if games.weight is None:
        clusters, cluster = distinct(games.cluster, int(games.cluster.max(initial=-1)) + 1)
        return cluster, clusters.size
    played = games.weight > 0
    clusters, played_cluster = distinct(games.cluster[played], int(games.cluster.max(initial=-1)) + 1)
    cluster = np.zeros(len(games), np.int64)
    cluster[played] = played_cluster
    return cluster, clusters.size


def cluster_counts(games: Games, counts: PairCounts, *, ordered: bool) -> Floats | scipy.sparse.csr_array:
    """Number of games of each pair and outcome in each cluster (query), shape (3 x pairs, clusters with a game).

    The rows are the wins of each pair's first agent, then of its second agent, then the ties. The matrix is sparse if
    most counts are 0.
    """
    cluster, clusters = game_clusters(games)
    cells = game_cells(games, counts, ordered=ordered).astype(np.int32)
    shape = (3 * counts.a.size, clusters)
    matrix = scipy.sparse.csr_array((games.weights, (cells, cluster.astype(np.int32))), shape=shape)
    return matrix if matrix.nnz < _FULL * shape[0] * shape[1] else matrix.toarray()


def weighted(cells: Floats | scipy.sparse.csr_array, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Wins of a, wins of b and ties of each pair in sample s if cluster q counts ``weights[s, q]`` times.

    ``cells`` are ``cluster_counts``. The three arrays have shape (samples, pairs); samples are the last axis in memory.
    """
    counted = cells @ np.ascontiguousarray(weights.T, np.float64)
    pairs = len(counted) // 3
    return counted[:pairs].T, counted[pairs : 2 * pairs].T, counted[2 * pairs :].T


def _oriented(games: Games, ordered: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each game's pair as one number, and its outcome: 0 if the pair's first agent won, 1 if the second, 2 for a tie.

    With ``ordered`` the first agent is the one shown first, otherwise the lower-numbered one.
    """
    size = len(games.agents)
    twice = games.twice()
    if ordered:
        return games.a * np.int64(size) + games.b, _OUTCOMES[twice]
    twice += np.int8(3) * (games.a > games.b)
    return np.minimum(games.a, games.b) * np.int64(size) + np.maximum(games.a, games.b), _OUTCOMES[twice]


TieModel: TypeAlias = Literal["davidson", "half", "rao-kupper"]

NO_TIES: dict[TieModel, float] = {"davidson": -np.inf, "half": -np.inf, "rao-kupper": 0.0}
"""Value of the tie parameter, by model, that makes ties impossible: the maximum-likelihood value without ties."""

_FAR = 600.0
"""Gaps are clipped to this size, at which probabilities are 0 or 1 and the exponential is still finite."""


class Outcomes(NamedTuple):
    """Counts or probabilities of the three outcomes of games: a wins, b wins, and a tie."""

    wins_a: Floats
    wins_b: Floats
    ties: Floats


class Slopes(NamedTuple):
    """First derivatives of the log-likelihood by the gap and by the tie parameter."""

    gap: Floats
    tie: Floats


class Curvatures(NamedTuple):
    """Negative second derivatives of the log-likelihood: by the gap, by gap and tie parameter, by the tie parameter."""

    gap: Floats
    cross: Floats
    tie: Floats


def probabilities(model: TieModel, gap: Floats, tie: Floats) -> Outcomes:
    """Probability of each outcome of a game with this gap and tie parameter."""
    if model == "rao-kupper":
        (win, _), (loss, _) = _threshold(gap, tie)
        return Outcomes(win, loss, np.expm1(2 * tie) * win * loss)
    up = np.exp(np.clip(gap, -_FAR, _FAR) / 2)
    down, nu = 1 / up, np.exp(tie)
    total = up + down + nu
    return Outcomes(up / total, down / total, nu / total)


def log_likelihood(model: TieModel, gap: Floats, tie: Floats, outcomes: Outcomes) -> Floats:
    """Log-likelihood of the outcomes, up to a constant; minus infinity for ties at a Rao-Kupper threshold of 0."""
    if model == "rao-kupper":
        clamped = np.maximum(tie, 0.0)
        won = (outcomes.wins_a + outcomes.ties) * np.logaddexp(0, clamped - gap)
        lost = (outcomes.wins_b + outcomes.ties) * np.logaddexp(0, clamped + gap)
        with np.errstate(divide="ignore"):
            drawn = np.log(np.expm1(2 * clamped))
        tied: Floats = np.where(outcomes.ties > 0, outcomes.ties * np.where(outcomes.ties > 0, drawn, 0.0), 0.0)
        return tied - won - lost
    log_z = np.logaddexp(np.logaddexp(gap / 2, -gap / 2), tie)
    drawn = outcomes.ties * np.where(np.isfinite(tie), tie, 0.0)
    result: Floats = (outcomes.wins_a - outcomes.wins_b) * gap / 2 + drawn - sum(outcomes) * log_z
    return result


def slopes(model: TieModel, gap: Floats, tie: Floats, outcomes: Outcomes) -> Slopes:
    """First derivatives of the log-likelihood, without cancellation errors even if one side nearly always wins."""
    if model == "rao-kupper":
        (_, not_win), (_, not_loss) = _threshold(gap, tie)
        won, lost = (outcomes.wins_a + outcomes.ties) * not_win, (outcomes.wins_b + outcomes.ties) * not_loss
        return Slopes(won - lost, outcomes.ties * _drawn_slope(tie) - won - lost)
    p = probabilities(model, gap, tie)
    half = p.ties / 2
    gap_slope = (
        outcomes.wins_a * (p.wins_b + half)
        - outcomes.wins_b * (p.wins_a + half)
        - outcomes.ties * (p.wins_a - p.wins_b) / 2
    )
    return Slopes(gap_slope, outcomes.ties * (1 - p.ties) - (outcomes.wins_a + outcomes.wins_b) * p.ties)


def curvatures(model: TieModel, gap: Floats, tie: Floats, outcomes: Outcomes) -> Curvatures:
    """Negative second derivatives of the log-likelihood; those by the tie parameter are 0 if ties are impossible."""
    if model == "rao-kupper":
        (win, not_win), (loss, not_loss) = _threshold(gap, tie)
        won, lost = (
            (outcomes.wins_a + outcomes.ties) * win * not_win,
            (outcomes.wins_b + outcomes.ties) * loss * not_loss,
        )
        slope = _drawn_slope(tie)
        return Curvatures(won + lost, lost - won, won + lost + outcomes.ties * slope * (slope - 2))
    p, games = probabilities(model, gap, tie), sum(outcomes)
    decided = p.wins_a + p.wins_b
    gap_curvature = games * (decided * p.ties + 4 * p.wins_a * p.wins_b) / 4
    return Curvatures(gap_curvature, -games * (p.wins_a - p.wins_b) / 2 * p.ties, games * p.ties * decided)


def _threshold(gap: Floats, eta: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Probabilities in the Rao-Kupper model that a wins and does not win, and that b wins and does not win."""
    odds, theta = np.exp(np.clip(gap, -_FAR, _FAR)), np.exp(eta)
    total_a, total_b = odds + theta, 1 + theta * odds
    return (odds / total_a, theta / total_a), (1 / total_b, theta * odds / total_b)


def _drawn_slope(eta: Floats) -> Floats:
    """Derivative of log(e^(2 eta) - 1); 0 if eta is 0, because there are no ties then."""
    slope: Floats = np.where(eta > 0, 2 / -np.expm1(-2 * np.where(eta > 0, eta, 1.0)), 0.0)
    return slope


_LARGEST_STEP = 4.0
"""Largest change of a pair's gap, the order effect or the tie parameter in a Newton step: a longer step goes beyond the
range in which the quadratic approximation is good."""


class ParameterForm(Struct, frozen=True):
    """Layout of the parameter vector: the agents' strengths, the order effect, the covariates, the tie parameter.

    The order effect and the tie parameter may be missing. Only fits to single games (module ``covariates``) have
    covariates; fits to counts have none.
    """

    agents: int
    position: bool
    ties: TieModel
    covariates: int = 0

    @property
    def has_tie_parameter(self) -> bool:
        return self.ties != "half"

    @property
    def size(self) -> int:
        return self.agents + self.position + self.covariates + self.has_tie_parameter

    def tie_parameter(self, counts: PairCounts) -> NDArray[np.bool_]:
        """Whether the tie parameter is estimated in each sample, shape (samples,); without ties it is ``NO_TIES``."""
        if not self.has_tie_parameter:
            return np.zeros(len(counts.ties), np.bool_)
        return np.asarray(counts.ties.any(axis=1), np.bool_)


class Maximum(Struct, frozen=True, eq=False):
    """Result of Newton's method on several samples.

    Attributes:
        x: parameters, shape (samples, parameters).
        iterations: number of iterations of each sample.
        gradient_norm: largest absolute component of each sample's gradient, in games.
        converged: whether each sample's last step was below the tolerance.
    """

    x: Floats
    iterations: NDArray[np.int64]
    gradient_norm: Floats
    converged: NDArray[np.bool_]


def log_posterior(form: ParameterForm, counts: PairCounts, x: Floats, prior: Floats) -> Floats:
    """Log-likelihood plus log-prior of each sample, up to a constant, shape (samples,).

    The prior is a number of virtual games: an agent won half of ``prior`` games against an average agent and lost the
    other half. A prior of the same form pulls the order effect and the tie parameter to 0. ``prior`` has shape
    (samples, parameters) and is 0 for all parameters with a finite maximum.
    """
    fitted = log_likelihood(form.ties, _gaps(form, counts, x), tie_values(form, counts, x), _outcomes(counts))
    middle = centred(form, x)
    drawn = prior * np.logaddexp(middle / 2, -middle / 2)
    result: Floats = fitted.sum(axis=1) - drawn.sum(axis=1)
    return result


def gradient(
    form: ParameterForm, counts: PairCounts, x: Floats, prior: Floats, signed: scipy.sparse.csc_array | None = None
) -> Floats:
    """Gradient of ``log_posterior``, shape (samples, parameters); pass ``signed_sums(counts)`` to reuse it."""
    slope = slopes(form.ties, _gaps(form, counts, x), tie_values(form, counts, x), _outcomes(counts))
    columns = [((signed_sums(counts) if signed is None else signed) @ slope.gap.T).T]
    if form.position:
        columns.append(slope.gap.sum(axis=1, keepdims=True))
    if form.has_tie_parameter:
        columns.append((slope.tie.sum(axis=1) * form.tie_parameter(counts))[:, np.newaxis])
    result: Floats = np.hstack(columns)
    return result - prior_pull(form, x, prior) if prior.any() else result


def gradient_on(
    form: ParameterForm, counts: PairCounts, prior: Floats, signed: scipy.sparse.csc_array
) -> Callable[[Floats], Floats]:
    """The function that computes ``gradient`` from parameters alone, for many steps on the same counts.

    Davidson's ties and half-win ties form an exponential family: the gradient is the observed sums, computed once,
    minus the expected sums. If one side nearly always wins, the difference has a rounding error of 1e-16 of the games.
    """
    if form.ties == "rao-kupper":
        return lambda x: gradient(form, counts, x, prior, signed)
    games, estimated = np.ascontiguousarray(counts.games.T), form.tie_parameter(counts)
    no_ties = NO_TIES[form.ties]
    won = np.ascontiguousarray((counts.wins_a - counts.wins_b).T) / 2
    outcomes, tied = _rows(form, won, signed), counts.ties.sum(axis=1)
    ones = np.ones(len(games))

    def at(x: Floats) -> Floats:
        half = x.T / 2
        gap = np.take(half, counts.a, axis=0)
        gap -= np.take(half, counts.b, axis=0)
        if form.position:
            gap += half[form.agents]
        up = np.exp(np.clip(gap, -_FAR / 2, _FAR / 2, out=gap), out=gap)
        down, nu = 1 / up, np.exp(np.where(estimated, x[:, -1], no_ties))
        total = up + down
        total += nu
        scaled = np.divide(games, total, out=total)
        up -= down
        up *= scaled
        rows = outcomes - _rows(form, up, signed) / 2
        if form.has_tie_parameter:
            rows = np.vstack([rows, (tied - nu * (ones @ scaled)) * estimated])
        slope: Floats = rows.T
        return slope - prior_pull(form, x, prior) if prior.any() else slope

    return at


def _rows(form: ParameterForm, pair_values: Floats, signed: scipy.sparse.csc_array) -> Floats:
    """Sum the pairs' values, shape (pairs, samples), for each agent and, if it is estimated, for the order effect."""
    agent_sums: Floats = signed @ pair_values
    return np.vstack([agent_sums, pair_values.sum(axis=0)]) if form.position else agent_sums


def information(
    form: ParameterForm, counts: PairCounts, x: Floats, prior: Floats, signed: scipy.sparse.csc_array | None = None
) -> Floats:
    """Negative Hessian of ``log_posterior``, shape (samples, parameters, parameters).

    The likelihood does not determine the agents' mean. A constant added to the agents' block does, without changing any
    step or any variance of a difference. Pass ``signed_sums(counts)`` as ``signed`` to reuse it.
    """
    agents, samples = counts.agents, len(x)
    curvature = curvatures(form.ties, _gaps(form, counts, x), tie_values(form, counts, x), _outcomes(counts))
    variance, signed = curvature.gap, signed_sums(counts) if signed is None else signed
    result = np.zeros((samples, form.size, form.size))
    result[:, counts.a, counts.b] -= variance
    result[:, counts.b, counts.a] -= variance
    diagonal = np.arange(agents)
    result[:, diagonal, diagonal] += (abs(signed) @ variance.T).T
    pin = variance.sum(axis=1) / agents**2
    result[:, :agents, :agents] += pin[:, np.newaxis, np.newaxis]
    if form.position:
        _border(result, agents, (signed @ variance.T).T, variance.sum(axis=1))
    if form.has_tie_parameter:
        estimated = form.tie_parameter(counts)
        shared = curvature.cross * estimated[:, np.newaxis]
        column = [(signed @ shared.T).T] + [shared.sum(axis=1, keepdims=True)] * form.position
        _border(result, form.size - 1, np.hstack(column), np.where(estimated, curvature.tie.sum(axis=1), 1.0))
    if prior.any():
        result += prior_curvature(form, x, prior)
    return result


def maximise(
    form: ParameterForm, counts: PairCounts, start: Floats, prior: Floats, *, max_iterations: int, tolerance: float
) -> Maximum:
    """Run Newton's method from ``start`` on every sample until the sample's step is below ``tolerance`` (log-odds)."""
    x, signed = feasible(form, counts, start), signed_sums(counts)
    iterations = np.zeros(len(x), np.int64)
    converged = np.zeros(len(x), np.bool_)
    height = log_posterior(form, counts, x, prior)
    for _ in range(max_iterations):
        unfinished = np.flatnonzero(~converged)
        if not unfinished.size:
            break
        unfinished_counts = counts.sample(unfinished)
        slope = gradient(form, unfinished_counts, x[unfinished], prior[unfinished], signed)
        curvature = information(form, unfinished_counts, x[unfinished], prior[unfinished], signed)
        step = np.asarray(np.linalg.solve(curvature, slope[..., np.newaxis])[..., 0], np.float64)
        x[unfinished], height[unfinished] = _climb(
            form, unfinished_counts, x[unfinished], step, prior[unfinished], height=height[unfinished]
        )
        converged[unfinished] = np.abs(step).max(axis=1) <= tolerance
        iterations[unfinished] += 1
    norm = np.abs(gradient(form, counts, x, prior, signed)).max(axis=1)
    return Maximum(x, iterations, norm, converged)


def feasible(form: ParameterForm, counts: PairCounts, x: Floats) -> Floats:
    """Copy of the parameters with the tie parameter moved into its range, or to 0 if it is not estimated."""
    x = x.copy()
    if form.has_tie_parameter:
        estimated = form.tie_parameter(counts)
        x[~estimated, -1] = 0.0
        if form.ties == "rao-kupper":
            x[estimated & (x[:, -1] <= 0), -1] = 1.0
    return x


def signed_sums(counts: PairCounts) -> scipy.sparse.csc_array:
    """Matrix that adds each pair's value to its first agent and subtracts it from its second, shape (agents, pairs)."""
    return incidence(counts).T


def incidence(counts: PairCounts) -> scipy.sparse.csr_array:
    """Matrix with 1 at each pair's first agent and -1 at its second, shape (pairs, agents)."""
    pairs = np.arange(counts.a.size)
    signs = np.repeat([1.0, -1.0], pairs.size)
    cells = (np.tile(pairs, 2), np.concatenate([counts.a, counts.b]))
    return scipy.sparse.csr_array((signs, cells), shape=(pairs.size, counts.agents))


def _climb(
    form: ParameterForm, counts: PairCounts, x: Floats, step: Floats, prior: Floats, *, height: Floats
) -> tuple[Floats, Floats]:
    """Parameters and log-posterior after a Newton step, which is shortened if it is too long or lowers the posterior.

    ``height`` is the log-posterior at ``x``. A step is too long if a pair's gap, the order effect or the tie parameter
    changes by more than ``_LARGEST_STEP``.
    """
    jump = np.abs(np.hstack([_gaps(form, counts, step), step[:, form.agents :]])).max(axis=1)
    length = np.minimum(1.0, _LARGEST_STEP / np.maximum(jump, _LARGEST_STEP))
    slack = 1e-12 * (1 + np.abs(height))
    for _ in range(40):
        moved: Floats = x + length[:, np.newaxis] * step
        new_height = log_posterior(form, counts, moved, prior)
        fell = ~(new_height >= height - slack)
        if not fell.any():
            break
        length[fell] /= 2
    return moved, new_height


def prior_pull(form: ParameterForm, x: Floats, prior: Floats) -> Floats:
    return centred(form, prior * np.tanh(centred(form, x) / 2) / 2)


def prior_curvature(form: ParameterForm, x: Floats, prior: Floats) -> Floats:
    """Negative Hessian of the log-prior, on the subspace in which the agents' mean is 0.

    In the far tails this curvature vanishes. There it is replaced by a tenth of the curvature of the parabola that
    bounds the log-prior from below. This keeps the matrix regular and does not move the maximum.
    """
    middle = centred(form, x)
    distance = np.maximum(np.abs(middle), 1e-9)
    bound = np.tanh(distance / 2) / (2 * distance)
    curvature = prior * np.maximum(scipy.special.expit(middle) * scipy.special.expit(-middle), bound / 10)
    agent_curvature, agents, size = curvature[:, : form.agents], form.agents, form.size
    result = np.zeros((len(x), size, size))
    mean = agent_curvature.mean(axis=1)[:, np.newaxis, np.newaxis]
    result[:, :agents, :agents] = (mean - agent_curvature[:, :, np.newaxis]) - agent_curvature[:, np.newaxis]
    result /= agents
    diagonal = np.arange(size)
    result[:, diagonal, diagonal] += curvature
    return result


def centred(form: ParameterForm, x: Floats) -> Floats:
    """Parameters (or a gradient) with the agents' mean subtracted from the agents, so that their mean is 0."""
    middle = x.copy()
    middle[:, : form.agents] -= x[:, : form.agents].mean(axis=1, keepdims=True)
    return middle


def tie_values(form: ParameterForm, counts: PairCounts, x: Floats) -> Floats:
    """The tie parameter of each sample, or ``NO_TIES`` for samples that do not estimate it, shape (samples, 1)."""
    no_ties = NO_TIES[form.ties]
    if not form.has_tie_parameter:
        return np.full((len(x), 1), no_ties)
    return np.where(form.tie_parameter(counts), x[:, -1], no_ties)[:, np.newaxis]


def _gaps(form: ParameterForm, counts: PairCounts, x: Floats) -> Floats:
    gaps: Floats = np.take(x, counts.a, axis=1) - np.take(x, counts.b, axis=1)  # same memory layout as counts
    return gaps + x[:, counts.agents, np.newaxis] if form.position else gaps


def _outcomes(counts: PairCounts) -> Outcomes:
    return Outcomes(counts.wins_a, counts.wins_b, counts.ties)


def _border(matrix: Floats, at: int, column: Floats, corner: Floats) -> None:
    """Fill row and column ``at`` of each symmetric matrix with ``column``, and their common cell with ``corner``."""
    matrix[:, :at, at] = matrix[:, at, :at] = column
    matrix[:, at, at] = corner
