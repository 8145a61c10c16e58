"""The paired-comparison likelihood and its maximum, for many samples of counts at once.

Agents a and b with log-strengths t_a and t_b, d = t_a - t_b + g where g is the advantage of being shown first:

    P(a wins) = e^(d/2) / Z,   P(b wins) = e^(-d/2) / Z,   P(tie) = nu / Z,   Z = e^(d/2) + e^(-d/2) + nu

This is Davidson (1970, JASA 65) with the order effect of Davidson and Beaver (1977, Biometrics 33). With nu = 0 it is
Bradley and Terry (1952), and a tie that then counts as half a win adds -log Z, the same expression with the tie
parameter left out. In (t, g, log nu) the log-likelihood is concave, so Newton's method finds the maximum where there
is one. Arrays carry a leading axis of samples; a point estimate is one sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from arena.ratings.counts import PairCounts
from arena.ratings.games import Floats

_LARGEST_STEP = 4.0
"""No pair's d, and neither g nor log nu, moves farther in one iteration: beyond it the quadratic model is worthless."""


@dataclass(frozen=True, slots=True)
class Form:
    """Which parameters there are: one per agent, then the order effect, then log nu."""

    agents: int
    position: bool
    davidson: bool

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.agents + self.position + self.davidson

    def tie_parameter(self, counts: PairCounts) -> NDArray[np.bool_]:
        """Samples in which nu is estimated: without a tie its maximum is nu = 0 exactly, shape (samples,)."""
        if not self.davidson:
            return np.zeros(len(counts.ties), np.bool_)
        return np.asarray(counts.ties.any(axis=1), np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Probabilities:
    """Of each outcome of each pair, shape (samples, pairs)."""

    wins_a: Floats
    wins_b: Floats
    ties: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Maximum:
    """Where Newton's method stopped.

    Attributes:
        x: parameters, shape (samples, parameters).
        iterations: of each sample.
        gradient_norm: largest absolute component of each sample's gradient, in games.
        converged: whether each sample's last step was below the tolerance.
    """

    x: Floats
    iterations: NDArray[np.int64]
    gradient_norm: Floats
    converged: NDArray[np.bool_]


def probabilities(form: Form, counts: PairCounts, x: Floats) -> Probabilities:
    """Probability of each outcome under parameters ``x``, shape (samples, parameters)."""
    half, log_nu = _gaps(form, counts, x) / 2, _log_nu(form, counts, x)
    largest = np.maximum(np.abs(half), log_nu)
    win, loss, tie = np.exp(half - largest), np.exp(-half - largest), np.exp(log_nu - largest)
    total = win + loss + tie
    return Probabilities(win / total, loss / total, tie / total)


def log_posterior(form: Form, counts: PairCounts, x: Floats, prior: Floats) -> Floats:
    """Log-likelihood plus log-prior of each sample, up to a constant, shape (samples,).

    The prior is a virtual draw: an agent has also won and lost half of ``prior`` games against an average agent, and
    likewise the order effect and log nu lean to 0. It has shape (samples, parameters) and is 0 for all parameters
    that the likelihood settles by itself.
    """
    half, log_nu = _gaps(form, counts, x) / 2, _log_nu(form, counts, x)
    log_z = np.logaddexp(np.logaddexp(half, -half), log_nu)
    fitted = (counts.wins_a - counts.wins_b) * half - counts.games * log_z
    tied = counts.ties * x[:, -1:] if form.davidson else 0.0
    centred = _centred(form, x)
    drawn = prior * np.logaddexp(centred / 2, -centred / 2)
    result: Floats = (fitted + tied).sum(axis=1) - drawn.sum(axis=1)
    return result


def gradient(form: Form, counts: PairCounts, x: Floats, prior: Floats) -> Floats:
    """Gradient of ``log_posterior``, shape (samples, parameters)."""
    p = probabilities(form, counts, x)
    # Written so that nothing cancels where one side nearly always wins.
    excess = (
        counts.wins_a * (p.wins_b + p.ties / 2)
        - counts.wins_b * (p.wins_a + p.ties / 2)
        - counts.ties * (p.wins_a - p.wins_b) / 2
    )
    columns = [(incidence(counts).T @ excess.T).T]
    if form.position:
        columns.append(excess.sum(axis=1, keepdims=True))
    if form.davidson:
        excess_ties = counts.ties * (1 - p.ties) - (counts.wins_a + counts.wins_b) * p.ties
        columns.append(excess_ties.sum(axis=1, keepdims=True))
    pull = prior * np.tanh(_centred(form, x) / 2) / 2
    result: Floats = np.hstack(columns) - _centred(form, pull)
    return result


def information(form: Form, counts: PairCounts, x: Floats, prior: Floats) -> Floats:
    """Negative Hessian, shape (samples, parameters, parameters).

    The agents' common level is free; it is pinned by adding a constant to the agents' block, which leaves every step
    and every variance of a difference as it is.
    """
    agents, samples = counts.agents, len(x)
    p = probabilities(form, counts, x)
    decided = p.wins_a + p.wins_b
    variance = counts.games * (decided * p.ties + 4 * p.wins_a * p.wins_b) / 4
    touches, leans = abs(incidence(counts)), incidence(counts)
    result = np.zeros((samples, form.size, form.size))
    result[:, counts.a, counts.b] -= variance
    result[:, counts.b, counts.a] -= variance
    diagonal = np.arange(agents)
    result[:, diagonal, diagonal] += (touches.T @ variance.T).T
    pin = variance.sum(axis=1) / agents**2
    result[:, :agents, :agents] += pin[:, np.newaxis, np.newaxis]
    if form.position:
        _border(result, agents, (leans.T @ variance.T).T, variance.sum(axis=1))
    if form.davidson:
        shared = -counts.games * (p.wins_a - p.wins_b) / 2 * p.ties
        column = [(leans.T @ shared.T).T] + [shared.sum(axis=1, keepdims=True)] * form.position
        of_ties = (counts.games * p.ties * decided).sum(axis=1)
        of_ties[~form.tie_parameter(counts)] = 1.0
        _border(result, form.size - 1, np.hstack(column), of_ties)
    return result + _prior_curvature(form, x, prior) if prior.any() else result


def maximise(
    form: Form, counts: PairCounts, start: Floats, prior: Floats, *, max_iterations: int, tolerance: float
) -> Maximum:
    """Newton's method from ``start`` on every sample, each until its step is below ``tolerance`` (log-odds)."""
    x = start.copy()
    if form.davidson:
        x[~form.tie_parameter(counts), -1] = 0.0
    iterations = np.zeros(len(x), np.int64)
    converged = np.zeros(len(x), np.bool_)
    for _ in range(max_iterations):
        open_ = np.flatnonzero(~converged)
        if not open_.size:
            break
        part = counts.sample(open_)
        slope = gradient(form, part, x[open_], prior[open_])
        curvature = information(form, part, x[open_], prior[open_])
        step = np.asarray(np.linalg.solve(curvature, slope[..., np.newaxis])[..., 0], np.float64)
        moved = _climb(form, part, x[open_], step, prior[open_])
        converged[open_] = np.abs(step).max(axis=1) <= tolerance
        x[open_] = moved
        iterations[open_] += 1
    norm = np.abs(gradient(form, counts, x, prior)).max(axis=1)
    return Maximum(x, iterations, norm, converged)


def incidence(counts: PairCounts) -> sparse.csr_array:
    """+1 at the pair's first agent, -1 at its second, shape (pairs, agents)."""
    pairs = np.arange(counts.a.size)
    signs = np.repeat([1.0, -1.0], pairs.size)
    cells = (np.tile(pairs, 2), np.concatenate([counts.a, counts.b]))
    return sparse.csr_array((signs, cells), shape=(pairs.size, counts.agents))


def _climb(form: Form, counts: PairCounts, x: Floats, step: Floats, prior: Floats) -> Floats:
    """Take the step, shortened where a pair's gap, g or log nu would jump or the likelihood would fall."""
    jump = np.abs(np.hstack([_gaps(form, counts, step), step[:, form.agents :]])).max(axis=1)
    length = np.minimum(1.0, _LARGEST_STEP / np.maximum(jump, _LARGEST_STEP))
    before = log_posterior(form, counts, x, prior)
    slack = 1e-12 * (1 + np.abs(before))
    moved: Floats = x + length[:, np.newaxis] * step
    for _ in range(40):
        fell = log_posterior(form, counts, moved, prior) < before - slack
        if not fell.any():
            break
        length[fell] /= 2
        moved = x + length[:, np.newaxis] * step
    return moved


def _prior_curvature(form: Form, x: Floats, prior: Floats) -> Floats:
    """Negative Hessian of the prior, on the subspace where the agents' mean is 0.

    A tenth of the parabola that bounds the prior from below keeps the matrix regular in the far tails, where the
    prior's own curvature vanishes; the maximum stays where it is.
    """
    centred = _centred(form, x)
    distance = np.maximum(np.abs(centred), 1e-9)
    bound = np.tanh(distance / 2) / (2 * distance)
    curvature = prior * np.maximum(special.expit(centred) * special.expit(-centred), bound / 10)
    result: Floats = curvature[:, :, np.newaxis] * np.eye(form.size)
    own, agents = curvature[:, : form.agents], form.agents
    mean = own.mean(axis=1)[:, np.newaxis, np.newaxis]
    result[:, :agents, :agents] += (mean - own[:, :, np.newaxis] - own[:, np.newaxis]) / agents
    return result


def _centred(form: Form, x: Floats) -> Floats:
    """Parameters, or a gradient in them, with the agents' mean taken off: the average agent is at 0."""
    centred = x.copy()
    centred[:, : form.agents] -= x[:, : form.agents].mean(axis=1, keepdims=True)
    return centred


def _gaps(form: Form, counts: PairCounts, x: Floats) -> Floats:
    gaps: Floats = x[:, counts.a] - x[:, counts.b]
    return gaps + x[:, counts.agents, np.newaxis] if form.position else gaps


def _log_nu(form: Form, counts: PairCounts, x: Floats) -> Floats:
    """Log nu of each sample, minus infinity where there is none, shape (samples, 1)."""
    if not form.davidson:
        return np.full((len(x), 1), -np.inf)
    return np.where(form.tie_parameter(counts), x[:, -1], -np.inf)[:, np.newaxis]


def _border(matrix: Floats, at: int, column: Floats, corner: Floats) -> None:
    """Write a row and the same column, and their corner, into a stack of symmetric matrices."""
    matrix[:, :at, at] = matrix[:, at, :at] = column
    matrix[:, at, at] = corner
