"""Rows of tables: their cells, the text of a cell, identifiers, errors with file and line, and row filters."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from judges.errors import DataError

Cell: TypeAlias = str | int | float | list[Any] | dict[str, Any] | None
"""A value of a table. In CSV and TSV all values are texts; JSONL and Parquet have typed values."""

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
_MOST_SHOWN: Final = 200
EMPTY = "is empty; fill it in, or remove the row"


class Row(Struct, frozen=True):
    """One record of a table.

    Attributes:
        line: number of the record's first line, from 1; in Parquet the row number, from 1.
        values: cells by column name.
        left_out: number of system and tool messages that ``with_messages`` removed.
        called: maps each column of the file to its name in ``values``, ``""`` if the column is ignored; empty if
            unknown.
        form: name of the other tool's format that the record has, see ``LAYOUTS``; ``""`` for a plain table.
    """

    path: Path
    line: int
    values: Mapping[str, Cell]
    left_out: int = 0
    called: Mapping[str, str] = field(default_factory=dict)
    form: str = ""

    def theirs(self, column: str) -> str:
        """The file's own name for a column, which is given by its canonical name."""
        return next((name for name, ours in self.called.items() if ours == column), column)

    def text(self, column: str) -> str:
        """The text of the cell in a column, see ``cell_text``; ``""`` if the row lacks the column."""
        return cell_text(self.values.get(column))

    def others(self, columns: Collection[str]) -> dict[str, str]:
        """The texts of all columns except ``columns``, without empty cells, which CSV cannot tell from absent ones."""
        return {name: text for name in self.values if name not in columns and (text := self.text(name))}

    def identifier(self, column: str) -> str:
        name, cell = self.text(column), self.values.get(column)
        if isinstance(cell, list | dict):
            raise self.error(f"{self.theirs(column)!r} must be a name, and no list or object", name)
        if isinstance(cell, float) and cell.is_integer() and column in {"qid", "did"}:
            name = str(int(cell))  # pandas makes floats of whole numbers where one is missing
        if (problem := name_problem(name)) is not None:
            raise self.error(f"{self.theirs(column)!r} {problem}", None if problem == EMPTY else name)
        return name

    def listed(self, column: str) -> list[Any] | None:
        """The list in a cell, also one written as text (see ``list_in``); ``None`` if the cell contains no list."""
        cell = self.values.get(column)
        if not isinstance(cell, str):
            return cell if isinstance(cell, list) else None
        try:
            entries = list_in(cell)
        except ValueError as error:
            raise self.error(f"{column!r} begins like a list and {error}", cell[:_MOST_SHOWN].strip()) from error
        if entries is not None and (problem := unstorable(entries)) is not None:
            raise self.error(f"{column!r}: {problem}", cell[:_MOST_SHOWN].strip())
        return entries

    def number(self, column: str) -> float | None:
        """The finite number in a cell; ``None`` if the cell is empty. Other cells raise an error."""
        text = self.text(column).strip()
        if text and finite(text) is None:
            raise self.error(f"{self.theirs(column)!r} must be a number", text)
        return finite(text)

    def rank(self, lowest: int = 1) -> int:
        """The whole number in the column ``rank``; raises an error if it is below ``lowest``."""
        number = self.number("rank")
        if number is None or number < lowest or number != int(number):
            raise self.error(f"{self.theirs('rank')!r} must be a whole number from {lowest}", self.text("rank"))
        return int(number)

    @property
    def place(self) -> str:
        """The file and line (or row number) of this record, for error messages about other records."""
        return f"{self.path} row {self.line}" if self._counts_rows else f"{self.path}:{self.line}"

    @property
    def _counts_rows(self) -> bool:
        return known_format(self.path) == "parquet"

    def error(self, problem: str, value: str | None = None) -> DataError:
        if self._counts_rows:
            return DataError(self.path, f"row {self.line}: {problem}", value=value)
        return DataError(self.path, problem, line=self.line, value=value)


class Rows(Struct, frozen=True):
    """A table in memory; error messages call it ``name``."""

    name: str
    records: Sequence[Mapping[str, Any]]

    def __str__(self) -> str:
        return self.name


def finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and text.isascii() and "_" not in text else None


def name_problem(text: str) -> str | None:
    if not text or text.isspace():
        return EMPTY
    return "is a missing value, not a name; name it, or remove the row" if text.casefold() in _MISSING_NAMES else None


