"""Readers and writers of tables: CSV, TSV, JSONL, JSON and Parquet, plain or gzip; the extension decides.

Reading is streamed and strict: faults that a spreadsheet would silently repair (a short row, a repeated column, bytes
that are not UTF-8) raise a ``DataError`` that names the file and the line. Readers accept a BOM, blank rows, Excel's
line ``sep=;`` and columns without a name (pandas writes its index so). TSV is CSV with tabs: a field that starts with a
quote ends with one. A ``.csv`` may also use ``;`` or tabs. JSON is a list of objects, or an object that contains such a
list, like promptfoo's results.

Writing is atomic and deterministic. Text is written unchanged, even if it begins with ``=``, ``+``, ``-`` or ``@``:
changing it would falsify the judged text and break reading the file again. A spreadsheet may run such text as a
formula, so open tables from strangers there as text.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from msgspec.structs import replace

from judges.errors import DataError
from retrieval_eval.data.files import LONGEST_LINE, is_gzip, most_unpacked, open_binary, open_replacing, read_lines
from retrieval_eval.data.layouts import laid_out, layout_of
from retrieval_eval.data.rows import Cell, LineFilter, Only, Row, Rows, cell_text, table_format, unstorable

Naming: TypeAlias = Callable[[int | None, Sequence[str], Mapping[str, Any] | None], dict[str, str]]
"""Function that returns the canonical name for each column of a table, ``""`` to ignore the column.

Its arguments are the line number, the columns, and the cells. The cells are those of the row in JSON, where rows may
differ in their columns; in Parquet only the columns of objects; in CSV ``None``.
"""

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_DELIMITERS_OF_CSV = (",", ";", "\t")
_CSV_MESSAGES = {
    "unexpected end of data": "a quote is not closed",
    "',' expected after '\"'": "text follows a closing quote",
    f"field larger than field limit ({LONGEST_LINE})": f"a cell has over {LONGEST_LINE:,} characters",
}
"""Error messages of the csv module, each with the plainer message to show instead."""
_MOST_CELLS = 50_000_000
"""A Parquet file may always have this many cells, even if it has few bytes."""
_PART_ROWS = 10_000
"""Number of rows to convert at a time when writing Parquet; as Arrow columns they take a tenth of the memory."""


def read_rows(
    source: Path | str | Rows,
    naming: Naming | None = None,
    only: Only | None = None,
    *,
    empty: bool = False,
    raw: bool = False,
) -> Iterator[Row]:
    """Stream the rows of a table; JSON (other than JSONL) is loaded into memory. ``LAYOUTS`` become rows of their own.

    Args:
        source: the file, or rows in memory.
        naming: function that renames the columns; by default they keep their names.
        only: filter that selects the rows to yield; by default all rows. Excluded rows are not fully checked: an
            excluded line of JSON only has to end like a record.
        empty: whether a table without rows is accepted.
        raw: whether records in the formats of ``LAYOUTS`` stay as they are.
    """
    if isinstance(source, Rows):
        return _memory_rows(source) if raw else memory_rows(source)
    path, naming = Path(source), naming or _same_names
    if (records := {"jsonl": _json_lines, "json": _json_records}.get(kind := table_format(path))) is None:
        reader = _read_parquet if kind == "parquet" else _read_delimited
        if raw or not is_laid_out(path):
            rows = reader(path, naming, only)
        else:
            rows = _rows_of_objects(path, partial(_records_of, reader), naming, only)
    else:
        rows = _rows_of_objects(path, records, naming, only, raw=raw)
    return rows if empty or only is not None else _at_least_one(path, rows)


def _same_names(_line: int | None, header: Sequence[str], _cells: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: name if name.strip() else "" for name in header}


def memory_rows(source: Rows) -> Iterator[Row]:
    for row in _memory_rows(source):
        laid = laid_out(row.values)
        yield from (replace(row, values=cells, form=laid[0]) for cells in laid[1]) if laid is not None else (row,)


def _memory_rows(source: Rows) -> Iterator[Row]:
    if not source.records:
        raise DataError(source.name, "the table has no rows; add at least one")
    for number, record in enumerate(source.records, start=1):
        values = {str(name): of_python(cell) for name, cell in record.items()}
        row = Row(Path(source.name), number, values)
        if len(values) < len(record):
            raise row.error("two columns have the same name; rename one", _repeated(map(str, record))[0])
        if (problem := unstorable(values)) is not None:
            raise row.error(problem)
        yield row


def read_columns(path: Path | str) -> list[str]:
    """The column names as the file spells them; for JSON and JSONL the keys of the first record."""
    if table_format(path) == "parquet" and not is_laid_out(Path(path)):
        return _columns_of_table(Path(path))
    return list(next(read_rows(path)).values)


def is_laid_out(path: Path) -> bool:
    """Whether a CSV, TSV or Parquet file is in a format of ``LAYOUTS``, by its columns and its first row."""
    if layout_of(tuple(_columns_of_table(path))) is None:
        return False
    reader = _read_parquet if table_format(path) == "parquet" else _read_delimited
    try:
        return any(laid_out(row.values) is not None for row in itertools.islice(reader(path, _same_names, None), 1))
    except DataError:  # reading it as a table reports the error
        return False


def _columns_of_table(path: Path) -> list[str]:
    if table_format(path) == "parquet":
        with open_parquet(path) as table:
            return list(table.schema_arrow.names)
    return csv_header(path, csv_delimiter(path))[1]


def has_rows(path: Path) -> bool:
    """Whether the file has a row, or a fault that ``read_rows`` will report; ``False`` if it is missing or empty."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    try:
        return next(read_rows(path, empty=True), None) is not None
    except DataError:
        return True


