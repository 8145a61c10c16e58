"""Readers and writers of TREC qrels, helpers for reading runs, and the reader of recorded judgments.

Qrels and runs are read from trec_eval's lines or from a table with a header. trec_eval silently accepts some oddities
that change figures; here each one raises an error or adds a note to the result.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from judges.errors import DataError
from judges.types import Document
from retrieval_eval.data.files import file_stem, open_replacing, read_lines
from retrieval_eval.data.rows import Row, finite, known_format
from retrieval_eval.data.spans import SpanLabels, position_of, span_of
from retrieval_eval.data.table_spec import READ, SHOWN_SWAPPED, ColumnsRead, TableSpec, say_count
from retrieval_eval.data.tables import read_columns

QRELS: Final = TableSpec(
    ("qid", "did", "label", "start", "end"), ("qid", "did", "label"), {"label": ("relevance", "rel", "grade", "score")}
)
"""Columns of a table of relevance labels; BEIR's names ``query-id``, ``corpus-id`` and ``score`` are accepted too.
``start`` and ``end`` make the label that of a span, see ``spans``."""
RUNS: Final = TableSpec(
    ("qid", "did", "score", "rank", "agent"), ("qid", "did", "score"), {"agent": ("tag", "run", "run_tag")}
)
QRELS_FIELDS = ("query", "0", "document", "label")
RUN_FIELDS = ("query", "Q0", "document", "rank", "score", "tag")
_QRELS_FORMS: Final = (QRELS_FIELDS, ("query", "document", "label"))
_RUN_FORMS: Final = (
    RUN_FIELDS,
    ("query", "Q0", "document", "rank", "score"),
    ("query", "document", "rank", "score", "tag"),
    ("query", "document", "rank"),
    ("query", "document", "score"),
)
"""Fields in a line of qrels or of a run; the last but one is MS MARCO's."""


def refuse(error: DataError) -> None:
    raise error


