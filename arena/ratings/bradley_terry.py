"""Bradley-Terry ratings by maximum likelihood, with ties and an order effect, and their covariance.

Ratings are log-strengths on the Elo scale: 400 / ln 10 points per unit, so that 400 points are odds of ten to one.

The covariance allows verdicts on one query to depend on each other. It is the cluster-robust sandwich (Liang and Zeger
1986, Biometrika 73): H^-1 (sum over queries of u u') H^-1, where H is the curvature of the log-likelihood and u the
score of a query (the gradient of its log-likelihood), times n / (n - 1) for n queries.

The likelihood need not have a maximum. Ford (1957, American Mathematical Monthly 64): strengths are finite and unique
if and only if there is a path of wins (a tie is a win for both) from every agent to every other. A tie parameter or an
order effect can also grow without limit together with the strengths; a linear program decides this (Albert and Anderson
1984, Biometrika 71, on separation).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.ratings.games import Games
from arena.ratings.likelihood import (
    Outcomes,
    PairCounts,
    ParameterForm,
    TieModel,
    game_cells,
    game_clusters,
    incidence,
    information,
    maximise,
    pair_counts,
    reachable,
    slopes,
    tie_values,
)
from retrieval_eval.stats import Floats


class BradleyTerrySettings(Struct, frozen=True):
    """Settings of the Bradley-Terry model, of its rating scale and of Newton's method.

    Attributes:
        ties: ``davidson`` and ``rao-kupper`` model ties; ``half`` counts a tie as half a win for each agent.
        position: estimate the advantage of being shown first.
        centre: the mean rating, or the rating of ``anchor``.
        anchor: the agent whose rating is fixed at ``centre``; ``None`` fixes the mean of all agents.
        scale: points per factor of ten in odds.
        prior_games: number of virtual ties against an average agent, added only for agents without a finite maximum.
        max_iterations, tolerance: limits of Newton's method; it stops once the largest step, in log-odds, is below
            ``tolerance``.
    """

    ties: TieModel = "davidson"
    position: bool = False
    centre: float = 1000.0
    anchor: str | None = None
    scale: float = 400.0
    prior_games: float = 1.0
    max_iterations: int = 100
    tolerance: float = 1e-8

    @property
    def points(self) -> float:
        return self.scale / math.log(10)


class BradleyTerry(Struct, frozen=True, eq=False):
    """A fitted Bradley-Terry model.

    Attributes:
        agents: names, in the order of ``ratings``.
        position_effect: advantage of being shown first in points; ``None`` if not estimated.
        tie_parameter: Davidson's nu (0 without ties), or Rao and Kupper's theta, the ratio of strengths at which the
            stronger agent wins half of the games (1 without ties); ``None`` with half-win ties.
        problems: why the likelihood has no maximum; empty if it has one.
        prior: number of virtual games for each parameter, shape (parameters,); all 0 for plain maximum likelihood.
        iterations, gradient_norm, converged: how Newton's method ended; the norm is in games.
        form, counts, x: the model, the counts that it was fitted to, and its parameters, shape (parameters,).
    """

    agents: tuple[str, ...]
    position_effect: float | None
    tie_parameter: float | None
    problems: tuple[Problem, ...]
    prior: Floats
    iterations: int
    gradient_norm: float
    converged: bool
    settings: BradleyTerrySettings
    form: ParameterForm
    counts: PairCounts
    x: Floats

    @property
    def ratings(self) -> Floats:
        """Ratings in points, shape (agents,)."""
        return self.to_points(self.x)

    def to_points(self, x: Floats) -> Floats:
        """Convert parameters to ratings in points: shape (..., parameters) to (..., agents)."""
        strengths = x[..., : len(self.agents)]
        if self.settings.anchor is None:
            level = strengths.mean(axis=-1, keepdims=True)
        else:
            level = strengths[..., [self.agents.index(self.settings.anchor)]]
        points: Floats = self.settings.centre + self.settings.points * (strengths - level)
        return points

    def model_covariance(self) -> Floats:
        """Covariance of ratings if all games are independent and the model is true, shape (agents, agents)."""
        return self.in_points(np.asarray(np.linalg.inv(self.curvature()), np.float64))

    @property
    def position_model_sd(self) -> float:
        """Standard error of the order effect in points, by ``model_covariance``; 0 if not estimated."""
        if not self.form.position:
            return 0.0
        index = self.form.agents
        return float(self.settings.points * np.sqrt(np.linalg.inv(self.curvature())[index, index]))

    def curvature(self) -> Floats:
        """Negative Hessian at the fit, shape (parameters, parameters)."""
        curvature: Floats = information(self.form, self.counts, self.x[np.newaxis], self.prior[np.newaxis])[0]
        return curvature

    def in_points(self, covariance: Floats) -> Floats:
        """Convert a covariance of parameters to one of ratings in points."""
        per_parameter = self.to_points(np.eye(len(covariance))) - self.settings.centre
        ratings: Floats = per_parameter.T @ covariance @ per_parameter
        return ratings


def bradley_terry(
    games: Games, settings: BradleyTerrySettings | None = None, *, start: Floats | None = None
) -> BradleyTerry:
    """Fit ratings to games; ``start``, the parameters of a fit to similar games, saves iterations.

    If the likelihood has no maximum (an agent without a loss or a win, sets of agents that never met, all games tied),
    ``problems`` names the cause and the agents, and their parameters get the weak prior of the settings.

    Raises:
        ValueError: there are no games, an agent has no game, the anchor is unknown, or ``position`` is on but the games
            do not record which agent was shown first.
    """
    chosen = settings or BradleyTerrySettings()
    idle = [name for name, count in zip(games.agents, games.per_agent(), strict=True) if count == 0]
    if idle or not games.agents:
        raise ValueError(f"agents without games cannot be rated: {', '.join(idle) or 'there are none at all'}")
    if chosen.anchor is not None and chosen.anchor not in games.agents:
        raise ValueError(f"the anchor {chosen.anchor!r} is not among the agents")
    counts = pair_counts(games, ordered=chosen.position)
    form = ParameterForm(counts.agents, chosen.position, chosen.ties)
    prior = chosen.prior_games * unsettled(form, counts).astype(np.float64)
    best = maximise(
        form,
        counts,
        np.zeros((1, form.size)) if start is None else start[np.newaxis],
        prior,
        max_iterations=chosen.max_iterations,
        tolerance=chosen.tolerance,
    )
    x = best.x[0]
    return BradleyTerry(
        agents=games.agents,
        position_effect=float(chosen.points * x[form.agents]) if form.position else None,
        tie_parameter=float(np.exp(tie_values(form, counts, best.x)[0, 0])) if form.has_tie_parameter else None,
        problems=problems(form, counts, games.agents),
        prior=prior[0],
        iterations=int(best.iterations[0]),
        gradient_norm=float(best.gradient_norm[0]),
        converged=bool(best.converged[0]),
        settings=chosen,
        form=form,
        counts=counts,
        x=x,
    )


class Sandwich(Struct, frozen=True, eq=False):
    """Sandwich covariance of ratings.

    Attributes:
        covariance: covariance of ratings in points, shape (agents, agents).
        position_sd: standard error of the order effect in points; ``None`` if not estimated.
        clusters: number of independent units: queries, or games.
        per_agent: number of units with a game of each agent, shape (agents,).
    """

    covariance: Floats
    position_sd: float | None
    clusters: int
    per_agent: NDArray[np.int64]


def sandwich(games: Games, fitted: BradleyTerry, *, by_query: bool = True) -> Sandwich | None:
    """Sandwich covariance of the ratings of ``fitted``, which must be a fit to ``games``.

    The gradients of n clusters vary too little around the fit, by the factor (n - 1) / n, which is corrected for each
    agent. There n is the number of clusters on which the agent plays: 5 for an agent with games on 5 of 40 queries.

    Games without a query count as independent. Returns ``None`` for fewer than two units, which show no variation.
    """
    if by_query and games.cluster is not None:
        scores = cluster_scores(games, fitted)
        units, per_agent = len(scores), _clusters_per_agent(games)
    else:
        scores = _game_scores(fitted)
        units = round(float(fitted.counts.games.sum()))
        per_agent = np.round(games.per_agent()).astype(np.int64)
    if units < 2:
        return None
    bread = np.linalg.inv(fitted.curvature())
    parameter_covariance = bread @ (scores.T @ scores) @ bread * units / (units - 1)
    position_sd = None
    if fitted.form.position:
        variance = max(0.0, parameter_covariance[fitted.form.agents, fitted.form.agents])  # negative only by rounding
        position_sd = float(fitted.settings.points * np.sqrt(variance))
    small_sample = np.sqrt((1 + 1 / (np.maximum(per_agent, 2) - 1)) / (units / (units - 1)))
    return Sandwich(
        fitted.in_points(parameter_covariance) * np.outer(small_sample, small_sample), position_sd, units, per_agent
    )


def _clusters_per_agent(games: Games) -> NDArray[np.int64]:
    """Number of clusters with a game of each agent, shape (agents,)."""
    cluster, clusters = game_clusters(games)
    played = np.zeros((clusters, len(games.agents)), np.bool_)
    real = games.weights > 0
    played[cluster[real], games.a[real]] = played[cluster[real], games.b[real]] = True
    return np.asarray(played.sum(axis=0), np.int64)


def cluster_scores(games: Games, fitted: BradleyTerry) -> Floats:
    """Gradient of each query's log-likelihood at the fit, shape (queries, parameters).

    Rows are the queries with a game, in ascending order.
    """
    form, pairs = fitted.form, fitted.counts
    cell = game_cells(games, pairs, ordered=form.position)
    cluster, clusters = game_clusters(games)
    gap_slope, tie_slope = (np.concatenate(part) for part in single_game_slopes(fitted))
    weighted_slope = gap_slope[cell] if games.weight is None else gap_slope[cell] * games.weight
    flat = cluster * form.agents

    def summed(place: NDArray[np.int64], size: int, values: Floats) -> Floats:
        return np.bincount(place, values, size).astype(np.float64)

    low, high = (np.tile(side, 3)[cell] for side in (pairs.a, pairs.b))
    cells = clusters * form.agents
    columns = [
        (summed(flat + low, cells, weighted_slope) - summed(flat + high, cells, weighted_slope)).reshape(
            clusters, form.agents
        )
    ]
    if form.position:
        columns.append(summed(cluster, clusters, weighted_slope)[:, np.newaxis])
    if form.has_tie_parameter:
        columns.append(summed(cluster, clusters, tie_slope[cell] * games.weights)[:, np.newaxis])
    return np.hstack(columns)


def _game_scores(fitted: BradleyTerry) -> Floats:
    """Gradient of the log-likelihood by pair and outcome, scaled so that sums of squares equal those over games."""
    form, pairs = fitted.form, fitted.counts
    observed = np.concatenate([pairs.wins_a[0], pairs.wins_b[0], pairs.ties[0]])
    gap_slope, tie_slope = (np.concatenate(part) for part in single_game_slopes(fitted))
    columns = [scipy.sparse.vstack([incidence(pairs)] * 3).toarray() * gap_slope[:, np.newaxis]]
    if form.position:
        columns.append(gap_slope[:, np.newaxis])
    if form.has_tie_parameter:
        columns.append(tie_slope[:, np.newaxis])
    scores: Floats = np.sqrt(observed)[:, np.newaxis] * np.hstack(columns)
    return scores[observed > 0]


def single_game_slopes(fitted: BradleyTerry) -> tuple[list[Floats], list[Floats]]:
    """Derivatives of the log-likelihood of one game of each pair, by the gap and by the tie parameter.

    Each list has three arrays, for a win of a, a win of b and a tie.
    """
    form, pairs, x = fitted.form, fitted.counts, fitted.x
    gap = x[pairs.a] - x[pairs.b] + (x[form.agents] if form.position else 0.0)
    tie = tie_values(form, pairs, x[np.newaxis])[0]
    one, zero = np.ones(gap.size), np.zeros(gap.size)
    per_outcome = [
        slopes(form.ties, gap, tie, Outcomes(*outcome))
        for outcome in ((one, zero, zero), (zero, one, zero), (zero, zero, one))
    ]
    estimated = form.tie_parameter(pairs)[0]
    return [slope.gap for slope in per_outcome], [slope.tie * estimated for slope in per_outcome]


Cause: TypeAlias = Literal["disconnected", "undefeated", "winless", "separated", "ties", "position", "covariates"]
ComponentLabels: TypeAlias = NDArray[np.intp]

_CELLS = 4_000_000
"""Maximum number of elements in one array; samples are checked in chunks of a matching size."""


class Problem(Struct, frozen=True):
    """Why the likelihood has no maximum: the cause, the agents whose ratings are therefore arbitrary, and a message."""

    cause: Cause
    agents: tuple[str, ...]
    message: str


def problems(form: ParameterForm, counts: PairCounts, names: Sequence[str]) -> tuple[Problem, ...]:
    """Reasons why the likelihood of one sample of counts has no maximum; empty if it has one."""
    problems_found: list[Problem] = []
    if not _strongly_connected(counts)[0]:
        problems_found = [*_between_components(counts, names), *_within_components(counts, names)]
    if not problems_found and form.tie_parameter(counts)[0] and not _any_winner(counts):
        problems_found = [Problem("ties", tuple(names), "every game is a tie, so nothing sets the agents apart")]
    if form.position and not position_identified(counts):
        message = "the order effect cannot be separated from the agents' strengths: show pairs in both orders"
        problems_found.append(Problem("position", tuple(names), message))
    if not problems_found and not _bounded(form, counts):
        by_ties = not _bounded(replace(form, position=False), counts)
        reason = "wins go one way and only ties hold the agents together" if by_ties else "wins follow the order shown"
        message = f"{reason}: the likelihood grows without end as ratings spread"
        problems_found = [Problem("ties" if by_ties else "position", tuple(names), message)]
    return tuple(problems_found)


def unsettled(form: ParameterForm, counts: PairCounts) -> NDArray[np.bool_]:
    """Which parameters of each sample need a prior, shape (samples, parameters); none if the maximum exists.

    These are the agents outside the largest set that wins and ties connect in both directions, the order effect and the
    tie parameter. With a prior on them the likelihood cannot grow without limit in any direction.
    """
    needs_prior = np.zeros((len(counts.ties), form.size), np.bool_)
    # Most samples pass a cheap check that runs on all of them at once.
    unclear = np.flatnonzero(~(_strongly_connected(counts) & _plainly_bounded(form, counts)))
    if not unclear.size:
        return needs_prior
    # Only the presence of an outcome matters, not its count, so many samples of the same games share one check.
    counts = counts.sample(unclear)
    patterns = np.packbits(np.concatenate([counts.wins_a > 0, counts.wins_b > 0, counts.ties > 0], axis=1), axis=1)
    rows = patterns.view(np.dtype((np.void, patterns.shape[1]))).ravel()
    _, first, pattern = np.unique(rows, return_index=True, return_inverse=True)
    needs_prior[unclear] = np.array([_unsettled(form, counts.sample(np.array([number]))) for number in first])[
        pattern.ravel()
    ]
    return needs_prior


def _unsettled(form: ParameterForm, sample: PairCounts) -> NDArray[np.bool_]:
    """``unsettled`` for one sample, shape (parameters,)."""
    needs_prior = np.zeros(form.size, np.bool_)
    needs_prior[: form.agents] = not _strongly_connected(sample)[0] and _unsettled_agents(sample)
    identified = not form.position or position_identified(sample)
    needs_prior[form.agents :] = needs_prior.any() or not (identified and _bounded(form, sample))
    return needs_prior


def position_identified(counts: PairCounts) -> bool:
    """Whether the games can tell an order effect from strengths; not, for example, if agent x is always first."""
    played = counts.games[0] > 0
    if _in_both_orders(counts, played):
        return True
    signs = incidence(counts)[np.flatnonzero(played)].toarray()
    ones = np.ones(len(signs))
    closest = signs @ np.linalg.lstsq(signs, ones, rcond=None)[0]
    return bool(np.abs(ones - closest).max(initial=0.0) > 1e-8)


def _strongly_connected(counts: PairCounts) -> NDArray[np.bool_]:
    """Whether wins and ties lead from the first agent to every other and back in each sample, shape (samples,)."""
    connected = np.empty(len(counts.ties), np.bool_)
    part = max(1, _CELLS // counts.agents**2)
    for start in range(0, connected.size, part):
        chunk = slice(start, start + part)
        beats = _beats(counts.sample(chunk))
        connected[chunk] = _reaches_all(beats) & _reaches_all(beats.swapaxes(0, 1))
    return connected


def _reaches_all(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether paths lead from the first node of each graph to all others, shape (nodes, nodes, graphs) to (graphs,)."""
    reached = np.zeros(edges.shape[1:], np.bool_)
    reached[0] = True
    while True:
        farther = reached | (reached[:, None] & edges).any(axis=0)
        if (farther == reached).all():
            return np.asarray(reached.all(axis=0))
        reached = farther


