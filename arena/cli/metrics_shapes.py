"""Scores of runs as plain values: the JSON that other programs rely on, and flat rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from arena.cli.console import rounded
from retrieval_eval.run_scores import QrelsScores, RunScores
from retrieval_eval.stats.estimate import written_fields
from retrieval_eval.trec import Qrels, Run

Row: TypeAlias = dict[str, Any]

_DECIMALS = 12
"""Digits kept of measures, which are compared with those of other tools."""


def scores_json(scores: RunScores, qrels: Mapping[str, Qrels], runs: Mapping[str, Run], *, per_query: bool) -> Row:
    """The shape of ``metrics --json``: ``runs`` and ``judged`` are by the first labels, ``qrels`` by each."""
    by_qrels = {
        name: {**_qrels_json(own, per_query=per_query), **read_json(qrels[name])}
        for name, own in scores.by_qrels.items()
    }
    first = by_qrels[scores.reference]
    shape: Row = rounded(
        {
            "runs": first["runs"],
            "judged": first["judged"],
            "reference": scores.reference,
            "qrels": by_qrels,
            "rankings": {
                other: {measure: asdict(agreement, dict_factory=written_fields) for measure, agreement in own.items()}
                for other, own in scores.rankings.items()
            },
            "notes": {run: [note.text for note in one.notes] for run, one in runs.items() if one.notes},
            "settings": asdict(scores.settings),
        },
        _DECIMALS,
    )
    return shape


def read_json(qrels: Qrels) -> Row:
    """What was read of a set of labels, and which lines were left out."""
    return {
        "labels": len(qrels),
        "faulty": [asdict(line) for line in qrels.faulty],
        "notes": [note.text for note in qrels.notes],
    }


def score_rows(scores: RunScores, *, per_query: bool) -> list[Row]:
    """One flat row per set of labels and run, or per query as well."""
    return [
        rounded({"qrels": name, **row}, _DECIMALS)
        for name, own in scores.by_qrels.items()
        for row in (_query_rows(own) if per_query else _run_rows(own))
    ]


def _qrels_json(own: QrelsScores, *, per_query: bool) -> Row:
    metrics = own.metrics
    shape: Row = {
        "topics": len(metrics.topics),
        "without_relevant": list(metrics.without_relevant),
        "runs": {run: {measure: metrics.value(run, measure) for measure in metrics.measures} for run in metrics.runs},
        "judged": {run: dict(metrics.coverage[run].judged) for run in metrics.runs},
        "intervals": {
            run: {measure: [estimate.low, estimate.high] for measure, estimate in of_run.items()}
            for run, of_run in own.intervals.items()
        },
        "missing": {run: list(metrics.coverage[run].missing) for run in metrics.runs},
        "unlabelled": {run: list(metrics.coverage[run].unlabelled) for run in metrics.runs},
        "comparisons": {
            measure: [asdict(pair, dict_factory=written_fields) for pair in pairs]
            for measure, pairs in own.comparisons.items()
        },
    }
    if per_query:
        shape["per_query"] = {
            run: {
                query_id: dict(zip(metrics.measures, metrics.values[place, :, at].tolist(), strict=True))
                for at, query_id in enumerate(metrics.topics)
            }
            for place, run in enumerate(metrics.runs)
        }
    return shape


def _run_rows(own: QrelsScores) -> Iterator[Row]:
    metrics = own.metrics
    for run in metrics.runs:
        coverage = metrics.coverage[run]
        yield {
            "run": run,
            **coverage.judged,
            **{measure: metrics.value(run, measure) for measure in metrics.measures},
            "topics": len(metrics.topics),
            "missing": len(coverage.missing),
            "unlabelled": len(coverage.unlabelled),
        }


def _query_rows(own: QrelsScores) -> Iterator[Row]:
    metrics = own.metrics
    for place, run in enumerate(metrics.runs):
        missing = set(metrics.coverage[run].missing)
        for at, query_id in enumerate(metrics.topics):
            values = metrics.values[place, :, at].tolist()
            yield {
                "run": run,
                "qid": query_id,
                **dict(zip(metrics.measures, values, strict=True)),
                "missing": int(query_id in missing),
            }
