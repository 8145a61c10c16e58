"""Reads and writes nugget files and assignment files in nuggetizer's JSONL, which NIST used for TREC RAG 2024 as well.

One line is one query's bank (``query, qid, nuggets [{text, importance}]``), or one run's answer to one query (also
``run_id, answer_text, response_length``, each nugget with an ``assignment``). Other fields go to ``details``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from judges.errors import DataError
from judges.writing import count_words
from retrieval_eval.data.files import file_stem, write_json_lines
from retrieval_eval.data.rows import FORMATS, Row, table_format
from retrieval_eval.data.table_spec import TableSpec, say_count
from retrieval_eval.nuggets.types import Assignment, Importance, Nugget, NuggetBank, Support, make_nuggets

JsonObject: TypeAlias = Mapping[str, Any]

FAILED = "failed"
"""nuggetizer's value for a label that the judge failed to give."""

_SUPPORT: Mapping[Any, Support | None] = {**{label.value: label for label in Support}, FAILED: None, None: None}
_IMPORTANCE: Mapping[Any, Importance | None] = {
    **{label.value: label for label in Importance},
    FAILED: None,
    None: None,
}
BANKS: Final = TableSpec(("qid", "query"), ("qid", "nuggets"))
ASSIGNMENTS: Final = TableSpec(
    ("qid", "query", "agent", "answer"), ("qid", "nuggets"), {"agent": ("run_id", "run"), "answer": ("answer_text",)}
)
_OF_BANK = frozenset({"query", "qid", "nuggets", "items"})
_OF_ASSIGNMENT = _OF_BANK | {"agent", "answer"}
_OF_NUGGET = frozenset({"text", "importance"})
_OF_LABEL = _OF_NUGGET | {"assignment"}


def read_banks(path: Path | str) -> list[NuggetBank]:
    """Read each query's list of nuggets from a nugget file, in the file's order.

    Raises:
        DataError: the file cannot be read, a query is repeated, or a nugget is malformed; names file, line and value.
    """
    banks: dict[str, NuggetBank] = {}
    places: dict[str, str] = {}
    for row in _rows(path, BANKS):
        query_id = row.identifier("qid")
        if query_id in banks:
            raise row.error(f"the nuggets of this query are already in {places[query_id]}", query_id)
        records = _nugget_records(row)
        details = [_rest(record, _OF_NUGGET) for record in records]
        nuggets = make_nuggets(query_id, _texts(row, records), _importances(row, records), details)
        banks[query_id] = NuggetBank(query_id, row.text("query"), nuggets, _rest(row.values, _OF_BANK))
        places[query_id] = row.place
    say_count([path], nuggets=sum(len(bank.nuggets) for bank in banks.values()), queries=len(banks))
    return list(banks.values())


def write_banks(path: Path | str, banks: Iterable[NuggetBank]) -> None:
    """Write lists of nuggets to a file, from which ``read_banks`` reads equal lists."""
    records = (
        {"query": bank.query, "qid": bank.query_id, "nuggets": list(map(_nugget_record, bank.nuggets)), **bank.details}
        for bank in banks
    )
    write_json_lines(path, records)


def read_assignments(paths: Sequence[Path | str]) -> list[Assignment]:
    """Read from one or several files which nuggets each answer supports, in the order of the files.

    All assignments without ``run_id`` in a file belong to one run, named after the file. A label that is empty or
    ``failed`` means that the judge gave none. The length of an answer is the number of words in its text, or
    ``response_length`` if the file has no text.

    Raises:
        DataError: a file cannot be read, an answer is repeated, or a nugget or label is malformed; names file, line and
            value.
    """
    nuggets: dict[tuple[Any, ...], tuple[Nugget, ...]] = {}
    places: dict[tuple[str, str], str] = {}
    assignments = []
    for row in (row for path in paths for row in _rows(path, ASSIGNMENTS)):
        assignment = _assignment(row, nuggets)
        run, query_id = assignment.run, assignment.query_id
        key = run, query_id
        if key in places:
            raise row.error(f"run {run!r} already has an answer to query {query_id!r} in {places[key]}")
        places[key] = row.place
        assignments.append(assignment)
    runs, queries = ({key[side] for key in places} for side in (0, 1))
    say_count(paths, answers=len(assignments), runs=len(runs), queries=len(queries))
    return assignments


def write_assignments(path: Path | str, assignments: Iterable[Assignment]) -> None:
    """Write a file for ``read_assignments``; where the judge gave no label, the file has ``failed``.

    Assignments are read back equal, except that the details of a nugget become details of its label.
    """
    write_json_lines(path, map(_assignment_record, assignments))


def write_passage_assignments(path: Path | str, assignments: Iterable[Assignment]) -> None:
    """Write which nuggets each passage supports, in nuggetizer's format; an assignment's ``run`` is the document id."""
    records = (
        {
            "text": assignment.query,
            "qid": assignment.query_id,
            "candidate_text": assignment.answer,
            "docid": assignment.run,
            "nuggets": _label_records(assignment),
        }
        for assignment in assignments
    )
    write_json_lines(path, records)


