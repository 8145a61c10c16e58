"""What a leaderboard says about pairs of agents: tests, joint intervals, fragility, their own games.

Ratings order all agents on one line. Where x surely beats y, y surely beats z and z surely beats x, or an agent surely
beats one that is surely rated above it, no line describes the games. "Surely": the interval of the share of points in
their own games, clustered by query and corrected by Bonferroni for the number of pairs, leaves out one half. If one
line is true, a circle of sure results needs one of them to be wrong, which is no more likely than the level allows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from arena.ratings.bootstrap import Bootstrap
from arena.ratings.bradley_terry import BradleyTerry, sandwich
from arena.ratings.games import Floats, Games
from arena.ratings.ranks import JointDifferences, PairedTests, joint_differences, paired_tests, queries_needed
from arena.ratings.results import DirectGames, PairDifference
from retrieval_eval.stats.bootstrap import share_interval, student, wilson

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


@dataclass(frozen=True, slots=True)
class Circles:
    """How many sets of three agents that all met are surely circles, and how many are surely none."""

    triples: int
    surely: int
    surely_not: int


def direct_games(games: Games, level: float, *, by_query: bool) -> tuple[DirectGames, ...]:
    """The games of every two agents that met, in the order of their names.

    Args:
        games: as they are rated.
        level: with which the intervals of all pairs hold at once.
        by_query: cluster by query where queries are known.
    """
    if not len(games):
        return ()
    size = len(games.agents)
    low, high = np.minimum(games.a, games.b), np.maximum(games.a, games.b)
    pair = low.astype(np.int64) * size + high
    score = np.where(games.a == low, games.score, 1 - games.score)
    order = np.argsort(pair, kind="stable")
    starts = np.flatnonzero(np.diff(pair[order], prepend=-1))
    rows = np.split(order, starts[1:])
    alone = 1 - (1 - level) / len(rows)
    clustered = by_query and games.cluster is not None
    return tuple(_direct(games, score, own, alone, clustered=clustered) for own in rows)


def _direct(
    games: Games, score: NDArray[np.float64], rows: NDArray[np.intp], level: float, *, clustered: bool
) -> DirectGames:
    weight, taken = games.weights[rows], score[rows]
    played = float(weight.sum())
    share = float(weight @ taken) / played
    if clustered and games.cluster is not None:
        _, query = np.unique(games.cluster[rows], return_inverse=True)
        parts, wholes = (np.bincount(query, own).astype(np.float64) for own in (weight * taken, weight))
        bounds = share_interval(parts, wholes, level)
    elif played > 1:
        variance = float(weight @ (taken - share) ** 2) / played**2 * played / (played - 1)
        bounds = wilson(share, variance, played, played, level)
    else:
        bounds = None
    one, other = int(min(games.a[rows[0]], games.b[rows[0]])), int(max(games.a[rows[0]], games.b[rows[0]]))
    wins, losses = (float(weight[taken == points].sum()) for points in (1.0, 0.0))
    return DirectGames(
        games.agents[one],
        games.agents[other],
        played,
        wins,
        played - wins - losses,
        losses,
        *(bounds or (None, None)),
    )


def contradicted(
    agents: Sequence[str], direct: Iterable[DirectGames], above: Iterable[tuple[str, str]]
) -> tuple[str, ...]:
    """Agents that no single line describes, in the order given: those on a circle of sure results; often none.

    Args:
        agents: all of them.
        direct: their games against each other.
        above: pairs of which the first is surely rated above the second.
    """
    beats = _surely_beats(agents, direct)
    number = {agent: at for at, agent in enumerate(agents)}
    for better, worse in above:
        beats[number[better], number[worse]] = True
    count, labels = scipy.sparse.csgraph.connected_components(beats, connection="strong")
    shared = np.bincount(labels, minlength=count) > 1
    return tuple(agent for agent, label in zip(agents, labels, strict=True) if shared[label])


def circles(agents: Sequence[str], direct: Collection[DirectGames]) -> Circles:
    """Sets of three agents, each pair of which met, counted by what their sure results leave possible.

    A set is surely none where one of the three surely beats, or surely loses to, both of the others: then neither way
    round is left for a circle.
    """
    number = {agent: at for at, agent in enumerate(agents)}
    met = np.zeros((len(agents), len(agents)))
    for own in direct:
        one, other = number[own.one], number[own.other]
        met[one, other] = met[other, one] = 1.0
    beats = _surely_beats(agents, direct).astype(np.float64)
    around = float(np.trace(beats @ beats @ beats)) / 3
    decided = beats + beats.T
    in_line = float(np.trace(decided @ decided @ decided)) / 6 - around
    beats_both, loses_to_both = (float(np.trace(m @ met @ m.T)) / 2 for m in (beats, beats.T))
    return Circles(
        round(float(np.trace(met @ met @ met)) / 6), round(around), round(beats_both + loses_to_both - in_line)
    )


def _surely_beats(agents: Sequence[str], direct: Iterable[DirectGames]) -> NDArray[np.bool_]:
    number = {agent: at for at, agent in enumerate(agents)}
    beats = np.zeros((len(agents), len(agents)), np.bool_)
    for own in direct:
        if own.low is not None and own.high is not None:
            one, other = number[own.one], number[own.other]
            beats[one, other], beats[other, one] = own.low > 0.5, own.high < 0.5
    return beats
