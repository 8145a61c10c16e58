"""Six scores of an answer and of a run (Pradeep et al. 2024, section 3.5).

With s = 1 for support, 0.5 for partial_support and 0 else, strictly only 1 for support:

    All = mean of s,   Vital = mean of s over vital nuggets,
    Weighted = (sum of s over vital + 0.5 * sum of s over okay) / (vital + 0.5 * okay)

A run's score is the mean over the topic set, where a topic that the run did not answer counts 0. A score that is not
defined is NaN and the topic is left out of the run's mean: every score where a label failed or there are no nuggets,
Vital where no nugget is vital, Vital and Weighted where a nugget has no importance.

Everything is counted in arrays of shape (..., 3, 4): importance (vital, okay, none) by label (support,
partial_support, not_support, failed).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray

from retrieval_eval.nuggets.types import Assignment, Importance, Support
from retrieval_eval.stats.arrays import Floats, Ints
from retrieval_eval.stats.bootstrap import ALONE, Clusters, units_of, weighted_means
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.means import mean_estimates
from retrieval_eval.stats.missing import Gaps

COLUMNS: Final = ("v_strict", "v", "w_strict", "w", "a_strict", "a")
"""The scores, the primary one first, in the order of the report's tables."""
NUGGETIZER: Final = {
    "v_strict": "strict_vital_score",
    "v": "vital_score",
    "w_strict": "strict_weighted_score",
    "w": "weighted_score",
    "a_strict": "strict_all_score",
    "a": "all_score",
}
"""nuggetizer's names of them; it writes neither of the weighted scores."""

_IMPORTANCES: Final = {Importance.VITAL: 0, Importance.OKAY: 1, None: 2}
_LABELS: Final = {Support.FULL: 0, Support.PARTIAL: 1, Support.NONE: 2, None: 3}
_CELLS: Final = {
    (importance, label): 4 * row + column
    for importance, row in _IMPORTANCES.items()
    for label, column in _LABELS.items()
}
_WEIGHTS: Final = np.array([[1, 0, 0], [1, 0, 0], [1, 0.5, 0], [1, 0.5, 0], [1, 1, 1], [1, 1, 1]])
"""Of vital, okay and unlabelled nuggets in each score."""
_CREDIT: Final = np.array([[1, 0, 0], [1, 0.5, 0]] * 3)
"""For support, partial_support and not_support in each score."""
_NEEDS_IMPORTANCE: Final = np.array([True, True, True, True, False, False])


class QueryScores(Struct, frozen=True):
    """The scores of one answer; ``None`` where a score is not defined."""

    v_strict: float | None
    v: float | None
    w_strict: float | None
    w: float | None
    a_strict: float | None
    a: float | None


def query_scores(importances: Sequence[Importance | None], labels: Sequence[Support | None]) -> QueryScores:
    """The scores of one answer.

    Args:
        importances: of the query's nuggets.
        labels: what the answer states of each; ``None`` for a label that failed.
    """
    values = scores_of_counts(_counts(importances, labels).reshape(3, 4))
    return QueryScores(*(None if np.isnan(value) else float(value) for value in values))


def scores_of_counts(counts: Ints, *, failed: float | None = None) -> Floats:
    """The six scores in the order of ``COLUMNS``, shape (..., 6), of counts of nuggets, shape (..., 3, 4).

    Args:
        counts: nuggets by importance and label.
        failed: credit for a label that failed, 0 for the lowest and 1 for the highest score there can be; ``None``
            leaves the answer without scores.
    """
    given = counts[..., :3].astype(np.float64)
    failures = counts[..., 3].astype(np.float64)
    gained = np.einsum("cw,cs,...ws->...c", _WEIGHTS, _CREDIT, given)
    gained += (failed or 0.0) * np.einsum("cw,...w->...c", _WEIGHTS, failures)
    possible = np.einsum("cw,...w->...c", _WEIGHTS, counts.sum(axis=-1))
    defined = (possible > 0) & ~(_NEEDS_IMPORTANCE & (counts[..., 2, :].sum(axis=-1) > 0)[..., np.newaxis])
    if failed is None:
        defined &= (failures.sum(axis=-1) == 0)[..., np.newaxis]
    return np.where(defined, gained / np.where(possible > 0, possible, 1.0), np.nan)