def read_trec_lines(
    path: Path | str, form: Sequence[str], on_fault: Callable[[DataError], None] = refuse
) -> Iterator[tuple[int, list[str]]]:
    """Stream the lines of qrels or of a run, plain or ``.gz``, as (line number from 1, fields); skips blank lines.

    Fields are separated by ASCII white space, as in C, so an id may contain any other character. If splitting a line at
    tabs alone gives the expected number of fields, only tabs separate its fields, so an id may contain spaces. A line
    with too few or too many fields is passed to ``on_fault`` as an error, and is skipped if that function raises
    nothing.
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
        by_tab = [field.strip(" \r\n") for field in line.split("\t")]
        if len(by_tab) == number and all(by_tab):
            return by_tab
    return fields


Faulty: TypeAlias = Literal["refuse", "skip"]
"""What to do about a faulty line: refuse the file, or skip the line and list it."""


class FaultyLine(Struct, frozen=True):
    """A line (in Parquet a row) that was skipped; ``value`` is the faulty field, if only one field is faulty."""

    line: int
    problem: str
    value: str | None = None

    def __str__(self) -> str:
        return f"line {self.line}: {self.problem}" + ("" if self.value is None else f" ({self.value!r})")


class Note(Struct, frozen=True):
    """A remark on something odd in a file that is allowed, but that people who read the figures should know.

    Attributes:
        kind: ``ties``: documents that share their score with another document of the query; ``rank_order``: queries
            whose rank column contradicts the scores; ``rank_gaps``: queries whose ranks are not consecutive; ``tags``:
            run tags in one file; ``repeated``: lines of qrels that repeat an earlier line.
        count: number of such documents, queries, tags or lines.
    """

    kind: Literal["ties", "rank_order", "rank_gaps", "tags", "repeated"]
    count: int
    text: str


class Qrels(Struct, frozen=True):
    """Relevance labels from annotators or a judge; ``len`` gives the number of labelled (query, document) pairs.

    Attributes:
        name: the file's name without its extensions.
        labels: the relevance labels by query_id and doc_id, in the order of the file.
        notes: remarks on oddities of the file.
        faulty: lines that ``read_qrels`` skipped because of ``faulty="skip"``.
        missing: for each query_id, the doc_ids whose label is empty (in a table) or faulty.
    """

    name: str
    labels: Mapping[str, Mapping[str, int]]
    notes: tuple[Note, ...] = ()
    faulty: tuple[FaultyLine, ...] = ()
    missing: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.labels.values()))

    @property
    def documents(self) -> set[str]:
        """The ids of the documents of which spans are labelled."""
        idents = (ident for part in (self.labels, self.missing) for idents in part.values() for ident in idents)
        return {span.doc_id for span in map(span_of, idents) if span is not None}

    def on_chunks(self, chunks: Iterable[str], documents: Mapping[str, Document]) -> Qrels:
        """The labels of chunks: those of spans are mapped onto them, see ``SpanLabels``; others stay as they are."""
        if not self.documents:
            return self
        missing = {query_id: dict.fromkeys(idents, 0) for query_id, idents in self.missing.items()}
        idents = {ident for part in (self.labels, missing) for idents in part.values() for ident in idents}
        spans = SpanLabels(self.name, idents, chunks, documents)
        labels = spans.labels(self.labels)
        left = {query_id: of.keys() - labels.get(query_id, {}).keys() for query_id, of in spans.labels(missing).items()}
        return replace(self, labels=labels, missing={query_id: frozenset(of) for query_id, of in left.items() if of})


class Faults:
    def __init__(self, path: Path, faulty: Faulty) -> None:
        self._path, self._refuse = path, faulty == "refuse"
        self._lines: list[FaultyLine] = []

    def add(self, line: int, problem: str, value: str) -> None:
        self.take(Row(self._path, line, {}).error(problem, value), line, problem)

    def take(self, error: DataError, line: int | None = None, problem: str | None = None) -> None:
        if self._refuse:
            raise error
        self._lines.append(FaultyLine(error.line or line or 0, problem or error.problem, error.value))

    @property
    def lines(self) -> tuple[FaultyLine, ...]:
        return tuple(sorted(self._lines, key=lambda fault: fault.line))

    @property
    def example(self) -> str:
        """The first fault in the file, worded as the end of an error message; empty if there is none."""
        return f"; {self._lines[0]}" if self._lines else ""


def run_fields(path: Path, faults: Faults) -> Iterator[tuple[int, tuple[str, str, str, str, str]]]:
    """Yields each line's number and (query_id, doc_id, rank, score, tag); missing ranks and tags are ``""``."""
    if (form := _form_of(path, _RUN_FORMS)) is None:
        names = RUNS.named(read_columns(path)).values()
        by_rank = "rank" in names and "score" not in names
        reading, spec = RUNS.report(), replace(RUNS, needed=("qid", "did", "rank")) if by_rank else RUNS
        for row, (query_id, doc_id) in _named_rows(spec.rows(path), faults, reading):
            score = f"-{row.text('rank').strip()}" if by_rank else row.text("score")
            yield row.line, (query_id, doc_id, row.text("rank"), score, row.text("agent"))
        reading.say()
        return
    for line, fields in read_trec_lines(path, form, faults.take):
        cells = dict(zip(form, fields, strict=True))
        rank = cells.get("rank", "")
        yield line, (cells["query"], cells["document"], rank, cells.get("score", f"-{rank}"), cells.get("tag", ""))
    if form != RUN_FIELDS:
        READ.info("%s", f"{path}: lines '{' '.join(form)}'")


