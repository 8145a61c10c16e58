"""Qrels and answers of TREC, and what qrels have in common with runs; trec_eval's lines, or a table with a header.

What trec_eval reads without a word and what changes figures is said: as an error, or as a note on what was read.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from judges.errors import DataError
from judges.types import Answer
from retrieval_eval.data.collections import irds_name, irds_rows
from retrieval_eval.data.column_report import ColumnsRead, say_count
from retrieval_eval.data.files import file_stem, open_replacing, read_lines
from retrieval_eval.data.rows import Row, cell_text, known_format, table_format
from retrieval_eval.data.tables import read_columns, read_rows
from retrieval_eval.data.vocabulary import QRELS_NAMES, RUN_NAMES, canonical_names

QRELS_FIELDS = ("query", "0", "document", "label")
RUN_FIELDS = ("query", "Q0", "document", "rank", "score", "tag")
RANKED_FIELDS = ("query", "document", "rank")
"""A run as MS MARCO has it."""


def refuse(error: DataError) -> None:
    """Let no faulty line pass."""
    raise error


def read_trec_lines(
    path: Path | str, form: Sequence[str], on_fault: Callable[[DataError], None] = refuse
) -> Iterator[tuple[int, list[str]]]:
    """Stream the lines of qrels or of a run, plain or ``.gz``, with their numbers from 1; blank lines are passed over.

    Fields are separated by ASCII white space alone, as in C, so that an id may hold any other character; by tabs where
    that gives as many as there should be, so that an id may hold blanks.

    Args:
        path: the file.
        form: names of the fields, such as ``QRELS_FIELDS``.
        on_fault: told of a line with too few or too many fields, which is then passed over.

    Raises:
        DataError: the file cannot be read as text, see ``retrieval_eval.data.files.read_lines``.
    """
    for number, line in read_lines(path):
        fields = _fields(line, len(form))
        if len(fields) == len(form):
            yield number, fields
        elif fields:
            problem = f"a line must have {len(form)} fields, '{' '.join(form)}', and has {len(fields)}"
            on_fault(DataError(path, problem, line=number, value=line.strip()))


def _fields(line: str, number: int) -> list[str]:
    fields = line.split() if line.isascii() else [field.decode() for field in line.encode().split()]
    if len(fields) > number and line.count("\t") >= number - 1:
        apart = [field.strip(" \r\n") for field in line.split("\t")]
        if len(apart) == number and all(apart):
            return apart
    return fields


Faulty: TypeAlias = Literal["refuse", "skip"]
"""What to do about a line that is wrong: refuse the file, or leave the line out and list it."""


class FaultyLine(Struct, frozen=True):
    """A line that was left out.

    Attributes:
        line: of the file, from 1; of Parquet the row.
        problem: what is wrong, one line.
        value: the part that is wrong, where there is one.
    """

    line: int
    problem: str
    value: str | None = None

    def __str__(self) -> str:
        """One line for people."""
        return f"line {self.line}: {self.problem}" + ("" if self.value is None else f" ({self.value!r})")


class Note(Struct, frozen=True):
    """Something that is allowed and that a reader of figures should know.

    Attributes:
        kind: ``ties``: documents with the score of another one of the query; ``rank_order``: queries whose rank column
            contradicts the scores; ``rank_gaps``: queries whose ranks do not count up one by one; ``tags``: names of
            runs in one file; ``repeated``: lines of qrels that repeat an earlier one.
        count: of what ``kind`` says.
        text: the same as a sentence for people.
    """

    kind: Literal["ties", "rank_order", "rank_gaps", "tags", "repeated"]
    count: int
    text: str


class Qrels(Struct, frozen=True):
    """Relevance labels of people or of a judge.

    Attributes:
        name: the file's name without its extensions.
        labels: by query_id and doc_id, in the order of the file.
        notes: what is odd about the file.
        faulty: lines left out, where that was asked for.
        missing: by query_id, documents whose label was asked for and is not there: it is empty in a table, or faulty.
    """

    name: str
    labels: Mapping[str, Mapping[str, int]]
    notes: tuple[Note, ...] = ()
    faulty: tuple[FaultyLine, ...] = ()
    missing: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Labelled (query, document) pairs."""
        return sum(map(len, self.labels.values()))


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
    if _is_ranked(path):
        for line, (query_id, doc_id, rank) in read_trec_lines(path, RANKED_FIELDS, faults.take):
            yield line, (query_id, doc_id, rank, f"-{rank}", "")
        return
    if _is_table(path, RUN_FIELDS):
        names = canonical_names(read_columns(path), RUN_NAMES).values()
        by = "rank" if "rank" in names and "score" not in names else "score"
        reading = ColumnsRead({*RUN_NAMES, "rank"})
        for row, (query_id, doc_id) in _named_rows(read_rows(path, ("qid", "did", by), RUN_NAMES), faults, reading):
            score = row.text("score") if by == "score" else f"-{row.text('rank').strip()}"
            yield row.line, (query_id, doc_id, row.text("rank"), score, row.text("tag"))
        reading.say()
        return
    for line, (query_id, _, doc_id, rank, score, tag) in read_trec_lines(path, RUN_FIELDS, faults.take):
        yield line, (query_id, doc_id, rank, score, tag)


