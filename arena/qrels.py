"""A tournament's relevance labels as qrels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from arena.samples import outcomes
from arena.store import Result, Store, Wanted
from judges.errors import InputError
from judges.pointwise import label_of
from judges.types import JudgeFailure, Judgment, Task
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
    """Write the relevance labels of one judge as trec_eval reads them.

    Raises:
        InputError: the tournament asks for no relevance labels, the judge gave none, or several did and none is named;
            the file cannot be written, or qrels have no place for a name.
    """
    wanted = _of_one_judge(outcomes(store, tournament, Task.RELEVANCE), tournament, judge)
    labels: dict[str, dict[str, int]] = {}
    failed: Counter[str] = Counter()
    for want, result in wanted:
        if isinstance(result, Judgment):
            labels.setdefault(want.query_id, {})[want.item] = label_of(result.outcome)
        elif isinstance(result, JudgeFailure):
            failed[result.cause] += 1
    written = sum(map(len, labels.values()))
    if not written:
        raise InputError(f"{tournament}: no document has a label yet; 'ragarena run' judges them")
    write_qrels(out, labels)
    return ExportedQrels(written, dict(sorted(failed.items())), len(wanted) - written - failed.total())


def _of_one_judge(
    wanted: list[tuple[Wanted, Result | None]], tournament: str, judge: str | None
) -> list[tuple[Wanted, Result | None]]:
    judges = sorted({want.judge for want, _ in wanted})
    if not judges:
        raise InputError(f"{tournament}: no relevance labels are asked for; the 'retrieval' section does that")
    if judge is None and len(judges) > 1:
        raise InputError(f"{tournament}: labels of several judges ({', '.join(judges)}); name one with --judge")
    if judge is not None and judge not in judges:
        raise InputError(f"{tournament}: no judge {judge!r} gave labels, only {', '.join(judges)}")
    return [(want, result) for want, result in wanted if judge in {None, want.judge}]
