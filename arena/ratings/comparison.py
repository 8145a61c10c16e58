"""What a leaderboard says about pairs of agents: tests, intervals that hold for all at once, fragility."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from arena.ratings.bootstrap import Bootstrap
from arena.ratings.bradley_terry import BradleyTerry
from arena.ratings.fragility import Flip, Unit, leader_flip, pair_flip
from arena.ratings.games import Floats, Games
from arena.ratings.ranks import JointDifferences, PairedTests, joint_differences, paired_tests, queries_needed
from arena.ratings.results import Fragility, PairDifference
from arena.ratings.sandwich import sandwich
from retrieval_eval.stats.clusters import student

_NO_VARIANCE = 1e-9
"""A covariance below this (squared points) says that no query differs from another, not that ratings are exact."""

_DRAWS = 2000
"""Normal draws in place of bootstrap samples."""

_FEWEST_SAMPLES = 100
"""Fewer bootstrap samples cannot show how far the largest of many differences strays."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """All pairs of agents: tests of each, and intervals that hold for all.

    ``covariances`` are of the ratings: the sandwich, and the model's where the sandwich cannot show the uncertainty.
    ``arbitrary`` names the agents of whose ratings no query shows the variation.
    """

    tests: PairedTests
    joint: JointDifferences
    covariances: tuple[Floats, ...]
    arbitrary: frozenset[str]

    def interval(self, ratings: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
        """Student's interval of each rating by the largest of the covariances, two arrays of shape (agents,)."""
        variance = np.max([covariance.diagonal() for covariance in self.covariances], axis=0)
        half = student(level, self.joint.units) * np.sqrt(np.maximum(variance, 0.0))
        return ratings - half, ratings + half


def compare(
    games: Games, fitted: BradleyTerry, resampled: Bootstrap | None, *, by_query: bool, level: float, seed: int
) -> Comparison | None:
    """Compare all pairs of agents.

    ``None`` where a single query (game) leaves nothing to estimate variation from.

    Where there are no or too few bootstrap samples, draws from the sandwich covariance take their place.
    """
    spread = sandwich(games, fitted, by_query=by_query)
    if spread is None:
        return None
    covariances = [spread.covariance]
    arbitrary = frozenset(name for problem in fitted.problems for name in problem.agents)
    if np.trace(spread.covariance) < _NO_VARIANCE:
        arbitrary = frozenset(fitted.agents)
    if arbitrary:
        covariances.append(fitted.model_covariance())
    if resampled is not None and len(resampled.samples) >= _FEWEST_SAMPLES:
        sample_sets = resampled.sample_sets
    else:
        rng = np.random.default_rng(seed)
        draws = [rng.multivariate_normal(fitted.ratings, c, size=_DRAWS, method="eigh") for c in covariances]
        sample_sets = tuple(np.asarray(draw, np.float64) for draw in draws)
    return Comparison(
        paired_tests(fitted.ratings, tuple(covariances), spread.clusters),
        joint_differences(fitted.ratings, sample_sets, spread.clusters, level),
        tuple(covariances),
        arbitrary,
    )


def pair_differences(agents: tuple[str, ...], compared: Comparison | None) -> tuple[PairDifference, ...]:
    """A line for every pair of agents, none where there is no comparison."""
    if compared is None:
        return ()
    tests, joint = compared.tests, compared.joint
    found = []
    for i, j in zip(*np.triu_indices(len(agents), k=1), strict=True):
        better, worse = (i, j) if joint.difference[i, j] >= 0 else (j, i)
        gap, se, half = (float(part[better, worse]) for part in (joint.difference, joint.se, joint.half))
        unknown = not compared.arbitrary.isdisjoint((agents[i], agents[j])) and not joint.different[i, j]
        needed, fewest, most = (
            (None, None, None)
            if unknown
            else queries_needed(gap, se, half, joint.units, agents=len(agents), level=joint.level)
        )
        pair = PairDifference(
            better=agents[better],
            worse=agents[worse],
            difference=gap,
            p_holm=float(tests.p_holm[i, j]),
            p=float(tests.p[i, j]),
            se=se,
            low=gap - half,
            high=gap + float(joint.half[worse, better]),
            separable=bool(joint.different[i, j]),
            queries_needed=needed,
            queries_needed_low=fewest,
            queries_needed_high=most,
        )
        found.append(pair)
    return tuple(found)


def fragilities(
    games: Games,
    fitted: BradleyTerry,
    neighbours: Iterable[tuple[str, str]],
    *,
    by_query: bool,
    queries: tuple[str, ...] | None,
) -> tuple[Fragility, ...]:
    """How fragile the lead and the order of the given neighbours are, by game and, where wanted, by query.

    Args:
        games: those that ``fitted`` comes from.
        fitted: the ratings.
        neighbours: pairs of agents.
        by_query: leave out whole queries too, where they are known.
        queries: their names.
    """
    units: tuple[Unit, ...] = ("game", "query") if by_query else ("game",)
    found: list[tuple[Literal["leader", "neighbours"], Flip | None]]
    found = [("leader", leader_flip(games, fitted, unit)) for unit in units]
    found += [("neighbours", pair_flip(games, fitted, *two, unit)) for two in neighbours for unit in units]
    return tuple(_named(change, flip, queries) for change, flip in found if flip is not None)


def _named(change: Literal["leader", "neighbours"], flip: Flip, queries: tuple[str, ...] | None) -> Fragility:
    return Fragility(
        change=change,
        ahead=flip.ahead,
        behind=flip.behind,
        unit=flip.unit,
        units=flip.units,
        count=flip.count,
        share=flip.share,
        tried=flip.tried,
        queries=tuple(queries[number] for number in flip.removed) if queries and flip.unit == "query" else (),
    )
