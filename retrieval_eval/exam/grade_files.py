"""Grades in files: the workbench's graded paragraphs, or a table ``qid, did, item, grade[, answer, llm, prompt]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from retrieval_eval.data.rows import Row
from retrieval_eval.data.tables import read_rows, write_rows
from retrieval_eval.exam.grades import HIGHEST_GRADE, Grade, Graded, Grader
from retrieval_eval.exam.workbench import is_workbench
from retrieval_eval.exam.workbench_grades import read_workbench_grades

ALIASES: Mapping[str, Sequence[str]] = {
    "qid": ("query_id",),
    "did": ("doc_id", "docid", "passage_id", "paragraph_id", "passage"),
    "item": ("item_id", "question_id", "nugget_id"),
    "grade": ("rating", "self_rating"),
    "llm": ("model", "grader"),
    "prompt": ("prompt_class",),
}
"""Other spellings of the columns."""

COLUMNS = ("qid", "did", "item", "grade", "answer", "llm", "prompt")


def read_graded(path: Path | str) -> Graded:
    """Read grades. A table's empty grade is an ungraded pair, which is not a grade of 0.

    Raises:
        DataError: the file cannot be read, or a grade is wrong or stands there twice; names file, line and value.
    """
    path = Path(path)
    if path.name.removesuffix(".gz").endswith((".jsonl", ".json")) and is_workbench(path):
        return read_workbench_grades(path)
    return _read_table(path)


def write_grades(path: Path | str, graded: Graded) -> int:
    """Write a table of grades; returns its number of rows.

    Raises:
        DataError: the file cannot be written.
    """
    rows = [
        {
            "qid": entry.query_id,
            "did": entry.passage_id,
            "item": entry.item_id,
            "grade": entry.grade,
            "answer": entry.answer,
            "llm": grader.llm,
            "prompt": grader.prompt,
        }
        for grader, entries in graded.grades.items()
        for entry in entries
    ]
    write_rows(path, COLUMNS, rows)
    return len(rows)


def _read_table(path: Path) -> Graded:
    grades: dict[Grader, list[Grade]] = {}
    rated: set[Grader] = set()
    seen: dict[tuple[str, ...], int] = {}
    for row in read_rows(path, ("qid", "did", "item", "grade"), ALIASES):
        grader = Grader(row.text("llm"), row.text("prompt"))
        entry = Grade(
            row.identifier("qid"), row.identifier("did"), row.identifier("item"), _cell_grade(row), row.text("answer")
        )
        if (other := seen.setdefault((*grader, *entry[:3]), row.line)) != row.line:
            raise row.error(f"this pair was graded on line {other} already", " ".join(entry[:3]))
        if entry.grade is None and not entry.answer:
            continue
        if entry.grade is not None and entry.grade > 1:
            rated.add(grader)
        grades.setdefault(grader, []).append(entry)
    return Graded(grades, frozenset(rated))


def _cell_grade(row: Row) -> int | None:
    given = row.text("grade").strip()
    if not given:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= 3 and int(given) <= HIGHEST_GRADE):
        raise row.error("a grade is a whole number from 0", given)
    return int(given)
