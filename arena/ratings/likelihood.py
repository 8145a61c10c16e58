"""The likelihood of paired comparisons and its maximum, for many samples of counts at once.

Agents a and b with log-strengths t_a and t_b are d = t_a - t_b + g apart, where g is the advantage of being shown
first (Davidson and Beaver 1977, Biometrics 33); ``ties`` says what a gap and a tie parameter make of a game. In
(t, g, tie parameter) the log-likelihood is concave, so Newton's method finds the maximum where there is one. Arrays
carry a leading axis of samples; a point estimate is one sample.

With h the tie parameter, the treatments of ties are:

- ``davidson`` (Davidson 1970, JASA 65), h = log nu: P(a) : P(b) : P(tie) = e^(d/2) : e^(-d/2) : nu.
- ``half``: Bradley and Terry (1952), in which a tie adds half the log-probability of either win; the same expressions
  with nu = 0.
- ``rao-kupper`` (Rao and Kupper 1967, JASA 62), h = eta >= 0, a threshold: P(a) = s(d - eta), P(b) = s(-d - eta) with
  the logistic function s, so P(tie) = (e^(2 eta) - 1) P(a) P(b).

All are concave in (d, h). Arrays of gaps and outcomes have one shape; h broadcasts to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.counts import PairCounts
from retrieval_eval.stats.arrays import Floats

TieModel: TypeAlias = Literal["davidson", "half", "rao-kupper"]

NO_TIES: dict[TieModel, float] = {"davidson": -np.inf, "half": -np.inf, "rao-kupper": 0.0}
"""The tie parameter under which ties do not happen: its maximum where there are none."""

_FAR = 600.0
"""Gaps beyond this are as good as infinite, and their exponentials still finite."""


class Outcomes(NamedTuple):
    """Numbers, or probabilities, of wins of either side and of ties."""

    wins_a: Floats
    wins_b: Floats
    ties: Floats


class Slopes(NamedTuple):
    """First derivatives of the log-likelihood in the gap and in the tie parameter."""

    gap: Floats
    tie: Floats


class Curvatures(NamedTuple):
    """Negative second derivatives."""

    gap: Floats
    cross: Floats
    tie: Floats


def probabilities(model: TieModel, gap: Floats, tie: Floats) -> Outcomes:
    """Probability of each outcome."""
    if model == "rao-kupper":
        (win, _), (loss, _) = _threshold(gap, tie)
        return Outcomes(win, loss, np.expm1(2 * tie) * win * loss)
    up = np.exp(np.clip(gap, -_FAR, _FAR) / 2)
    down, nu = 1 / up, np.exp(tie)
    total = up + down + nu
    return Outcomes(up / total, down / total, nu / total)


def log_likelihood(model: TieModel, gap: Floats, tie: Floats, seen: Outcomes) -> Floats:
    """Of the outcomes seen, up to a constant; minus infinity outside of the parameter's range."""
    if model == "rao-kupper":
        held = np.maximum(tie, 0.0)
        won = (seen.wins_a + seen.ties) * np.logaddexp(0, held - gap)
        lost = (seen.wins_b + seen.ties) * np.logaddexp(0, held + gap)
        with np.errstate(divide="ignore"):
            drawn = np.log(np.expm1(2 * held))
        tied: Floats = np.where(seen.ties > 0, seen.ties * np.where(seen.ties > 0, drawn, 0.0), 0.0)
        return tied - won - lost
    log_z = np.logaddexp(np.logaddexp(gap / 2, -gap / 2), tie)
    drawn = seen.ties * np.where(np.isfinite(tie), tie, 0.0)
    result: Floats = (seen.wins_a - seen.wins_b) * gap / 2 + drawn - sum(seen) * log_z
    return result


def slopes(model: TieModel, gap: Floats, tie: Floats, seen: Outcomes) -> Slopes:
    """First derivatives, written so that nothing cancels where one side nearly always wins."""
    if model == "rao-kupper":
        (_, not_win), (_, not_loss) = _threshold(gap, tie)
        won, lost = (seen.wins_a + seen.ties) * not_win, (seen.wins_b + seen.ties) * not_loss
        return Slopes(won - lost, seen.ties * _drawn_slope(tie) - won - lost)
    p = probabilities(model, gap, tie)
    half = p.ties / 2
    of_gap = seen.wins_a * (p.wins_b + half) - seen.wins_b * (p.wins_a + half) - seen.ties * (p.wins_a - p.wins_b) / 2
    return Slopes(of_gap, seen.ties * (1 - p.ties) - (seen.wins_a + seen.wins_b) * p.ties)