def qrels_fields(path: Path, faults: Faults) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Yields the line number and the (query_id, doc_id, label) of each line of qrels."""
    from retrieval_eval.data.collections import irds_name, irds_rows  # late: only labels may be those of ir_datasets

    dataset = irds_name(path)
    form = None if dataset is not None else _form_of(path, _QRELS_FORMS)
    if form is None:
        rows = QRELS.rows(path) if dataset is None else irds_rows(dataset, "qrels", QRELS)
        reading = QRELS.report()
        for row, (query_id, doc_id) in _named_rows(rows, faults, reading):
            span = ""
            if {"start", "end"} <= row.values.keys() and row.text("start") + row.text("end"):
                span = f"#{position_of(row.text('start'))}-{position_of(row.text('end'))}"
                if span_of(doc_id + span) is None:
                    faults.add(row.line, "'start' and 'end' must be whole numbers, the first one less", span[1:])
                    continue
            yield row.line, (query_id, doc_id + span, row.text("label"))
        reading.say()
        return
    for line, fields in read_trec_lines(path, form, faults.take):
        yield line, (fields[0], fields[-2], fields[-1])


def _named_rows(rows: Iterable[Row], faults: Faults, reading: ColumnsRead) -> Iterator[tuple[Row, tuple[str, str]]]:
    """Yields each row with its query_id and doc_id; a row that lacks one of them is passed to ``faults``."""
    for row in rows:
        reading.add(row)
        try:
            names = row.identifier("qid"), row.identifier("did")
        except DataError as error:
            faults.take(error, row.line)
            continue
        yield row, names


def _form_of(path: Path, forms: Sequence[Sequence[str]]) -> Sequence[str] | None:
    """The fields of the file's lines by its first two lines; ``None`` if it is a table, which its extension decides.

    A ``.tsv`` without a header is none: MS MARCO writes qrels and runs so. In lines of query, document and a number,
    the number is a rank if it counts up from 1, else a score.
    """
    kind = known_format(path)
    if kind not in {None, "tsv"}:
        return None
    lines = [line for _, line in islice(read_lines(path), _LINES) if not line.isspace()]
    for form in forms if lines else ():
        first = _fields(lines[0], len(form))
        if len(first) != len(form) or ("Q0" in form and len(form) < len(RUN_FIELDS) and first[1] not in {"Q0", "0"}):
            continue
        name = next(name for name in ("label", "score", "rank") if name in form)
        numbers = [
            finite(fields[form.index(name)]) for line in lines if len(fields := _fields(line, len(form))) == len(form)
        ]
        if numbers[0] is None:
            continue
        if form[1:] == ("document", "rank") and not _is_rank(path, numbers):
            continue
        return form
    return None if kind == "tsv" else forms[0]


_LINES: Final = 5


def _is_rank(path: Path, numbers: Sequence[float | None]) -> bool:
    """Whether the numbers of the first lines are ranks and not scores; raises an error if they may be either."""
    known = [number for number in numbers if number is not None]
    if known[0] == 1 and all(after in {1, before + 1} for before, after in pairwise(known)):
        return True
    if all(number.is_integer() for number in known) and known != sorted(known, reverse=True):
        raise DataError(path, f"the third field may be a rank or a score; write lines '{' '.join(RUN_FIELDS)}'")
    return False


_WHOLE = re.compile(r"([+-]?[0-9]{1,9})(?:\.0{1,9})?")
_GAIN = re.compile(r"\+?[0-9]{0,9}\.([0-9]{1,6}?)0*")


def is_qrels(path: Path | str) -> bool:
    """Whether the file name ends in ``.qrels`` or ``.qrels.gz``, which means qrels in trec_eval's format."""
    return Path(path).name.lower().removesuffix(".gz").endswith(".qrels")


