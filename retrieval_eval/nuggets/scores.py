"""The six nugget scores of an answer and of a run (Pradeep et al. 2024, section 3.5).

A label scores s = 1 for support, 0.5 for partial_support and 0 otherwise; strict scores use only 1 for support:

    All = mean of s,   Vital = mean of s over vital nuggets,
    Weighted = (sum of s over vital + 0.5 * sum of s over okay) / (vital + 0.5 * okay)

A run's score is the mean over the topic set; a topic without an answer counts 0. An undefined score is NaN, and its
topic is left out of the run's mean. Every score is undefined if a label failed or there are no nuggets, Vital if no
nugget is vital, and Vital and Weighted if a nugget has no importance.

Scores are computed from counts of nuggets, arrays of shape (..., 3, 4): importance (vital, okay, none) by label
(support, partial_support, not_support, failed).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from retrieval_eval.nuggets.types import Assignment, Importance, Support
from retrieval_eval.stats.arrays import Floats, Ints
from retrieval_eval.stats.bootstrap import ALONE, Clusters
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.scores import Gaps, Scores

COLUMNS: Final = ("v_strict", "v", "w_strict", "w", "a_strict", "a")
"""Names of the scores in the order of the report's tables, the primary score first."""
NUGGETIZER: Final = {
    "v_strict": "strict_vital_score",
    "v": "vital_score",
    "w_strict": "strict_weighted_score",
    "w": "weighted_score",
    "a_strict": "strict_all_score",
    "a": "all_score",
}
"""nuggetizer's names of the scores; it does not write the weighted ones."""

_IMPORTANCES: Final = {Importance.VITAL: 0, Importance.OKAY: 1, None: 2}
_LABELS: Final = {Support.FULL: 0, Support.PARTIAL: 1, Support.NONE: 2, None: 3}
_CELLS: Final = {
    (importance, label): 4 * row + column
    for importance, row in _IMPORTANCES.items()
    for label, column in _LABELS.items()
}
_WEIGHTS: Final = np.array([[1, 0, 0], [1, 0, 0], [1, 0.5, 0], [1, 0.5, 0], [1, 1, 1], [1, 1, 1]])
"""Weights of vital, okay and unlabelled nuggets in each score."""
_CREDIT: Final = np.array([[1, 0, 0], [1, 0.5, 0]] * 3)
"""Credit for support, partial_support and not_support in each score."""
_NEEDS_IMPORTANCE: Final = np.array([True, True, True, True, False, False])


def scores_of_counts(counts: Ints, *, failed: float | None = None) -> Floats:
    """Compute the six scores in the order of ``COLUMNS``; counts of shape (..., 3, 4) give (..., 6).

    Args:
        counts: number of nuggets by importance and label.
        failed: credit for a failed label, 0 for the lowest and 1 for the highest possible score; with ``None`` an
            answer with failed labels has no scores.
    """
    valid = counts[..., :3].astype(np.float64)
    failures = counts[..., 3].astype(np.float64)
    gained = np.einsum("cw,cs,...ws->...c", _WEIGHTS, _CREDIT, valid)
    gained += (failed or 0.0) * np.einsum("cw,...w->...c", _WEIGHTS, failures)
    possible = np.einsum("cw,...w->...c", _WEIGHTS, counts.sum(axis=-1))
    defined = (possible > 0) & ~(_NEEDS_IMPORTANCE & (counts[..., 2, :].sum(axis=-1) > 0)[..., np.newaxis])
    if failed is None:
        defined &= (failures.sum(axis=-1) == 0)[..., np.newaxis]
    return np.where(defined, gained / np.where(possible > 0, possible, 1.0), np.nan)


class ScoreTable(Struct, frozen=True, eq=False, dict=True):
    """Counts of nuggets by run and topic, and the scores computed from them.

    Attributes:
        runs: names, sorted.
        topics: query ids of the topic set, sorted.
        counts: number of nuggets by importance and label, shape (runs, topics, 3, 4).
        answered: whether there is an assignment, shape (runs, topics).
        words: lengths of the answers, 0 without an answer, shape (runs, topics).
        left_out: number of assignments for queries outside the topic set.
    """

    runs: tuple[str, ...]
    topics: tuple[str, ...]
    counts: Ints
    answered: NDArray[np.bool_]
    words: Ints
    left_out: int = 0

    @cached_property
    def values(self) -> Floats:
        """Scores, shape (runs, topics, 6); NaN if undefined."""
        return self._with_missing(scores_of_counts(self.counts))

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Lowest and highest possible scores, given the failed labels; each has the shape of ``values``."""
        low, high = (self._with_missing(scores_of_counts(self.counts, failed=credit)) for credit in (0.0, 1.0))
        return low, high

    def scores(self, clusters: Clusters = ALONE, prefix: str = "nuggets") -> tuple[Scores, ...]:
        """The six scores, in the order of ``COLUMNS``; their column names begin with ``prefix``."""
        bounds, named = np.array(self.bounds), {"a": "all", "a_strict": "all_strict"}
        columns = [f"{prefix}_{named.get(name, name)}" for name in COLUMNS]
        return tuple(
            Scores(
                *(name, self.runs, self.topics, self.values[..., at], self.gaps, bounds[..., at], None, clusters),
                column=columns[at],
            )
            for at, name in enumerate(COLUMNS)
        )

    @property
    def gaps(self) -> Gaps:
        """Numbers of requested and failed labels of the existing answers."""
        return Gaps(self.runs, self.topics, self.counts.sum(axis=(-2, -1)), self.counts[..., 3].sum(axis=-1))

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """Whether any label of the answer failed, shape (runs, topics)."""
        return np.asarray(self.counts[..., 3].sum(axis=-1) > 0)

    @cached_property
    def unjudged_topics(self) -> tuple[str, ...]:
        """Topics without an assignment for any run; they count 0 for every run."""
        return self._topics_where(~self.answered.any(axis=0))

    @cached_property
    def differing_topics(self) -> tuple[str, ...]:
        """Topics where the runs have different numbers of nuggets."""
        nuggets = self.counts.sum(axis=-1)
        differs = self.answered[..., np.newaxis] & (nuggets != nuggets.max(axis=0, initial=0))
        return self._topics_where(differs.any(axis=(0, 2)))

    def _topics_where(self, chosen: ArrayLike) -> tuple[str, ...]:
        return tuple(self.topics[at] for at in np.flatnonzero(chosen))

    def _with_missing(self, scores: Floats) -> Floats:
        """Scores with 0 for missing answers, except scores that are undefined for the topic's nuggets."""
        bank = np.zeros((len(self.topics), 3, 4), np.int64)
        bank[..., 2] = self.counts.sum(axis=-1).max(axis=0, initial=0)
        judged = np.asarray(self.answered.any(axis=0))
        undefined = np.isnan(scores_of_counts(bank)) & judged[:, np.newaxis]
        return np.where(self.answered[..., np.newaxis], scores, np.where(undefined, np.nan, 0.0))


