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
from itertools import compress
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from judges.types import repeat_of
from retrieval_eval.nuggets.types import Assignment, Importance, Support
from retrieval_eval.stats import Floats, Ints
from retrieval_eval.stats.bootstrap import ALONE, Clusters
from retrieval_eval.stats.repeats import averaged
from retrieval_eval.stats.scores import Scores

COLUMNS: Final = ("v_strict", "v", "w_strict", "w", "a_strict", "a")
"""Names of the six scores in the order of the report's tables, the primary score first."""
NUGGETIZER: Final = {
    "v_strict": "strict_vital_score",
    "v": "vital_score",
    "w_strict": "strict_weighted_score",
    "w": "weighted_score",
    "a_strict": "strict_all_score",
    "a": "all_score",
}
"""nuggetizer's name of each score; nuggetizer does not write the two weighted scores."""

_IMPORTANCES: Final = {Importance.VITAL: 0, Importance.OKAY: 1, None: 2}
_LABELS: Final = {Support.FULL: 0, Support.PARTIAL: 1, Support.NONE: 2, None: 3}
_CELLS: Final = {
    (importance, label): 4 * row + column
    for importance, row in _IMPORTANCES.items()
    for label, column in _LABELS.items()
}
_WEIGHTS: Final = np.array([[1, 0, 0], [1, 0, 0], [1, 0.5, 0], [1, 0.5, 0], [1, 1, 1], [1, 1, 1]])
"""One row per score: weights of vital nuggets, okay nuggets, and nuggets without importance."""
_CREDIT: Final = np.array([[1, 0, 0], [1, 0.5, 0]] * 3)
"""One row per score: credit of a nugget for the labels support, partial_support and not_support."""
_NEEDS_IMPORTANCE: Final = np.array([True, True, True, True, False, False])


def scores_of_counts(counts: Ints, *, failed: float | None = None) -> Floats:
    """Compute the six scores from counts of nuggets, in the order of ``COLUMNS``; shape (..., 3, 4) to (..., 6).

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


class ScoreTable(Struct, frozen=True, eq=False):
    """The six scores of each run on each topic, and the counts of nuggets behind them.

    Attributes:
        scores: the six scores in the order of ``COLUMNS``; runs and topics are sorted.
        counts: number of nuggets by importance and label, shape (runs, topics, 3, 4).
        assignments: number of the run's assignments for the topic, one for each repeat, shape (runs, topics).
        words: lengths of the answers, 0 without an answer, shape (runs, topics).
        left_out: number of assignments for queries outside the topic set.
    """

    scores: tuple[Scores, ...]
    counts: Ints
    assignments: Ints
    words: Ints
    left_out: int

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Whether the run has an assignment for the topic, shape (runs, topics)."""
        return self.assignments > 0

    @property
    def runs(self) -> tuple[str, ...]:
        return self.scores[0].agents

    @property
    def topics(self) -> tuple[str, ...]:
        return self.scores[0].queries

    def score(self, column: str) -> Scores:
        return self.scores[COLUMNS.index(column)]

    def best_first(self) -> list[str]:
        """The runs, highest mean of Vital strict first; runs without this score come last."""
        means = self.scores[0].means
        return sorted(self.runs, key=lambda run: (means[run].value is None, -(means[run].value or 0.0), run))

    def coverage(self, run: str) -> dict[str, Any]:
        """Numbers of topics and labels behind a run's mean scores, by name.

        - length: mean number of words of an answer over the topic set; a missing answer counts 0.
        - topics: number of topics in the topic set.
        - missing: number of topics without an assignment for this run; they count 0.
        - failed: number of topics with a failed label; they are left out of the means.
        - empty: number of topics whose assignment has no nuggets; they are left out of the means.
        - labels: number of requested labels over the answered topics.
        - assigned: number of these labels that did not fail.
        - coverage: ``assigned / labels``.
        """
        row = self.runs.index(run)
        counts, answered = self.counts[row], self.answered[row]
        labels, assigned = int(counts.sum()), int(counts[..., :3].sum())
        return {
            "length": float(self.words[row].mean()) if self.topics else None,
            "topics": len(self.topics),
            "missing": int((~answered).sum()),
            "failed": int((counts[..., 3].sum(axis=-1) > 0).sum()),
            "empty": int((answered & (counts.sum(axis=(1, 2)) == 0)).sum()),
            "labels": labels,
            "assigned": assigned,
            "coverage": assigned / labels if labels else 1.0,
        }

    @property
    def unjudged_topics(self) -> tuple[str, ...]:
        """Topics without an assignment for any run; they count 0 for every run."""
        return tuple(compress(self.topics, ~np.atleast_1d(self.answered.any(axis=0))))

    @property
    def differing_topics(self) -> tuple[str, ...]:
        """Topics where runs were judged by different numbers of vital, okay or other nuggets."""
        nuggets = self.counts.sum(axis=-1) / np.maximum(self.assignments, 1)[..., np.newaxis]
        differs = self.answered[..., np.newaxis] & (nuggets != nuggets.max(axis=0, initial=0))
        return tuple(compress(self.topics, differs.any(axis=(0, 2)).tolist()))

    @property
    def partial(self) -> bool:
        """Whether any label is partial support, or no label exists; otherwise strict scores equal the others."""
        return bool(self.counts[..., 1].any()) or not self.counts[..., :3].any()


