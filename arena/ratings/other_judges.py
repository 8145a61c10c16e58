"""Judges as a source of error in ratings: intervals for other judges, and parts of the variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import scipy
from msgspec.structs import replace

from arena.ratings.bradley_terry import BradleyTerry, cluster_scores
from arena.ratings.games import Games
from arena.ratings.ranks import PairTests
from arena.ratings.results import MOST_JUDGES, OtherJudges, PairDifference
from retrieval_eval.stats import Bools, Floats
from retrieval_eval.stats.components import METHOD, parts, strata, variance
from retrieval_eval.stats.estimate import Estimate

_MOST_MISSING: Final = 1 / 3
"""Largest share of missing cells at which the variance is split into parts."""


def other_judges(
    games: Games, fitted: BradleyTerry, compared: PairTests | None, pairs: Sequence[PairDifference]
) -> tuple[OtherJudges, ...]:
    """The differences of ``pairs`` with intervals for other judges; empty for one judge, or without a finite fit.

    The contribution of a query and judge is its part of the fit's influence function. The level of an interval is that
    of the simultaneous interval of fixed judges, which it contains.
    """
    if games.judge is None or games.cluster is None or compared is None or not compared.by_query or fitted.problems:
        return ()
    judges = np.unique(games.judge)
    if not 2 <= judges.size <= MOST_JUDGES:
        return ()
    names = {name: index for index, name in enumerate(games.agents)}
    ahead, behind = (np.array([names[getattr(pair, side)] for pair in pairs], np.int64) for side in ("better", "worse"))
    bread = np.linalg.inv(fitted.curvature()) * fitted.settings.points
    direction = bread[:, ahead] - bread[:, behind]
    cells = np.full((len(pairs), int(games.cluster.max()) + 1, judges.size), np.nan)
    for place, judge in enumerate(judges.tolist()):
        rows = games.judge == judge
        cells[:, np.unique(games.cluster[rows]), place] = (cluster_scores(_of(games, rows), fitted) @ direction).T
    se, half = compared.joint.se, compared.joint.half
    found = []
    for number, (pair, one, other) in enumerate(zip(pairs, ahead.tolist(), behind.tolist(), strict=True)):
        own, units = cells[number : number + 1], int(compared.joint.units[one, other])
        ends = np.array([half[one, other], half[other, one]])
        errors = np.maximum([se[one, other], se[other, one]], 1e-9)
        tails = scipy.special.stdtr(max(units - 1, 1), -ends / errors)
        below, above = np.fmax(ends, [float(variance(own).half_widths(tail)[0]) for tail in tails]).tolist()
        judging = int((~np.isnan(own[0])).any(axis=0).sum())
        interval = Estimate(pair.difference, n=units)
        if np.isfinite(variance(own).half_widths(0.025)).all():
            interval = replace(interval, low=pair.difference - below, high=pair.difference + above, method=METHOD)
        found.append(OtherJudges(pair.better, pair.worse, judging, interval, parts_of(own)))
    return tuple(found)


def parts_of(cells: Floats) -> dict[str, Estimate]:
    """Parts of the variance of one figure, shape (1, queries, judges); empty if too few judges or cells are there."""
    seen = ~np.isnan(cells[0])
    has_query, has_judge = seen.any(axis=1), seen.any(axis=0)
    missing = 1 - seen[has_query][:, has_judge].mean() if seen.any() else 1.0
    enough = np.isfinite(variance(cells).half_widths(0.025)).all() and missing <= _MOST_MISSING
    shares = parts(strata(cells))[0] if enough else {}
    return {name: share for name, share in shares.items() if share.value is not None}


def contributions(games: Games, first: str) -> Floats:
    """What each cell adds to the mean over queries of an agent's share of points, shape (1, queries, judges).

    ``games`` are those of ``first`` against one other agent; the mean is that of ``outcomes_of``.
    """
    assert games.cluster is not None
    assert games.judge is not None
    (_, query), (_, judge) = (np.unique(codes, return_inverse=True) for codes in (games.cluster, games.judge))
    score = np.where(games.a == games.agents.index(first), games.score, 1 - games.score)
    shape = int(query.max()) + 1, int(judge.max()) + 1
    weight = np.bincount(query, games.weights, shape[0])
    points = np.bincount(query, games.weights * score, shape[0]) / weight
    of_game = games.weights * (score - points.mean()) / (weight[query] * shape[0])
    cell = query * shape[1] + judge
    size = shape[0] * shape[1]
    sums = np.where(np.bincount(cell, minlength=size) > 0, np.bincount(cell, of_game, size), np.nan)
    return sums.reshape(1, *shape)


def _of(games: Games, rows: Bools) -> Games:
    names = ("a", "b", "score", "cluster", "weight", "judge")
    columns = {name: column[rows] for name in names if (column := getattr(games, name)) is not None}
    return replace(games, **columns)