def read_qrels(path: Path | str, *, faulty: Faulty = "refuse") -> Qrels:
    """Read relevance labels: ``query 0 document label``, a table ``qid, did, label``, or ``irds:NAME``.

    A line that repeats an earlier one with the same label changes nothing; a note gives the number of such lines. Of
    two different labels of a pair, the first is used if faulty lines are skipped. An empty label in a table counts as
    missing, not as 0.
    """
    path, faults = Path(path), Faults(Path(path), faulty)
    labels: dict[str, dict[str, int]] = {}
    unlabelled: dict[str, set[str]] = {}
    repeated = 0
    for line, (query_id, doc_id, label_text) in qrels_fields(path, faults):
        if not label_text.strip():
            unlabelled.setdefault(query_id, set()).add(doc_id)
            continue
        label = _whole(label_text)
        if label is None:
            unlabelled.setdefault(query_id, set()).add(doc_id)
            faults.add(line, f"the label {_why_no_label(label_text)}", label_text)
            continue
        query_labels = labels.setdefault(query_id, {})
        earlier = query_labels.get(doc_id)
        if earlier is None:
            query_labels[sys.intern(doc_id)] = label
        elif earlier == label:
            repeated += 1
        else:
            faults.add(line, f"query {query_id!r}, document {doc_id!r} has the label {earlier} already", label_text)
    if not labels:
        raise DataError(path, f"holds no usable line of qrels; write lines 'qid 0 did label'{faults.example}")
    say_count([path], labels=sum(map(len, labels.values())), queries=len(labels))
    missing = {
        query_id: frozenset(doc_ids - labels.get(query_id, {}).keys()) for query_id, doc_ids in unlabelled.items()
    }
    missing = {query_id: doc_ids for query_id, doc_ids in missing.items() if doc_ids}
    note = Note("repeated", repeated, f"lines that repeat an earlier pair with the same label: {repeated}")
    return Qrels(file_stem(path), labels, (note,) if repeated else (), faults.lines, missing)


def write_qrels(path: Path | str, labels: Mapping[str, Mapping[str, int]]) -> None:
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
    match = _WHOLE.fullmatch(text)
    return int(match[1]) if match else None


def _why_no_label(text: str) -> str:
    if text.isascii() and text.isdigit():
        return "has more than 9 digits"
    if gain := _GAIN.fullmatch(text):
        times = 10 ** len(gain[1])
        return f"is not a whole number; write each gain times {times:,}: nDCG stays as it is, and from 1 on is relevant"
    return "is not a whole number"


def write_trec_lines(path: Path | str, lines: Iterable[Sequence[str]]) -> None:
    """Write each line's fields, separated by spaces; ``DataError`` if a field is empty or contains white space."""
    with open_replacing(path) as file:
        for fields in lines:
            for field in fields:
                if field.encode().split() != [field.encode()]:
                    raise DataError(
                        path, "a TREC file cannot hold a name that is empty or has white space; rename it", value=field
                    )
            file.write((" ".join(fields) + "\n").encode())


RECORDINGS: Final = TableSpec(("qid", "did", "agent_a", "agent_b", "model", "agent", "verdict", "order"))
"""Columns of recorded judgments; ``model`` names the judge. A column of labels or grades has the same name as the field
in the judge's reply."""


def read_recordings(path: Path) -> Iterator[Row]:
    """Stream recorded judgments, rearranged so that ``agent_a`` is the agent whose answer was shown first.

    The columns ``agent_a`` and ``agent_b`` are swapped if ``order`` is ``ba``, and so is the verdict, since in the file
    ``A`` always means ``agent_a``. A file without a table's extension is read as TREC qrels.
    """
    if known_format(path) is not None:
        return map(_as_shown, RECORDINGS.rows(path))
    lines = read_trec_lines(path, QRELS_FIELDS)
    return (Row(path, number, {"qid": query, "did": doc, "label": label}) for number, (query, _, doc, label) in lines)


def _as_shown(row: Row) -> Row:
    order = row.text("order").strip().casefold()
    if order and order not in SHOWN_SWAPPED:
        raise row.error(f"{row.theirs('order')!r} must be one of {', '.join(SHOWN_SWAPPED)}", order)
    if not SHOWN_SWAPPED.get(order) or "agent_a" not in row.values or "agent_b" not in row.values:
        return row
    from judges.providers.replay import VERDICT_WORDS

    swapped = {"agent_a": row.values["agent_b"], "agent_b": row.values["agent_a"], "order": "ab"}
    if (verdict := VERDICT_WORDS.get(row.text("verdict").strip().casefold())) is not None:
        swapped["verdict"] = verdict.swapped()
    return Row(row.path, row.line, {**row.values, **swapped})
