"""Several runs by several sets of labels: scores, differences, and whether the labels rank the runs alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from judges.errors import InputError
from retrieval_eval.metrics import Labels, Metrics, Scores, evaluate
from retrieval_eval.stats.bootstrap import Floats, estimates, query_weights, weighted_means
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.rank import kendall_taus, spearmans
from retrieval_eval.stats.significance import Comparison, compare

_DIGITS = 12
"""Means that differ beyond this many decimals differ by rounding alone."""


@dataclass(frozen=True, slots=True)
class RankingAgreement:
    """Two rankings of the same runs by one measure.

    Attributes:
        topics: queries with labels in both sets; both rankings are of these alone.
        kendall_tau: tau-b, which takes account of ties.
        spearman: with mean ranks for ties.
        swapped: pairs of runs that the two rank the other way round, the better by the first set in front.
    """

    measure: str
    topics: int
    kendall_tau: Estimate
    spearman: Estimate
    swapped: tuple[tuple[str, str], ...]


def ranking_agreement(
    first: Metrics, second: Metrics, measure: str, *, samples: int = 1000, seed: int = 0
) -> RankingAgreement:
    """Compare how two sets of labels rank the same runs, on the queries that both label.

    Both rankings are drawn anew from the same resampled queries, so the interval says how the agreement would move had
    other queries been asked.

    Raises:
        ValueError: the two are of different runs.
    """
    if first.runs != second.runs:
        raise ValueError("the two sets of scores are of different runs")
    places = {query_id: place for place, query_id in enumerate(second.topics)}
    ours = [place for place, query_id in enumerate(first.topics) if query_id in places]
    theirs = [places[first.topics[place]] for place in ours]
    topics = len(ours)
    weights = np.vstack([np.ones(topics), query_weights(topics, samples, seed)])
    one = weighted_means(first.of_measure(measure)[:, ours], weights)
    other = weighted_means(second.of_measure(measure)[:, theirs], weights)
    coefficients = np.stack([kendall_taus(one, other), spearmans(one, other)], axis=1)
    tau, rho = estimates(coefficients[0], coefficients[1:], topics, centred=True)
    swapped = tuple(
        (first.runs[better], first.runs[worse])
        for better, worse in permutations(range(len(first.runs)), 2)
        if _above(one[0], better, worse) and _above(other[0], worse, better)
    )
    return RankingAgreement(measure, topics, tau, rho, swapped)


def _above(scores: Floats, better: int, worse: int) -> bool:
    return bool(np.round(scores[better], _DIGITS) > np.round(scores[worse], _DIGITS))


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """How scores are resampled and compared.

    Attributes:
        baseline: the run that all others are compared with; without one, every two runs are.
        samples: bootstrap samples of the intervals.
        seed: of the samples and of the permutation test.
    """

    baseline: str | None = None
    samples: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class QrelsScores:
    """Runs by one set of labels.

    Attributes:
        metrics: per query and over the topic set.
        intervals: by run and measure.
        comparisons: by measure, of the pairs of runs.
    """

    metrics: Metrics
    intervals: Mapping[str, Mapping[str, Estimate]]
    comparisons: Mapping[str, tuple[Comparison, ...]]


@dataclass(frozen=True, slots=True)
class RunScores:
    """Runs by each set of labels.

    Attributes:
        by_qrels: scores by the name of the labels; the first are the reference.
        rankings: for every other set of labels and every measure, whether it ranks the runs as the reference does.
        settings: the ones it was made with.
    """

    by_qrels: Mapping[str, QrelsScores]
    rankings: Mapping[str, Mapping[str, RankingAgreement]]
    settings: ScoreSettings

    @property
    def reference(self) -> str:
        """The name of the first labels."""
        return next(iter(self.by_qrels))


def score_runs(
    qrels: Mapping[str, Labels], runs: Mapping[str, Scores], measures: Iterable[str], settings: ScoreSettings
) -> RunScores:
    """Score the runs by each set of labels, on the topic set of each, and compare.

    Raises:
        InputError: no such baseline, or what ``evaluate`` refuses.
    """
    if settings.baseline is not None and settings.baseline not in runs:
        raise InputError(f"no run is called {settings.baseline!r}, only {', '.join(runs)}")
    names = list(measures)
    by_qrels = {name: _scored(evaluate(labels, runs, names), settings) for name, labels in qrels.items()}
    reference, *others = by_qrels
    rankings = {other: _rankings(by_qrels[reference], by_qrels[other], settings) for other in others}
    return RunScores(by_qrels, rankings, settings)


def _scored(metrics: Metrics, settings: ScoreSettings) -> QrelsScores:
    comparisons = {
        measure: compare(
            metrics.of_measure(measure),
            metrics.runs,
            baseline=settings.baseline,
            samples=settings.samples,
            seed=settings.seed,
        )
        for measure in metrics.measures
    }
    return QrelsScores(metrics, metrics.intervals(settings.samples, settings.seed), comparisons)


def _rankings(first: QrelsScores, second: QrelsScores, settings: ScoreSettings) -> dict[str, RankingAgreement]:
    measures: Sequence[str] = first.metrics.measures if len(first.metrics.runs) > 1 else ()
    return {
        measure: ranking_agreement(first.metrics, second.metrics, measure, samples=settings.samples, seed=settings.seed)
        for measure in measures
    }
