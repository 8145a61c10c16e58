"""Runs and qrels in files: trec_eval's lines, or a table with a header (CSV, TSV, JSONL, Parquet); plain or gzip.

What trec_eval reads without a word and what changes figures is said: as an error, or as a note on what was read.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from judges.errors import DataError
from judges.files import open_replacing, read_lines
from judges.tables import Row, known_format, read_rows
from judges.trec_lines import QRELS_FIELDS, RUN_FIELDS, read_trec_lines
from retrieval_eval import irds
from retrieval_eval.run_entries import RankOddities, RunEntries
from retrieval_eval.trec import Faulty, FaultyLine, Note, Qrels, Run

ALIASES: Mapping[str, Sequence[str]] = {
    "qid": ("query_id", "query-id", "question_id", "topic_id"),
    "did": ("doc_id", "docid", "document_id", "corpus-id", "pid"),
    "label": ("relevance", "rel", "grade", "score"),
    "score": ("sim", "similarity"),
    "tag": ("run", "run_id", "agent", "system"),
}
"""Other spellings of the columns in tables; ``query-id``, ``corpus-id`` and ``score`` are those of BEIR's qrels."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,9}")


def read_run(path: Path | str, *, faulty: Faulty = "refuse") -> Run:
    """Read one run: ``query Q0 document rank score tag``, or a table ``qid, did, score[, rank, tag]``.

    The rank column and the order of the lines are ignored, as by trec_eval; ``Ranking`` says what counts. The notes say
    where that gives another order than the ranks.

    Args:
        path: the file.
        faulty: ``refuse`` raises on the first line that is wrong; ``skip`` leaves such lines out and lists them. Of a
            document that stands twice the first line counts.

    Raises:
        DataError: the file cannot be read or holds no usable line; with ``refuse`` also a line with the wrong number of
            fields, a score that is no finite number, or a document that was retrieved twice for one query.
    """
    path, faults = Path(path), _Faults(Path(path), faulty)
    queries: dict[str, RunEntries] = {}
    tags: Counter[str] = Counter()
    for line, (query_id, doc_id, rank, given, tag) in _run_fields(path, faults):
        if (score := _finite(given)) is None:
            faults.add(line, "the score is not a finite number", given)
            continue
        entries = queries.get(query_id)
        if entries is None:
            entries = queries[query_id] = RunEntries()
        entries.add(line, sys.intern(doc_id), rank, score)
        tags[tag] += 1
    if not queries:
        raise DataError(path, f"holds no usable line of a run{faults.example}")
    for query_id, entries in queries.items():
        for line, doc_id in entries.drop_repeated():
            faults.add(line, f"query {query_id!r} has this document twice", doc_id)
    oddities = RankOddities()
    rankings = {query_id: oddities.ranking(entries) for query_id, entries in queries.items()}
    name = next(iter(tags)) if len(tags) == 1 else ""
    return Run(name or _stem(path), rankings, (*oddities.notes(), *_tag_notes(tags)), faults.lines)


def read_runs(paths: Iterable[Path | str], *, faulty: Faulty = "refuse") -> list[Run]:
    """Read several runs and tell them apart: by their tags, or by the files' names where two have the same tag.

    Raises:
        DataError: see ``read_run``; or two runs have the same tag and the same file name.
    """
    given = [Path(path) for path in paths]
    runs = [read_run(path, faulty=faulty) for path in given]
    named = Counter(run.name for run in runs)
    runs = [
        run if named[run.name] == 1 else Run(_stem(path), run.rankings, run.notes, run.faulty)
        for path, run in zip(given, runs, strict=True)
    ]
    taken: dict[str, Path] = {}
    for path, run in zip(given, runs, strict=True):
        if (other := taken.setdefault(run.name, path)) is not path:
            problem = f"has the same tag or name as {other}; give one of the files another name"
            raise DataError(path, problem, value=run.name)
    return runs


