"""Checks whether the likelihood of paired comparisons has a maximum, and names the agents that prevent it.

Ford (1957, American Mathematical Monthly 64): strengths are finite and unique if and only if there is a path of wins
(a tie is a win for both) from every agent to every other. A tie parameter or an order effect can also grow without
limit together with the strengths; a linear program decides this (Albert and Anderson 1984, Biometrika 71, on
separation).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.ratings.counts import PairCounts, reachable
from arena.ratings.likelihood import ParameterForm, incidence

Cause: TypeAlias = Literal["disconnected", "undefeated", "winless", "separated", "ties", "position", "covariates"]
ComponentLabels: TypeAlias = NDArray[np.intp]

_CELLS = 4_000_000
"""Maximum number of elements in the largest array for a chunk of samples."""


class Problem(Struct, frozen=True):
    """A reason why there is no maximum: its cause, the agents whose ratings are arbitrary, and a message."""

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
    """Whether an order effect differs from every set of strengths; false, for example, if agent x is always first."""
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
    """Whether paths lead from the first node to all others, shape (nodes, nodes, graphs) to (graphs,)."""
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
    """Whether a strongly connected sample has a maximum in all its parameters."""
    tie_parameter = bool(form.tie_parameter(counts)[0])
    if not (tie_parameter or form.position):
        return True
    if tie_parameter and not _any_winner(counts):
        return False
    return bool(_plainly_bounded(form, counts)[0]) or not _has_recession(counts, form, tie_parameter)


def _plainly_bounded(form: ParameterForm, counts: PairCounts) -> NDArray[np.bool_]:
    """A cheap sufficient condition: in some pair both agents won (with an order effect, in both orders).

    If ties are half wins, a tie counts as well. Shape (samples,).
    """
    split = (counts.wins_a > 0) & (counts.wins_b > 0)
    if not form.has_tie_parameter:
        split |= counts.ties > 0
    if not form.position:
        return np.asarray(split.any(axis=1), np.bool_)
    return np.array([_in_both_orders(counts, sample) for sample in split], np.bool_)


def _in_both_orders(counts: PairCounts, chosen: NDArray[np.bool_]) -> bool:
    """Whether both (a, b) and (b, a) are among the chosen pairs."""
    has_pair = np.zeros((counts.agents, counts.agents), np.bool_)
    has_pair[counts.a, counts.b] = chosen
    return bool((has_pair & has_pair.T).any())


def _has_recession(counts: PairCounts, form: ParameterForm, tie_parameter: bool) -> bool:
    """Whether the likelihood never falls, and somewhere rises, along some direction of the parameters."""
    present = (np.flatnonzero(outcome[0] > 0) for outcome in (counts.wins_a, counts.wins_b, counts.ties))
    sides = tuple(side[pairs].tobytes() for pairs in present for side in (counts.a, counts.b))
    return _recedes(counts.agents, form.position, tie_parameter, (counts.a.dtype.str, sides))


@lru_cache(maxsize=4096)
def _recedes(agents: int, position: bool, tie_parameter: bool, outcome_pairs: tuple[str, tuple[bytes, ...]]) -> bool:
    """``_has_recession`` for the pairs with each outcome; cached, because fits and refits ask for the same pairs.

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
    """Label each agent with the first agent of its set; wins and ties connect a set both ways; shape (agents,)."""
    reach = reachable(beats)
    first: ComponentLabels = np.argmax((reach & reach.T) | np.eye(len(beats), dtype=np.bool_), axis=1)
    return first


def _linked_sets(beats: NDArray[np.bool_]) -> ComponentLabels:
    """Label each agent with the first agent of its set; chains of games link all agents of a set; shape (agents,)."""
    return _settled_sets(beats | beats.T)


def _between_components(counts: PairCounts, names: Sequence[str]) -> list[Problem]:
    """A problem that names the agents that no chain of games links to the largest set; empty if there are none."""
    labels = _linked_sets(_beats(counts)[..., 0])
    if not labels.any():
        return []
    sets = [_chosen_names(names, labels == label) for label in np.unique(labels)]
    outside = _outside_largest(labels)
    listing = "; ".join(_listed(members) for members in sets[:5]) + ("; ..." if len(sets) > 5 else "")
    message = f"no games link these sets of agents, so ratings compare within a set only: {listing}"
    return [Problem("disconnected", _chosen_names(names, outside), message)]


def _within_components(counts: PairCounts, names: Sequence[str]) -> list[Problem]:
    """Problems of agents that wins and ties do not connect in both directions to the rest of their linked set."""
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
    """Which agents are outside the largest group ``inside``; all agents if no group of two or more is the largest."""
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
