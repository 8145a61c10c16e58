"""The records of tables: cells, how they are written as text, where errors stand, and which rows are wanted."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from judges.errors import DataError
from retrieval_eval.data.list_cells import list_in

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
_SHOWN: Final = 200
"""Characters of a cell that an error shows."""
EMPTY = "is empty; fill it in, or remove the row"


class Row(Struct, frozen=True):
    """One record of a table.

    Attributes:
        path: the file.
        line: the line of the file on which the record starts, from 1; in Parquet the number of the row, from 1.
        values: cells by column name.
        left_out: how many messages of systems and tools ``with_messages`` left out.
        called: for each column of the file the name it goes by in ``values``, ``""`` where it is passed over; empty
            where that is not known.
    """

    path: Path
    line: int
    values: Mapping[str, Cell]
    left_out: int = 0
    called: Mapping[str, str] = field(default_factory=dict)

    def theirs(self, column: str) -> str:
        """What the file calls a column of ours."""
        return next((name for name, ours in self.called.items() if ours == column), column)

    def text(self, column: str) -> str:
        """A cell as text, see ``cell_text``; ``""`` where the row has no such column."""
        return cell_text(self.values.get(column))

    def identifier(self, column: str) -> str:
        """A cell that names something.

        Raises:
            DataError: the name is empty, only white space, or the word for a missing value (nan).
        """
        name, cell = self.text(column), self.values.get(column)
        if isinstance(cell, list | dict):
            raise self.error(f"{column!r} must be a name, and no list or object", name)
        if isinstance(cell, float) and cell.is_integer() and column in {"qid", "did"}:
            name = str(int(cell))  # pandas makes floats of whole numbers where one is missing
        if (problem := name_problem(name)) is not None:
            raise self.error(f"{column!r} {problem}", None if problem == EMPTY else name)
        return name

    def listed(self, column: str) -> list[Any] | None:
        """The list that a cell is, or that stands in its text, see ``list_in``; ``None`` where it is none.

        Raises:
            DataError: the text begins like a list and is none.
        """
        given = self.values.get(column)
        if not isinstance(given, str):
            return given if isinstance(given, list) else None
        try:
            found = list_in(given)
        except ValueError as error:
            raise self.error(f"{column!r} begins like a list and {error}", given[:_SHOWN].strip()) from error
        if found is not None and (problem := unstorable(found)) is not None:
            raise self.error(f"{column!r}: {problem}", given[:_SHOWN].strip())
        return found

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
    return "is a missing value, not a name; name it, or remove the row" if text.casefold() in _MISSING_NAMES else None


def spelling_problem(kind: str, name: str, spelt: dict[str, str]) -> str | None:
    """Why a name may be taken for an earlier one: it differs in what a reader hardly sees, or does not see at all.

    Args:
        kind: what bears the names, such as ``agents``.
        name: the name.
        spelt: the earlier names by their look; the name is added.
    """
    look = "".join(own for own in unicodedata.normalize("NFKC", name) if unicodedata.category(own) != "Cf")
    other = spelt.setdefault(_plain(look), name)
    if other == name:
        return None
    alike = "differ in case or spaces only" if _plain(other) == _plain(name) else "look alike"
    return f"{kind} {other!a} and {name!a} {alike}; spell them alike, or rename one"


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def cell_text(value: Cell) -> str:
    """The text that stands for a cell in CSV and in metadata: nothing and NaN are ``""``, a nested value is JSON."""
    if isinstance(value, str):
        return value
    if value is None or value != value:  # noqa: PLR0124 - NaN alone differs from itself
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else str(value)


def alike(text: str) -> str:
    """What is the same of texts that differ only in blanks, unseen characters, or how a character is coded (NFC)."""
    if text.isascii():
        return " ".join(text.split())
    return " ".join(unicodedata.normalize("NFC", text).translate(_UNSEEN).split())


_UNSEEN: Final = dict.fromkeys((0xAD, 0x200B, 0xFEFF))
"""A soft hyphen, a blank without width and a byte order mark."""


def are_floats(ids: Iterable[str]) -> bool:
    """Whether all ids are whole numbers written as floats, as pandas does where one is missing."""
    given = list(ids)
    return bool(given) and all(map(_FLOAT.fullmatch, given))


def in_form(ident: str, *, floats: bool) -> str:
    """An id as a table has it whose ids are all floats, or none of them."""
    if _FLOAT.fullmatch(ident):
        return ident if floats else ident.partition(".")[0]
    return f"{ident}.0" if floats and ident.isascii() and ident.isdigit() else ident


_FLOAT: Final = re.compile(r"[0-9]+\.0")


def id_of_text(kind: str, text: str) -> str:
    """The id of a text that has none: the same for the same text, wherever it stands."""
    return f"{kind}-{hashlib.sha256(alike(text).encode()).hexdigest()[:10]}"


def table_format(path: Path | str) -> str:
    """``csv``, ``tsv``, ``jsonl``, ``json`` or ``parquet``.

    Raises:
        DataError: the file's extension is none of a table.
    """
    if (kind := known_format(path)) is None:
        if Path(path).is_dir():
            raise DataError(path, f"a folder; name the files in it, such as '{path}/*.csv'")
        if not Path(path).suffix and not Path(path).exists():
            raise no_file(path)
        if Path(path).suffix.lower() in {".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"}:
            raise DataError(path, "not a table but a spreadsheet; save it as CSV in UTF-8, and name that")
        raise DataError(path, f"not a table: the name must end in {', '.join(FORMATS)}, with or without .gz")
    return kind


@lru_cache(maxsize=64)  # asked for every row
def known_format(path: Path | str) -> str | None:
    """The same, or ``None`` where the extension is none of a table."""
    return FORMATS.get(Path(Path(path).name.lower().removesuffix(".gz")).suffix)


def no_file(path: Path | str) -> DataError:
    """The error that says which file is not there, and which may be meant, for the caller to raise."""
    from judges.sections import did_you_mean

    path = Path(path)
    if path.is_symlink():
        return DataError(path, f"a link to {path.readlink()}, which is not there; mend it, or name another file")
    if re.search(r"(^|/)https?:/", str(path)):
        return DataError(path, "no such file; download it, and name the file")
    beside = sorted(each.name for each in path.parent.iterdir()) if path.parent.is_dir() else []
    return DataError(path, f"no such file{did_you_mean(path.name, beside) or '; check its name and folder'}")


def unstorable(value: object) -> str | None:
    """Why a cell can be kept neither in a UTF-8 file nor in a database, if so."""
    for text in _texts(value):
        if "\0" in text:
            return "the text holds a NUL character; remove it"
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                return "the text is not UTF-8, or holds half a surrogate pair; write its characters whole"
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, cell in value.items():
            yield from _texts(key)
            yield from _texts(cell)
    elif isinstance(value, list | tuple):
        for cell in value:
            yield from _texts(cell)


class Only(Struct, frozen=True):
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