def _assignment(row: Row, known: dict[tuple[Any, ...], tuple[Nugget, ...]]) -> Assignment:
    if "docid" in row.values and "agent" not in row.values:
        raise row.error(
            "these nuggets are assigned to a passage; only answers of runs can be scored", row.text("docid")
        )
    query_id = row.identifier("qid")
    run = row.identifier("agent") if "agent" in row.values else file_stem(row.path)
    records, answer = _nugget_records(row), _answer(row)
    words = _words(row, answer)
    details = _rest(row.values, _OF_ASSIGNMENT)
    if details.get("response_length") == words:
        del details["response_length"]  # keep only a length that differs from the counted one
    key = (query_id, *[(record.get("text"), record.get("importance")) for record in records])
    try:
        nuggets = known[key]
    except (KeyError, TypeError):  # new; or a value is a list, which _texts or _importances reports
        nuggets = known[key] = make_nuggets(query_id, _texts(row, records), _importances(row, records))
    label_details = tuple(_rest(record, _OF_LABEL) for record in records)
    return Assignment(
        query_id,
        run,
        nuggets,
        _labels(row, records),
        words,
        answer,
        row.text("query"),
        details,
        label_details if any(label_details) else (),
    )


def _rows(path: Path | str, spec: TableSpec) -> Iterator[Row]:
    if table_format(path) != "jsonl":
        endings = ", ".join(ending for ending, form in FORMATS.items() if form == "jsonl")
        raise DataError(path, f"nuggets are read from JSON lines: the name must end in {endings}, with or without .gz")
    return spec.rows(path)


def _nugget_records(row: Row) -> list[dict[str, Any]]:
    records = row.values["nuggets"]
    if not isinstance(records, list):
        raise row.error("'nuggets' must be a list of objects, each with a text", row.text("nuggets"))
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise row.error(f"nugget {number} must be an object with a text", str(record))
    return records


def _texts(row: Row, records: Sequence[JsonObject]) -> list[str]:
    texts: list[str] = []
    for record in records:
        text = record.get("text")
        if not isinstance(text, str) or not text or text.isspace():
            raise row.error(f"nugget {len(texts) + 1} has no text", None if text is None else str(text))
        texts.append(text)
    return texts


def _importances(row: Row, records: Sequence[JsonObject]) -> list[Importance | None]:
    importances: list[Importance | None] = []
    for record in records:
        importance = record.get("importance")
        try:
            importances.append(_IMPORTANCE[importance])
        except (KeyError, TypeError):
            raise row.error(
                f"nugget {len(importances) + 1}: importance must be vital or okay", str(importance)
            ) from None
    return importances


def _labels(row: Row, records: Sequence[JsonObject]) -> tuple[Support | None, ...]:
    labels: list[Support | None] = []
    for record in records:
        if "assignment" not in record:
            raise row.error(f"nugget {len(labels) + 1} has no 'assignment'; is this a file of nuggets only?")
        try:
            labels.append(_SUPPORT[record["assignment"]])
        except (KeyError, TypeError):
            expected = ", ".join([*Support, FAILED])
            problem = f"nugget {len(labels) + 1}: assignment must be one of {expected}"
            raise row.error(problem, str(record["assignment"])) from None
    return tuple(labels)


def _answer(row: Row) -> str | None:
    answer = row.values.get("answer")
    if answer is not None and not isinstance(answer, str):
        raise row.error(f"{row.theirs('answer')!r} must be a text", row.text("answer"))
    return answer


def _words(row: Row, answer: str | None) -> int:
    """Number of words in the answer; ``response_length`` if the file has no text."""
    stated = row.values.get("response_length")
    if stated is not None and (not isinstance(stated, int) or isinstance(stated, bool) or stated < 0):
        raise row.error("'response_length' must be a number of words", row.text("response_length"))
    if answer is not None:
        return count_words(answer)
    if stated is None:
        raise row.error("the answer has neither 'answer_text' nor 'response_length'")
    return stated


def _rest(record: JsonObject, known: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in known}


def _nugget_record(nugget: Nugget) -> dict[str, Any]:
    return {"text": nugget.text, "importance": nugget.importance, **nugget.details}


def _label_records(assignment: Assignment) -> list[dict[str, Any]]:
    details: Sequence[JsonObject] = assignment.label_details or [{}] * len(assignment.nuggets)
    return [
        {**_nugget_record(nugget), "assignment": label or FAILED, **other}
        for nugget, label, other in zip(assignment.nuggets, assignment.labels, details, strict=True)
    ]


def _assignment_record(assignment: Assignment) -> dict[str, Any]:
    record = {"query": assignment.query, "qid": assignment.query_id, "nuggets": _label_records(assignment)}
    answer = {} if assignment.answer is None else {"answer_text": assignment.answer}
    return {**record, "run_id": assignment.run, **answer, "response_length": assignment.words, **assignment.details}