def qrels_fields(path: Path, faults: Faults) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Line, query_id, doc_id and label."""
    name = irds_name(path)
    if name is not None or _is_table(path, QRELS_FIELDS):
        required = ("qid", "did", "label")
        rows = read_rows(path, required, QRELS_NAMES) if name is None else irds_rows(name, "qrels", QRELS_NAMES)
        reading = ColumnsRead(QRELS_NAMES)
        for row, (query_id, doc_id) in _named_rows(rows, faults, reading):
            yield row.line, (query_id, doc_id, row.text("label"))
        reading.say()
        return
    for line, (query_id, _, doc_id, label) in read_trec_lines(path, QRELS_FIELDS, faults.take):
        yield line, (query_id, doc_id, label)


def _named_rows(rows: Iterable[Row], faults: Faults, reading: ColumnsRead) -> Iterator[tuple[Row, tuple[str, str]]]:
    """Rows that name a query and a document."""
    for row in rows:
        reading.add(row)
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
    first = _first(path, len(form))
    number = form.index("label" if "label" in form else "score")
    return len(first) != len(form) or finite(first[number]) is None


def _is_ranked(path: Path) -> bool:
    """Whether a run's lines are a query, a document and its rank between tabs, and the file is no other table."""
    if known_format(path) not in {None, "tsv"}:
        return False
    line = next((line for _, line in read_lines(path) if not line.isspace()), "")
    first = _fields(line, len(RANKED_FIELDS))
    return line.count("\t") == len(RANKED_FIELDS) - 1 == len(first) - 1 and first[-1].isascii() and first[-1].isdigit()


def _first(path: Path, number: int) -> list[str]:
    """The fields of the first line."""
    return _fields(next((line for _, line in read_lines(path) if not line.isspace()), ""), number)


def finite(text: str) -> float | None:
    """A number as trec_eval's files write it, ``None`` where it is none or not finite."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and text.isascii() and "_" not in text else None


_WHOLE = re.compile(r"([+-]?[0-9]{1,9})(?:\.0{1,9})?")
_GAIN = re.compile(r"\+?[0-9]{0,9}\.([0-9]{1,6}?)0*")


def is_qrels(path: Path | str) -> bool:
    """Whether a name says that the file holds trec_eval's lines of qrels."""
    return Path(path).name.lower().removesuffix(".gz").endswith(".qrels")


def read_qrels(path: Path | str, *, faulty: Faulty = "refuse") -> Qrels:
    """Read relevance labels: ``query 0 document label``, a table ``qid, did, label``, or ``irds:NAME``.

    A line that repeats an earlier one with the same label changes nothing and is noted. A table's empty label is a
    missing one, which is not a label of 0.

    Args:
        path: the file.
        faulty: as for ``read_run``; of two labels for one pair the first counts.

    Raises:
        DataError: the file cannot be read or holds no usable line; with ``refuse`` also a line with the wrong number of
            fields, a label that is no whole number, or a second, different label of a pair.
    """
    path, faults = Path(path), Faults(Path(path), faulty)
    labels: dict[str, dict[str, int]] = {}
    lost: dict[str, set[str]] = {}
    repeated = 0
    for line, (query_id, doc_id, given) in qrels_fields(path, faults):
        if not given.strip():
            lost.setdefault(query_id, set()).add(doc_id)
            continue
        label = _whole(given)
        if label is None:
            lost.setdefault(query_id, set()).add(doc_id)
            faults.add(line, f"the label {_why_no_label(given)}", given)
            continue
        known = labels.setdefault(query_id, {})
        earlier = known.get(doc_id)
        if earlier is None:
            known[sys.intern(doc_id)] = label
        elif earlier == label:
            repeated += 1
        else:
            faults.add(line, f"query {query_id!r}, document {doc_id!r} has the label {earlier} already", given)
    if not labels:
        raise DataError(path, f"holds no usable line of qrels{faults.example}")
    say_count([path], labels=sum(map(len, labels.values())), queries=len(labels))
    gone = {query_id: frozenset(own - labels.get(query_id, {}).keys()) for query_id, own in lost.items()}
    gone = {query_id: own for query_id, own in gone.items() if own}
    return Qrels(file_stem(path), labels, _repeated_note(repeated), faults.lines, gone)


def write_qrels(path: Path | str, labels: Mapping[str, Mapping[str, int]]) -> None:
    """Write labels by query_id and doc_id as trec_eval's lines.

    Raises:
        DataError: as for ``write_run``.
    """
    write_trec_lines(
        path,
        (
            (query_id, "0", doc_id, str(label))
            for query_id, labelled in labels.items()
            for doc_id, label in labelled.items()
        ),
    )