class ScoreTable(Struct, frozen=True, eq=False, dict=True):
    """Counts of every run and topic, from which all scores follow.

    Attributes:
        runs: names, sorted.
        topics: query ids of the topic set, sorted.
        counts: nuggets by importance and label, shape (runs, topics, 3, 4).
        answered: whether there is an assignment, shape (runs, topics).
        words: lengths of the answers, 0 where there is none, shape (runs, topics).
        left_out: assignments on queries outside the topic set.
    """

    runs: tuple[str, ...]
    topics: tuple[str, ...]
    counts: Ints
    answered: NDArray[np.bool_]
    words: Ints
    left_out: int = 0

    @cached_property
    def values(self) -> Floats:
        """Scores, shape (runs, topics, 6), NaN where not defined."""
        return self._with_missing(scores_of_counts(self.counts))

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Lowest and highest scores there can be, whatever the labels that failed should have been; shape as values."""
        low, high = (self._with_missing(scores_of_counts(self.counts, failed=credit)) for credit in (0.0, 1.0))
        return low, high

    @property
    def gaps(self) -> Gaps:
        """Labels wanted of the answers there are, and those that failed."""
        return Gaps(self.runs, self.topics, self.counts.sum(axis=(-2, -1)), self.counts[..., 3].sum(axis=-1))

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """Whether a label of the answer failed, shape (runs, topics)."""
        return np.asarray(self.counts[..., 3].sum(axis=-1) > 0)

    @cached_property
    def unjudged_topics(self) -> tuple[str, ...]:
        """Topics without an assignment of any run; they count 0 for every run."""
        return self._topics_where(~self.answered.any(axis=0))

    @cached_property
    def differing_topics(self) -> tuple[str, ...]:
        """Topics whose runs were held against different numbers of nuggets."""
        nuggets = self.counts.sum(axis=-1)
        differs = self.answered[..., np.newaxis] & (nuggets != nuggets.max(axis=0, initial=0))
        return self._topics_where(differs.any(axis=(0, 2)))

    def _topics_where(self, chosen: ArrayLike) -> tuple[str, ...]:
        return tuple(self.topics[at] for at in np.flatnonzero(chosen))

    def _with_missing(self, scores: Floats) -> Floats:
        """Scores with 0 for answers that are missing, but for scores that the topic's nuggets leave undefined."""
        bank = np.zeros((len(self.topics), 3, 4), np.int64)
        bank[..., 2] = self.counts.sum(axis=-1).max(axis=0, initial=0)
        judged = np.asarray(self.answered.any(axis=0))
        undefined = np.isnan(scores_of_counts(bank)) & judged[:, np.newaxis]
        return np.where(self.answered[..., np.newaxis], scores, np.where(undefined, np.nan, 0.0))


def score_table(assignments: Sequence[Assignment], topics: Sequence[str] | None = None) -> ScoreTable:
    """Gather assignments by run and topic.

    Args:
        assignments: at most one for each run and query.
        topics: the topic set; without it the queries that any run answered.

    Raises:
        ValueError: two assignments are of the same run and query.
    """
    runs = tuple(sorted({own.run for own in assignments}))
    chosen = tuple(sorted(set(topics) if topics is not None else {own.query_id for own in assignments}))
    run_at, topic_at = ({name: at for at, name in enumerate(names)} for names in (runs, chosen))
    shape = (len(runs), len(chosen))
    counts, words = np.zeros((*shape, 12), np.int64), np.zeros(shape, np.int64)
    answered = np.zeros(shape, np.bool_)
    left_out = 0
    for own in assignments:
        if own.query_id not in topic_at:
            left_out += 1
            continue
        at = run_at[own.run], topic_at[own.query_id]
        if answered[at]:
            raise ValueError(f"run {own.run!r} has two assignments on query {own.query_id!r}")
        importances = [nugget.importance for nugget in own.nuggets]
        counts[at], answered[at], words[at] = _counts(importances, own.labels), True, own.words
    return ScoreTable(runs, chosen, counts.reshape(*shape, 3, 4), answered, words, left_out)


def _counts(importances: Sequence[Importance | None], labels: Sequence[Support | None]) -> Ints:
    cells = [_CELLS[importance, label] for importance, label in zip(importances, labels, strict=True)]
    return np.bincount(np.array(cells, np.int64), minlength=12)


class NuggetMean(Estimate, frozen=True):
    """One score of a run, a mean over ``n`` of the topics in the topic set; ``None`` where there is none.

    Attributes:
        lowest: the mean if every label that failed were not_support.
        highest: the mean if every label that failed were support.
    """

    lowest: float | None = None
    highest: float | None = None


class RunScores(Struct, frozen=True):
    """A run's scores and their coverage.

    Attributes:
        run: its name.
        means: by column, see ``scores.COLUMNS``.
        length: mean words of an answer over the topic set; a missing answer has none.
        topics: topics in the topic set.
        missing: topics without an assignment of this run; they count 0.
        failed: topics with a label that failed; they are in no mean.
        empty: topics whose assignment has no nuggets; they are in no mean.
        labels: labels wanted, over the topics answered.
        assigned: labels that did not fail.
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
        """Share of the labels wanted that did not fail."""
        return self.assigned / self.labels if self.labels else 1.0


def score_runs(table: ScoreTable, clusters: Clusters = ALONE) -> list[RunScores]:
    """Score every run, best Vital strict first; runs without one come last.

    Intervals are those of other topics of the same kind, see ``mean_estimates``.

    Args:
        table: counts of runs and topics.
        clusters: of topics that depend on each other.
    """
    values, unit = table.values, units_of(table.topics, clusters)
    lowest, highest = (_means(bound) for bound in table.bounds)
    scored = []
    for at, run in enumerate(table.runs):
        topics = (~np.isnan(values[at])).sum(axis=0).tolist()
        found = [replace(own, n=n) for own, n in zip(mean_estimates(values[at].T, unit), topics, strict=True)]
        own = {
            column: _mean(found[place], lowest[at, place], highest[at, place]) for place, column in enumerate(COLUMNS)
        }
        counts, answered = table.counts[at], table.answered[at]
        scored.append(
            RunScores(
                run,
                own,
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


def _best_first(own: RunScores) -> tuple[bool, float, str]:
    value = own.means["v_strict"].value
    return value is None, -(value or 0.0), own.run


def _means(values: Floats) -> Floats:
    """Means over topics of what is defined, shape (runs, topics, 6) to (runs, 6)."""
    return np.array([weighted_means(own.T, np.ones((1, own.shape[0])))[0] for own in values])


def _mean(own: Estimate, lowest: float, highest: float) -> NuggetMean:
    return NuggetMean(own.value, own.low, own.high, own.n, own.method, _or_none(lowest), _or_none(highest))


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
