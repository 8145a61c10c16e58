"""Scores of graded responses: EXAM-Cover, EXAM-Qrels labels, alpha-nDCG, and the agreement of two leaderboards."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace
from numpy.typing import NDArray

from judges.errors import InputError
from judges.types import repeat_of
from retrieval_eval.exam.grades import UNGRADED, Grader, Grid, Grids, Rankings
from retrieval_eval.stats import Floats, Ints
from retrieval_eval.stats.bootstrap import ALONE, Clusters, units_of
from retrieval_eval.stats.repeats import averaged
from retrieval_eval.stats.scores import Scores, over_the_known


class Correlation(Struct, frozen=True):
    """Rank correlation of two leaderboards, over the ``n`` agents that are on both.

    The coefficients are ``None`` for fewer than two agents, or if all are tied. ``only_first`` and ``only_second`` are
    the agents that are missing from the other leaderboard.
    """

    n: int
    spearman: float | None
    kendall: float | None
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    tau_ap: float | None = None
    tau_gap: float | None = None
    tau_at_10: float | None = None


def places(scores: Mapping[str, float]) -> dict[str, float]:
    """Agents' places on a leaderboard, 1 for the highest score; agents with equal scores share their average place."""
    from retrieval_eval.stats.rank import mean_ranks  # late: most leaderboards are compared with no other

    return dict(zip(scores, mean_ranks(np.array([*scores.values()], np.float64)).tolist(), strict=True))


def correlate(first: Mapping[str, float], second: Mapping[str, float]) -> Correlation:
    """Correlate two leaderboards, given as each agent's place from 1 or as its score times -1; the second is true."""
    from retrieval_eval.stats.rank import head_weighted, kendall_taus, spearmans  # late, as above

    agents = sorted(first.keys() & second.keys())
    first_places, second_places = (np.array([side[agent] for agent in agents], np.float64) for side in (first, second))
    rho, tau = (float(coefficient(first_places, second_places)[0]) for coefficient in (spearmans, kendall_taus))
    return Correlation(
        len(agents),
        None if math.isnan(rho) else rho,
        None if math.isnan(tau) else tau,
        tuple(sorted(first.keys() - second.keys())),
        tuple(sorted(second.keys() - first.keys())),
        *(astuple(head_weighted(-second_places, -first_places)) if agents else ()),
    )


DEFAULT_K = 20
RATED_LEVELS = (1, 2, 3, 4, 5)

GradedUnit: TypeAlias = Literal["answers", "documents"]
ExamMeasure: TypeAlias = Literal["cover", "least", "possible", "normalised", "alpha_ndcg"]
_COVER: Final[Sequence[ExamMeasure]] = ("cover", "least", "possible", "normalised")


class CoverScores(Struct, frozen=True):
    """Cover (share of covered items) of every response at every level.

    A missing grade does not count as 0. An item with a sufficient grade is covered, even if other grades are missing.
    It is not covered if all grades exist and none suffices; otherwise it is unknown whether it is covered. A query
    without unknown items has an exact cover. Otherwise its cover is the share over items without missing grades (see
    ``over_the_known`` for the reason). A query where every item has a missing grade has no score and is left out of the
    mean.

    Attributes:
        by_level: the agents' scores on the queries that have items, by level (lowest grade that counts as covered),
            ascending; a missing response scores 0.

            - cover: share of covered items.
            - least: lowest possible cover: no passage covers an item that it has no grade for.
            - possible: highest possible cover: every passage covers all items that it has no grade for.
            - normalised: of the items that any graded passage of the query covers, the share that the response covers;
              only over items without missing grades of the response. 0 if no passage covers an item.
            - alpha_ndcg: only if ``exam_scores`` adds it.
        k: number of passages of a response that are scored.
        present: whether the agent has a response to the query, shape (agents, queries).
        pairs: number of pairs of a scored passage and an item, shape (agents, queries).
        agents, queries: names of the rows and columns; each repeat of an agent has a row.
        judgments: numbers of requested and of missing grades of these pairs, shape (2, agents, queries).
        empty_queries: queries of the topic set without items, which are left out.
        uncovered_queries: number of queries where no passage covers an item, whatever the missing grades are, by level.
    """

    by_level: Mapping[int, Mapping[ExamMeasure, Scores]]
    k: int
    present: NDArray[np.bool_]
    pairs: Ints
    agents: tuple[str, ...]
    queries: tuple[str, ...]
    judgments: Ints
    empty_queries: tuple[str, ...]
    uncovered_queries: Mapping[int, int]

    @property
    def graded(self) -> Ints:
        """Number of pairs of a passage and an item that have a grade, shape (agents, queries)."""
        graded: Ints = self.judgments[0] - self.judgments[1]
        return graded