def _unsettled_agents(counts: PairCounts) -> NDArray[np.bool_]:
    beats = _beats(counts)[..., 0]
    labels, linked = _settled_sets(beats), _linked_sets(beats)
    if not labels.any():
        return np.zeros(counts.agents, np.bool_)
    outside = _outside_largest(linked) if linked.any() else np.zeros(counts.agents, np.bool_)
    for component in np.unique(linked):
        inside = linked == component
        if np.unique(labels[inside]).size > 1:
            outside |= inside & _outside_largest(labels, inside)
    return outside


def _bounded(form: ParameterForm, counts: PairCounts) -> bool:
    """Whether the likelihood of a strongly connected sample has a maximum."""
    tie_parameter = bool(form.tie_parameter(counts)[0])
    if not (tie_parameter or form.position):
        return True
    if tie_parameter and not _any_winner(counts):
        return False
    return bool(_plainly_bounded(form, counts)[0]) or not _has_recession(counts, form, tie_parameter)


def _plainly_bounded(form: ParameterForm, counts: PairCounts) -> NDArray[np.bool_]:
    """Whether the likelihood has a maximum because both agents of some pair won; false does not mean that it has none.

    With an order effect, both must have won in both orders. If ties are half wins, a tie counts as a win of both. This
    check is fast and spares most samples the full one. Shape (samples,).
    """
    split = (counts.wins_a > 0) & (counts.wins_b > 0)
    if not form.has_tie_parameter:
        split |= counts.ties > 0
    if not form.position:
        return np.asarray(split.any(axis=1), np.bool_)
    return np.array([_in_both_orders(counts, sample) for sample in split], np.bool_)