def spelling_problem(kind: str, name: str, spelt: dict[str, str]) -> str | None:
    """An error message if a name differs from an earlier one only in case, spaces or invisible characters.

    ``spelt`` contains the earlier names by their normalized spelling; the function adds ``name``. ``kind`` is the
    plural noun for the named things, such as ``agents``.
    """
    visible = "".join(
        character for character in unicodedata.normalize("NFKC", name) if unicodedata.category(character) != "Cf"
    )
    other = spelt.setdefault(_folded(visible), name)
    if other == name:
        return None
    alike = "differ in case or spaces only" if _folded(other) == _folded(name) else "look alike"
    return f"{kind} {other!a} and {name!a} {alike}; spell them alike, or rename one"


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()


def cell_text(value: Cell) -> str:
    """The text of a cell in CSV and metadata: ``None`` and NaN give ``""``; lists, objects and booleans give JSON."""
    if isinstance(value, str):
        return value
    if value is None or value != value:  # noqa: PLR0124 - NaN alone differs from itself
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else str(value)


def alike(text: str) -> str:
    """The text in a form for comparison: white space collapsed, invisible characters removed, Unicode form NFC."""
    if text.isascii():
        return " ".join(text.split())
    return " ".join(unicodedata.normalize("NFC", text).translate(_INVISIBLE).split())


_INVISIBLE: Final = dict.fromkeys((0xAD, 0x200B, 0xFEFF))


def are_floats(ids: Iterable[str]) -> bool:
    """Whether all ids are whole numbers written as floats (``1.0``), as pandas writes them if an id is missing."""
    names = list(ids)
    return bool(names) and all(map(_FLOAT.fullmatch, names))


def in_form(ident: str, *, floats: bool) -> str:
    """Write a whole-number id as a float (``1.0``) if ``floats``, else as an integer; other ids are unchanged."""
    if _FLOAT.fullmatch(ident):
        return ident if floats else ident.partition(".")[0]
    return f"{ident}.0" if floats and ident.isascii() and ident.isdigit() else ident


_FLOAT: Final = re.compile(r"[0-9]+\.0")


def id_of_text(kind: str, text: str) -> str:
    """Make an id ``KIND-HASH`` from a hash of the text; equal texts have equal ids."""
    return f"{kind}-{hashlib.sha256(alike(text).encode()).hexdigest()[:10]}"


def table_format(path: Path | str) -> str:
    """A table's format by its extension: ``csv``, ``tsv``, ``jsonl``, ``json`` or ``parquet``."""
    if (kind := known_format(path)) is None:
        if Path(path).is_dir():
            raise DataError(path, f"a folder; name the files in it, such as '{path}/*.csv'")
        if not Path(path).suffix and not Path(path).exists():
            raise no_file(path)
        if Path(path).suffix.lower() in {".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"}:
            raise DataError(path, "not a table but a spreadsheet; save it as CSV in UTF-8, and name that")
        raise DataError(path, f"not a table: the name must end in {', '.join(FORMATS)}, with or without .gz")
    return kind


@lru_cache(maxsize=64)  # called for every row
def known_format(path: Path | str) -> str | None:
    """A table's format by its extension; ``None`` if the file is not a table."""
    return FORMATS.get(Path(Path(path).name.lower().removesuffix(".gz")).suffix)


def no_file(path: Path | str) -> DataError:
    """Make an error that names the missing file and a similarly named file in its folder; the caller raises it."""
    from judges.sections import did_you_mean

    path = Path(path)
    if path.is_symlink():
        return DataError(path, f"a link to {path.readlink()}, which does not exist; fix it, or name another file")
    if re.search(r"(^|/)https?:/", str(path)):
        return DataError(path, "an address, not a file; download it, and name the file")
    beside = sorted(each.name for each in path.parent.iterdir()) if path.parent.is_dir() else []
    return DataError(path, f"no such file{did_you_mean(path.name, beside) or '; check its name and folder'}")


def unstorable(value: object) -> str | None:
    """The reason why a cell cannot be stored in a UTF-8 file or a database; ``None`` if it can."""
    for text in _texts(value):
        if "\0" in text:
            return "the text holds a NUL character; remove it"
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                return "the text is not UTF-8, or holds half a surrogate pair; write it as UTF-8"
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
    """A filter for rows: it selects the rows whose text in ``column`` is one of ``values``."""

    column: str
    values: Set[str]