class ExamScores(Struct, frozen=True, dict=True):
    """Exam scores of every agent.

    Attributes:
        level: the default level, see ``arena.results.exam.Study``.
        alpha_ndcg: alpha-nDCG at each level; 0 without a response, NaN if grades are missing.
        unit: what was graded: passages of ``answers``, or retrieved ``documents``.
        version: version of the bank; ``None`` without a bank.
        items: number of active items of the bank; ``None`` without a bank.
        strange_queries: ranked queries that are not in the bank.
        unknown: number of grades of items that are retired or not in the bank.
        workbench: whether means are over the queries to which the agent has a response, as in the rubric workbench.
        official: ranks of the agents on an official leaderboard, for comparison.
    """

    level: int
    cover: CoverScores
    alpha_ndcg: Mapping[int, Scores]
    unit: GradedUnit
    grader: Grader
    version: str | None
    items: int | None
    strange_queries: tuple[str, ...] = ()
    unknown: int = 0
    workbench: bool = False
    official: Mapping[str, float] | None = None

    @cached_property
    def by_level(self) -> Mapping[int, Mapping[ExamMeasure, Scores]]:
        """Scores of every measure at every level; in workbench mode NaN on the queries without a response."""
        by_level: dict[int, dict[ExamMeasure, Scores]] = {
            level: {**measures, "alpha_ndcg": self.alpha_ndcg[level]} for level, measures in self.cover.by_level.items()
        }
        if self.workbench:
            by_level = {
                level: {
                    measure: replace(scores, values=np.where(self.cover.present, scores.values, np.nan))
                    for measure, scores in measures.items()
                }
                for level, measures in by_level.items()
            }
        return {
            level: {measure: averaged(scores, self.cover.present) for measure, scores in measures.items()}
            for level, measures in by_level.items()
        }

    @property
    def scores(self) -> tuple[Scores, ...]:
        """Cover scores at the default level over all queries, by which agents are compared, also in workbench mode."""
        return (averaged(self.cover.by_level[self.level]["cover"], self.cover.present),)

    def places(self, level: int, measure: ExamMeasure = "cover") -> dict[str, float]:
        scored = {agent: mean.value for agent, mean in self.by_level[level][measure].means.items()}
        ranks = places({agent: value for agent, value in scored.items() if value is not None})
        return dict(sorted(ranks.items(), key=lambda entry: (entry[1], entry[0])))

    def agents(self, level: int) -> dict[str, dict[str, Any]]:
        """Figures of each agent, best first: ``place``, the mean of each measure, and the counts of queries and grades.

        Agents without a score come last and have no place.
        """
        cover = self.cover
        tables = {"queries": cover.present, "pairs": cover.pairs, "graded": cover.graded, "missing": cover.judgments[1]}
        counts: dict[str, Counter[str]] = {name: Counter() for name in tables}
        for name, table in tables.items():
            for agent, number in zip(cover.agents, table.sum(axis=1).tolist(), strict=True):
                counts[name][repeat_of(agent)[0]] += number
        places = self.places(level)
        return {
            agent: {
                "place": places.get(agent),
                **{measure: scores.means[agent] for measure, scores in self.by_level[level].items()},
                **{name: by_agent[agent] for name, by_agent in counts.items()},
            }
            for agent in dict.fromkeys([*places, *(repeat_of(name)[0] for name in cover.agents)])
        }


