"""The records of a JSON file: a list of objects, or an object that holds one, each with the line it starts on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from judges.errors import DataError
from retrieval_eval.data.files import read_lines

_SPACE = re.compile(r"[ \t\r\n]*")
_DEEP = 3
"""How many objects may stand around the list."""
_OF_RECORDS = frozenset({"results", "records", "rows", "data", "examples", "samples", "items", "answers", "test_cases"})
"""What a list of records is called, beside lists of something else."""


def json_records(path: Path, decoder: json.JSONDecoder) -> Iterator[tuple[int, Any]]:
    """The entries of the list in a JSON file, each with its line.

    The list is the file's, or the only one of objects that its object holds, as deep as the ``results.results`` of
    promptfoo. An object of columns is a table, too, and a file of JSON lines may be called ``.json``.

    Raises:
        DataError: the file cannot be read, is not JSON, or holds no list of objects or several.
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
    if rows := _of_columns(whole):
        yield from ((reader.line(start), row) for row in rows)
        return
    found = list(reader.lists(start, ()))
    if len(found) > 1:
        found = [each for each in found if each[0][-1] in _OF_RECORDS] or found
    if not found and _is_record(whole):
        yield reader.line(start), whole
    elif len(found) != 1:
        names = ", ".join(".".join(keys) for keys, _ in found[:5])
        problem = f"several lists of objects: {names}; leave one" if found else "no list of objects in it; write one"
        raise DataError(path, problem)
    else:
        yield from reader.entries(found[0][1])


def _of_columns(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of an object that has for each column a list or an object of cells, as pandas writes them."""
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
    """What is wrong with JSON, without a place, which a reader counts in its own way, and what to do."""
    if isinstance(error, RecursionError):
        return "nested too deeply; flatten it"
    said = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return next((ours for theirs, ours in _JSON_WORDS.items() if said.startswith(theirs)), said)


_JSON_WORDS: Final = {
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
"""Our words, by the library's."""


class _Reader:
    """Walks through JSON text and knows the places of its parts."""

    def __init__(self, path: Path, text: str, decoder: json.JSONDecoder) -> None:
        self._path, self._text, self._decoder = path, text, decoder
        self._counted, self._lines = 0, 1

    def line(self, place: int) -> int:
        """The line of a place; places are asked for in their order."""
        if place < self._counted:
            self._counted, self._lines = 0, 1
        self._lines += self._text.count("\n", self._counted, place)
        self._counted = place
        return self._lines

    def next_place(self, place: int) -> int:
        """Behind white space."""
        found = _SPACE.match(self._text, place)
        return found.end() if found is not None else place

    def value(self, place: int) -> tuple[Any, int]:
        """The value at a place, and where it ends."""
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
        """The entries of a list, each with its line; the list may be the ``whole`` text."""
        place = self.next_place(place + 1)
        while self._text[place : place + 1] != "]":
            line = self.line(place)
            entry, end = self.value(place)
            yield line, entry
            place = self._behind(end, "]")
        if whole and self.next_place(place + 1) < len(self._text):
            rest = self._text[self.next_place(place + 1) :][:40].strip()
            raise DataError(self._path, "text behind the end of the list; remove it", line=self.line(place), value=rest)

    def lines(self, place: int) -> Iterator[tuple[int, Any]]:
        """Values one behind the other."""
        while place < len(self._text):
            line = self.line(place)
            entry, end = self.value(place)
            yield line, entry
            place = self.next_place(end)

    def lists(self, place: int, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
        """The lists of objects in an object, by their keys, and where they start."""
        place = self.next_place(place + 1)
        while self._text[place : place + 1] != "}":
            key, end = self.value(place)
            place = self.next_place(self.next_place(end) + 1)
            value, end = self.value(place)
            if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
                yield (*keys, key), place
            elif isinstance(value, dict) and len(keys) < _DEEP:
                yield from self.lists(place, (*keys, key))
            place = self._behind(end, "}")

    def _behind(self, end: int, closing: str) -> int:
        """Where the next entry or the closing bracket is."""
        place = self.next_place(end)
        if self._text[place : place + 1] == ",":
            return self.next_place(place + 1)
        if self._text[place : place + 1] != closing:
            torn = "; the file seems to be cut off here" if place >= len(self._text) else ""
            raise DataError(self._path, f"not JSON: ',' or '{closing}' is missing{torn}", line=self.line(place))
        return place
