"""EXAM-Cover: which share of the bank's items the first passages of a response cover (000, section 4.3.1).

    cover@k(tau) = weight of {item: some of the first k passages has grade >= tau} / weight of all items

With equal weights these are counts, as in the paper. The normalised score divides by what any graded passage of the
query covers (Sander and Dietz 2021). A pair without a grade covers nothing that is known, so next to each score stands
the score that would be reached if all the ungraded pairs covered their items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from retrieval_eval.exam.grades import UNGRADED, Grid, Grids, Rankings
from retrieval_eval.stats.bootstrap import wilson
from retrieval_eval.stats.estimate import Estimate

Floats: TypeAlias = NDArray[np.float64]

DEFAULT_K = 20
RATED_LEVELS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class CoverScores:
    """Cover of every response at every level, shapes (agents, queries, levels) unless said otherwise.

    Attributes:
        agents: whose responses they are.
        queries: of the topic set that have items; a response that is missing scores 0.
        levels: the lowest grades that count as covered, ascending.
        k: passages of a response that count.
        cover: share of the items covered.
        possible: the same if every ungraded pair covered its item; equal to ``cover`` where all is graded.
        normalised: share of the items that any graded passage of the query covers; 0 where none covers any.
        present: whether the agent has a response to the query, shape (agents, queries).
        pairs: pairs of passage and item that count, shape (agents, queries).
        graded: those of them that have a grade, shape (agents, queries).
        empty_queries: queries of the topic set without items, which are left out.
        uncovered_queries: for each level, queries of which no graded passage covers an item, shape (levels,).
    """

    agents: tuple[str, ...]
    queries: tuple[str, ...]
    levels: tuple[int, ...]
    k: int
    cover: Floats
    possible: Floats
    normalised: Floats
    present: NDArray[np.bool_]
    pairs: NDArray[np.int64]
    graded: NDArray[np.int64]
    empty_queries: tuple[str, ...]
    uncovered_queries: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Mean(Estimate):
    """A mean over queries of shares, with Wilson's 95 % interval for as many observations as they vary like.

    Attributes:
        error: the sample standard deviation over the root of ``n``; ``None`` below two, and then without an interval.
    """

    value: float
    error: float | None = None


def cover_scores(
    grids: Grids, rankings: Rankings, *, levels: Sequence[int] = RATED_LEVELS, k: int = DEFAULT_K
) -> CoverScores:
    """Score every agent in ``rankings``.

    Raises:
        ValueError: ``k`` or a level is less than 1.
        KeyError: a ranked passage is not in the grids.
    """
    if k < 1 or not levels or min(levels) < 1:
        raise ValueError("k and the levels count from 1")
    levels = tuple(sorted(set(levels)))
    agents = tuple(sorted({agent for _, agent in rankings}))
    empty = tuple(query_id for query_id, grid in grids.grids.items() if not grid.items)
    queries = tuple(query_id for query_id in grids.grids if query_id not in set(empty))
    shape = (len(agents), len(queries))
    scores = np.zeros((3, *shape, len(levels)))
    counts = np.zeros((2, *shape), np.int64)
    present = np.zeros(shape, np.bool_)
    uncovered = np.zeros(len(levels), np.int64)
    for at, query_id in enumerate(queries):
        grid = grids.grids[query_id]
        pool = _weight_covered(grid, grid.grades, levels)
        uncovered += pool == 0
        for number, agent in enumerate(agents):
            passages = rankings.get((query_id, agent))
            if passages is None:
                continue
            seen = grid.grades[grid.rows(passages[:k])]
            present[number, at] = True
            counts[:, number, at] = seen.size, (seen != UNGRADED).sum()
            covered = _weight_covered(grid, seen, levels)
            hopeful = np.where(seen == UNGRADED, np.int8(127), seen)
            scores[0, number, at] = covered / grid.weights.sum()
            scores[1, number, at] = _weight_covered(grid, hopeful, levels) / grid.weights.sum()
            scores[2, number, at] = np.divide(covered, pool, out=np.zeros(len(levels)), where=pool > 0)
    return CoverScores(
        agents=agents,
        queries=queries,
        levels=levels,
        k=k,
        cover=scores[0],
        possible=scores[1],
        normalised=scores[2],
        present=present,
        pairs=counts[0],
        graded=counts[1],
        empty_queries=empty,
        uncovered_queries=uncovered,
    )


def cover_means(scores: CoverScores, of: Floats, level: int, *, own_queries: bool = False) -> dict[str, Mean]:
    """Mean over queries of ``scores.cover``, ``possible`` or ``normalised`` at a level, by agent.

    Args:
        scores: where ``of`` comes from.
        of: shape (agents, queries, levels).
        level: one of ``scores.levels``.
        own_queries: average over the queries to which an agent has a response, as the workbench does, instead of all.
    """
    place = scores.levels.index(level)
    return {
        agent: _mean(of[number, scores.present[number] if own_queries else slice(None), place])
        for number, agent in enumerate(scores.agents)
    }


def _mean(values: Floats) -> Mean:
    """0 of nothing."""
    n = int(values.size)
    value = float(values.mean()) if n else 0.0
    if n < 2:
        return Mean(value, n=n)
    error = float(values.std(ddof=1) / np.sqrt(n))
    return Mean(value, *wilson(value, error**2, math.inf, n), n, "Wilson", error)


def _weight_covered(grid: Grid, grades: NDArray[np.int8], levels: Sequence[int]) -> Floats:
    """Weight of the items that the rows of ``grades`` cover, at each level."""
    best = grades.max(axis=0, initial=UNGRADED)
    return np.array([grid.weights[best >= level].sum() for level in levels], np.float64)
