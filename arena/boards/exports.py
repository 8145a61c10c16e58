"""What a tournament holds, as tables for other tools. Failures are not labels: they are left out and can be listed."""

from __future__ import annotations

import itertools
import json
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from arena.data.files import save_dataset
from arena.data.verdicts import VERDICT_CELLS, verdict_cells
from arena.ratings.covariates import QUALITIES
from arena.results.documents import query_labels
from arena.results.games import PROBABILITIES, verdict_probabilities
from arena.results.ratings import grades
from arena.results.samples import each_outcome, labels_by_judge, labels_of, outcomes
from arena.store import Result, Store
from arena.store.outcomes import game_verdicts
from arena.store.subjects import AnswerSubject, DocumentSubject
from arena.store.wants import verdict_rows
from judges.errors import DataError, InputError, reason
from judges.providers.transformers import label_probabilities
from judges.types import JudgeFailure, Judgment, Task, details_of, label_of
from retrieval_eval.data.rows import Cell
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.trec import is_qrels, write_qrels


def verdict_rows_of(store: Store, tournament: str) -> tuple[tuple[str, ...], Iterator[dict[str, Cell]]]:
    """Every verdict as judged: the columns, and one row per order shown.

    The covariates that the tournament's ratings are controlled for are columns NAME_a and NAME_b. Where a judge gives
    probabilities, these are columns as ``PROBABILITIES`` has them.
    """
    settings = store.settings(tournament)
    names = settings.ratings.bradley_terry.covariates
    answers = store.dataset(tournament).answers if names else {}
    sure = {judge for judge in settings.game_judges if settings.gives_probabilities(judge)}

    def rows() -> Iterator[dict[str, Cell]]:
        for want, result in each_outcome(store, tournament, Task.PAIRWISE):
            if isinstance(result, Judgment):
                (game,) = game_verdicts([(want, result)])
                cells = verdict_cells(game)
                if want.judge in sure:
                    cells |= {name: str(share) for name, share in verdict_probabilities(result).items()}
                for side, agent in (("a", game.agent_a), ("b", game.agent_b)):
                    for name in names:
                        cells[f"{name}_{side}"] = str(QUALITIES[name](answers[want.query_id, agent].text))
                yield {"qid": game.query_id, **cells, "reason": result.reason}

    further = [*(PROBABILITIES if sure else ()), *(f"{name}_{side}" for name in names for side in "ab")]
    return ("qid", *VERDICT_CELLS, *further, "reason"), rows()


def export_verdicts(store: Store, tournament: str, out: Path) -> int:
    """Write every verdict as judged; returns the number of rows."""
    columns, rows = verdict_rows_of(store, tournament)
    counted = itertools.count()
    write_rows(out, columns, (row for row, _ in zip(rows, counted, strict=False)))
    return next(counted)


def export_verdict_parts(store: Store, tournament: str, out: Path, parts: int) -> int:
    """Every verdict as judged as a folder of Parquet files, each query in one of ``parts`` folders; returns the number.

    The folders are named as Hive does, ``part=0`` and so on, which pyarrow, polars, DuckDB and Spark read as one table.
    Verdicts pass from the database to the files, however many there are; several samples of one are rows of their own.

    Raises:
        DataError: the folder holds something already, or cannot be written.
    """
    import pyarrow as pa
    from pyarrow import dataset

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(out, "there is something already; name a new folder")
    text, number = pa.string(), pa.int32()
    names = ("qid", "agent_a", "agent_b", "verdict", "judge", "order", "reason", "sample", "part")
    schema = pa.schema([(name, number if name in {"sample", "part"} else text) for name in names])
    count = 0

    def batches() -> Iterator[Any]:
        nonlocal count
        for rows in verdict_rows(store, tournament):
            count += len(rows)
            columns = zip(*(_verdict_cells(row, parts) for row in rows), strict=True)
            yield pa.record_batch(
                [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)], schema
            )

    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as unfinished:
            whole = Path(unfinished) / "whole"
            whole.mkdir()  # pyarrow makes no folder where there is no verdict
            dataset.write_dataset(
                batches(),
                whole,
                format="parquet",
                schema=schema,
                partitioning=dataset.partitioning(pa.schema([("part", number)]), flavor="hive"),
                max_partitions=parts,
                max_open_files=parts + 1,
            )
            whole.rename(out)
    except OSError as error:
        raise DataError(out, f"cannot be written: {reason(error)}") from error
    return count


