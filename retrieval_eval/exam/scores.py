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
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import ALONE, Clusters, units_of
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.means import mean_estimates
from retrieval_eval.stats.missing import Gaps, over_the_known
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

    A grade that is missing is no grade of 0. An item that a grade covers is covered whatever else is missing; it is not
    covered where all grades are there and none is enough; else nobody knows. A query whose items are all known has its
    exact cover. Otherwise its cover is over the items of which no grade is missing (``missing.over_the_known`` says
    why). Where every item lacks a grade, the query has no score and is in no mean.

    Attributes:
        agents: whose responses they are.
        queries: of the topic set that have items; a response that is missing scores 0.
        levels: the lowest grades that count as covered, ascending.
        k: passages of a response that count.
        cover: share of the items covered; NaN where nobody knows.
        least: the same if no pair without a grade covered its item.
        possible: the same if every pair without a grade covered its item; equal to ``cover`` where all is graded.
        normalised: of the items that any graded passage of the query covers, the share that the response covers; over
            the items of which no grade of the response is missing. 0 where none covers any.
        present: whether the agent has a response to the query, shape (agents, queries).
        pairs: pairs of passage and item that count, shape (agents, queries).
        graded: those of them that have a grade, shape (agents, queries).
        missing: those of them whose grade was asked for and is not there, shape (agents, queries).
        empty_queries: queries of the topic set without items, which are left out.
        uncovered_queries: for each level, queries of which surely no passage covers an item, shape (levels,).
        clusters: what queries depend on each other within.
    """

    agents: tuple[str, ...]
    queries: tuple[str, ...]
    levels: tuple[int, ...]
    k: int
    cover: Floats
    least: Floats
    possible: Floats
    normalised: Floats
    present: NDArray[np.bool_]
    pairs: NDArray[np.int64]
    graded: NDArray[np.int64]
    missing: NDArray[np.int64]
    empty_queries: tuple[str, ...]
    uncovered_queries: NDArray[np.int64]
    clusters: Clusters = field(default_factory=dict)

    @property
    def gaps(self) -> Gaps:
        """Grades that were asked for, and those that are not there."""
        return Gaps(self.agents, self.queries, self.graded + self.missing, self.missing)


class ExamMean(Estimate, frozen=True):
    """A mean over queries of shares, with the 95 % interval of ``ratio_estimate``.

    Attributes:
        error: standard error; without conversations the sample standard deviation over the root of ``n``. ``None`` for
            less than two clusters, and then without an interval.
    """

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
    scores = np.zeros((4, *shape, len(levels)))
    counts = np.zeros((3, *shape), np.int64)
    present = np.zeros(shape, np.bool_)
    uncovered = np.zeros(len(levels), np.int64)
    for at, query_id in enumerate(queries):
        grid = grids.grids[query_id]
        pool = _covered(grid.grades, levels)
        uncovered += ~(pool | grid.missing.any(axis=0)).any(axis=1)
        for number, agent in enumerate(agents):
            passages = rankings.get((query_id, agent))
            if passages is None:
                continue
            rows = grid.rows(passages[:k])
            seen, missing = grid.grades[rows], grid.missing[rows]
            present[number, at] = True
            counts[:, number, at] = seen.size, (seen != UNGRADED).sum(), missing.sum()
            scores[:, number, at] = _response_scores(grid, _covered(seen, levels), pool, seen == UNGRADED, missing)
    return CoverScores(
        agents=agents,
        queries=queries,
        levels=levels,
        k=k,
        cover=scores[0],
        least=scores[1],
        possible=scores[2],
        normalised=scores[3],
        present=present,
        pairs=counts[0],
        graded=counts[1],
        missing=counts[2],
        empty_queries=empty,
        uncovered_queries=uncovered,
        clusters=clusters,
    )


def _response_scores(
    grid: Grid,
    covered: NDArray[np.bool_],
    pool: NDArray[np.bool_],
    ungraded: NDArray[np.bool_],
    missing: NDArray[np.bool_],
) -> tuple[Floats, ...]:
    """``cover``, ``least``, ``possible`` and ``normalised`` of one response, shape (levels,) each.

    Args:
        grid: of its query.
        covered: which items it covers, shape (levels, items).
        pool: which items any passage covers, shape (levels, items).
        ungraded: pairs of its passages and items without a grade.
        missing: those of them whose grade was asked for.
    """
    weights, incomplete = grid.weights, missing.any(axis=0)
    known = weights * ~incomplete
    counted = (covered, covered | incomplete, covered | ungraded.any(axis=0))
    least, most, possible = (own @ weights / weights.sum() for own in counted)
    found, of, all_known = covered @ known, pool @ known, known.sum()
    share = found / all_known if all_known else np.full(found.shape, np.nan)
    unknown = np.nan if incomplete.any() else 0.0
    normalised = np.divide(found, of, out=np.full(found.shape, unknown), where=of > 0)
    return over_the_known(share, least, most), least, possible, normalised


def cover_means(scores: CoverScores, of: Floats, level: int, *, own_queries: bool = False) -> dict[str, ExamMean]:
    """Mean over queries of one of the scores at a level, by agent; over those where it is known.

    Args:
        scores: where ``of`` comes from.
        of: shape (agents, queries, levels), NaN where it is not known.
        level: one of ``scores.levels``.
        own_queries: average over the queries to which an agent has a response, as the workbench does, instead of all.
    """
    place, unit = scores.levels.index(level), units_of(scores.queries, scores.clusters)
    chosen = ~np.isnan(of[:, :, place]) & (scores.present if own_queries else True)
    return {
        agent: _mean(of[number, chosen[number], place], unit[chosen[number]])
        for number, agent in enumerate(scores.agents)
    }


def _mean(values: Floats, unit: NDArray[np.int64]) -> ExamMean:
    """No value of nothing."""
    n, units = int(values.size), int(np.unique(unit).size)
    if not n:
        return ExamMean(None, n=0)
    value = float(values.mean())
    if units < 2:
        return ExamMean(value, n=n)
    error = float(values.std(ddof=1) / np.sqrt(n))
    if units < n:
        apart = np.bincount(unit, values - value)
        error = float(np.sqrt((apart**2).sum() * units / (units - 1))) / n
    (own,) = mean_estimates(values[np.newaxis], np.unique(unit, return_inverse=True)[1])
    return ExamMean(value, own.low, own.high, n, own.method, error)


def _covered(grades: NDArray[np.int8], levels: Sequence[int]) -> NDArray[np.bool_]:
    """Which items the rows of ``grades`` cover, shape (levels, items)."""
    return np.asarray(grades.max(axis=0, initial=UNGRADED) >= np.array(levels)[:, np.newaxis], np.bool_)


GraderChoice: TypeAlias = Literal["highest", "count"]

_STEP = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?:(\d{1,3})")


class ExamLabels(Struct, frozen=True):
    """Labels and what they rest on.

    Attributes:
        labels: by query_id and passage_id, of all passages whose label is known.
        partly: passages with some grades, of which others are missing that could change the label; they have none.
        ungraded: passages without any grade, which have no label.
    """

    labels: Mapping[str, Mapping[str, int]]
    partly: int
    ungraded: int

    def __len__(self) -> int:
        return sum(map(len, self.labels.values()))


def exam_labels(
    grids: Grids,
    *,
    by: GraderChoice = "highest",
    level: int = 1,
    grade_to_label: Mapping[int, int] | None = None,
    highest: int = max(RATED_LEVELS),
) -> ExamLabels:
    """Labels of graded passages: those that are the same whatever the grades that are missing would have been.

    Args:
        grids: the grades.
        by: ``highest``: the highest grade; ``count``: the number of items graded ``level`` or more.
        level: used with ``count``.
        grade_to_label: turns the highest grade, or the count, into a label.
        highest: the highest grade that may be given.

    Raises:
        InputError: ``grade_to_label`` does not say what becomes of a grade that occurs.
    """
    labels: dict[str, dict[str, int]] = {}
    partly = ungraded = 0
    for query_id, grid in grids.grids.items():
        gaps = grid.grades == UNGRADED
        if by == "highest":
            low = grid.grades.max(axis=1, initial=UNGRADED)
            high = np.where(gaps.any(axis=1), np.maximum(low, highest), low)
        else:
            low = (grid.grades >= level).sum(axis=1)
            high = low + gaps.sum(axis=1)
        own = labels[query_id] = {}
        for row, passage in enumerate(grid.passages):
            if gaps[row].all():
                ungraded += 1
                continue
            label = _mapped(int(low[row]), grade_to_label)
            if low[row] == high[row] or label == (grade_to_label or {}).get(int(high[row])):
                own[passage] = label
            else:
                partly += 1
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

    Where grades of a response are missing, the score is over the items of which none is; NaN without any.

    Args:
        grid: the query's grades.
        rankings: of each response the passages in their order; all must be in the grid.
        level: the lowest grade that counts as covered.
        k: passages that count.
        alpha: how little it is worth to cover an item once more, 0 to 1.
    """
    covers = grid.grades >= level
    best = _discounted(_ideal(covers, k, alpha))
    found = []
    for ranking in rankings:
        rows = grid.rows(dict.fromkeys(ranking))[:k]
        complete = ~grid.missing[rows].any(axis=0)
        ideal = best if complete.all() else _discounted(_ideal(covers[:, complete], k, alpha))
        none = 0.0 if complete.all() else math.nan
        found.append(_discounted(_gains(covers[rows][:, complete], alpha)) / ideal if ideal else none)
    return found


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
