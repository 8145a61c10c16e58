"""The workbench's interchange files: a line a query, ``[query_id, [paragraph, ...]]`` (001, Figure 4), often ``.gz``.

What is read can be written again byte for byte, and grades can be added to it while every other value keeps the text it
was written in: numbers, spacing inside values, and fields that nobody here knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judges.errors import DataError
from retrieval_eval.data.files import open_replacing, read_lines

_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class GradedQuery:
    """One query of a file.

    Attributes:
        path: the file.
        line: on which it stands, from 1.
        query_id: the query.
        paragraphs: the passages, each with ``paragraph_id`` and ``text``, and what else the file says.
        raw: the JSON text of it all.
    """

    path: Path
    line: int
    query_id: str
    paragraphs: Sequence[Mapping[str, Any]]
    raw: str

    def error(self, problem: str, value: object = None) -> DataError:
        """The error that says what is wrong here, for the caller to raise."""
        shown = None if value is None else value if isinstance(value, str) else json.dumps(value)
        return DataError(self.path, f"query {self.query_id!r}: {problem}", line=self.line, value=shown)

    def with_grades(self, entries: Mapping[str, Mapping[str, Any]]) -> GradedQuery:
        """The same query with one more entry in the ``exam_grades`` of some paragraphs, by paragraph_id."""
        texts = [
            _appended(text, "exam_grades", json.dumps(entries[paragraph["paragraph_id"]], ensure_ascii=False))
            if paragraph["paragraph_id"] in entries
            else text
            for paragraph, text in zip(self.paragraphs, _elements(_elements(self.raw)[1]), strict=True)
        ]
        raw = f"[{_elements(self.raw)[0]}, [{', '.join(texts)}]]"
        return GradedQuery(self.path, self.line, self.query_id, json.loads(raw)[1], raw)


def new_query(query_id: str, paragraphs: Sequence[Mapping[str, Any]]) -> GradedQuery:
    """A query that no file had yet."""
    return GradedQuery(Path(), 0, query_id, paragraphs, json.dumps([query_id, paragraphs], ensure_ascii=False))


def read_workbench(path: Path | str) -> Iterator[GradedQuery]:
    """Stream the queries of a file, plain or ``.gz``. Old files may have several on a line.

    Raises:
        DataError: the file cannot be read, a line is not ``[query_id, [paragraph, ...]]``, or a paragraph has no id or
            no text. Raised while iterating.
    """
    path, count = Path(path), 0
    for number, line in read_lines(path):
        for value, raw in _records(path, number, line):
            count += 1
            yield _query(path, number, value, raw)
    if not count:
        raise DataError(path, "the file is empty")


def write_workbench(path: Path | str, queries: Iterable[GradedQuery]) -> int:
    """Write queries, one a line; the name must end in ``.gz`` for the workbench to read it. Returns how many.

    Raises:
        DataError: the file cannot be written.
    """
    count = 0
    with open_replacing(path) as file:
        for count, query in enumerate(queries, start=1):  # noqa: B007 - the last number is the answer
            file.write(query.raw.encode() + b"\n")
    return count


def is_workbench(path: Path | str) -> bool:
    """Whether the first line that says something begins like a query of these files, with a ``[``."""
    first = next((line for _, line in read_lines(path) if not line.isspace()), "")
    return first.lstrip().startswith("[")


def _records(path: Path, number: int, line: str) -> Iterator[tuple[Any, str]]:
    start = _skip(line, 0)
    while start < len(line):
        try:
            value, end = _DECODER.raw_decode(line, start)
        except (ValueError, RecursionError) as error:
            torn = "" if line.endswith(("\n", "\r")) else "; the file seems to be cut off here"
            raise DataError(path, f"not JSON: {error}{torn}", line=number, value=line[start:].strip()) from error
        yield value, line[start:end]
        start = _skip(line, end)


def _query(path: Path, line: int, value: Any, raw: str) -> GradedQuery:
    match value:
        case [str(query_id), list(paragraphs)]:
            query = GradedQuery(path, line, query_id, paragraphs, raw)
        case _:
            raise DataError(path, "the line is not [query_id, [paragraph, ...]]", line=line, value=raw)
    for paragraph in paragraphs:
        if not isinstance(paragraph, dict):
            raise query.error("a paragraph is not a JSON object", paragraph)
        for name in ("paragraph_id", "text"):
            if not isinstance(paragraph.get(name), str):
                raise query.error(f"a paragraph's {name!r} is not a text", paragraph.get(name))
    return query


def _elements(raw: str) -> list[str]:
    """The texts of the elements of a JSON array."""
    found, at = [], _skip(raw, 1)
    while raw[at] != "]":
        _, end = _DECODER.raw_decode(raw, at)
        found.append(raw[at:end])
        at = _skip(raw, end)
        at = _skip(raw, at + 1) if raw[at] == "," else at
    return found


def _appended(raw: str, key: str, element: str) -> str:
    """A JSON object's text with one more element in the array ``key``, which is made where it is absent or null."""
    at = _skip(raw, 1)
    while raw[at] != "}":
        name, end = _DECODER.raw_decode(raw, at)
        start = _skip(raw, _skip(raw, end) + 1)
        value, end = _DECODER.raw_decode(raw, start)
        if name == key:
            array = f"[{element}]" if not value else f"{raw[start : end - 1].rstrip()}, {element}]"
            return raw[:start] + array + raw[end:]
        at = _skip(raw, end)
        at = _skip(raw, at + 1) if raw[at] == "," else at
    return f'{raw[:at].rstrip()}, "{key}": [{element}]{raw[at:]}'


def _skip(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start