def read_qrels(path: Path | str, *, faulty: Faulty = "refuse") -> Qrels:
    """Read relevance labels: ``query 0 document label``, a table ``qid, did, label``, or ``irds:NAME``.

    A line that repeats an earlier one with the same label changes nothing and is noted.

    Args:
        path: the file.
        faulty: as for ``read_run``; of two labels for one pair the first counts.

    Raises:
        DataError: the file cannot be read or holds no usable line; with ``refuse`` also a line with the wrong number of
            fields, a label that is no whole number, or a second, different label of a pair.
    """
    path, faults = Path(path), _Faults(Path(path), faulty)
    labels: dict[str, dict[str, int]] = {}
    repeated = 0
    for line, (query_id, doc_id, given) in _qrels_fields(path, faults):
        label = _whole(given)
        if label is None:
            faults.add(line, "the label is not a whole number", given)
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
    return Qrels(_stem(path), labels, _repeated_note(repeated), faults.lines)


def write_run(path: Path | str, run: Run) -> None:
    """Write trec_eval's lines, ranks from 1; ``read_run`` gives the same rankings back.

    Raises:
        DataError: the file cannot be written, or a name has white space or is empty, which the form has no place for.
    """
    _write_lines(
        path,
        (
            (query_id, "Q0", doc_id, str(rank), repr(score), run.name)
            for query_id, ranking in run.rankings.items()
            for rank, (doc_id, score) in enumerate(zip(ranking.doc_ids, ranking.scores, strict=True), start=1)
        ),
    )


def write_qrels(path: Path | str, labels: Mapping[str, Mapping[str, int]]) -> None:
    """Write labels by query_id and doc_id as trec_eval's lines.

    Raises:
        DataError: as for ``write_run``.
    """
    _write_lines(
        path,
        (
            (query_id, "0", doc_id, str(label))
            for query_id, labelled in labels.items()
            for doc_id, label in labelled.items()
        ),
    )


def _run_fields(path: Path, faults: _Faults) -> Iterator[tuple[int, tuple[str, str, str, str, str]]]:
    """Line, query_id, doc_id, rank, score and tag; rank and tag are empty where a table lacks them."""
    if _is_table(path, RUN_FIELDS):
        for row, (query_id, doc_id) in _named_rows(path, "score", faults):
            yield row.line, (query_id, doc_id, row.text("rank"), row.text("score"), row.text("tag"))
        return
    for line, (query_id, _, doc_id, rank, score, tag) in read_trec_lines(path, RUN_FIELDS, faults.take):
        yield line, (query_id, doc_id, rank, score, tag)


def _qrels_fields(path: Path, faults: _Faults) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Line, query_id, doc_id and label."""
    if (name := irds.dataset_name(path)) is not None:
        for row in irds.qrels_rows(name, ALIASES):
            yield row.line, (row.identifier("qid"), row.identifier("did"), row.text("label"))
        return
    if _is_table(path, QRELS_FIELDS):
        for row, (query_id, doc_id) in _named_rows(path, "label", faults):
            yield row.line, (query_id, doc_id, row.text("label"))
        return
    for line, (query_id, _, doc_id, label) in read_trec_lines(path, QRELS_FIELDS, faults.take):
        yield line, (query_id, doc_id, label)


def _named_rows(path: Path, value: str, faults: _Faults) -> Iterator[tuple[Row, tuple[str, str]]]:
    for row in read_rows(path, ("qid", "did", value), ALIASES):
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
    return len(first) != len(form) or _finite(first[number]) is None


class _Faults:
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


@lru_cache(maxsize=1024)
def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and text.isascii() and "_" not in text else None


def _tag_notes(tags: Counter[str]) -> tuple[Note, ...]:
    if len(tags) < 2:
        return ()
    shown = ", ".join(repr(tag) for tag, _ in tags.most_common(3))
    return (Note("tags", len(tags), f"{len(tags)} run tags in one file, read as one run: {shown}"),)


def _repeated_note(count: int) -> tuple[Note, ...]:
    return (Note("repeated", count, f"{count} lines repeat an earlier pair with the same label"),) if count else ()


def _stem(path: Path) -> str:
    """The file's name without its extension and ``.gz``."""
    return Path(path.name.removesuffix(".gz")).stem or path.name


def _write_lines(path: Path | str, lines: Iterable[Sequence[str]]) -> None:
    with open_replacing(path) as file:
        for fields in lines:
            for field in fields:
                if field.encode().split() != [field.encode()]:
                    raise DataError(
                        path, "TREC files have no place for a name with white space; rename it", value=field
                    )
            file.write((" ".join(fields) + "\n").encode())