class LineFilter:
    """Recognizes lines of a JSONL file that the row filter ``only`` excludes, without parsing the JSON."""

    def __init__(self, only: Only) -> None:
        self._values = only.values
        self._key: re.Pattern[str] | None = None

    def learn(self, keys: Iterable[str]) -> None:
        names = "|".join(re.escape(json.dumps(key)) for key in keys)
        self._key = re.compile(rf'(?:{names})\s*:\s*(?:"([^"\\]*)"|(-?[0-9]+)[\s,}}])')

    def passes_over(self, line: str) -> bool:
        """Whether to skip a line: it ends in ``}``, and the filter excludes every value that the column has in it.

        JSON escapes quotes within strings, so a document's text cannot be mistaken for the column's key.
        """
        values = [text or number for text, number in self._key.findall(line)] if self._key is not None else []
        return bool(values) and self._values.isdisjoint(values) and line.rstrip().endswith("}")


_STRING = r"""[rRbBuU]?(?:'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")"""
_TOKEN = re.compile(
    rf"\s*+(?:(?P<string>{_STRING})|(?P<number>[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))"
    r"|(?P<more>\.\.\.|\u2026)|(?P<name>[A-Za-z_][\w.]*)|(?P<shown><[^<>'\"]*+(?:'[^']*'|\"[^\"]*\")?[^<>'\"]*+>)"
    r"|(?P<sign>[\[\](){},:=]))",
    re.DOTALL,
)
_CALL = r"(?:[A-Za-z_]\w*\.)*+[A-Za-z_]\w*\("
_LIKE_A_LIST = re.compile(
    rf"""\s*(?:(?:(?:np|numpy)\.)?(?:array|deque)\(\s*[\[(]|\[[\s\[(]*(?:[rRbBuU]?['"]|\{{\s*['"]|{_CALL})"""
    rf"""|\([\s\[(]*(?:{_STRING}\s*,|\{{\s*['"]|{_CALL})|\{{\s*['"])"""
)
"""Matches a text that begins like a list and unlike a sentence: a bracket, then a quote, an object or a call."""
_CLOSED = re.compile(r"\s*\[[^\[\]]*,[^\[\]]*\]\s*")
"""Matches a cell that contains only words in one pair of square brackets, with a comma: a list without quotes."""
_WORDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("None", "null", "NaT", "NA"), None),
    **dict.fromkeys(("nan", "NaN"), math.nan),
    "inf": math.inf,
    "True": True,
    "true": True,
    "False": False,
    "false": False,
}
_ESCAPE = re.compile(
    r"\\(\n|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|U0010[0-9a-fA-F]{4}|[0-7]{1,3}|.)", re.DOTALL
)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_MOST_NESTING: Final = 30
_MOST_TOKENS: Final = 200_000
_CUT: Final = "is cut off; export the whole list, best as JSON"
_UNREADABLE: Final = "cannot be read as one; write it as JSON, or without the bracket"


def list_in(text: str) -> list[Any] | None:
    """The list that a cell's text spells (an object gives a list of one object); ``None`` if it is ordinary text.

    Raises:
        ValueError: the text begins like a list but cannot be parsed, or entries were omitted (``...``).
    """
    if not (first := text.lstrip()[:1]) or first not in "[({and":
        return None
    list_like = _LIKE_A_LIST.match(text)
    if first in "[{":
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, list) or (list_like and isinstance(parsed, dict)):
            return parsed if isinstance(parsed, list) else [parsed]
    if list_like is None and first != "[":
        return None
    try:
        return _Parser(text).whole()
    except _NoListError as error:
        if list_like is not None or _CLOSED.fullmatch(text) or error.certain:
            raise ValueError(str(error)) from None
        return None


class _NoListError(ValueError):
    """A cell's text cannot be parsed as a list; if ``certain``, the text cannot be a sentence either."""

    certain = False


class _LeftOutError(_NoListError):
    certain = True


