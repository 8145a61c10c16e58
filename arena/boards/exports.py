"""Write a tournament's verdicts, labels and answers as files for other tools. Failed judgments are left out."""

from __future__ import annotations

import itertools
import json
import math
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
from arena.results.criteria import grades
from arena.results.documents import query_labels
from arena.results.games import PROBABILITIES, verdict_probabilities
from arena.results.outcomes import each_outcome, labels_by_judge, labels_of, outcomes
from arena.store import Result, Store
from arena.store.outcomes import game_verdicts
from arena.store.wants import verdict_rows
from judges.errors import DataError, InputError, reason
from judges.providers.transformers import label_probabilities
from judges.types import JudgeFailure, Judgment, Task, details_of, label_of
from retrieval_eval.data.rows import Cell
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.trec import is_qrels, write_qrels


def verdict_rows_of(store: Store, tournament: str) -> tuple[tuple[str, ...], Iterator[dict[str, Cell]]]:
    """Column names and rows of a table of all verdicts: a row for each order in which a judge saw a game's answers.

    The covariates of the tournament's ratings are in columns NAME_a and NAME_b. If a judge returns probabilities, they
    are in the columns of ``PROBABILITIES``.
    """
    settings = store.settings(tournament)
    names = settings.ratings.bradley_terry.covariates
    answers = store.dataset(tournament).answers if names else {}
    probability_judges = {judge for judge in settings.game_judges if settings.gives_probabilities(judge)}

    def rows() -> Iterator[dict[str, Cell]]:
        for want, result in each_outcome(store, tournament, Task.PAIRWISE):
            if isinstance(result, Judgment):
                (game,) = game_verdicts([(want, result)])
                cells = verdict_cells(game)
                if want.judge in probability_judges:
                    cells |= {name: str(share) for name, share in verdict_probabilities(result).items()}
                for side, agent in (("a", game.agent_a), ("b", game.agent_b)):
                    for name in names:
                        cells[f"{name}_{side}"] = str(QUALITIES[name](answers[want.query_id, agent].text))
                yield {"qid": game.query_id, **cells, "reason": result.reason}

    more_columns = [
        *(PROBABILITIES if probability_judges else ()),
        *(f"{name}_{side}" for name in names for side in "ab"),
    ]
    return ("qid", *VERDICT_CELLS, *more_columns, "reason"), rows()


def export_verdicts(store: Store, tournament: str, out: Path) -> int:
    """Write a table with a row for each verdict (each order of two answers); returns the number of rows."""
    columns, rows = verdict_rows_of(store, tournament)
    counter = itertools.count()
    write_rows(out, columns, (row for row, _ in zip(rows, counter, strict=False)))
    return next(counter)


def export_verdict_parts(store: Store, tournament: str, out: Path, parts: int) -> int:
    """Write every verdict to a folder of Parquet files in ``parts`` partitions by query; returns the number of rows.

    The partitions are named as in Hive (``part=0``, ...), so pyarrow, polars, DuckDB and Spark read the folder as one
    table. Verdicts are streamed, so memory does not grow with their number. Each sample of a verdict is a row.
    """
    import pyarrow as pa
    from pyarrow import dataset

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(out, "exists already; name a new folder")
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
                [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema
            )

    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as unfinished:
            whole = Path(unfinished) / "whole"
            whole.mkdir()  # pyarrow creates no folder if there are no verdicts
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
    """Write a table of the relevance labels with their reasons; returns the number of rows.

    Details that the prompt asks for besides the label are columns under the prompt's names. With several judges,
    each judge's labels are separate rows with a column ``judge``. The probability of each label is in a column
    ``p_LABEL``.
    """
    if is_qrels(out):
        raise DataError(
            out, "a qrels file cannot hold the reasons of labels; name a .csv file, or use 'ragleague export qrels'"
        )
    settings = store.settings(tournament)
    wanted = outcomes(store, tournament, Task.RELEVANCE)
    judges = {want.judge for want, _ in wanted}
    judge_column = ("judge",) if len(judges) > 1 else ()
    probability_judges = {judge for judge in judges if settings.gives_probabilities(judge)}
    rows: list[dict[str, Cell]] = []
    names: dict[str, None] = {}
    for want, result in wanted:
        if isinstance(result, Judgment):
            details = details_of(result.outcome)
            if want.judge in probability_judges:
                details |= {f"p_{label}": str(share) for label, share in label_probabilities(result.reason).items()}
            names |= dict.fromkeys(details)
            names_of = {"qid": want.query_id, "did": want.item, **dict.fromkeys(judge_column, want.judge)}
            label = {"label": str(label_of(result.outcome)), "reason": result.reason}
            rows.append({**details, **names_of, **label})
    write_rows(out, ("qid", "did", *judge_column, "label", *names, "reason"), rows)
    return len(rows)


