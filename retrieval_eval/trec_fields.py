"""The fields of runs and qrels, whatever file they stand in, and the lines of it that are wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from judges.errors import DataError
from retrieval_eval import irds
from retrieval_eval.data.files import read_lines
from retrieval_eval.data.rows import Row, known_format
from retrieval_eval.data.tables import read_rows
from retrieval_eval.data.trec_lines import QRELS_FIELDS, RUN_FIELDS, read_trec_lines
from retrieval_eval.trec import Faulty, FaultyLine

_NAMES: Mapping[str, Sequence[str]] = {
    "qid": ("query_id", "query-id", "question_id", "topic_id"),
    "did": ("doc_id", "docid", "document_id", "corpus-id", "pid"),
}
RUN_ALIASES: Mapping[str, Sequence[str]] = {
    **_NAMES,
    "score": ("sim", "similarity"),
    "tag": ("run", "run_id", "agent", "system"),
}
"""Other spellings of the columns in tables."""
QRELS_ALIASES: Mapping[str, Sequence[str]] = {**_NAMES, "label": ("relevance", "rel", "grade", "score")}
"""The same; ``query-id``, ``corpus-id`` and ``score`` are BEIR's."""


class Faults:
    """What is wrong with a file: raised at once, or gathered."""

    def __init__(self, path: Path, faulty: Faulty) -> None:
        self._path, self._refuse = path, faulty == "refuse"
        self._lines: list[FaultyLine] = []

    def add(self, line: int, problem: str, value: str) -> None:
        """A line is wrong."""
        self.take(Row(self._path, line, {}).error(problem, value), line, problem)

    def take(self, error: DataError, line: int | None = None, problem: str | None = None) -> None:
        """A line is wrong, as an error says."""
        if self._refuse:
            raise error
        self._lines.append(FaultyLine(error.line or line or 0, problem or error.problem, error.value))

    @property
    def lines(self) -> tuple[FaultyLine, ...]:
        """In the order of the file."""
        return tuple(sorted(self._lines, key=lambda fault: fault.line))

    @property
    def example(self) -> str:
        """The first of them, to be said where nothing else is left."""
        return f"; {self._lines[0]}" if self._lines else ""


def run_fields(path: Path, faults: Faults) -> Iterator[tuple[int, tuple[str, str, str, str, str]]]:
    """Line, query_id, doc_id, rank, score and tag; rank and tag are empty where a table lacks them."""
    if _is_table(path, RUN_FIELDS):
        for row, (query_id, doc_id) in _named_rows(read_rows(path, ("qid", "did", "score"), RUN_ALIASES), faults):
            yield row.line, (query_id, doc_id, row.text("rank"), row.text("score"), row.text("tag"))
        return
    for line, (query_id, _, doc_id, rank, score, tag) in read_trec_lines(path, RUN_FIELDS, faults.take):
        yield line, (query_id, doc_id, rank, score, tag)


def qrels_fields(path: Path, faults: Faults) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Line, query_id, doc_id and label."""
    name = irds.dataset_name(path)
    if name is not None or _is_table(path, QRELS_FIELDS):
        required = ("qid", "did", "label")
        rows = read_rows(path, required, QRELS_ALIASES) if name is None else irds.qrels_rows(name, QRELS_ALIASES)
        for row, (query_id, doc_id) in _named_rows(rows, faults):
            yield row.line, (query_id, doc_id, row.text("label"))
        return
    for line, (query_id, _, doc_id, label) in read_trec_lines(path, QRELS_FIELDS, faults.take):
        yield line, (query_id, doc_id, label)


def _named_rows(rows: Iterable[Row], faults: Faults) -> Iterator[tuple[Row, tuple[str, str]]]:
    """Rows that name a query and a document."""
    for row in rows:
        try:
            names = row.identifier("qid"), row.identifier("did")
        except DataError as error:
            faults.take(error, row.line)
            continue
        yield row, names


def _is_table(path: Path, form: Sequence[str]) -> bool:
    """Whether the name is a table's; not so a ``.tsv`` without a header, as MS MARCO has its qrels."""
    kind = known_format(path)
    if kind != "tsv":
        return kind is not None
    first = next((line for _, line in read_lines(path) if not line.isspace()), "").split()
    number = form.index("label" if "label" in form else "score")
    return len(first) != len(form) or finite(first[number]) is None


def finite(text: str) -> float | None:
    """A number as trec_eval's files write it, ``None`` where it is none or not finite."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and text.isascii() and "_" not in text else None