def score_table(assignments: Sequence[Assignment], topics: Sequence[str] | None = None) -> ScoreTable:
    """Count the assignments by run and topic.

    Args:
        assignments: at most one for each run and query.
        topics: the topic set; by default all queries with an assignment.

    Raises:
        ValueError: two assignments have the same run and query.
    """
    runs = tuple(sorted({assignment.run for assignment in assignments}))
    chosen = tuple(sorted(set(topics) if topics is not None else {assignment.query_id for assignment in assignments}))
    run_at, topic_at = ({name: at for at, name in enumerate(names)} for names in (runs, chosen))
    shape = (len(runs), len(chosen))
    counts, words = np.zeros((*shape, 12), np.int64), np.zeros(shape, np.int64)
    answered = np.zeros(shape, np.bool_)
    left_out = 0
    for assignment in assignments:
        if assignment.query_id not in topic_at:
            left_out += 1
            continue
        at = run_at[assignment.run], topic_at[assignment.query_id]
        if answered[at]:
            raise ValueError(f"run {assignment.run!r} has two assignments for query {assignment.query_id!r}")
        importances = [nugget.importance for nugget in assignment.nuggets]
        counts[at], answered[at], words[at] = _counts(importances, assignment.labels), True, assignment.words
    return ScoreTable(runs, chosen, counts.reshape(*shape, 3, 4), answered, words, left_out)


def _counts(importances: Sequence[Importance | None], labels: Sequence[Support | None]) -> Ints:
    cells = [_CELLS[importance, label] for importance, label in zip(importances, labels, strict=True)]
    return np.bincount(np.array(cells, np.int64), minlength=12)


class NuggetMean(Estimate, frozen=True):
    """A run's mean of one score over ``n`` topics; ``None`` if the score is undefined on all topics.

    Attributes:
        lowest: the mean if every failed label were not_support.
        highest: the mean if every failed label were support.
    """

    lowest: float | None = None
    highest: float | None = None


class RunScores(Struct, frozen=True):
    """A run's scores and their coverage.

    Attributes:
        run: name of the run.
        means: mean scores by column, see ``COLUMNS``.
        length: mean number of words of an answer over the topic set; a missing answer counts 0.
        topics: number of topics in the topic set.
        missing: number of topics without an assignment for this run; they count 0.
        failed: number of topics with a failed label; they are left out of the means.
        empty: number of topics whose assignment has no nuggets; they are left out of the means.
        labels: number of requested labels over the answered topics.
        assigned: number of these labels that did not fail.
    """

    run: str
    means: Mapping[str, NuggetMean]
    length: float | None
    topics: int
    missing: int
    failed: int
    empty: int
    labels: int
    assigned: int

    @property
    def coverage(self) -> float:
        """Share of the requested labels that did not fail."""
        return self.assigned / self.labels if self.labels else 1.0


def score_runs(table: ScoreTable, clusters: Clusters = ALONE) -> list[RunScores]:
    """Score every run, highest Vital strict first; runs without this score come last.

    Intervals are over topics, see ``mean_estimates``.

    Args:
        table: counts by run and topic.
        clusters: groups of topics that depend on each other.
    """
    columns = table.scores(clusters)
    scored = []
    for at, run in enumerate(table.runs):
        means = {scores.name: _mean(scores, run) for scores in columns}
        counts, answered = table.counts[at], table.answered[at]
        scored.append(
            RunScores(
                run,
                means,
                float(table.words[at].mean()) if table.topics else None,
                topics=len(table.topics),
                missing=int((~answered).sum()),
                failed=int(table.failed[at].sum()),
                empty=int((answered & (counts.sum(axis=(1, 2)) == 0)).sum()),
                labels=int(counts.sum()),
                assigned=int(counts[..., :3].sum()),
            )
        )
    return sorted(scored, key=_best_first)


def _best_first(scores: RunScores) -> tuple[bool, float, str]:
    value = scores.means["v_strict"].value
    return value is None, -(value or 0.0), scores.run


def _mean(scores: Scores, run: str) -> NuggetMean:
    mean = scores.means[run]
    lowest, highest = (None if np.isnan(end) else end for end in (scores.lowest(run), scores.highest(run)))
    return NuggetMean(mean.value, mean.low, mean.high, scores.count(run), mean.method, lowest, highest)