class NuggetBoard(Struct, frozen=True):
    """Nugget scores of all agents over the queries that have nuggets.

    Attributes:
        answers: scores of the agents' answers; without agents if nuggets are not assigned to answers.
        documents: nugget recall of each agent's top documents, taken together for each query.
        depth: number of top documents of each agent that nuggets are assigned to.
        without: by id of each query without nuggets, the reason; the mean scores leave these queries out.
    """

    answers: ScoreTable
    documents: ScoreTable
    depth: int
    without: Mapping[str, str]


def score_table(
    assignments: Sequence[Assignment],
    topics: Sequence[str] | None = None,
    clusters: Clusters = ALONE,
    prefix: str = "nuggets",
) -> ScoreTable:
    """Count each run's nuggets on each topic by importance and label, and compute the six scores.

    Args:
        assignments: at most one assignment for each run and query.
        topics: the topic set; by default all queries with an assignment.
        clusters: groups of topics that depend on each other.
        prefix: beginning of the keys of the scores' columns on the leaderboard.

    Raises:
        ValueError: two assignments have the same run and query.
    """
    runs = tuple(sorted({assignment.run for assignment in assignments}))
    chosen = tuple(sorted(set(topics) if topics is not None else {assignment.query_id for assignment in assignments}))
    run_at, topic_at = ({name: at for at, name in enumerate(names)} for names in (runs, chosen))
    shape = (len(runs), len(chosen))
    cells, words = np.zeros((*shape, 12), np.int64), np.zeros(shape, np.int64)
    answered = np.zeros(shape, np.bool_)
    left_out = 0
    for assignment in assignments:
        if assignment.query_id not in topic_at:
            left_out += 1
            continue
        at = run_at[assignment.run], topic_at[assignment.query_id]
        if answered[at]:
            raise ValueError(f"run {assignment.run!r} has two assignments for query {assignment.query_id!r}")
        pairs = zip(assignment.nuggets, assignment.labels, strict=True)
        cell_of = [_CELLS[nugget.importance, label] for nugget, label in pairs]
        cells[at], answered[at] = np.bincount(np.array(cell_of, np.int64), minlength=12), True
        words[at] = assignment.words
    counts = cells.reshape(*shape, 3, 4)
    judgments = np.array([counts.sum(axis=(-2, -1)), counts[..., 3].sum(axis=-1)])
    values, *ends = (
        _with_missing(counts, answered, scores_of_counts(counts, failed=credit)) for credit in (None, 0.0, 1.0)
    )
    scores = tuple(
        Scores(
            *(name, runs, chosen, values[..., at], judgments, np.array([end[..., at] for end in ends]), None, clusters),
            column=f"{prefix}_{name.replace('a', 'all')}",
        )
        for at, name in enumerate(COLUMNS)
    )
    scores = tuple(averaged(each, answered) for each in scores)
    number = answered.astype(np.int64)
    if (of_agents := scores[0]).repeats is not None:
        row = np.array([of_agents.agents.index(repeat_of(run)[0]) for run in runs])
        counts, words, number = (_sum_of_rows(table, row, len(of_agents.agents)) for table in (counts, words, number))
        words //= np.maximum(number, 1)
    return ScoreTable(scores, counts, number, words, left_out)


def _sum_of_rows(table: Ints, row: Ints, rows: int) -> Ints:
    sums = np.zeros((rows, *table.shape[1:]), np.int64)
    np.add.at(sums, row, table)
    return sums


def _with_missing(counts: Ints, answered: NDArray[np.bool_], scores: Floats) -> Floats:
    """The scores, with 0 for a missing answer, or NaN if the score is undefined for the topic's nuggets."""
    bank = np.zeros(counts.shape[1:], np.int64)
    bank[..., 2] = counts.sum(axis=-1).max(axis=0, initial=0)
    undefined = np.isnan(scores_of_counts(bank)) & np.asarray(answered.any(axis=0))[:, np.newaxis]
    return np.where(answered[..., np.newaxis], scores, np.where(undefined, np.nan, 0.0))
