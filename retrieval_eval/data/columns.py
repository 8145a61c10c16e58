"""Tables as columns: every text once, and a number for each row, without an object for any row.

Reading is as strict as ``tables.read_rows``. What is wrong with a table is found in its columns; the row that says so
best is read again by itself, and only then.
"""

from __future__ import annotations

import itertools
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judges.errors import DataError
from retrieval_eval.data.files import is_gzip, open_binary
from retrieval_eval.data.rows import Cell, Row, cell_text, table_format, unstorable
from retrieval_eval.data.tables import cells, csv_delimiter, csv_header, csv_records, open_parquet, plain, read_rows

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 20
"""Bytes that are looked through at once."""


class Texts(NamedTuple):
    """A column of texts: each one once, as it first came, and which of them each row has."""

    names: Sequence[str | None]
    codes: NDArray[np.int32]

    def of(self, rows: NDArray[Any]) -> Texts:
        """The column of some rows."""
        return Texts(self.names, self.codes[rows])

    def each(self) -> list[str]:
        """The text of each row, ``""`` for none."""
        names = [name or "" for name in self.names]
        return [names[code] for code in self.codes.tolist()]


def in_order(*columns: Texts) -> tuple[tuple[str, ...], tuple[NDArray[np.int32], ...]]:
    """The texts that rows of some columns have, in their order, and which each row has in each column."""
    used = [np.bincount(column.codes, minlength=len(column.names)).tolist() for column in columns]
    own = (itertools.compress(column.names, number) for column, number in zip(columns, used, strict=True))
    names = tuple(sorted(set(map(str, itertools.chain(*own)))))
    place = {name: at for at, name in enumerate(names)}
    return names, tuple(
        np.array([place.get(str(name), -1) for name in column.names], np.int32)[column.codes] for column in columns
    )


def joined(columns: Sequence[Texts]) -> Texts:
    """The rows of several columns below each other."""
    if len(columns) == 1:
        return columns[0]
    place: dict[str | None, int] = {}
    codes = [
        np.array([place.setdefault(name, len(place)) for name in column.names], np.int32)[column.codes]
        for column in columns
    ]
    return Texts(list(place), np.concatenate(codes))


class TextTable(NamedTuple):
    """Rows that have the same columns.

    Attributes:
        columns: by name, in the order of the file; ``""`` stands for an empty cell.
        places: of the rows in the file, from 0 and ascending, shape (rows,).
        line: of the first of them; in Parquet the row.
    """

    columns: Mapping[str, Texts]
    places: NDArray[np.int64]
    line: int


def read_text_columns(path: Path | str) -> list[TextTable]:
    """The cells of a table as texts: one table, but of JSONL one for each set of columns that its lines have.

    Raises:
        DataError: as ``read_rows`` raises it.
    """
    path = Path(path)
    kind = table_format(path)
    columns: dict[str, Texts] | None = None
    if kind == "parquet":
        columns = _of_parquet(path)
    elif kind in {"csv", "tsv"}:
        columns = _of_delimited(path)
    if columns is None:
        return _of_rows(read_rows(path))
    size = next(iter(columns.values())).codes.size if columns else 0
    if not size:
        raise DataError(path, "the table has no rows; add at least one")
    return [TextTable(columns, np.arange(size), 1)]


def row_at(path: Path | str, place: int) -> Row:
    """One row of a table, by its place from 0: for saying what is wrong with it."""
    return next(itertools.islice(read_rows(path), place, None))


