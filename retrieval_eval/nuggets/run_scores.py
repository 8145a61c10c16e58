"""Scores of runs: means over the topic set with intervals, and how much of it was judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from retrieval_eval.nuggets.scores import COLUMNS, Floats, ScoreTable

LEVEL = 0.95
_CELLS_IN_MEMORY = 4_000_000


@dataclass(frozen=True, slots=True)
class Mean:
    """One score of a run.

    Attributes:
        topics: topics in the mean, of those in the topic set.
        value: mean over ``topics`` topics; ``None`` where there is none.
        low: lower end of the 95 % interval had other topics been asked; ``None`` with fewer than two topics.
        high: upper end.
        lowest: the mean if every label that failed were not_support.
        highest: the mean if every label that failed were support.
    """

    topics: int
    value: float | None
    low: float | None
    high: float | None
    lowest: float | None
    highest: float | None


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

    Intervals are percentiles of the bootstrap over topics (Efron and Tibshirani 1993, chapter 8). All runs and scores
    share its draws.

    Args:
        table: counts of runs and topics.
        samples: bootstrap samples; 0 for no intervals.
        seed: of the samples.
    """
    values = table.values
    low, high = _intervals(values, samples, seed)
    lowest, highest = (_means(bound) for bound in table.bounds)
    means, used = _means(values), (~np.isnan(values)).sum(axis=1)
    parts = (means, low, high, lowest, highest)
    scored = []
    for at, run in enumerate(table.runs):
        own = {
            column: Mean(int(used[at, place]), *(_or_none(part[at, place]) for part in parts))
            for place, column in enumerate(COLUMNS)
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
    """Means over topics of what is defined, shape (runs, 6)."""
    defined = ~np.isnan(values)
    used = defined.sum(axis=1)
    return np.where(used > 0, np.where(defined, values, 0.0).sum(axis=1) / np.maximum(used, 1), np.nan)


def _intervals(values: Floats, samples: int, seed: int) -> tuple[Floats, Floats]:
    """Ends of the intervals, shape (runs, 6) each."""
    runs, topics, columns = values.shape
    nowhere = np.full((runs, columns), np.nan)
    if topics < 2 or samples < 1:
        return nowhere, nowhere
    drawn = np.random.default_rng(seed).multinomial(topics, np.full(topics, 1 / topics), size=samples)
    weights = drawn.astype(np.float64)
    defined = ~np.isnan(values)
    known = np.where(defined, values, 0.0)
    ends = np.empty((2, runs, columns))
    chunk = max(1, _CELLS_IN_MEMORY // (samples * columns))
    for start in range(0, runs, chunk):
        rows = slice(start, start + chunk)
        sums, used = (
            np.tensordot(weights, part[rows], axes=(1, 1)) for part in (known, defined.astype(np.float64))
        )  # (samples, runs, columns)
        with np.errstate(invalid="ignore"):
            ratios = np.where(used > 0, sums / used, np.nan)
        ends[:, rows] = _percentiles(ratios)
    few = defined.sum(axis=1) < 2
    return np.where(few, np.nan, ends[0]), np.where(few, np.nan, ends[1])


def _percentiles(samples: Floats) -> Floats:
    tails = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]
    if np.isnan(samples).any():
        # A sample may hold none of the topics on which a score is defined; it says nothing of that score.
        hidden = np.isnan(samples).all(axis=0)
        return np.asarray(np.nanpercentile(np.where(hidden, 0.0, samples), tails, axis=0))
    return np.asarray(np.percentile(samples, tails, axis=0))


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
