"""Several runs by several sets of labels, side by side: scores, differences, and whether the labels rank runs alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from judges.errors import InputError
from retrieval_eval.metrics import Labels, Metrics, Scores, evaluate
from retrieval_eval.run_rankings import RankingAgreement, ranking_agreement
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.significance import Comparison, compare


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