def curvatures(model: TieModel, gap: Floats, tie: Floats, seen: Outcomes) -> Curvatures:
    """Negative second derivatives; that of the tie parameter is 0 where ties do not happen."""
    if model == "rao-kupper":
        (win, not_win), (loss, not_loss) = _threshold(gap, tie)
        won, lost = (seen.wins_a + seen.ties) * win * not_win, (seen.wins_b + seen.ties) * loss * not_loss
        slope = _drawn_slope(tie)
        return Curvatures(won + lost, lost - won, won + lost + seen.ties * slope * (slope - 2))
    p, games = probabilities(model, gap, tie), sum(seen)
    decided = p.wins_a + p.wins_b
    of_gap = games * (decided * p.ties + 4 * p.wins_a * p.wins_b) / 4
    return Curvatures(of_gap, -games * (p.wins_a - p.wins_b) / 2 * p.ties, games * p.ties * decided)


def _threshold(gap: Floats, eta: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Probability of a win of a and of its contrary, and the same of b."""
    odds, theta = np.exp(np.clip(gap, -_FAR, _FAR)), np.exp(eta)
    of_a, of_b = odds + theta, 1 + theta * odds
    return (odds / of_a, theta / of_a), (1 / of_b, theta * odds / of_b)


def _drawn_slope(eta: Floats) -> Floats:
    """Derivative of log(e^(2 eta) - 1), 0 where eta is 0, since there are no ties then."""
    slope: Floats = np.where(eta > 0, 2 / -np.expm1(-2 * np.where(eta > 0, eta, 1.0)), 0.0)
    return slope


_LARGEST_STEP = 4.0
"""Neither a pair's d, nor g, nor the tie parameter moves farther in a step: the quadratic model ends there."""


class ParameterForm(Struct, frozen=True):
    """Which parameters there are: one per agent, the order effect, one per covariate, the tie parameter.

    Counts carry no covariates; games do, see ``covariates``.
    """

    agents: int
    position: bool
    ties: TieModel
    covariates: int = 0

    @property
    def has_tie_parameter(self) -> bool:
        """Whether ties have a parameter of their own."""
        return self.ties != "half"

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.agents + self.position + self.covariates + self.has_tie_parameter

    def tie_parameter(self, counts: PairCounts) -> NDArray[np.bool_]:
        """Samples in which it is estimated: without a tie its maximum is that of no ties, shape (samples,)."""
        if not self.has_tie_parameter:
            return np.zeros(len(counts.ties), np.bool_)
        return np.asarray(counts.ties.any(axis=1), np.bool_)


class Maximum(Struct, frozen=True, eq=False):
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


def log_posterior(form: ParameterForm, counts: PairCounts, x: Floats, prior: Floats) -> Floats:
    """Log-likelihood plus log-prior of each sample, up to a constant, shape (samples,).

    The prior is a virtual draw: an agent has also won and lost half of ``prior`` games against an average agent, and
    likewise the order effect and the tie parameter lean to 0. It has shape (samples, parameters) and is 0 for all
    parameters that the likelihood settles by itself.
    """
    fitted = log_likelihood(form.ties, _gaps(form, counts, x), tie_values(form, counts, x), _seen(counts))
    middle = centred(form, x)
    drawn = prior * np.logaddexp(middle / 2, -middle / 2)
    result: Floats = fitted.sum(axis=1) - drawn.sum(axis=1)
    return result


class Sums(NamedTuple):
    """What adds values of pairs up to values of agents, shape (agents, pairs), made once for many steps.

    Attributes:
        signed: a pair's value is added to its first agent and taken from its second.
        whole: it is added to both.
    """

    signed: scipy.sparse.csc_array
    whole: scipy.sparse.csc_array


def sums(counts: PairCounts) -> Sums:
    """Of the pairs that met."""
    leans = incidence(counts)
    return Sums(leans.T, abs(leans).T)


def gradient(form: ParameterForm, counts: PairCounts, x: Floats, prior: Floats, adding: Sums | None = None) -> Floats:
    """Gradient of ``log_posterior``, shape (samples, parameters); ``adding`` is ``sums``, where at hand."""
    slope = slopes(form.ties, _gaps(form, counts, x), tie_values(form, counts, x), _seen(counts))
    columns = [((adding or sums(counts)).signed @ slope.gap.T).T]
    if form.position:
        columns.append(slope.gap.sum(axis=1, keepdims=True))
    if form.has_tie_parameter:
        columns.append((slope.tie.sum(axis=1) * form.tie_parameter(counts))[:, np.newaxis])
    result: Floats = np.hstack(columns)
    return result - prior_pull(form, x, prior) if prior.any() else result


def gradient_on(form: ParameterForm, counts: PairCounts, prior: Floats, adding: Sums) -> Callable[[Floats], Floats]:
    """``gradient`` of the parameters alone, for many steps on the same counts.

    Davidson's ties and half-win ties make an exponential family: what was seen is added up once, and each step takes
    from it what is expected. Where one side nearly always wins the two cancel, but for 1e-16 of the games.
    """
    if form.ties == "rao-kupper":
        return lambda x: gradient(form, counts, x, prior, adding)
    games, estimated = np.ascontiguousarray(counts.games.T), form.tie_parameter(counts)
    none = NO_TIES[form.ties]
    won = np.ascontiguousarray((counts.wins_a - counts.wins_b).T) / 2
    seen, tied = _rows(form, won, adding), counts.ties.sum(axis=1)
    ones = np.ones(len(games))

    def at(x: Floats) -> Floats:
        half = x.T / 2
        gap = np.take(half, counts.a, axis=0)
        gap -= np.take(half, counts.b, axis=0)
        if form.position:
            gap += half[form.agents]
        up = np.exp(np.clip(gap, -_FAR / 2, _FAR / 2, out=gap), out=gap)
        down, nu = 1 / up, np.exp(np.where(estimated, x[:, -1], none))
        total = up + down
        total += nu
        each = np.divide(games, total, out=total)
        up -= down
        up *= each
        rows = seen - _rows(form, up, adding) / 2
        if form.has_tie_parameter:
            rows = np.vstack([rows, (tied - nu * (ones @ each)) * estimated])
        slope: Floats = rows.T
        return slope - prior_pull(form, x, prior) if prior.any() else slope

    return at


def _rows(form: ParameterForm, of_pairs: Floats, adding: Sums) -> Floats:
    """Values of pairs, shape (pairs, samples), added up for each agent and for the order effect, if there is one."""
    of_agents: Floats = adding.signed @ of_pairs
    return np.vstack([of_agents, of_pairs.sum(axis=0)]) if form.position else of_agents


def information(
    form: ParameterForm, counts: PairCounts, x: Floats, prior: Floats, adding: Sums | None = None
) -> Floats:
    """Negative Hessian, shape (samples, parameters, parameters); ``adding`` is ``sums``, where at hand.

    The agents' common level is free; it is pinned by adding a constant to the agents' block, which leaves every step
    and every variance of a difference as it is.
    """
    agents, samples = counts.agents, len(x)
    curved = curvatures(form.ties, _gaps(form, counts, x), tie_values(form, counts, x), _seen(counts))
    variance, adding = curved.gap, adding or sums(counts)
    result = np.zeros((samples, form.size, form.size))
    result[:, counts.a, counts.b] -= variance
    result[:, counts.b, counts.a] -= variance
    diagonal = np.arange(agents)
    result[:, diagonal, diagonal] += (adding.whole @ variance.T).T
    pin = variance.sum(axis=1) / agents**2
    result[:, :agents, :agents] += pin[:, np.newaxis, np.newaxis]
    if form.position:
        _border(result, agents, (adding.signed @ variance.T).T, variance.sum(axis=1))
    if form.has_tie_parameter:
        estimated = form.tie_parameter(counts)
        shared = curved.cross * estimated[:, np.newaxis]
        column = [(adding.signed @ shared.T).T] + [shared.sum(axis=1, keepdims=True)] * form.position
        _border(result, form.size - 1, np.hstack(column), np.where(estimated, curved.tie.sum(axis=1), 1.0))
    if prior.any():
        result += prior_curvature(form, x, prior)
    return result


def maximise(
    form: ParameterForm, counts: PairCounts, start: Floats, prior: Floats, *, max_iterations: int, tolerance: float
) -> Maximum:
    """Newton's method from ``start`` on every sample, each until its step is below ``tolerance`` (log-odds)."""
    x, adding = feasible(form, counts, start), sums(counts)
    iterations = np.zeros(len(x), np.int64)
    converged = np.zeros(len(x), np.bool_)
    height = log_posterior(form, counts, x, prior)
    for _ in range(max_iterations):
        open_ = np.flatnonzero(~converged)
        if not open_.size:
            break
        part = counts.sample(open_)
        slope = gradient(form, part, x[open_], prior[open_], adding)
        curvature = information(form, part, x[open_], prior[open_], adding)
        step = np.asarray(np.linalg.solve(curvature, slope[..., np.newaxis])[..., 0], np.float64)
        x[open_], height[open_] = _climb(form, part, x[open_], step, prior[open_], height=height[open_])
        converged[open_] = np.abs(step).max(axis=1) <= tolerance
        iterations[open_] += 1
    norm = np.abs(gradient(form, counts, x, prior, adding)).max(axis=1)
    return Maximum(x, iterations, norm, converged)


def feasible(form: ParameterForm, counts: PairCounts, x: Floats) -> Floats:
    """Parameters with the tie parameter in its range, and at 0 in samples that do not estimate it."""
    x = x.copy()
    if form.has_tie_parameter:
        estimated = form.tie_parameter(counts)
        x[~estimated, -1] = 0.0
        if form.ties == "rao-kupper":
            x[estimated & (x[:, -1] <= 0), -1] = 1.0
    return x


def incidence(counts: PairCounts) -> scipy.sparse.csr_array:
    """+1 at the pair's first agent, -1 at its second, shape (pairs, agents)."""
    pairs = np.arange(counts.a.size)
    signs = np.repeat([1.0, -1.0], pairs.size)
    cells = (np.tile(pairs, 2), np.concatenate([counts.a, counts.b]))
    return scipy.sparse.csr_array((signs, cells), shape=(pairs.size, counts.agents))


def _climb(
    form: ParameterForm, counts: PairCounts, x: Floats, step: Floats, prior: Floats, *, height: Floats
) -> tuple[Floats, Floats]:
    """Take the step, shortened where a pair's gap, g or the tie parameter would jump or the likelihood would fall.

    ``height`` is the likelihood at ``x``; the one at the new place is returned with it.
    """
    jump = np.abs(np.hstack([_gaps(form, counts, step), step[:, form.agents :]])).max(axis=1)
    length = np.minimum(1.0, _LARGEST_STEP / np.maximum(jump, _LARGEST_STEP))
    slack = 1e-12 * (1 + np.abs(height))
    for _ in range(40):
        moved: Floats = x + length[:, np.newaxis] * step
        reached = log_posterior(form, counts, moved, prior)
        fell = ~(reached >= height - slack)
        if not fell.any():
            break
        length[fell] /= 2
    return moved, reached


def prior_pull(form: ParameterForm, x: Floats, prior: Floats) -> Floats:
    """Gradient of the prior, downwards."""
    return centred(form, prior * np.tanh(centred(form, x) / 2) / 2)


def prior_curvature(form: ParameterForm, x: Floats, prior: Floats) -> Floats:
    """Negative Hessian of the prior, on the subspace where the agents' mean is 0.

    A tenth of the parabola that bounds the prior from below keeps the matrix regular in the far tails, where the
    prior's own curvature vanishes; the maximum stays where it is.
    """
    middle = centred(form, x)
    distance = np.maximum(np.abs(middle), 1e-9)
    bound = np.tanh(distance / 2) / (2 * distance)
    curvature = prior * np.maximum(scipy.special.expit(middle) * scipy.special.expit(-middle), bound / 10)
    own, agents, size = curvature[:, : form.agents], form.agents, form.size
    result = np.zeros((len(x), size, size))
    mean = own.mean(axis=1)[:, np.newaxis, np.newaxis]
    result[:, :agents, :agents] = (mean - own[:, :, np.newaxis]) - own[:, np.newaxis]
    result /= agents
    diagonal = np.arange(size)
    result[:, diagonal, diagonal] += curvature
    return result


def centred(form: ParameterForm, x: Floats) -> Floats:
    """Parameters, or a gradient in them, with the agents' mean taken off: the average agent is at 0."""
    middle = x.copy()
    middle[:, : form.agents] -= x[:, : form.agents].mean(axis=1, keepdims=True)
    return middle


def tie_values(form: ParameterForm, counts: PairCounts, x: Floats) -> Floats:
    """The tie parameter of each sample, or the value that stands for no ties, shape (samples, 1)."""
    none = NO_TIES[form.ties]
    if not form.has_tie_parameter:
        return np.full((len(x), 1), none)
    return np.where(form.tie_parameter(counts), x[:, -1], none)[:, np.newaxis]


def _gaps(form: ParameterForm, counts: PairCounts, x: Floats) -> Floats:
    gaps: Floats = np.take(x, counts.a, axis=1) - np.take(x, counts.b, axis=1)  # in memory as counts are
    return gaps + x[:, counts.agents, np.newaxis] if form.position else gaps


def _seen(counts: PairCounts) -> Outcomes:
    return Outcomes(counts.wins_a, counts.wins_b, counts.ties)


def _border(matrix: Floats, at: int, column: Floats, corner: Floats) -> None:
    """Write a row and the same column, and their corner, into a stack of symmetric matrices."""
    matrix[:, :at, at] = matrix[:, at, :at] = column
    matrix[:, at, at] = corner