def cover_scores(
    grids: Grids,
    rankings: Rankings,
    *,
    levels: Sequence[int] = RATED_LEVELS,
    k: int = DEFAULT_K,
    clusters: Clusters = ALONE,
) -> CoverScores:
    """Compute the cover of every agent in ``rankings``.

    Raises:
        ValueError: ``k`` or a level is less than 1.
        KeyError: a ranked passage is not in the grids.
    """
    if k < 1 or not levels or min(levels) < 1:
        raise ValueError("k and the levels must be at least 1")
    levels = tuple(sorted(set(levels)))
    agents = tuple(sorted({agent for _, agent in rankings}))
    queries = tuple(query_id for query_id, grid in grids.grids.items() if grid.items)
    shape = (len(agents), len(queries))
    values = np.zeros((len(levels), len(_COVER), *shape))
    pairs, wanted, missing_counts = np.zeros((3, *shape), np.int64)
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
            grades, missing = grid.grades[rows], grid.missing[rows]
            present[number, at], pairs[number, at], missing_counts[number, at] = True, grades.size, missing.sum()
            wanted[number, at] = (grades != UNGRADED).sum() + missing.sum()
            values[..., number, at] = _response_scores(
                grid, _covered(grades, levels), pool, grades == UNGRADED, missing
            )
    judgments = np.array([wanted, missing_counts])
    scores = Scores("cover", agents, queries, np.zeros(shape), judgments, clusters=clusters, column="exam_cover")
    by_level: dict[int, dict[ExamMeasure, Scores]] = {
        level: {measure: replace(scores, values=table) for measure, table in zip(_COVER, tables, strict=True)}
        for level, tables in zip(levels, values, strict=True)
    }
    for level, (_, *ends, _) in zip(levels, values, strict=True):
        by_level[level]["cover"] = replace(by_level[level]["cover"], ends=np.array(ends))
    empty = tuple(query_id for query_id, grid in grids.grids.items() if not grid.items)
    by_no_passage = dict(zip(levels, uncovered.tolist(), strict=True))
    return CoverScores(by_level, k, present, pairs, agents, queries, judgments, empty, by_no_passage)


def _response_scores(
    grid: Grid,
    covered: NDArray[np.bool_],
    pool: NDArray[np.bool_],
    ungraded: NDArray[np.bool_],
    missing: NDArray[np.bool_],
) -> Floats:
    """``cover``, ``least``, ``possible`` and ``normalised`` of one response, shape (levels, 4).

    Args:
        grid: grades of the query.
        covered: whether the response covers an item, shape (levels, items).
        pool: whether any passage of the query covers an item, shape (levels, items).
        ungraded: whether a pair of passage and item has no grade, shape (passages, items).
        missing: whether a requested grade is missing, shape (passages, items).
    """
    weights, incomplete = grid.weights, missing.any(axis=0)
    known = weights * ~incomplete
    counted = (covered, covered | incomplete, covered | ungraded.any(axis=0))
    least, most, possible = (items @ weights / weights.sum() for items in counted)
    weight, pool_weight, known_weight = covered @ known, pool @ known, known.sum()
    share = weight / known_weight if known_weight else np.full(weight.shape, np.nan)
    unknown = np.nan if incomplete.any() else 0.0
    normalised = np.divide(weight, pool_weight, out=np.full(weight.shape, unknown), where=pool_weight > 0)
    return np.stack([over_the_known(share, least, most), least, possible, normalised], axis=1)


def standard_error(scores: Scores, agent: str) -> float | None:
    """Standard error of an agent's mean, ``None`` for fewer than two clusters.

    Without conversations it is the sample standard deviation divided by the root of the number of queries.
    """
    row = scores.values[scores.agents.index(agent)]
    known = ~np.isnan(row)
    values, unit = row[known], units_of(scores.queries, scores.clusters)[known]
    n, units = int(values.size), int(np.unique(unit).size)
    if units < 2:
        return None
    if units == n:
        return float(values.std(ddof=1) / np.sqrt(n))
    deviations = np.bincount(unit, values - values.mean())
    return float(np.sqrt((deviations**2).sum() * units / (units - 1))) / n


def _covered(grades: NDArray[np.int8], levels: Sequence[int]) -> NDArray[np.bool_]:
    """Whether any passage (row of ``grades``) has a grade of at least the level for an item, shape (levels, items)."""
    return np.asarray(grades.max(axis=0, initial=UNGRADED) >= np.array(levels)[:, np.newaxis], np.bool_)


GraderChoice: TypeAlias = Literal["highest", "count"]

_STEP = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?:(\d{1,3})")


