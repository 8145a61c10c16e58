"""Nugget files and assignment files in nuggetizer's JSONL, the form of NIST's assignments of TREC RAG 2024 as well.

One line is one query's bank (``query, qid, nuggets [{text, importance}]``), or one run's answer to one query (also
``run_id, answer_text, response_length``, each nugget with an ``assignment``). What a line says beyond that is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from judges.errors import DataError
from judges.writing import count_words
from retrieval_eval.data.column_report import say_count
from retrieval_eval.data.files import file_stem, write_json_lines
from retrieval_eval.data.rows import FORMATS, Row, table_format
from retrieval_eval.data.tables import read_rows
from retrieval_eval.data.vocabulary import names_of
from retrieval_eval.nuggets.types import Assignment, Importance, Nugget, NuggetBank, Support, make_nuggets

JsonObject: TypeAlias = Mapping[str, Any]

FAILED = "failed"
"""How nuggetizer writes a label that it did not get."""

_SUPPORT: Mapping[Any, Support | None] = {**{label.value: label for label in Support}, FAILED: None, None: None}
_IMPORTANCE: Mapping[Any, Importance | None] = {
    **{label.value: label for label in Importance},
    FAILED: None,
    None: None,
}
_OF_BANK = frozenset({"query", "qid", "nuggets"})
_OF_ASSIGNMENT = _OF_BANK | {"run_id", "answer_text"}
_OF_NUGGET = frozenset({"text", "importance"})
_OF_LABEL = _OF_NUGGET | {"assignment"}


def read_banks(path: Path | str) -> list[NuggetBank]:
    """The banks of a nugget file, in its order.

    Raises:
        DataError: the file cannot be read, a query is named twice, or a nugget is malformed; names file, line, value.
    """
    banks: dict[str, NuggetBank] = {}
    places: dict[str, str] = {}
    for row in _rows(path):
        query_id = row.identifier("qid")
        if query_id in banks:
            raise row.error(f"this query has its nuggets in {places[query_id]} already", query_id)
        given = _nugget_records(row)
        details = [_rest(own, _OF_NUGGET) for own in given]
        nuggets = make_nuggets(query_id, _texts(row, given), _importances(row, given), details)
        banks[query_id] = NuggetBank(query_id, row.text("query"), nuggets, _rest(row.values, _OF_BANK))
        places[query_id] = row.place
    say_count([path], nuggets=sum(len(bank.nuggets) for bank in banks.values()), queries=len(banks))
    return list(banks.values())


def write_banks(path: Path | str, banks: Iterable[NuggetBank]) -> None:
    """Write a nugget file that ``read_banks`` reads back equal.

    Raises:
        DataError: the file cannot be written.
    """
    write_json_lines(
        path,
        (
            {
                "query": bank.query,
                "qid": bank.query_id,
                "nuggets": list(map(_nugget_record, bank.nuggets)),
                **bank.details,
            }
            for bank in banks
        ),
    )


def read_assignments(paths: Sequence[Path | str]) -> list[Assignment]:
    """The assignments of one or several files, in their order; runs are told apart by ``run_id``.

    A file without ``run_id`` is one run named like the file. ``failed`` and an empty label are failures. An answer's
    length is counted in its text, and ``response_length`` is believed where that is not there.

    Raises:
        DataError: a file cannot be read, an answer stands there twice, or a nugget or label is malformed; names file,
            line and value.
    """
    nuggets: dict[tuple[Any, ...], tuple[Nugget, ...]] = {}
    places: dict[tuple[str, str], str] = {}
    found = []
    for row in (row for path in paths for row in _rows(path)):
        one = _assignment(row, nuggets)
        key = one.run, one.query_id
        if key in places:
            raise row.error(f"run {one.run!r} has its answer to query {one.query_id!r} in {places[key]} already")
        places[key] = row.place
        found.append(one)
    runs, queries = ({one[side] for one in places} for side in (0, 1))
    say_count(paths, answers=len(found), runs=len(runs), queries=len(queries))
    return found


def write_assignments(path: Path | str, assignments: Iterable[Assignment]) -> None:
    """Write an assignment file for ``read_assignments``; a label that failed is written ``failed``.

    Everything comes back equal, but for a nugget's own details, which come back as its label's.

    Raises:
        DataError: the file cannot be written.
    """
    write_json_lines(path, (_assignment_record(own) for own in assignments))


def write_passage_assignments(path: Path | str, assignments: Iterable[Assignment]) -> None:
    """Write what passages state as nuggetizer does; their runs are document ids.

    Raises:
        DataError: the file cannot be written.
    """
    write_json_lines(path, (_passage_record(own) for own in assignments))


def _assignment(row: Row, known: dict[tuple[Any, ...], tuple[Nugget, ...]]) -> Assignment:
    if "docid" in row.values and "run_id" not in row.values:
        raise row.error("nuggets assigned to a passage; only answers of runs are scored", row.text("docid"))
    query_id = row.identifier("qid")
    run = row.identifier("run_id") if "run_id" in row.values else file_stem(row.path)
    given, answer = _nugget_records(row), _answer(row)
    words = _words(row, answer)
    details = _rest(row.values, _OF_ASSIGNMENT)
    if details.get("response_length") == words:
        del details["response_length"]  # only a length that the answer does not have is worth keeping
    key = (query_id, *[(own.get("text"), own.get("importance")) for own in given])
    try:
        nuggets = known[key]
    except (KeyError, TypeError):  # not seen yet; or a list stands where a word should, which is an error
        nuggets = known[key] = make_nuggets(query_id, _texts(row, given), _importances(row, given))
    return Assignment(
        query_id,
        run,
        nuggets,
        _labels(row, given),
        words,
        answer,
        row.text("query"),
        details,
        () if all(own.keys() <= _OF_LABEL for own in given) else tuple(_rest(own, _OF_LABEL) for own in given),
    )


def _rows(path: Path | str) -> Iterator[Row]:
    if table_format(path) != "jsonl":
        endings = ", ".join(ending for ending, form in FORMATS.items() if form == "jsonl")
        raise DataError(path, f"nuggets are read from JSON lines: the name must end in {endings}, with or without .gz")
    return read_rows(path, ("qid", "nuggets"), names_of("qid"))


def _nugget_records(row: Row) -> list[dict[str, Any]]:
    given = row.values["nuggets"]
    if not isinstance(given, list):
        raise row.error("'nuggets' must be a list", row.text("nuggets"))
    for number, own in enumerate(given, start=1):
        if not isinstance(own, dict):
            raise row.error(f"nugget {number} must be an object with a text", str(own))
    return given


def _texts(row: Row, given: Sequence[JsonObject]) -> list[str]:
    texts: list[str] = []
    for own in given:
        text = own.get("text")
        if not isinstance(text, str) or not text or text.isspace():
            raise row.error(f"nugget {len(texts) + 1} has no text", None if text is None else str(text))
        texts.append(text)
    return texts


def _importances(row: Row, given: Sequence[JsonObject]) -> list[Importance | None]:
    found: list[Importance | None] = []
    for own in given:
        importance = own.get("importance")
        try:
            found.append(_IMPORTANCE[importance])
        except (KeyError, TypeError):
            raise row.error(f"nugget {len(found) + 1}: importance is vital or okay", str(importance)) from None
    return found


def _labels(row: Row, given: Sequence[JsonObject]) -> tuple[Support | None, ...]:
    labels: list[Support | None] = []
    for own in given:
        if "assignment" not in own:
            raise row.error(f"nugget {len(labels) + 1} has no 'assignment'; is this a file of nuggets only?")
        try:
            labels.append(_SUPPORT[own["assignment"]])
        except (KeyError, TypeError):
            expected = ", ".join([*Support, FAILED])
            problem = f"nugget {len(labels) + 1}: assignment is one of {expected}"
            raise row.error(problem, str(own["assignment"])) from None
    return tuple(labels)


def _answer(row: Row) -> str | None:
    answer = row.values.get("answer_text")
    if answer is not None and not isinstance(answer, str):
        raise row.error("'answer_text' must be a text", row.text("answer_text"))
    return answer


def _words(row: Row, answer: str | None) -> int:
    """The answer's length, counted where the text is there and believed where it is not."""
    stated = row.values.get("response_length")
    if stated is not None and (not isinstance(stated, int) or isinstance(stated, bool) or stated < 0):
        raise row.error("'response_length' must be a number of words", row.text("response_length"))
    if answer is not None:
        return count_words(answer)
    if stated is None:
        raise row.error("the answer has neither 'answer_text' nor 'response_length'")
    return stated


def _rest(given: JsonObject, known: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in known}


def _nugget_record(nugget: Nugget) -> dict[str, Any]:
    return {"text": nugget.text, "importance": nugget.importance, **nugget.details}


def _assignment_record(own: Assignment) -> dict[str, Any]:
    nuggets = [
        {**_nugget_record(nugget), "assignment": label or FAILED, **details}
        for nugget, label, details in zip(
            own.nuggets, own.labels, own.label_details or [{}] * len(own.nuggets), strict=True
        )
    ]
    answer = {} if own.answer is None else {"answer_text": own.answer}
    record = {"query": own.query, "qid": own.query_id, "nuggets": nuggets, "run_id": own.run}
    return {**record, **answer, "response_length": own.words, **own.details}


def _passage_record(own: Assignment) -> dict[str, Any]:
    record = _assignment_record(own)
    return {"text": own.query, "qid": own.query_id, "candidate_text": own.answer, "docid": own.run} | {
        "nuggets": record["nuggets"]
    }