def _in_both_orders(counts: PairCounts, chosen: NDArray[np.bool_]) -> bool:
    """Whether some pair of agents was chosen in both orders, as (a, b) and as (b, a)."""
    has_pair = np.zeros((counts.agents, counts.agents), np.bool_)
    has_pair[counts.a, counts.b] = chosen
    return bool((has_pair & has_pair.T).any())


def _has_recession(counts: PairCounts, form: ParameterForm, tie_parameter: bool) -> bool:
    """Whether the parameters can move in a direction in which the likelihood never falls and at some point rises."""
    present = (np.flatnonzero(outcome[0] > 0) for outcome in (counts.wins_a, counts.wins_b, counts.ties))
    sides = tuple(side[pairs].tobytes() for pairs in present for side in (counts.a, counts.b))
    return _recedes(counts.agents, form.position, tie_parameter, (counts.a.dtype.str, sides))


@lru_cache(maxsize=4096)
def _recedes(agents: int, position: bool, tie_parameter: bool, outcome_pairs: tuple[str, tuple[bytes, ...]]) -> bool:
    """``_has_recession``, given the pairs with each outcome; cached, because many fits have the same such pairs.

    ``outcome_pairs`` holds the dtype of the agents' numbers and six arrays as bytes: first and second agents of the
    pairs with a win of the first agent, with a win of the second, and with a tie.

    A direction (dt, dg, de) moves a pair's gap by d and log nu by e >= 0. No observed outcome may become less likely: a
    win of the first agent needs d >= 2e, of the second -d >= 2e, a tie 2e >= |d| (d = 0 if ties are half wins). The
    threshold of Rao and Kupper moves by 2e under the same conditions.
    """
    from scipy.optimize import linprog

    first_a, first_b, second_a, second_b, tied_a, tied_b = (
        np.frombuffer(side, outcome_pairs[0]) for side in outcome_pairs[1]
    )
    rows = [
        (a, b, sign, nu * tie_parameter)
        for a, b, sign, nu in (
            (first_a, first_b, 1.0, -2.0),
            (second_a, second_b, -1.0, -2.0),
            (tied_a, tied_b, 1.0, 2.0),
            (tied_a, tied_b, -1.0, 2.0),
        )
    ]
    sign, nu = (np.concatenate([np.full(row[0].size, row[part]) for row in rows]) for part in (2, 3))
    first, second = (np.concatenate([row[side] for row in rows]) for side in (0, 1))
    columns = [first, second, np.full(sign.size, agents), np.full(sign.size, agents + position)]
    values = [sign, -sign, sign * position, nu]  # without an order effect it adds 0 to the last column
    cells = (np.tile(np.arange(sign.size), len(columns)), np.concatenate(columns))
    gain = scipy.sparse.csr_array((np.concatenate(values), cells), shape=(sign.size, agents + position + 1))
    bounds = [(-1.0, 1.0)] * (agents + position) + [(0.0, 1.0)]
    # scipy's linprog accepts sparse matrices, but its type stubs do not.
    solution = linprog(-gain.sum(axis=0), A_ub=-gain, b_ub=np.zeros(sign.size), bounds=bounds, method="highs")  # type: ignore[call-overload]
    if not solution.success:
        raise ArithmeticError(f"the check for a maximum failed: {solution.message}")
    return bool(-solution.fun > 1e-7)