def export_query_labels(store: Store, tournament: str, out: Path) -> int:
    """Write each query's mean label, means of other numbers in judges' replies, and number of labelled documents."""
    labels_by_query = query_labels(store, tournament)
    names = dict.fromkeys(name for labels in labels_by_query.values() for name in labels.parts)
    rows = (
        {
            "qid": query_id,
            "mean_label": "" if labels.label.mean is None else str(labels.label.mean),
            **{name: str(labels.parts[name]) for name in names if name in labels.parts},
            "judged": str(labels.label.judged),
            "of": str(labels.label.wanted),
        }
        for query_id, labels in labels_by_query.items()
    )
    write_rows(out, ("qid", "mean_label", *names, "judged", "of"), rows)
    return len(labels_by_query)


def export_scores(store: Store, tournament: str, out: Path) -> int:
    """Write each agent's scores in the form of ``autojudge-evaluate``: one a query, and the mean as query ``all``."""
    from arena.boards.compare import compare_board  # late: other exports compute no scores

    compared = compare_board(store, tournament)
    rows: list[dict[str, Cell]] = [
        {"run_id": agent, "topic_id": query_id, "measure": score.name, "value": value}
        for score in compared.by_query
        for agent, values in zip(score.agents, score.values.tolist(), strict=True)
        for query_id, value in zip(score.queries, values, strict=True)
        if not math.isnan(value)
    ]
    rows += [
        {"run_id": agent, "topic_id": "all", "measure": way.name, "value": estimate.value}
        for way in compared.ways
        for agent, estimate in way.scores.items()
        if estimate.value is not None
    ]
    write_rows(out, ("run_id", "topic_id", "measure", "value"), rows)
    return len(rows)


def export_criteria(store: Store, tournament: str, out: Path) -> int:
    """Write the criteria grades: one row for each answer, one column for each criterion; returns the number of rows."""
    settings = store.settings(tournament)
    rows: list[dict[str, Cell]] = []
    names: dict[str, None] = {}
    for want, result in outcomes(store, tournament, Task.CRITERIA):
        if isinstance(result, Judgment):
            graded = grades(want, result, settings)
            names |= dict.fromkeys(graded)
            rows.append({**graded, "qid": want.query_id, "agent": want.item, "reason": result.reason})
    if clashes := names.keys() & {"qid", "agent", "reason"}:
        raise DataError(out, "a criterion has the name of another column; rename the criterion", value=min(clashes))
    write_rows(out, ("qid", "agent", *names, "reason"), rows)
    return len(rows)


def export_data(store: Store, tournament: str, out: Path) -> int:
    """Write queries, documents and answers as CSV files into a folder; returns the number of answers."""
    data = store.dataset(tournament)
    try:
        save_dataset(data, out)
    except OSError as error:
        raise DataError(out, f"cannot be made a folder: {reason(error)}") from error
    return len(data.answers)


class ExportedQrels(Struct, frozen=True):
    written: int
    failed: Mapping[str, int]
    left: int


def export_qrels(store: Store, tournament: str, out: Path, judge: str | None = None) -> ExportedQrels:
    """Write the labels in the format of trec_eval: those of one judge, or of all judges combined."""
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
        raise InputError(f"{tournament}: no relevance labels; add a 'retrieval' section and run again")
    if judge is None:
        return labels_of(store, tournament)
    if judge not in by_judge:
        raise InputError(f"{tournament}: judge {judge!r} gave no labels; judges with labels: {', '.join(by_judge)}")
    return by_judge[judge]
