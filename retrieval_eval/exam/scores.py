"""Scores of graded responses: EXAM-Cover, EXAM-Qrels labels, alpha-nDCG, and how far two leaderboards agree."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from judges.errors import InputError
from retrieval_eval.exam.grades import UNGRADED, Grid, Grids, Rankings
from retrieval_eval.stats.bootstrap import ALONE, Clusters, Floats, units_of, wilson
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.rank import kendall_taus, mean_ranks, spearmans


class Correlation(Struct, frozen=True):
    """Agreement of two leaderboards on the agents that stand on both.

    Attributes:
        n: those agents.
        spearman: correlation of the average ranks; ``None`` below two agents or where all are tied.
        kendall: tau-b; likewise.
        only_first: agents that the second leaderboard lacks.
        only_second: agents that the first one lacks.
    """

    n: int
    spearman: float | None
    kendall: float | None
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()


def places(scores: Mapping[str, float]) -> dict[str, float]:
    """Places from 1, the highest score first; agents with equal scores share the average of their places."""
    return dict(zip(scores, mean_ranks(np.array([*scores.values()], np.float64)).tolist(), strict=True))


def correlate(first: Mapping[str, float], second: Mapping[str, float]) -> Correlation:
    """Compare two leaderboards given as places, where 1 is best (see ``places`` for scores)."""
    common = [agent for agent in first if agent in second]
    ours, theirs = (np.array([side[agent] for agent in common], np.float64) for side in (first, second))
    return Correlation(
        len(common),
        _defined(spearmans(ours, theirs)),
        _defined(kendall_taus(ours, theirs)),
        tuple(sorted(first.keys() - second.keys())),
        tuple(sorted(second.keys() - first.keys())),
    )


def _defined(coefficients: Floats) -> float | None:
    (value,) = coefficients.tolist()
    return None if math.isnan(value) else value


DEFAULT_K = 20
RATED_LEVELS = (1, 2, 3, 4, 5)


class CoverScores(Struct, frozen=True):
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
        clusters: what queries depend on each other within.
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
    clusters: Clusters = field(default_factory=dict)


class Mean(Estimate, frozen=True):
    """A mean over queries of shares, with Wilson's 95 % interval for as many observations as they vary like.

    Attributes:
        error: standard error; without conversations the sample standard deviation over the root of ``n``. ``None`` for
            less than two clusters, and then without an interval.
    """

    value: float
    error: float | None = None


def cover_scores(
    grids: Grids,
    rankings: Rankings,
    *,
    levels: Sequence[int] = RATED_LEVELS,
    k: int = DEFAULT_K,
    clusters: Clusters = ALONE,
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
        clusters=clusters,
    )


def cover_means(scores: CoverScores, of: Floats, level: int, *, own_queries: bool = False) -> dict[str, Mean]:
    """Mean over queries of ``scores.cover``, ``possible`` or ``normalised`` at a level, by agent.

    Args:
        scores: where ``of`` comes from.
        of: shape (agents, queries, levels).
        level: one of ``scores.levels``.
        own_queries: average over the queries to which an agent has a response, as the workbench does, instead of all.
    """
    place, unit = scores.levels.index(level), units_of(scores.queries, scores.clusters)
    chosen = scores.present if own_queries else np.ones_like(scores.present)
    return {
        agent: _mean(of[number, chosen[number], place], unit[chosen[number]])
        for number, agent in enumerate(scores.agents)
    }


def _mean(values: Floats, unit: NDArray[np.int64]) -> Mean:
    """0 of nothing."""
    n, units = int(values.size), int(np.unique(unit).size)
    value = float(values.mean()) if n else 0.0
    if units < 2:
        return Mean(value, n=n)
    error = float(values.std(ddof=1) / np.sqrt(n))
    if units < n:
        apart = np.bincount(unit, values - value)
        error = float(np.sqrt((apart**2).sum() * units / (units - 1))) / n
    return Mean(value, *wilson(value, error**2, math.inf, units), n, "Wilson", error)


def _weight_covered(grid: Grid, grades: NDArray[np.int8], levels: Sequence[int]) -> Floats:
    """Weight of the items that the rows of ``grades`` cover, at each level."""
    best = grades.max(axis=0, initial=UNGRADED)
    return np.array([grid.weights[best >= level].sum() for level in levels], np.float64)


By: TypeAlias = Literal["highest", "count"]

_STEP = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?:(\d{1,3})")


class ExamLabels(Struct, frozen=True):
    """Labels and what they rest on.

    Attributes:
        labels: by query_id and passage_id, of all passages with a grade.
        partly: passages whose label may be too low, since some of their items are not graded.
        ungraded: passages without any grade, which have no label.
    """

    labels: Mapping[str, Mapping[str, int]]
    partly: int
    ungraded: int

    def __len__(self) -> int:
        return sum(map(len, self.labels.values()))


def exam_labels(
    grids: Grids, *, by: By = "highest", level: int = 1, grade_to_label: Mapping[int, int] | None = None
) -> ExamLabels:
    """Labels of all graded passages.

    Args:
        grids: the grades.
        by: ``highest``: the highest grade; ``count``: the number of items graded ``level`` or more.
        level: used with ``count``.
        grade_to_label: turns the highest grade, or the count, into a label.

    Raises:
        InputError: ``grade_to_label`` does not say what becomes of a grade that occurs.
    """
    labels: dict[str, dict[str, int]] = {}
    partly = ungraded = 0
    for query_id, grid in grids.grids.items():
        known = grid.grades != UNGRADED
        values = grid.grades.max(axis=1, initial=UNGRADED) if by == "highest" else (grid.grades >= level).sum(axis=1)
        some, every = known.any(axis=1), known.all(axis=1)
        ungraded += int((~some).sum())
        partly += int((some & ~every).sum())
        labels[query_id] = {
            passage: _mapped(int(values[row]), grade_to_label) for row, passage in enumerate(grid.passages) if some[row]
        }
    return ExamLabels(labels, partly, ungraded)


def read_grade_map(text: str) -> dict[int, int]:
    """``0:0,1-3:1,4:2,5:3`` as a mapping from grade to label.

    Raises:
        InputError: it is not of this form, or maps a grade twice.
    """
    found: dict[int, int] = {}
    for part in text.split(","):
        step = _STEP.fullmatch(part.strip())
        if step is None:
            raise InputError(f"{part.strip()!r} in the map of grades is not like 4:2 or 1-3:1")
        low, high = int(step[1]), int(step[2] or step[1])
        for grade in range(low, high + 1):
            if found.setdefault(grade, int(step[3])) != int(step[3]):
                raise InputError(f"the map of grades gives {grade} two labels")
        if low > high:
            raise InputError(f"{part.strip()!r} in the map of grades counts down")
    return found


def _mapped(value: int, grade_to_label: Mapping[int, int] | None) -> int:
    if grade_to_label is None:
        return value
    if value not in grade_to_label:
        raise InputError(f"the map of grades does not say what becomes of {value}")
    return grade_to_label[value]


DEFAULT_ALPHA = 0.5


def alpha_ndcg(
    grid: Grid, rankings: Iterable[Sequence[str]], *, level: int, k: int, alpha: float = DEFAULT_ALPHA
) -> list[float]:
    """The scores of some responses to one query, 0 to 1; 0 where no passage of the query covers an item.

    Args:
        grid: the query's grades.
        rankings: of each response the passages in their order; all must be in the grid.
        level: the lowest grade that counts as covered.
        k: passages that count.
        alpha: how little it is worth to cover an item once more, 0 to 1.
    """
    covers = grid.grades >= level
    best = _discounted(_ideal(covers, k, alpha))
    rows = [grid.rows(dict.fromkeys(ranking))[:k] for ranking in rankings]
    return [_discounted(_gains(covers[own], alpha)) / best if best else 0.0 for own in rows]


def _gains(covers: NDArray[np.bool_], alpha: float) -> NDArray[np.float64]:
    before: NDArray[np.int64] = np.cumsum(covers, axis=0) - covers
    gains: NDArray[np.float64] = (covers * (1.0 - alpha) ** before).sum(axis=1)
    return gains


def _ideal(covers: NDArray[np.bool_], k: int, alpha: float) -> NDArray[np.float64]:
    left = covers.astype(np.float64)
    worth = np.ones(covers.shape[1])
    gains = np.zeros(min(k, len(covers)))
    for place in range(gains.size):
        offered = left @ worth
        chosen = int(offered.argmax())
        gains[place] = offered[chosen]
        worth = np.where(left[chosen] > 0, worth * (1.0 - alpha), worth)
        left[chosen] = 0.0
    return gains


def _discounted(gains: NDArray[np.float64]) -> float:
    return float((gains / np.log2(np.arange(2, gains.size + 2))).sum())