def _any_winner(counts: PairCounts) -> bool:
    return bool(counts.wins_a[0].any() or counts.wins_b[0].any())


def _beats(counts: PairCounts) -> NDArray[np.bool_]:
    """Whether the row agent beat or tied with the column agent, shape (agents, agents, samples)."""
    tied = counts.ties.T > 0
    beats = np.zeros((counts.agents, counts.agents, tied.shape[1]), np.bool_)
    beats[counts.a, counts.b] |= tied | (counts.wins_a.T > 0)
    beats[counts.b, counts.a] |= tied | (counts.wins_b.T > 0)
    return beats


def _settled_sets(beats: NDArray[np.bool_]) -> ComponentLabels:
    """First agent of each agent's set, shape (agents,); wins and ties connect the agents of a set both ways."""
    reach = reachable(beats)
    first: ComponentLabels = np.argmax((reach & reach.T) | np.eye(len(beats), dtype=np.bool_), axis=1)
    return first


def _linked_sets(beats: NDArray[np.bool_]) -> ComponentLabels:
    """First agent of each agent's set, shape (agents,); chains of games link all agents of a set."""
    return _settled_sets(beats | beats.T)


def _between_components(counts: PairCounts, names: Sequence[str]) -> list[Problem]:
    """The problem that no chain of games links some agents to the largest set of agents; empty without such agents."""
    labels = _linked_sets(_beats(counts)[..., 0])
    if not labels.any():
        return []
    sets = [_chosen_names(names, labels == label) for label in np.unique(labels)]
    outside = _outside_largest(labels)
    listing = "; ".join(_listed(members) for members in sets[:5]) + ("; ..." if len(sets) > 5 else "")
    message = f"no games link these sets of agents, so ratings compare within a set only: {listing}"
    return [Problem("disconnected", _chosen_names(names, outside), message)]


