"""The commands of an exam: generate test items, grade passages, exchange files with the Rubric-Grading Workbench."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from arena.config.schema import Config
from arena.results.exam import USUAL_LEVEL, Study, exam_study, stored_bank, stored_scores
from arena.run import judging
from arena.run.ledger import Progress, RunSummary
from arena.store import Store
from judges.errors import ConfigError, DataError, InputError, reason
from judges.types import EXAM_TASKS, CallTrace, Task
from retrieval_eval.data.rows import Cell
from retrieval_eval.data.table_spec import TableSpec
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.trec import write_qrels
from retrieval_eval.exam.bank_files import read_bank, write_bank
from retrieval_eval.exam.grade_files import (
    GRADES,
    GradedQuery,
    is_workbench,
    read_graded,
    read_workbench,
    to_workbench,
    workbench_entries,
    write_grades,
    write_workbench,
)
from retrieval_eval.exam.grades import Grade, Graded
from retrieval_eval.exam.items import Bank
from retrieval_eval.exam.scores import ExamScores


class GradedExam(Struct, frozen=True):
    """The summary of a grading run, all stored grades, and the scores.

    The scores are ``None`` if the exam extracts answers without grading.
    """

    summary: RunSummary
    study: Study
    scores: ExamScores | None


def generate(
    config: Config, progress: Progress, *, retry_failed: bool = False, trace: Callable[[CallTrace], None] | None = None
) -> tuple[RunSummary, Bank]:
    if config.exam is None or config.exam.generate is None:
        raise ConfigError("exam.generate: the configuration lacks this section; add it to say how to write a test bank")
    summary = judging.run(config, progress, only=[Task.QUESTIONS], retry_failed=retry_failed, trace=trace)
    with closing(Store.open(config.store)) as store:
        return summary, stored_bank(store, config.name)


def grade(
    config: Config, progress: Progress, *, retry_failed: bool = False, trace: Callable[[CallTrace], None] | None = None
) -> GradedExam:
    """Grade each passage of an answer, or each document, by each test item for which the store has no grade yet."""
    if config.exam is None:
        raise ConfigError("exam: the configuration lacks this section; add it")
    data = judging.load_data(config)
    unit = config.exam.texts
    if not (data.retrieved if unit == "documents" else data.answers):
        raise ConfigError(f"exam.texts: 'data' has no {unit} to grade; name files that have them")
    summary = judging.run(config, progress, data=data, only=EXAM_TASKS, retry_failed=retry_failed, trace=trace)
    with closing(Store.open(config.store)) as store:
        return GradedExam(summary, exam_study(store, config.name), stored_scores(store, config.name))


def save_grades(path: Path, study: Study, *, secret: bool = False) -> int:
    """Write grades to a file: a workbench file with passages and rankings if it ends in ``.jsonl.gz``, else a table.

    Returns the number of grades left out because their items are secret.
    """
    known = study.bank.secret_ids if study.bank is not None else ()
    graded, left_out = study.source.without(() if secret else known)
    if path.name.endswith(".jsonl.gz"):
        write_workbench(path, to_workbench(graded, tau=study.usual_level))
    else:
        write_grades(path, graded)
    return left_out


PASSAGES: Final = TableSpec(
    ("qid", "did", "document", "agent", "rank"),
    ("qid", "did", "document"),
    {"did": GRADES.words["did"], "agent": ("system", "method")},
)
"""Columns of a table with the texts of graded passages and the agents that retrieved them."""


class WrittenTable(Struct, frozen=True):
    """A table that was written; ``left_out`` is the number of rows left out because their items are secret."""

    path: Path
    rows: int
    left_out: int = 0


def import_workbench(file: Path, folder: Path, bank: Path | None, *, secret: bool = False) -> Iterator[WrittenTable]:
    """Convert a graded file of the Rubric-Grading Workbench to tables in a new folder; yields each written table.

    Unless ``secret`` is true, items that the test bank marks as secret are left out with their grades.
    """
    if not is_workbench(file):
        raise DataError(file, "is not a graded file of the Rubric-Grading Workbench; name one that ends in .jsonl.gz")
    graded = read_graded(file)
    known = read_bank(bank) if bank is not None else None
    graded, left_out = graded.without(() if known is None or secret else known.secret_ids)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is not empty; name a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(folder, f"the folder cannot be made: {reason(error)}") from error
    if rows := list(_document_rows(graded)):
        write_rows(folder / "documents.csv", ("qid", "did", "document", "agent", "rank"), rows)
        yield WrittenTable(folder / "documents.csv", len(rows))
    if graded.grades:
        yield WrittenTable(folder / "grades.csv", write_grades(folder / "grades.csv", graded), left_out)
    tables = {"human.qrels": graded.labels}
    tables |= {f"direct-{number}.qrels": labels for number, labels in enumerate(graded.direct.values(), start=1)}
    for name, labels in tables.items():
        if count := sum(map(len, labels.values())):
            write_qrels(folder / name, labels)
            yield WrittenTable(folder / name, count)
    if known is not None:
        queries: list[dict[str, Cell]] = [
            {"qid": query_id, "query": info.text} for (query_id, facet), info in known.queries.items() if facet is None
        ]
        if queries:
            write_rows(folder / "queries.csv", ("qid", "query"), queries)
            yield WrittenTable(folder / "queries.csv", len(queries))
        left_out_items = write_bank(folder / "bank.csv", known, secret=secret)
        yield WrittenTable(folder / "bank.csv", len(known.items) - left_out_items, left_out_items)


def export_workbench(
    file: Path,
    out: Path,
    *,
    bank: Path | None,
    secret: bool,
    onto: Path | None,
    documents: Path | None,
    min_grade: int | None,
) -> tuple[int, int]:
    """Write grades in the Rubric-Grading Workbench's format.

    Returns the number of queries, and the number of grades left out because their items are secret.
    """
    if bank is None and not secret:
        raise InputError(
            "name the test bank with --bank to leave out the grades of its secret items, or add --secret to write them"
        )
    graded = read_graded(file)
    known = read_bank(bank) if bank is not None else Bank(())
    nuggets = graded.nuggets | {item.item_id for item in known.items if item.item_type == "nugget"}
    graded, left_out = replace(graded, nuggets=nuggets).without(() if secret else known.secret_ids)
    level = min_grade or USUAL_LEVEL
    if onto is not None:
        return write_workbench(out, _added(graded, onto, level)), left_out
    if documents is not None:
        graded = _with_documents(graded, documents)
    if not graded.passages:
        raise InputError(
            f"{file}: has no passage texts; name a table of texts with --documents, "
            "or a file of the Rubric-Grading Workbench with --onto"
        )
    return write_workbench(out, to_workbench(graded, tau=level)), left_out


def _document_rows(graded: Graded) -> Iterator[dict[str, Cell]]:
    ranked: dict[tuple[str, str], list[tuple[str, int | None]]] = {}
    for (query_id, agent), passages in graded.rankings.items():
        for rank, passage in enumerate(passages, start=1):
            ranked.setdefault((query_id, passage), []).append((agent, rank))
    for query_id, texts in graded.passages.items():
        for passage, text in texts.items():
            for agent, place in ranked.get((query_id, passage), [("", None)]):
                yield {"qid": query_id, "did": passage, "document": text, "agent": agent, "rank": place}


def _added(graded: Graded, onto: Path, level: int) -> Iterator[GradedQuery]:
    by_query: dict[tuple[str, int], list[Grade]] = {}
    for number, entries in enumerate(graded.grades.values()):
        for entry in entries:
            by_query.setdefault((entry.query_id, number), []).append(entry)
    for query in read_workbench(onto):
        extended = query
        there = {paragraph["paragraph_id"] for paragraph in query.paragraphs}
        for number, grader in enumerate(graded.grades):
            grades = by_query.pop((query.query_id, number), [])
            if strange := [entry.passage_id for entry in grades if entry.passage_id not in there]:
                raise query.error("there is a grade for a paragraph that the query does not have", strange[0])
            if grades:
                extended = extended.with_grades(workbench_entries(graded, grader, grades, tau=level))
        yield extended
    if by_query:
        raise DataError(
            onto, "lacks a query that has grades; name the file that was graded", value=next(iter(by_query))[0]
        )


def _with_documents(graded: Graded, documents: Path) -> Graded:
    texts: dict[str, dict[str, str]] = {}
    ranked: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for row in PASSAGES.rows(documents):
        query_id, passage = row.identifier("qid"), row.identifier("did")
        if texts.setdefault(query_id, {}).setdefault(passage, row.text("document")) != row.text("document"):
            raise row.error("this passage has another text in an earlier row", passage)
        if agent := row.text("agent"):
            places = ranked.setdefault((query_id, agent), [])
            rank = row.rank(0) if row.text("rank") else len(places) + 1
            places.append((rank, len(places), passage))
    rankings = {key: tuple(dict.fromkeys(place[2] for place in sorted(passages))) for key, passages in ranked.items()}
    return replace(graded, passages=texts, rankings=rankings)
