"""Reader of the records in a JSON file, with their line numbers; the file is a list of objects or contains one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from judges.errors import DataError
from retrieval_eval.data.files import read_lines

_SPACE = re.compile(r"[ \t\r\n]*")
_MOST_NESTING = 3
"""Most nested objects around the list of records."""
_RECORD_KEYS = frozenset(
    {"results", "records", "rows", "data", "examples", "samples", "items", "answers", "test_cases"}
)
"""Keys that identify the list of records if the object contains several lists."""


def json_records(path: Path, decoder: json.JSONDecoder) -> Iterator[tuple[int, Any]]:
    """Yields line number and content of each record in a JSON file.

    The records are the whole file, or the only list of objects within its object, which may be nested like promptfoo's
    ``results.results``. An object of columns is read as a table, and a single object with texts as one record. A
    ``.json`` file may also contain JSON lines.

    Raises:
        DataError: the file cannot be read, is not JSON, or contains no list of objects or several.
    """
    text = "".join(line for _, line in read_lines(path, whole=True))
    reader = _Reader(path, text, decoder)
    start = reader.next_place(0)
    if start == len(text):
        raise DataError(path, "the file is empty; write the list of objects into it")
    if text[start] == "[":
        yield from reader.entries(start, whole=True)
        return
    if text[start] != "{":
        raise DataError(
            path,
            "neither a list of objects nor an object; write [{...}, {...}]",
            line=reader.line(start),
            value=text[start:],
        )
    whole, end = reader.value(start)
    if reader.next_place(end) < len(text):
        yield from reader.lines(start)
        return
    if rows := _rows_of_columns(whole):
        yield from ((reader.line(start), row) for row in rows)
        return
    lists = list(reader.lists(start, ()))
    if len(lists) > 1:
        lists = [entry for entry in lists if entry[0][-1] in _RECORD_KEYS] or lists
    if not lists and _is_record(whole):
        yield reader.line(start), whole
    elif len(lists) != 1:
        names = ", ".join(".".join(keys) for keys, _ in lists[:5])
        problem = f"several lists of objects: {names}; leave one" if lists else "no list of objects in it; write one"
        raise DataError(path, problem)
    else:
        yield from reader.entries(lists[0][1])


def _rows_of_columns(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of an object that maps columns to lists or objects of cells, as pandas writes it; else ``[]``."""
    columns = list(whole.values())
    if not columns or any(type(column) is not type(columns[0]) for column in columns):
        return []
    if isinstance(columns[0], dict):
        if any(column.keys() != columns[0].keys() or not all(map(str.isdigit, column)) for column in columns):
            return []
        columns = [list(column.values()) for column in columns]
    if not isinstance(columns[0], list) or len(columns) < 2 or len({len(column) for column in columns}) > 1:
        return []
    if all(isinstance(cell, dict) for column in columns for cell in column):
        return []  # lists of records
    return [dict(zip(whole, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _is_record(value: dict[str, Any]) -> bool:
    return any(isinstance(cell, str) for cell in value.values()) and not any(
        isinstance(cell, dict) for cell in value.values()
    )


def why_not_json(error: Exception) -> str:
    """A JSON error in plain words with a remedy. It omits the position, since callers count positions differently."""
    if isinstance(error, RecursionError):
        return "nested too deeply; flatten it"
    message = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return next((plain for beginning, plain in _MESSAGES.items() if message.startswith(beginning)), message)


_MESSAGES: Final = {
    "Expecting property name enclosed in double quotes": "a key in double quotes is asked for",
    "Illegal trailing comma before end of object": "a comma stands before '}'; remove it",
    "Illegal trailing comma before end of array": "a comma stands before ']'; remove it",
    "Exceeds the limit": "a number has thousands of digits; put quotes around it",
    "Expecting value": "a value is asked for, such as a text in double quotes",
    "Expecting ',' delimiter": "a comma is asked for",
    "Expecting ':' delimiter": "a colon is asked for",
    "Extra data": "text behind the object; write one object a line",
    "Unterminated string": "a text has no closing quote",
    "Invalid control character": "a line break or tab within a text; write \\n or \\t",
    "Invalid \\escape": "a single backslash in a text; write two",
}
"""Messages to show, by the beginning of the json module's messages that they replace."""


class _Reader:
    """Parses JSON text step by step and computes line numbers."""

    def __init__(self, path: Path, text: str, decoder: json.JSONDecoder) -> None:
        self._path, self._text, self._decoder = path, text, decoder
        self._counted, self._lines = 0, 1

    def line(self, place: int) -> int:
        """The line number of a position; fast if successive calls have ascending positions."""
        if place < self._counted:
            self._counted, self._lines = 0, 1
        self._lines += self._text.count("\n", self._counted, place)
        self._counted = place
        return self._lines

    def next_place(self, place: int) -> int:
        """Position of the next character that is not white space."""
        match = _SPACE.match(self._text, place)
        return match.end() if match is not None else place

    def value(self, place: int) -> tuple[Any, int]:
        """The value at a position, and the position after it; raises ``DataError`` if it is not JSON."""
        try:
            return self._decoder.raw_decode(self._text, place)
        except json.JSONDecodeError as error:
            torn = "; the file seems to be cut off here" if not self._text[error.pos :].strip() else ""
            line = self.line(error.pos)
            rest = self._text[error.pos : error.pos + 40].strip() or None
            raise DataError(self._path, f"not JSON: {why_not_json(error)}{torn}", line=line, value=rest) from error
        except RecursionError as error:
            raise DataError(self._path, f"not JSON: {why_not_json(error)}", line=self.line(place)) from error
        except ValueError as error:
            raise DataError(self._path, f"not JSON: {why_not_json(error)}", line=self.line(place)) from error

    def entries(self, place: int, *, whole: bool = False) -> Iterator[tuple[int, Any]]:
        """Yields line number and value of each list entry; with ``whole``, text after the list raises ``DataError``."""
        place = self.next_place(place + 1)
        while self._text[place : place + 1] != "]":
            line = self.line(place)
            entry, end = self.value(place)
            yield line, entry
            place = self._after(end, "]")
        if whole and self.next_place(place + 1) < len(self._text):
            rest = self._text[self.next_place(place + 1) :][:40].strip()
            raise DataError(self._path, "text behind the end of the list; remove it", line=self.line(place), value=rest)

    def lines(self, place: int) -> Iterator[tuple[int, Any]]:
        """Yields line number and value of consecutive values, as in JSON lines."""
        while place < len(self._text):
            line = self.line(place)
            entry, end = self.value(place)
            yield line, entry
            place = self.next_place(end)

    def lists(self, place: int, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yields, for each list of objects within an object, its path of keys and its start position."""
        place = self.next_place(place + 1)
        while self._text[place : place + 1] != "}":
            key, end = self.value(place)
            place = self.next_place(self.next_place(end) + 1)
            value, end = self.value(place)
            if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
                yield (*keys, key), place
            elif isinstance(value, dict) and len(keys) < _MOST_NESTING:
                yield from self.lists(place, (*keys, key))
            place = self._after(end, "}")

    def _after(self, end: int, closing: str) -> int:
        """Position of the next entry or of the closing bracket, for the end of the previous entry."""
        place = self.next_place(end)
        if self._text[place : place + 1] == ",":
            return self.next_place(place + 1)
        if self._text[place : place + 1] != closing:
            torn = "; the file seems to be cut off here" if place >= len(self._text) else ""
            raise DataError(self._path, f"not JSON: ',' or '{closing}' is missing{torn}", line=self.line(place))
        return place