def _within_components(counts: PairCounts, names: Sequence[str]) -> list[Problem]:
    """One problem for each set of linked agents that wins and ties do not connect to the others in both directions."""
    beats = _beats(counts)[..., 0]
    labels, linked = _settled_sets(beats), _linked_sets(beats)
    tail, head = beats.nonzero()
    across = labels[tail] != labels[head]
    ahead, behind = set(labels[tail[across]].tolist()), set(labels[head[across]].tolist())
    problems_found: list[Problem] = []
    for component in np.unique(linked):
        inside = linked == component
        for label in sorted(set(labels[inside & _outside_largest(labels, inside)].tolist())):
            if label in ahead | behind:
                cause: Cause = "separated" if label in ahead & behind else "undefeated" if label in ahead else "winless"
                members = _chosen_names(names, labels == label)
                problems_found.append(Problem(cause, members, _SENTENCES[cause].format(_listed(members))))
    return problems_found


_SENTENCES: dict[Cause, str] = {
    "undefeated": "{}: not one loss or tie against the other agents, so no upper limit to the rating",
    "winless": "{}: not one win or tie against the other agents, so no lower limit to the rating",
    "separated": "{}: every game against another agent is a win over weaker or a loss to stronger ones",
}


def _outside_largest(labels: ComponentLabels, inside: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """Which agents are outside the largest group; all agents if no single group of two or more is the largest.

    ``labels`` gives each agent's group; with ``inside``, only the groups of these agents are counted.
    """
    counted = Counter(labels[inside].tolist() if inside is not None else labels.tolist()).most_common(2)
    label, size = counted[0]
    if size < 2 or (len(counted) > 1 and counted[1][1] == size):
        return np.ones(labels.size, np.bool_)
    return np.asarray(labels != label, np.bool_)


def _chosen_names(names: Sequence[str], chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(name for name, included in zip(names, chosen, strict=True) if included)


def _listed(names: Iterable[str], limit: int = 5) -> str:
    listed = list(names)
    more = f" and {len(listed) - limit} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more