def _of_delimited(path: Path) -> dict[str, Texts] | None:
    """Columns of CSV; ``None`` where only reading it row by row tells what is in it, or what is wrong with it."""
    import pyarrow as pa
    from pyarrow import csv

    delimiter = csv_delimiter(path)
    start, header = csv_header(path, delimiter)
    quoted = False
    with open_binary(path) as raw:
        while block := raw.read(_BLOCK):
            quoted |= b'"' in block
            if b"\0" in block:
                return None
    if quoted:  # Arrow takes quotes that are none, such as of a field that never ends
        try:
            deque(csv_records(path, delimiter), maxlen=0)
        except DataError:
            return None
    numbers = [str(number) for number in range(len(header))]
    try:
        # Arrow's threads must not hold a file of Python's: one that is let go while the program ends would abort it.
        with pa.OSFile(str(path)) as raw, pa.CompressedInputStream(raw, "gzip") if is_gzip(path) else raw as source:
            table = csv.read_csv(
                source,
                csv.ReadOptions(column_names=numbers, skip_rows=start - 1, skip_rows_after_names=1),
                csv.ParseOptions(delimiter=delimiter, newlines_in_values=quoted),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(numbers, pa.dictionary(pa.int32(), pa.string())),
                    include_columns=[number for number, name in zip(numbers, header, strict=True) if name],
                    strings_can_be_null=False,
                ),
            )
    except (pa.ArrowException, OSError):  # such as of zeros behind gzip data
        return None
    names = [name for name in header if name]
    columns = {name: _texts(path, column) for name, column in zip(names, table.columns, strict=True)}
    return None if _has_blank_row(columns.values()) else columns


def _has_blank_row(columns: Iterable[Texts]) -> bool:
    """Whether some row has no text at all, as spreadsheets write them."""
    blank: NDArray[np.bool_] | None = None
    for column in columns:
        without = np.array([not (name or "").strip() for name in column.names], np.bool_)
        if not without.any():
            return False
        blank = without[column.codes] if blank is None else blank & without[column.codes]
    return blank is not None and bool(blank.any())


def _of_parquet(path: Path) -> dict[str, Texts]:
    with open_parquet(path) as file:
        table = file.read()
        columns = {name: _texts(path, column) for name, column in zip(table.column_names, table.columns, strict=True)}
    faults = [
        (int((column.codes == code).argmax()), problem)
        for column in columns.values()
        for code, name in enumerate(column.names)
        if (problem := unstorable(name)) is not None
    ]
    if faults:
        place, problem = min(faults)
        raise Row(path, place + 1, {}).error(problem)
    return columns


def _texts(path: Path, column: pa.ChunkedArray) -> Texts:
    """A column of any type as the texts that its cells have in CSV."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_nested(kind):
        return _coded(plain(cell) for chunk in column.chunks for cell in cells(path, chunk))
    if not pa.types.is_dictionary(kind):
        column = column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # a table without rows has no chunk
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], column.type)
    names = [cell_text(plain(cell)) for cell in whole.dictionary.to_pylist()]
    codes = whole.indices.cast(pa.int32())
    if codes.null_count:
        codes = codes.fill_null(pa.scalar(len(names), pa.int32()))
        names.append("")
    # The numbers as they lie in memory: Arrow's own way to numpy imports pandas, which takes half a second.
    return _distinct(names, np.frombuffer(codes.buffers()[1], np.int32)[codes.offset : codes.offset + len(codes)])


def _distinct(names: list[str], codes: NDArray[np.int32]) -> Texts:
    """The same column with no text twice, and none that no row has."""
    used = np.bincount(codes, minlength=len(names)) > 0
    if used.all() and len(set(names)) == len(names):
        return Texts(names, codes)
    place: dict[str, int] = {}
    renumbered = [place.setdefault(name, len(place)) if own else -1 for name, own in zip(names, used, strict=True)]
    return Texts(list(place), np.array(renumbered, np.int32)[codes])


def _coded(cells: Iterable[Cell]) -> Texts:
    place: dict[str, int] = {}
    codes = array("i", (place.setdefault(cell_text(cell), len(place)) for cell in cells))
    return Texts(list(place), np.frombuffer(codes, np.int32))


def _of_rows(rows: Iterator[Row]) -> list[TextTable]:
    """Rows that come one by one, a table for each set of columns."""
    tables: dict[tuple[str, ...], tuple[int, array[int], dict[str, tuple[dict[str, int], array[int]]]]] = {}
    for place, row in enumerate(rows):
        header = tuple(row.values)
        if header not in tables:
            tables[header] = row.line, array("q"), {name: ({}, array("i")) for name in header}
        _, places, columns = tables[header]
        places.append(place)
        for name, cell in row.values.items():
            names, codes = columns[name]
            codes.append(names.setdefault(cell_text(cell), len(names)))
    return [
        TextTable(
            {name: Texts(list(names), np.frombuffer(codes, np.int32)) for name, (names, codes) in columns.items()},
            np.frombuffer(places, np.int64),
            line,
        )
        for line, places, columns in tables.values()
    ]