class _Parser:
    """Recursive-descent parser of lists as Python, numpy and JSON write them; commas may be missing, as in numpy."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._parts = text, 0, 0
        self._kind, self._mark = "", ""
        self._next()

    def whole(self) -> list[Any]:
        parsed = self._value(0)
        if self._kind:
            raise _NoListError("goes on after its end; write one list, best as JSON")
        if isinstance(parsed, dict):
            parsed = [parsed]
        if not isinstance(parsed, list):
            raise _NoListError("is not one; write a list, best as JSON")
        return parsed

    def _next(self) -> tuple[str, str]:
        """Advance to the next token, and return the token that was current before."""
        before = self._kind, self._mark
        self._parts += 1
        if self._parts > _MOST_TOKENS:
            raise _LeftOutError(f"has over {_MOST_TOKENS:,} parts; shorten it")
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            rest = self._text[self._at :].lstrip()
            if rest:
                raise _NoListError(_CUT if rest[0] in "'\"" else _UNREADABLE)
            self._kind, self._mark = "", ""
        else:
            self._at, self._kind = match.end(), match.lastgroup or ""
            self._mark = match[self._kind]
        return before

    def _value(self, depth: int, *, bare: bool = False) -> Any:
        if depth > _MOST_NESTING:
            raise _NoListError("is nested too deeply; flatten it")
        kind, mark = self._next()
        if kind == "string":
            return _unescaped(mark)
        if kind == "number":
            return _number(mark)
        if kind == "shown":  # <Kind.NAME: 'value'>
            return mark
        if kind == "name":
            return self._name_or_call(mark, depth, bare=bare)
        if mark in ("[", "("):
            return self._items("]" if mark == "[" else ")", depth)[0]
        if mark == "{":
            return self._object(depth)
        if kind == "more":
            raise _LeftOutError("has '...' where entries were left out; export the whole list, best as JSON")
        raise _NoListError(_UNREADABLE if kind else _CUT)

    def _name_or_call(self, name: str, depth: int, *, bare: bool) -> Any:
        """The value of a constant or a call: an array's entries, an object's fields, a wrapped value, else the text."""
        short_name = name.rpartition(".")[2]
        if self._mark != "(":
            if short_name not in _WORDS and not bare:  # as in dtype=object
                raise _NoListError("has texts without quotes; put quotes around them, or remove the bracket")
            return _WORDS.get(short_name, name)
        start = self._at
        self._next()
        entries, fields = self._items(")", depth)
        if short_name in {"array", "list", "tuple", "deque"}:
            return entries[0] if entries and isinstance(entries[0], list) else entries
        if fields and not entries:
            kind = short_name.removesuffix("Message").lower()
            return {"type": kind} | fields if short_name.endswith("Message") else fields
        if len(entries) == 1 and isinstance(entries[0], str | int | float):  # np.str_('...'), UUID('...')
            return entries[0]
        return f"{name}({self._text[start : self._at]}".rstrip(", ]")

    def _items(self, closing: str, depth: int) -> tuple[list[Any], dict[str, Any]]:
        entries: list[Any] = []
        fields: dict[str, Any] = {}
        commas = blanks = 0
        while self._mark != closing or self._kind != "sign":
            if not self._kind:
                raise _NoListError(_CUT)
            if self._kind == "name" and self._text[self._at : self._at + 1] == "=" and closing == ")":
                _, name = self._next()
                self._next()
                fields[name] = self._value(depth + 1, bare=True)
            else:
                entries.append(self._value(depth + 1))
            if self._mark == "," and self._kind == "sign":
                commas += 1
                self._next()
            elif self._kind and (self._mark != closing or self._kind != "sign"):
                blanks += 1
            if commas and blanks:
                raise _NoListError("has commas between some of its entries only; write it as JSON")
        self._next()
        return entries, fields

    def _object(self, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while self._mark != "}" or self._kind != "sign":
            key = self._value(depth + 1)
            if self._mark != ":":
                raise _NoListError(_CUT if not self._kind else "holds an object without a colon; write it as JSON")
            self._next()
            fields[str(key)] = self._value(depth + 1)
            if self._mark == ",":
                self._next()
            elif self._mark != "}":
                raise _NoListError(_CUT if not self._kind else "holds an object without a comma; write it as JSON")
        self._next()
        return fields


def _unescaped(mark: str) -> str:
    raw = mark[0] in "rR"
    content = mark[1:-1] if mark[0] in "'\"" else mark[2:-1]
    return content if raw or "\\" not in content else _ESCAPE.sub(_character, content)


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPED.get(code, code if code in "\\'\"" else escape[0])


def _number(mark: str) -> int | float:
    try:
        return int(mark)
    except ValueError:
        return float(mark.replace("_", ""))
