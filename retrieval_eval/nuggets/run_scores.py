"""Scores of runs: means over the topic set with intervals, and how much of it was judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from retrieval_eval.nuggets.scores import COLUMNS, Floats, ScoreTable
from retrieval_eval.stats.bootstrap import estimates, query_weights, weighted_means
from retrieval_eval.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Mean(Estimate):
    """One score of a run, a mean over ``n`` of the topics in the topic set; ``None`` where there is none.

    Attributes:
        lowest: the mean if every label that failed were not_support.
        highest: the mean if every label that failed were support.
    """

    lowest: float | None = None
    highest: float | None = None


@dataclass(frozen=True, slots=True)
class RunScores:
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
    means: Mapping[str, Mean]
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


def score_runs(table: ScoreTable, samples: int = 1000, seed: int = 0) -> list[RunScores]:
    """Score every run, best Vital strict first; runs without one come last.

    Intervals are those of other topics of the same kind (see ``estimates``); all runs and scores share the draws.

    Args:
        table: counts of runs and topics.
        samples: bootstrap samples; 0 for no intervals.
        seed: of the samples.
    """
    values = table.values
    topics = len(table.topics)
    weights = np.vstack([np.ones(topics), query_weights(topics, samples, seed)])
    lowest, highest = (_means(bound) for bound in table.bounds)
    scored = []
    for at, run in enumerate(table.runs):
        drawn = weighted_means(values[at].T, weights)
        found = estimates(drawn[0], drawn[1:], (~np.isnan(values[at])).sum(axis=0))
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


def _mean(own: Estimate, lowest: float, highest: float) -> Mean:
    return Mean(own.value, own.low, own.high, own.n, own.method, _or_none(lowest), _or_none(highest))


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