class ExamLabels(Struct, frozen=True):
    """Relevance labels derived from grades (EXAM-Qrels).

    Attributes:
        labels: labels by query_id and passage_id, for all passages whose label is known.
        partly: number of passages without a label because a missing grade could change the label.
        ungraded: number of passages without any grade; they have no label.
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
    """Derive labels from grades, for passages whose label does not depend on missing grades.

    Args:
        grids: the grades of all queries.
        by: what a passage's label is derived from: ``highest`` is its highest grade, ``count`` the number of items with
            a grade of at least ``level``.
        level: the lowest grade that ``count`` counts.
        grade_to_label: maps the highest grade, or the count, to a label.
        highest: the highest possible grade.

    Raises:
        InputError: ``grade_to_label`` has no label for a grade that occurs.
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
        query_labels = labels[query_id] = {}
        for row, passage in enumerate(grid.passages):
            if gaps[row].all():
                ungraded += 1
                continue
            label = _mapped(int(low[row]), grade_to_label)
            if low[row] == high[row] or label == (grade_to_label or {}).get(int(high[row])):
                query_labels[passage] = label
            else:
                partly += 1
    return ExamLabels(labels, partly, ungraded)


def read_grade_map(text: str) -> dict[int, int]:
    """Parse a map from grade to label, such as ``0:0,1-3:1,4:2,5:3``.

    Raises:
        InputError: the text has another form, or maps a grade to two labels.
    """
    grade_map: dict[int, int] = {}
    for part in text.split(","):
        step = _STEP.fullmatch(part.strip())
        if step is None:
            raise InputError(f"{part.strip()!r} in the map of grades (--map): write GRADE:LABEL, such as 4:2 or 1-3:1")
        low, high = int(step[1]), int(step[2] or step[1])
        for grade in range(low, high + 1):
            if grade_map.setdefault(grade, int(step[3])) != int(step[3]):
                raise InputError(f"the map of grades (--map) has two labels for grade {grade}; keep one")
        if low > high:
            raise InputError(f"{part.strip()!r} in the map of grades (--map): write the lower grade of a range first")
    return grade_map


def _mapped(value: int, grade_to_label: Mapping[int, int] | None) -> int:
    if grade_to_label is None:
        return value
    if value not in grade_to_label:
        raise InputError(f"the map of grades (--map) has no label for {value}; add one, such as {value}:1")
    return grade_to_label[value]


DEFAULT_ALPHA = 0.5


def alpha_ndcg(
    grid: Grid, rankings: Iterable[Sequence[str]], *, level: int, k: int, alpha: float = DEFAULT_ALPHA
) -> list[float]:
    """The alpha-nDCG of responses to one query, from 0 to 1; 0 if no passage of the query covers an item.

    For a response with missing grades the score uses only items without missing grades; NaN if there are none. Grades
    from ``level`` count as covered; ``alpha`` is the penalty for covering an item again, from 0 to 1.
    """
    covers = grid.grades >= level
    full_ideal = _discounted(_ideal(covers, k, alpha))
    scores = []
    for ranking in rankings:
        rows = grid.rows(dict.fromkeys(ranking))[:k]
        complete = ~grid.missing[rows].any(axis=0)
        ideal = full_ideal if complete.all() else _discounted(_ideal(covers[:, complete], k, alpha))
        default = 0.0 if complete.all() else math.nan
        scores.append(_discounted(_gains(covers[rows][:, complete], alpha)) / ideal if ideal else default)
    return scores


def _gains(covers: NDArray[np.bool_], alpha: float) -> NDArray[np.float64]:
    before: NDArray[np.int64] = np.cumsum(covers, axis=0) - covers
    gains: NDArray[np.float64] = (covers * (1.0 - alpha) ** before).sum(axis=1)
    return gains


def _ideal(covers: NDArray[np.bool_], k: int, alpha: float) -> NDArray[np.float64]:
    remaining = covers.astype(np.float64)
    item_worth = np.ones(covers.shape[1])
    gains = np.zeros(min(k, len(covers)))
    for place in range(gains.size):
        candidate_gains = remaining @ item_worth
        chosen = int(candidate_gains.argmax())
        gains[place] = candidate_gains[chosen]
        item_worth = np.where(remaining[chosen] > 0, item_worth * (1.0 - alpha), item_worth)
        remaining[chosen] = 0.0
    return gains


def _discounted(gains: NDArray[np.float64]) -> float:
    return float((gains / np.log2(np.arange(2, gains.size + 2))).sum())