def _verdict_cells(row: tuple[Any, ...], parts: int) -> tuple[Any, ...]:
    query_id, item, other, order, judge, sample, outcome, reason = row
    first, second = (item, other) if order == "ab" else (other, item)
    part = zlib.crc32(query_id.encode()) % parts
    return query_id, first, second, json.loads(outcome), judge, "ab", reason, sample, part


def export_labels(store: Store, tournament: str, out: Path) -> int:
    """Relevance labels with their reasons; ``arena.boards.exports`` writes them as qrels.

    What a prompt asked for besides the label becomes columns of a table, under the prompt's names. Where there are
    several judges each one's labels are rows of their own, and a column says whose. Where a judge gives probabilities,
    those of label 2 are in the column p_2.

    Raises:
        DataError: the file cannot be written.
    """
    if is_qrels(out):
        raise DataError(out, "not a table; '--what qrels' writes qrels")
    settings = store.settings(tournament)
    wanted = outcomes(store, tournament, Task.RELEVANCE)
    judges = {want.judge for want, _ in wanted}
    whose = ("judge",) if len(judges) > 1 else ()
    sure = {judge for judge in judges if settings.gives_probabilities(judge)}
    rows: list[dict[str, Cell]] = []
    names: dict[str, None] = {}
    for want, result in wanted:
        if isinstance(result, Judgment):
            details = details_of(result.outcome)
            if want.judge in sure:
                details |= {f"p_{label}": str(share) for label, share in label_probabilities(result.reason).items()}
            names |= dict.fromkeys(details)
            document = DocumentSubject.of(want)
            named = {"qid": document.query_id, "did": document.doc_id, **dict.fromkeys(whose, want.judge)}
            label = {"label": str(label_of(result.outcome)), "reason": result.reason}
            rows.append({**details, **named, **label})
    write_rows(out, ("qid", "did", *whose, "label", *names, "reason"), rows)
    return len(rows)


def export_query_labels(store: Store, tournament: str, out: Path) -> int:
    """What each query's documents are worth: the mean label, means of its parts, and how many documents have one."""
    found = query_labels(store, tournament)
    names = dict.fromkeys(name for own in found.values() for name in own.parts)
    rows = (
        {
            "qid": query_id,
            "mean_label": "" if own.label.mean is None else str(own.label.mean),
            **{name: str(own.parts[name]) for name in names if name in own.parts},
            "judged": str(own.label.judged),
            "of": str(own.label.of),
        }
        for query_id, own in found.items()
    )
    write_rows(out, ("qid", "mean_label", *names, "judged", "of"), rows)
    return len(found)


def export_criteria(store: Store, tournament: str, out: Path) -> int:
    """Criteria grades, one row per answer and one column per criterion.

    Raises:
        DataError: the file cannot be written, or a criterion is called like another column.
    """
    settings = store.settings(tournament)
    rows: list[dict[str, Cell]] = []
    names: dict[str, None] = {}
    for want, result in outcomes(store, tournament, Task.CRITERIA):
        if isinstance(result, Judgment):
            graded = grades(want, result, settings)
            names |= dict.fromkeys(graded)
            answer = AnswerSubject.of(want)
            rows.append({**graded, "qid": answer.query_id, "agent": answer.agent, "reason": result.reason})
    if taken := names.keys() & {"qid", "agent", "reason"}:
        raise DataError(out, "a criterion has the name of one of the table's own columns", value=min(taken))
    write_rows(out, ("qid", "agent", *names, "reason"), rows)
    return len(rows)


def export_data(store: Store, tournament: str, out: Path) -> int:
    """Queries, documents and answers as the CSV triple in a folder; returns the number of answers."""
    data = store.dataset(tournament)
    try:
        save_dataset(data, out)
    except OSError as error:
        raise DataError(out, f"cannot be made a folder: {reason(error)}") from error
    return len(data.answers)


class ExportedQrels(Struct, frozen=True):
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
