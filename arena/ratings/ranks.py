"""Which agents are better than which: rank intervals, paired tests, and groups that cannot be told apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from arena.ratings.games import Floats

_RESOLUTION = 1e-6
"""Ratings closer than this many points are equal: agents with the same record differ by rounding alone."""


@dataclass(frozen=True, slots=True, eq=False)
class PairedTests:
    """Two-sided tests that two agents are equally strong.

    Attributes:
        difference: rating of the row agent minus rating of the column agent, in points, shape (agents, agents).
        p: of each pair alone; 1 on the diagonal.
        p_holm: corrected by Holm for the number of pairs.
    """

    difference: Floats
    p: Floats
    p_holm: Floats


def competition_ranks(ratings: Floats) -> NDArray[np.int64]:
    """1 + the number of agents rated strictly higher, along the last axis; equal ratings share a rank."""
    steps = np.round(np.atleast_2d(ratings) / _RESOLUTION)
    ordered = np.sort(-steps, axis=-1)
    ranks = np.array([np.searchsorted(row, -own, side="left") + 1 for row, own in zip(ordered, steps, strict=True)])
    return ranks.reshape(np.shape(ratings)).astype(np.int64)


def rank_intervals(
    ratings: Floats, sample_sets: tuple[Floats, ...], level: float = 0.95
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Best and worst rank of each agent, each for itself, at the given level.

    The interval runs between the percentiles of the agent's competition rank over bootstrap samples, rounded
    outwards, is the widest over the sets of samples, and holds the rank of the point estimate.

    Args:
        ratings: point estimate, shape (agents,).
        sample_sets: ratings of samples, each of shape (samples, agents).
        level: share of samples inside, of each agent for itself.
    """
    low = high = competition_ranks(ratings)
    for samples in sample_sets:
        ranks = competition_ranks(samples)
        low = np.minimum(low, np.percentile(ranks, 50 * (1 - level), axis=0, method="lower"))
        high = np.maximum(high, np.percentile(ranks, 50 * (1 + level), axis=0, method="higher"))
    return low.astype(np.int64), high.astype(np.int64)


def paired_tests(ratings: Floats, covariances: tuple[Floats, ...], units: int) -> PairedTests:
    """Wald tests of all differences, with Student's t on ``units - 1`` degrees of freedom.

    Bootstrap shares are not used for p-values: with 1000 samples none is below 0.002, and Holm's correction for
    eight agents would already call nothing significant.

    Args:
        ratings: in points, shape (agents,).
        covariances: of the ratings, each of shape (agents, agents); each pair uses its largest.
        units: number of independent queries (or games).
    """
    difference = ratings[:, np.newaxis] - ratings[np.newaxis]
    variance = np.max([_difference_variance(covariance) for covariance in covariances], axis=0)
    apart = np.abs(difference) > _RESOLUTION
    size = np.sqrt(np.maximum(variance, _RESOLUTION**2))
    p = np.where(apart, 2 * special.stdtr(units - 1, -np.abs(difference) / size), 1.0)
    return PairedTests(difference, p, _holm(p))


def groups(ratings: Floats, different: NDArray[np.bool_]) -> tuple[str, ...]:
    """Letters for groups of agents that cannot be told apart.

    A group is a longest run of agents, from the highest rating down, no two of which differ; so agents that share a
    letter cannot be told apart, and all that share ``A`` with the first are tied for first. An agent in several
    groups names the first and the last, as in ``B-D``.

    Args:
        ratings: shape (agents,).
        different: which pairs differ, symmetric, shape (agents, agents).
    """
    order = np.argsort(-ratings, kind="stable")
    runs: list[tuple[int, int]] = []
    for start in range(order.size):
        end = start + 1
        while end < order.size and not different[order[end], order[start:end]].any():
            end += 1
        if not runs or end > runs[-1][1]:
            runs.append((start, end))
    labels = [""] * order.size
    for place, agent in enumerate(order):
        member = [_letter(number) for number, (start, end) in enumerate(runs) if start <= place < end]
        labels[agent] = member[0] if len(member) == 1 else f"{member[0]}-{member[-1]}"
    return tuple(labels)


def _difference_variance(covariance: Floats) -> Floats:
    own = np.diag(covariance)
    variance: Floats = own[:, np.newaxis] + own[np.newaxis] - 2 * covariance
    return variance


def _holm(p: Floats) -> Floats:
    """Holm (1979, Scandinavian Journal of Statistics 6) over the pairs above the diagonal."""
    upper = np.triu_indices(len(p), k=1)
    order = np.argsort(p[upper], kind="stable")
    factor = np.arange(order.size, 0, -1)
    corrected = np.empty(order.size)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factor * p[upper][order]))
    result = np.ones_like(p)
    result[upper] = corrected
    result.T[upper] = corrected
    return result


def _letter(number: int) -> str:
    """A to Z, then AA, AB and so on, as columns of a spreadsheet."""
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, 26)
        text = chr(ord("A") + place) + text
    return text
