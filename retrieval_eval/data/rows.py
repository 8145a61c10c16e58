"""The records of tables: cells, how they are written as text, where errors stand, and which rows are wanted."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from judges.errors import DataError

Cell: TypeAlias = str | int | float | list[Any] | dict[str, Any] | None
"""A value of a table. CSV and TSV hold text only; JSONL and Parquet keep their types."""

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jl": "jsonl",  # as NIST names its files
    ".json": "json",
    ".parquet": "parquet",
}
_MISSING_NAMES = frozenset({"nan", "<na>"})
EMPTY = "is empty"


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a table.

    Attributes:
        path: the file.
        line: the line of the file on which the record starts, from 1; in Parquet the number of the row, from 1.
        values: cells by column name.
    """

    path: Path
    line: int
    values: Mapping[str, Cell]

    def text(self, column: str) -> str:
        """A cell as text, see ``cell_text``; ``""`` where the row has no such column."""
        return cell_text(self.values.get(column))

    def identifier(self, column: str) -> str:
        """A cell that names something.

        Raises:
            DataError: the name is empty, only white space, or the word for a missing value (nan).
        """
        name = self.text(column)
        if (problem := name_problem(name)) is not None:
            raise self.error(f"{column!r} {problem}", None if problem == EMPTY else name)
        return name

    @property
    def place(self) -> str:
        """The file and the line or row, for messages about another one."""
        return f"{self.path} row {self.line}" if self._counts_rows else f"{self.path}:{self.line}"

    @property
    def _counts_rows(self) -> bool:
        return known_format(self.path) == "parquet"

    def error(self, problem: str, value: str | None = None) -> DataError:
        """The error that says what is wrong here, for the caller to raise."""
        if self._counts_rows:
            return DataError(self.path, f"row {self.line}: {problem}", value=value)
        return DataError(self.path, problem, line=self.line, value=value)


def name_problem(text: str) -> str | None:
    """Why a text names nothing, if so."""
    if not text or text.isspace():
        return EMPTY
    return "is a missing value, not a name" if text.casefold() in _MISSING_NAMES else None


def cell_text(value: Cell) -> str:
    """The text that stands for a cell in CSV and in metadata: nothing and NaN are ``""``, a nested value is JSON."""
    if isinstance(value, str):
        return value
    if value is None or value != value:  # noqa: PLR0124 - NaN alone differs from itself
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else str(value)


def id_of_text(kind: str, text: str) -> str:
    """The id of a text that has none: the same for the same text, wherever it stands."""
    return f"{kind}-{hashlib.sha256(' '.join(text.split()).encode()).hexdigest()[:10]}"


def table_format(path: Path | str) -> str:
    """``csv``, ``tsv``, ``jsonl``, ``json`` or ``parquet``.

    Raises:
        DataError: the file's extension is none of a table.
    """
    if (kind := known_format(path)) is None:
        raise DataError(path, f"not a table: the name must end in {', '.join(FORMATS)}, with or without .gz")
    return kind


@lru_cache(maxsize=64)  # asked for every row
def known_format(path: Path | str) -> str | None:
    """The same, or ``None`` where the extension is none of a table."""
    return FORMATS.get(Path(Path(path).name.lower().removesuffix(".gz")).suffix)


def canonical_names(
    found: Iterable[str], aliases: Mapping[str, Sequence[str]], columns: Columns | None = None
) -> dict[str, str]:
    """For each column found the name it goes by, ``""`` where it is passed over.

    Args:
        found: the columns of a table.
        aliases: for a canonical name its other spellings, of which the first that is there counts.
        columns: which column the user says it is; what the table has not, and what is not said, goes by ``aliases``.
    """
    names = {name: name for name in found}
    said = {ours: theirs for ours, theirs in (columns or {}).items() if theirs is None or theirs in names}
    names |= dict.fromkeys(said.keys() & names.keys(), "")
    names |= {theirs: ours for ours, theirs in said.items() if theirs is not None}
    folded = {_folded(name): name for name in reversed(names)}
    for canonical, spellings in aliases.items():
        if canonical in said or canonical in names.values():
            continue
        for spelling in (canonical, *spellings):
            name = spelling if spelling in names else folded.get(_folded(spelling))
            if name is not None and names[name] == name:
                names[name] = canonical
                break
    return names


Columns: TypeAlias = Mapping[str, str | None]
"""For a name of ours the column of the user's tables; ``None`` where no column is it."""


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()


def missing_column(
    path: Path,
    column: str,
    found: Iterable[str],
    line: int | None = None,
    *,
    also: Sequence[str] = (),
    mapped: bool = False,
) -> DataError:
    """The error that says which column a table lacks and which one may be meant, for the caller to raise.

    Args:
        path: the table.
        column: what it lacks.
        found: its columns.
        line: of its header, where it has one.
        also: other names that would have been accepted.
        mapped: whether the user may say which column it is.
    """
    names = [name for name in found if name]
    near = difflib.get_close_matches(column, names, n=1)
    hint = f" (is it {near[0]!r}?)" if near else ""
    accepted = f"; its other names: {_some(also)}" if also else ""
    which = f"; or {how_to_name(column)}" if mapped else ""
    return DataError(path, f"column {column!r} is missing{hint}; found: {_some(names)}{accepted}{which}", line=line)


def how_to_name(column: str, theirs: str = "NAME") -> str:
    """How a user says which column of the tables is one of ours."""
    return f"say which with columns: {{{column}: {theirs}}} (or --column {column}={theirs.replace('null', '')})"


def _some(names: Sequence[str], most: int = 12) -> str:
    return ", ".join([*names[:most], f"... ({len(names)} in all)"] if len(names) > most else names)


def unstorable(value: object) -> str | None:
    """Why a cell can be kept neither in a UTF-8 file nor in a database, if so."""
    for text in _texts(value):
        if "\0" in text:
            return "the text holds a NUL character"
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                return "the text holds half a surrogate pair"
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, cell in value.items():
            yield from _texts(key)
            yield from _texts(cell)
    elif isinstance(value, list):
        for cell in value:
            yield from _texts(cell)


@dataclass(frozen=True, slots=True)
class Only:
    """The rows whose cell in one column, as text, is one of ``values``."""

    column: str
    values: Set[str]


class LineFilter:
    """Passes over lines of JSON that are about something else, without decoding them."""

    def __init__(self, only: Only) -> None:
        self._values = only.values
        self._key: re.Pattern[str] | None = None

    def learn(self, keys: Iterable[str]) -> None:
        """The names under which the records seen so far have the column."""
        names = "|".join(re.escape(json.dumps(key)) for key in keys)
        self._key = re.compile(rf'(?:{names})\s*:\s*(?:"([^"\\]*)"|(-?[0-9]+)[\s,}}])')

    def passes_over(self, line: str) -> bool:
        """Whether the line ends as a record does and says, wherever it has the key, that it is not wanted.

        A quote within a JSON string is escaped, so that no text of a document looks like the key.
        """
        found = [text or number for text, number in self._key.findall(line)] if self._key is not None else []
        return bool(found) and self._values.isdisjoint(found) and line.rstrip().endswith("}")
