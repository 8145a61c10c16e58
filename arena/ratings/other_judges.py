"""Judges as a source of error in ratings: intervals for other judges, and parts of the variance."""

from __future__ import annotations

import math
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
from retrieval_eval.stats.components import (
    ANSWERS,
    JUDGES,
    METHOD,
    QUERIES,
    REST,
    parts,
    strata,
    variance,
    with_answers,
)
from retrieval_eval.stats.estimate import Estimate

_FEWEST_REPEATED: Final = 8
"""With repeated answers on fewer queries there is no part of the answers."""
_MOST_MISSING: Final = 1 / 3
"""Largest share of missing cells at which the variance is split into parts."""


def other_judges(
    games: Games, fitted: BradleyTerry, compared: PairTests | None, pairs: Sequence[PairDifference]
) -> tuple[OtherJudges, ...]:
    """The differences of ``pairs`` with intervals for other judges; empty for one judge, or without a finite fit.

    With repeated answers one judge is enough, which has parts but no interval. The contribution of a query, judge and
    repeat is its part of the fit's influence function. The level of an interval is that
    of the simultaneous interval of fixed judges, which it contains.
    """
    if games.judge is None or games.cluster is None or compared is None or not compared.by_query or fitted.problems:
        return ()
    judges, repeat = np.unique(games.judge), np.ones(len(games), np.int32) if games.repeat is None else games.repeat
    repeats = int(repeat.max(initial=1))
    if not (2 if repeats == 1 else 1) <= judges.size <= MOST_JUDGES:
        return ()
    names = {name: index for index, name in enumerate(games.agents)}
    ahead, behind = (np.array([names[getattr(pair, side)] for pair in pairs], np.int64) for side in ("better", "worse"))
    bread = np.linalg.inv(fitted.curvature()) * fitted.settings.points
    direction = bread[:, ahead] - bread[:, behind]
    cells = np.full((len(pairs), int(games.cluster.max()) + 1, judges.size, repeats), np.nan)
    for place, number in np.ndindex(judges.size, repeats):
        rows = np.asarray((games.judge == judges[place]) & (repeat == number + 1), np.bool_)
        if rows.any():
            scores = cluster_scores(_of(games, rows), fitted)
            cells[:, np.unique(games.cluster[rows]), place, number] = (scores @ direction).T
    se, half = compared.joint.se, compared.joint.half
    by_pair = []
    for number, (pair, one, other) in enumerate(zip(pairs, ahead.tolist(), behind.tolist(), strict=True)):
        each, units = cells[number : number + 1], int(compared.joint.units[one, other])
        averaged = over_repeats(each)
        ends = np.array([half[one, other], half[other, one]])
        errors = np.maximum([se[one, other], se[other, one]], 1e-9)
        tails = scipy.special.stdtr(max(units - 1, 1), -ends / errors)
        below, above = np.fmax(ends, [float(variance(averaged).half_widths(tail)[0]) for tail in tails]).tolist()
        judging = int((~np.isnan(averaged[0])).any(axis=0).sum())
        interval = Estimate(pair.difference, n=units)
        if np.isfinite(variance(averaged).half_widths(0.025)).all():
            interval = replace(interval, low=pair.difference - below, high=pair.difference + above, method=METHOD)
        by_pair.append(OtherJudges(pair.better, pair.worse, judging, interval, parts_of(each)))
    return tuple(by_pair)


def over_repeats(cells: Floats) -> Floats:
    """Contributions of queries and judges, from those of each repeat on the last axis; NaN where missing."""
    return np.where(np.isnan(cells).all(axis=-1), np.nan, np.nansum(cells, axis=-1))


def parts_of(cells: Floats) -> dict[str, Estimate]:
    """Parts of the variance of one figure; empty if there are too few cells, or judges where no answer is repeated.

    ``cells`` are contributions, shape (1, queries, judges, repeats). With fewer than three judges the answers' and the
    queries' parts remain.
    """
    of_judges = over_repeats(cells)
    seen = ~np.isnan(of_judges[0])
    has_query, has_judge = seen.any(axis=1), seen.any(axis=0)
    missing = 1 - seen[has_query][:, has_judge].mean() if seen.any() else 1.0
    repeated = int(((~np.isnan(cells[0])).any(axis=1).sum(axis=1) > 1).sum()) >= _FEWEST_REPEATED
    judged = np.isfinite(variance(of_judges).half_widths(0.025)).all()
    if not (judged or repeated) or missing > _MOST_MISSING:
        return {}
    if not judged:  # as if by one judge, whose taste is that of all
        cells = np.nansum(cells, axis=2, keepdims=True) + np.where(
            np.isnan(cells).all(axis=2, keepdims=True), np.nan, 0
        )
    (shares,) = parts(with_answers(cells) if repeated else strata(of_judges))
    names = (QUERIES, JUDGES, ANSWERS, REST) if judged else (QUERIES, ANSWERS)
    return {name: shares[name] for name in names if name in shares and shares[name].value is not None}


def contributions(games: Games, first: str) -> Floats:
    """What each cell adds to the mean over queries of an agent's share of points, shape (1, queries, judges, repeats).

    ``games`` are those of ``first`` against one other agent; the mean is that of ``outcomes_of``.
    """
    assert games.cluster is not None
    assert games.judge is not None
    (_, query), (_, judge) = (np.unique(codes, return_inverse=True) for codes in (games.cluster, games.judge))
    score = np.where(games.a == games.agents.index(first), games.score, 1 - games.score)
    repeat = np.zeros(len(games), np.int64) if games.repeat is None else games.repeat - 1
    shape = int(query.max()) + 1, int(judge.max()) + 1, int(repeat.max(initial=0)) + 1
    weight = np.bincount(query, games.weights, shape[0])
    points = np.bincount(query, games.weights * score, shape[0]) / weight
    of_game = games.weights * (score - points.mean()) / (weight[query] * shape[0])
    cell = (query * shape[1] + judge) * shape[2] + repeat
    size = math.prod(shape)
    sums = np.where(np.bincount(cell, minlength=size) > 0, np.bincount(cell, of_game, size), np.nan)
    return sums.reshape(1, *shape)


def _of(games: Games, rows: Bools) -> Games:
    names = ("a", "b", "score", "cluster", "weight", "judge", "repeat")
    columns = {name: column[rows] for name in names if (column := getattr(games, name)) is not None}
    return replace(games, **columns)