def write_rows(path: Path | str, columns: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> None:
    """Write a table in the format that the file's extension names; a cell is empty if the row lacks its column."""
    path = Path(path)
    kind = table_format(path)
    if faulty_names := [name for name in columns if not name or name != name.strip()] or _repeated(columns):
        raise DataError(
            path, "a column name is empty, repeated or surrounded by spaces; rename it", value=faulty_names[0]
        )
    with open_replacing(path) as raw:
        checked = _checked(path, columns, rows)
        if kind == "parquet":
            _write_parquet(path, raw, columns, checked)
            return
        with io.TextIOWrapper(raw, "utf-8", newline="") as text:
            if kind == "jsonl":
                text.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in checked)
            elif kind == "json":
                text.write("[")
                for number, row in enumerate(checked):
                    text.write(("," if number else "") + "\n" + json.dumps(row, ensure_ascii=False, allow_nan=False))
                text.write("\n]\n")
            else:
                # Python 3.11 and 3.12 quote a lone carriage return only if it is part of the line end: RFC 4180's CRLF.
                writer = csv.writer(text, delimiter=_DELIMITERS[kind], lineterminator="\r\n")
                writer.writerow(columns)
                writer.writerows([cell_text(row[name]) for name in columns] for row in checked)


def _at_least_one(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    first = next(rows, None)
    if first is None:
        raise DataError(path, "the table has no rows; add at least one")
    yield first
    yield from rows


def _read_delimited(path: Path, naming: Naming, only: Only | None) -> Iterator[Row]:
    header: list[str] = []
    delimiter = csv_delimiter(path)
    for start, fields in csv_records(path, delimiter):
        if not header:
            spellings = _header(path, start, fields)
            renamed = naming(start, spellings, None)
            canonical = {name: canonical_name for name, canonical_name in renamed.items() if name}
            header = [renamed[name] for name in spellings]
            filter_index = header.index(only.column) if only is not None else 0
            continue
        if len(fields) != len(header) and not any(map(str.strip, fields)):
            continue
        if len(fields) != len(header):
            problem = f"{len(fields)} fields, and the header has {len(header)}; quote texts that hold {delimiter!r}"
            raise DataError(path, problem, line=start, value=delimiter.join(fields))
        if len(fields) > 1 and fields[0].strip() == spellings[0] and [field.strip() for field in fields] == spellings:
            raise DataError(path, "the header is repeated here; remove the line", line=start)
        if only is not None and fields[filter_index] not in only.values:
            continue
        values = dict(zip(header, fields, strict=True))
        values.pop("", None)
        yield Row(path, start, values, called=canonical)


def csv_delimiter(path: Path) -> str:
    """The delimiter that a ``sep=`` line declares, else the delimiter that splits the header into the most columns."""
    csv.field_size_limit(LONGEST_LINE)  # the default of 128 KiB is shorter than some retrieved documents
    if table_format(path) == "tsv":
        return _DELIMITERS["tsv"]
    lines = (line for _, line in read_lines(path) if not line.isspace())
    header = next(lines, "")
    if (separator_line := _SEPARATOR.match(header)) is not None:
        return separator_line[1]
    if not header.strip(" ,;\t\r\n"):
        header = next((line for line in lines if line.strip(" ,;\t\r\n")), header)
    return max(_DELIMITERS_OF_CSV, key=lambda delimiter: len(next(csv.reader([header], delimiter=delimiter), ())))


_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?\s*\Z', re.IGNORECASE)
"""Matches a first line that tells Excel the delimiter, such as ``sep=;``."""


def _without_separator(path: Path) -> Iterator[str]:
    lines = (line for _, line in read_lines(path))
    for first in lines:
        yield "\n" if _SEPARATOR.match(first) else first
        break
    yield from lines


def csv_header(path: Path, delimiter: str) -> tuple[int, list[str]]:
    start, fields = next(csv_records(path, delimiter))
    return start, _header(path, start, fields)


def _header(path: Path, line: int, fields: Sequence[str]) -> list[str]:
    names = [name.strip() for name in fields]
    if repeated := _repeated(name for name in names if name):
        if any(re.match(r"\[.+\] .", name) for name in names) and not repeated[0].startswith("["):
            # promptfoo names the columns about an output alike for each prompt
            return [f"{name}\0{place}" if name in repeated else name for place, name in enumerate(names)]
        raise DataError(path, "the header names a column twice; rename one", line=line, value=repeated[0])
    return names


def csv_records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields line number and fields of each CSV record, the header's first; skips blank lines."""
    is_empty = True
    records = csv.reader(_without_separator(path), delimiter=delimiter, strict=True)
    while True:
        start = records.line_num + 1
        try:
            fields = next(records)
        except StopIteration:
            break
        except csv.Error as error:
            raise DataError(
                path, f"{_CSV_MESSAGES.get(str(error), str(error))}; check the quotes", line=start
            ) from error
        if len(fields) == 1 or any(map(str.strip, fields)):
            is_empty = False
            yield start, fields
    if is_empty:
        raise DataError(path, "the file is empty; write a header and rows into it")


_Records: TypeAlias = Iterator[tuple[int, Any, bool]]
"""Line number and content of each record, and whether it may have escaped characters."""


def _json_lines(path: Path, lines: LineFilter | None) -> _Records:
    for number, line in read_lines(path):
        if line.isspace() or (lines is not None and lines.passes_over(line)):
            continue
        try:
            record = _DECODER.decode(line.strip())
        except (ValueError, RecursionError) as error:
            torn = "" if line.endswith(("\n", "\r")) else "; the file seems to be cut off here"
            at = f" at character {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            problem = f"not JSON{at}: {_why_not_json(error)}{torn}"
            raise DataError(path, problem, line=number, value=line.strip()) from error
        if not isinstance(record, dict):
            whole = isinstance(record, list) and number == 1
            advice = "name the file .json" if whole else "write one object per line"
            raise DataError(path, f"the line is not a JSON object; {advice}", line=number, value=line.strip())
        yield number, record, "\\u" in line


def _json_records(path: Path, _lines: LineFilter | None) -> _Records:
    for number, record in _records_in_json(path):
        if not isinstance(record, dict):
            problem = 'the list has an entry that is not an object; write {"column": value}'
            raise DataError(path, problem, line=number, value=cell_text(record))
        yield number, record, True


def _records_of(
    reader: Callable[[Path, Naming, None], Iterator[Row]], path: Path, _lines: LineFilter | None
) -> _Records:
    return ((row.line, row.values, False) for row in reader(path, _same_names, None))


def _rows_of_objects(
    path: Path,
    records: Callable[[Path, LineFilter | None], _Records],
    naming: Naming,
    only: Only | None,
    *,
    raw: bool = False,
) -> Iterator[Row]:
    """Turn JSON objects into rows, those in the formats of ``LAYOUTS`` too."""
    lines = LineFilter(only) if only is not None else None
    renamings: dict[tuple[str, ...], dict[str, str]] = {}  # most records have the same keys
    for number, whole, is_escaped in records(path, lines):
        if is_escaped and (problem := unstorable(whole)) is not None:
            raise DataError(path, problem, line=number)
        laid = None if raw else laid_out(whole)
        form, cells = ("", [whole]) if laid is None else laid
        for record in cells:
            keys = tuple(record)
            if keys not in renamings:
                renamings[keys] = naming(number, keys, record)
                if lines is not None and only is not None and laid is None:
                    lines.learn({name for names in renamings.values() for name in names if names[name] == only.column})
            renamed = renamings[keys]
            values = {name: value for key, value in record.items() if (name := renamed[key])}
            row = Row(path, number, values, called=renamed, form=form)
            if only is None or row.text(only.column) in only.values:
                yield row


_SPACE = re.compile(r"[ \t\r\n]*")
_MOST_NESTED_OBJECTS = 3
"""Most nested objects around the list of records in a JSON file."""
_RECORD_KEYS = frozenset(
    {"results", "records", "rows", "data", "examples", "samples", "items", "answers", "test_cases"}
)
"""If a JSON object contains several lists, its list of records is the one under one of these keys."""


def _records_in_json(path: Path) -> Iterator[tuple[int, Any]]:
    """Yields line number and content of each record in a JSON file.

    The file is a list of records, or an object that contains a single list of records, which may be nested like
    promptfoo's ``results.results``. An object of columns is read as a table, and a single object with texts as one
    record. A ``.json`` file may also contain JSON lines.
    """
    text = "".join(line for _, line in read_lines(path, whole=True))
    reader = _JsonReader(path, text)
    start = reader.next_place(0)
    if start == len(text):
        raise DataError(path, "the file is empty; write the list of objects into it")
    if text[start] == "[":
        yield from reader.entries(start, whole=True)
        return
    if text[start] != "{":
        problem = "neither a list of objects nor an object; write [{...}, {...}]"
        raise DataError(path, problem, line=reader.line(start), value=text[start:])
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
    types = set(map(type, whole.values()))
    if not lists and str in types and dict not in types:  # a single record
        yield reader.line(start), whole
    elif len(lists) != 1:
        names = ", ".join(".".join(keys) for keys, _ in lists[:5])
        problem = f"several lists of objects: {names}; leave one" if lists else "no list of objects in it; write one"
        raise DataError(path, problem)
    else:
        yield from reader.entries(lists[0][1])


def _rows_of_columns(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a JSON object that maps columns to lists or objects of cells, as pandas writes; ``[]`` for others."""
    columns = list(whole.values())
    split = whole.keys() - {"index"} == {"columns", "data"} and all(isinstance(column, list) for column in columns)
    if split and all(isinstance(row, list) for row in whole["data"]):
        return [dict(zip(map(str, whole["columns"]), row, strict=False)) for row in whole["data"]]
    if not columns or any(type(column) is not type(columns[0]) for column in columns):
        return []
    if isinstance(columns[0], dict):
        if any(column.keys() != columns[0].keys() or not all(map(str.isdigit, column)) for column in columns):
            return _rows_by_query(whole)
        columns = [list(column.values()) for column in columns]
    if not isinstance(columns[0], list) or len(columns) < 2 or len({len(column) for column in columns}) > 1:
        return []
    if all(isinstance(cell, dict) for column in columns for cell in column):
        return []  # lists of records
    return [dict(zip(whole, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _rows_by_query(whole: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a JSON object by query: of scores or labels by document, or of records with the same keys."""
    cells = [cell for entry in whole.values() for cell in entry.values()]
    if all(type(cell) in {int, float} for cell in cells):
        entries = ((query, did, score) for query, scores in whole.items() for did, score in scores.items())
        return [{"qid": query, "did": did, "score": score} for query, did, score in entries]
    keys = next(iter(whole.values())).keys()
    alike = len(whole) > 1 and all(entry.keys() == keys for entry in whole.values())
    plain = alike and any(isinstance(cell, str) for cell in cells) and not any(isinstance(cell, dict) for cell in cells)
    return [{"qid": query, **entry} for query, entry in whole.items()] if plain else []


def _why_not_json(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply; flatten it"
    message = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return next((plain for beginning, plain in _JSON_MESSAGES.items() if message.startswith(beginning)), message)


_JSON_MESSAGES: Final = {
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing",
    "Illegal trailing comma before end of object": "a comma stands before '}'; remove it",
    "Illegal trailing comma before end of array": "a comma stands before ']'; remove it",
    "Exceeds the limit": "a number has thousands of digits; put quotes around it",
    "Expecting value": "a value is missing, such as a text in double quotes",
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Extra data": "text after the object; write one object per line",
    "Unterminated string": "a text has no closing quote",
    "Invalid control character": "a line break or tab within a text; write \\n or \\t",
    "Invalid \\escape": "a single backslash in a text; write two",
}
"""Beginnings of the json module's error messages, each with the plainer message to show instead."""


class _JsonReader:
    """Parses JSON text one value at a time, and computes the line number of each."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text
        self._counted, self._lines = 0, 1

    def line(self, place: int) -> int:
        """The line number of a position in the text; fast if each call has a later position than the one before."""
        if place < self._counted:
            self._counted, self._lines = 0, 1
        self._lines += self._text.count("\n", self._counted, place)
        self._counted = place
        return self._lines

    def next_place(self, place: int) -> int:
        match = _SPACE.match(self._text, place)
        return match.end() if match is not None else place

    def value(self, place: int) -> tuple[Any, int]:
        """Parse the value at a position; returns the value, and the position after it."""
        try:
            return _DECODER.raw_decode(self._text, place)
        except json.JSONDecodeError as error:
            torn = "; the file seems to be cut off here" if not self._text[error.pos :].strip() else ""
            line = self.line(error.pos)
            rest = self._text[error.pos : error.pos + 40].strip() or None
            raise DataError(self._path, f"not JSON: {_why_not_json(error)}{torn}", line=line, value=rest) from error
        except (RecursionError, ValueError) as error:
            raise DataError(self._path, f"not JSON: {_why_not_json(error)}", line=self.line(place)) from error

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
            raise DataError(self._path, "text after the end of the list; remove it", line=self.line(place), value=rest)

    def lines(self, place: int) -> Iterator[tuple[int, Any]]:
        while place < len(self._text):
            line = self.line(place)
            entry, end = self.value(place)
            yield line, entry
            place = self.next_place(end)

    def lists(self, place: int, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yields each list of objects within an object, as its path of keys and its start position."""
        place = self.next_place(place + 1)
        while self._text[place : place + 1] != "}":
            key, end = self.value(place)
            place = self.next_place(self.next_place(end) + 1)
            value, end = self.value(place)
            if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
                yield (*keys, key), place
            elif isinstance(value, dict) and len(keys) < _MOST_NESTED_OBJECTS:
                yield from self.lists(place, (*keys, key))
            place = self._after(end, "}")

    def _after(self, end: int, closing: str) -> int:
        """After an entry: the position of the next entry, or of the closing bracket if there is none."""
        place = self.next_place(end)
        if self._text[place : place + 1] == ",":
            return self.next_place(place + 1)
        if self._text[place : place + 1] != closing:
            torn = "; the file seems to be cut off here" if place >= len(self._text) else ""
            raise DataError(self._path, f"not JSON: ',' or '{closing}' is missing{torn}", line=self.line(place))
        return place


def _read_parquet(path: Path, naming: Naming, only: Only | None) -> Iterator[Row]:
    import pyarrow as pa

    before = 0
    with open_parquet(path) as table:
        objects: dict[str, Any] = {field.name: {} for field in table.schema_arrow if pa.types.is_struct(field.type)}
        renamed = naming(None, table.schema_arrow.names, objects)
        for batch in table.iter_batches(batch_size=4096):
            indices = _wanted_places(path, batch, renamed, only)
            selected = batch.take(pa.array(indices, pa.int64()))
            cell_columns = [cells(path, column) for column in selected.columns]
            for index, *record in zip(indices, *cell_columns, strict=True):
                pairs = zip(batch.schema.names, record, strict=True)
                values = {name: plain(cell) for key, cell in pairs if (name := renamed[key])}
                row = Row(path, before + index + 1, values, called=renamed)
                if (problem := unstorable(row.values)) is not None:
                    raise row.error(problem)
                yield row
            before += len(batch)


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file with its text columns dictionary-encoded, so that repeated texts take no extra memory."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with open_binary(path) as raw:
            # Parquet is read from its end, and seeking in a gzip stream is slow.
            source = io.BytesIO(raw.read()) if is_gzip(path) else raw
            metadata = parquet.read_metadata(source)
            _require_room(path, metadata)
            leaves = map(metadata.schema.column, range(len(metadata.schema)))
            texts = [leaf.path for leaf in leaves if leaf.logical_type.type == "STRING"]
            file = parquet.ParquetFile(source, read_dictionary=texts)
            names = list(map(str.strip, file.schema_arrow.names))
            if repeated := _repeated(filter(None, names)):
                raise DataError(path, "two columns have the same name; rename one", value=repeated[0])
            if (problem := unstorable(names)) is not None:
                raise DataError(path, f"a column's name cannot be used: {problem}")
            yield file
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(path, "not a Parquet file, or cut off; write it again") from error


def _require_room(path: Path, content: Any) -> None:
    """Raise ``DataError`` if the Parquet file's footer announces more bytes or cells than a real table has."""
    groups = map(content.row_group, range(content.num_row_groups))
    columns = [group.column(index) for group in groups for index in range(group.num_columns)]
    limit = most_unpacked(path)
    if sum(column.total_uncompressed_size for column in columns) > limit:
        raise DataError(path, f"it unpacks to over {limit // 1_000_000} MB; write it anew without compression")
    if (number := sum(column.num_values for column in columns)) > max(limit // 4, _MOST_CELLS):
        raise DataError(path, f"it has {number:,} cells, far more than a file of its size should have; split it")


def cells(path: Path, column: Any, *, nested: bool = False) -> list[Any]:
    """The cells of an Arrow column as Python values; equal texts are one Python object, to save memory."""
    from pyarrow import types

    arrow_type = column.type
    if types.is_dictionary(arrow_type):
        codes = column.indices.to_pylist()
        used = list({code for code in codes if code is not None})
        texts = dict(zip(used, column.dictionary.take(used).to_pylist(), strict=True)) if used else {}
        limit = most_unpacked(path)
        if nested and sum(len(texts[code]) for code in codes if code is not None) > limit:
            raise DataError(path, f"the texts in its lists have over {limit // 1_000_000} MB; write it as JSON lines")
        return [None if code is None else texts[code] for code in codes]
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        values, offsets = cells(path, column.values, nested=True), column.offsets.to_pylist()
        ends = zip(offsets[:-1], offsets[1:], column.is_valid().to_pylist(), strict=True)
        return [values[start:end] if is_valid else None for start, end, is_valid in ends]
    if types.is_struct(arrow_type):
        fields = [cells(path, column.field(at), nested=True) for at in range(arrow_type.num_fields)]
        names = [arrow_type.field(at).name for at in range(arrow_type.num_fields)]
        rows = zip(*fields, strict=True) if fields else [()] * len(column)
        validity = column.is_valid().to_pylist()
        return [dict(zip(names, row, strict=True)) if ok else None for row, ok in zip(rows, validity, strict=True)]
    scalars: list[Any] = column.to_pylist()
    return scalars


def _wanted_places(path: Path, batch: Any, renamed: Mapping[str, str], only: Only | None) -> list[int]:
    if only is None:
        return list(range(len(batch)))
    column = next(batch[name] for name, canonical in renamed.items() if canonical == only.column)
    return [index for index, cell in enumerate(cells(path, column)) if cell_text(plain(cell)) in only.values]


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError(f"the key {_repeated(key for key, _ in pairs)[0]!r} stands twice; leave one out")
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no value of JSON; write null")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]


def of_python(value: Any) -> Cell:
    """A cell of a data frame or dictionary as a JSON value; missing values of pandas become ``None``."""
    if hasattr(value, "tolist"):  # numpy arrays and numbers
        listed: Cell = value.tolist()
        return listed
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, tuple):
        return list(value)
    return None if (cell := plain(value)) in ("<NA>", "NaT") and not isinstance(value, str) else cell


def plain(value: Any) -> Cell:
    """A value from a Parquet file as a JSON type: dates, decimals and bytes become text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")  # ``unstorable`` reports bytes that are not UTF-8
    return value if value is None or isinstance(value, str | int | float | list | dict) else str(value)


def _checked(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> Iterator[dict[str, Cell]]:
    for number, row in enumerate(rows, start=1):
        if unknown := row.keys() - set(columns):
            raise ValueError(f"row {number} has columns that are not written: {sorted(unknown)}")
        for name in columns:
            if (problem := unstorable(row.get(name))) is not None:
                raise DataError(path, f"row {number}, column {name!r}: {problem}")
        yield {name: row.get(name) for name in columns}


def _write_parquet(path: Path, raw: BinaryIO, columns: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parts: dict[str, list[Any]] = {name: [] for name in columns}
    records = iter(rows)
    while part := list(itertools.islice(records, _PART_ROWS)):
        for name, arrays in parts.items():
            with _one_type(path, name):
                arrays.append(pa.array([record[name] for record in part]))
    arrow_columns = {}
    for name, arrays in parts.items():
        with _one_type(path, name):
            tables = [pa.table({name: array}) for array in arrays]
            arrow_columns[name] = (
                pa.concat_tables(tables, promote_options="permissive")[name] if tables else pa.array([])
            )
    parquet.write_table(pa.table(arrow_columns), raw)


@contextmanager
def _one_type(path: Path, column: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(
            path, f"column {column!r} fits no single Parquet type ({error}); write a .csv or .jsonl file instead"
        ) from error
