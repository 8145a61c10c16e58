"""A tournament's relevance labels as qrels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from arena.stages.samples import labels_by_judge, labels_of
from arena.store import Result, Store
from judges.errors import InputError
from judges.types import JudgeFailure, Judgment, label_of
from retrieval_eval.trec_files import write_qrels


@dataclass(frozen=True, slots=True)
class ExportedQrels:
    """What was written, and what is missing in it.

    Attributes:
        written: labels.
        failed: documents whose judgment failed, by cause.
        left: documents not judged yet.
    """

    written: int
    failed: Mapping[str, int]
    left: int


def export_qrels(store: Store, tournament: str, out: Path, judge: str | None = None) -> ExportedQrels:
    """Write the relevance labels as trec_eval reads them: of all judges together, or of one.

    Raises:
        InputError: the tournament asks for no relevance labels, the judge gave none, or nothing is judged yet; the file
            cannot be written, or qrels have no place for a name.
    """
    results = _results(store, tournament, judge)
    labels: dict[str, dict[str, int]] = {}
    failed: Counter[str] = Counter()
    for (query_id, doc_id), result in results.items():
        if isinstance(result, Judgment):
            labels.setdefault(query_id, {})[doc_id] = label_of(result.outcome)
        elif isinstance(result, JudgeFailure):
            failed[result.cause] += 1
    written = sum(map(len, labels.values()))
    if not written:
        raise InputError(f"{tournament}: no document has a label yet; 'ragleague run' judges them")
    write_qrels(out, labels)
    return ExportedQrels(written, dict(sorted(failed.items())), len(results) - written - failed.total())


def _results(store: Store, tournament: str, judge: str | None) -> Mapping[tuple[str, str], Result | None]:
    by_judge = labels_by_judge(store, tournament)
    if not by_judge:
        raise InputError(f"{tournament}: no relevance labels are asked for; the 'retrieval' section does that")
    if judge is None:
        return labels_of(store, tournament)
    if judge not in by_judge:
        raise InputError(f"{tournament}: no judge {judge!r} gave labels, only {', '.join(by_judge)}")
    return by_judge[judge]