@lru_cache(maxsize=1024)
def _whole(text: str) -> int | None:
    found = _WHOLE.fullmatch(text)
    return int(found[1]) if found else None


def _why_no_label(text: str) -> str:
    if text.isascii() and text.isdigit():
        return "has more than 9 digits"
    if gain := _GAIN.fullmatch(text):
        times = 10 ** len(gain[1])
        return f"is not a whole number; write each gain times {times:,}: nDCG stays as it is, and from 1 on is relevant"
    return "is not a whole number"


def _repeated_note(count: int) -> tuple[Note, ...]:
    text = f"lines that repeat an earlier pair with the same label: {count}"
    return (Note("repeated", count, text),) if count else ()


def write_trec_lines(path: Path | str, lines: Iterable[Sequence[str]]) -> None:
    """Write lines of fields, none of which may be empty or have white space."""
    with open_replacing(path) as file:
        for fields in lines:
            for field in fields:
                if field.encode().split() != [field.encode()]:
                    raise DataError(path, "TREC files hold no name that is empty or has white space", value=field)
            file.write((" ".join(fields) + "\n").encode())


_ANSWER_FIELDS = frozenset(
    {"run_id", "topic_id", "narrative_id", "topic", "narrative", "references", "answer", "metadata"}
)


def trec_answer_rows(path: Path | str) -> Iterator[tuple[Row, Answer]]:
    """The answers of a file as participants of the TREC RAG track hand it in, in the forms of 2024 and 2025.

    Both are JSON lines with ``references`` (document ids) and ``answer``, a list of sentences ``{text, citations}``.
    Beside them stand in 2024 ``run_id, topic_id, topic, response_length``, in 2025 ``metadata`` with ``team_id, run_id,
    narrative_id, narrative``. Each answer comes with its row; the run is the agent, sentences are joined by a space.

    ``metadata`` of an answer holds ``query`` (the topic's text), ``references`` and ``sentences`` (both as JSON, where
    citations are kept as they stand there), and every other field as text. A run may answer a topic twice.

    Raises:
        DataError: the file cannot be read, or an answer is malformed; names file, line, value.
    """
    if table_format(path) not in _OF_OBJECTS:
        raise DataError(path, "answers of the TREC RAG track are JSON lines: the name must end in .jsonl")
    for row in read_rows(path, ("references", "answer")):
        yield row, _trec_answer(row)


_OF_OBJECTS = frozenset({"jsonl", "json", "parquet"})
"""Formats that hold lists of objects."""


def is_trec_answers(path: Path | str) -> bool:
    """Whether a file holds answers of the track, by its first line."""
    if table_format(path) not in _OF_OBJECTS:
        return False
    first = next(read_rows(path)).values
    return "references" in first and isinstance(first.get("answer"), list)


def _trec_answer(row: Row) -> Answer:
    metadata = row.values.get("metadata", {})
    if not isinstance(metadata, dict):
        raise row.error("'metadata' must be an object", row.text("metadata"))
    fields = {**row.values, **metadata}
    sentences = _sentences(row, fields["answer"])
    if not isinstance(fields["references"], list):
        raise row.error("'references' must be a list of document ids", row.text("references"))
    kept = {name: text for name, value in fields.items() if name not in _ANSWER_FIELDS and (text := cell_text(value))}
    kept["query"] = _first_of(fields, "topic", "narrative")
    kept["references"] = json.dumps(fields["references"], ensure_ascii=False)
    kept["sentences"] = json.dumps(sentences, ensure_ascii=False)
    text = " ".join(own["text"] for own in sentences)
    return Answer(_named(row, fields, "topic_id", "narrative_id"), _named(row, fields, "run_id"), text, kept)


def _without_gaps(cell: Any) -> Any:
    """An object without the fields that only others of its column have, as Parquet gives them to all."""
    return {name: value for name, value in cell.items() if value is not None} if isinstance(cell, dict) else cell


def _sentences(row: Row, given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list):
        raise row.error("'answer' must be a list of sentences", cell_text(given))
    sentences = [_without_gaps(own) for own in given]
    for number, own in enumerate(sentences, start=1):
        if not isinstance(own, dict) or not isinstance(own.get("text"), str):
            raise row.error(f"sentence {number} has no text", cell_text(own))
        if not isinstance(own.get("citations", []), list):
            raise row.error(f"sentence {number}: 'citations' must be a list", cell_text(own["citations"]))
    return sentences


def _named(row: Row, fields: Mapping[str, Any], *names: str) -> str:
    name = _first_of(fields, *names).strip()
    if not name:
        raise row.error(f"{' or '.join(map(repr, names))} is missing or empty")
    return name


def _first_of(fields: Mapping[str, Any], *names: str) -> str:
    return next((cell_text(fields[name]) for name in names if fields.get(name) is not None), "")
