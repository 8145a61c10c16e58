"""Tables as columns: each distinct text is stored once, and each row is an integer code, not a Python object.

Reading is as strict as ``tables.read_rows``: faults are found in the columns, and then the faulty row is read again for
its error message.
"""

from __future__ import annotations

import itertools
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from judges.errors import DataError
from retrieval_eval.data.files import is_gzip, open_binary
from retrieval_eval.data.rows import Row, Rows, cell_text, table_format, unstorable
from retrieval_eval.data.tables import (
    cells,
    csv_delimiter,
    csv_header,
    csv_records,
    is_laid_out,
    open_parquet,
    plain,
    read_rows,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_BLOCK = 1 << 20


class Texts(NamedTuple):
    """A column of texts: the distinct texts in order of first occurrence, and for each row the index of its text."""

    names: Sequence[str | None]
    codes: NDArray[np.int32]

    def of(self, rows: NDArray[Any]) -> Texts:
        return Texts(self.names, self.codes[rows])

    def mapped(self, read: Callable[[Any], Any], dtype: Any = np.bool_) -> NDArray[Any]:
        """A function's result for each row's text, shape (rows,); the function is called once per distinct text."""
        return np.array([read(name) for name in self.names], dtype)[self.codes]

    def each(self) -> list[str]:
        """The text of each row as a list; ``None`` becomes ``""``."""
        names = [name or "" for name in self.names]
        return [names[code] for code in self.codes.tolist()]


def in_order(*columns: Texts) -> tuple[tuple[str, ...], tuple[NDArray[np.int32], ...]]:
    """The sorted distinct texts of all columns together, and for each column the index of each row's text in them."""
    use_counts = [np.bincount(column.codes, minlength=len(column.names)).tolist() for column in columns]
    used_names = (itertools.compress(column.names, counts) for column, counts in zip(columns, use_counts, strict=True))
    names = tuple(sorted(set(map(str, itertools.chain(*used_names)))))
    index = {name: counts for counts, name in enumerate(names)}
    return names, tuple(column.mapped(lambda name: index.get(str(name), -1), np.int32) for column in columns)


def joined(columns: Sequence[Texts]) -> Texts:
    if len(columns) == 1:
        return columns[0]
    index: dict[str | None, int] = {}
    codes = [column.mapped(lambda name: index.setdefault(name, len(index)), np.int32) for column in columns]
    return Texts(list(index), np.concatenate(codes))


class TextTable(NamedTuple):
    """Rows of a table that all have the same columns.

    Attributes:
        columns: the columns by name, in the order of the file; an empty cell has the text ``""``.
        places: index of each of these rows in the file, from 0 and ascending, shape (rows,).
        line: line number of the first of these rows in a JSON file; ``None`` in other formats.
        form: the other tool's format of the rows; ``""`` for a plain table.
    """

    columns: Mapping[str, Texts]
    places: NDArray[np.int64]
    line: int | None
    form: str = ""


class Frame(Struct, frozen=True, eq=False):
    """A data frame as columns of texts; error messages call it ``name``."""

    name: str
    columns: Mapping[str, Texts]

    @staticmethod
    def of(name: str, frame: pd.DataFrame) -> Frame:
        import pyarrow as pa

        if not all(isinstance(column, str) for column in frame):
            raise DataError(
                name,
                "the frame has a column whose name is not a string; set frame.columns = frame.columns.map(str)",
            )
        if not frame.columns.is_unique:
            raise DataError(name, "two columns have the same name; rename one")
        try:
            alike = frame.assign(**{column: _alike(frame[column]) for column in frame.columns})
            table = pa.Table.from_pandas(alike, preserve_index=False)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise DataError(name, f"cannot be read as a table: {str(error).splitlines()[0]}") from error
        return Frame(name, _columns_of_arrow(Path(name), table))

    def __str__(self) -> str:
        return self.name


TextSource: TypeAlias = Path | str | Rows | Frame


def _alike(column: pd.Series[Any]) -> pd.Series[Any]:
    """Turn mixed types into text, and whole floats into integers (pandas turns integers with gaps into floats)."""
    if column.dtype.kind == "f" and (column.dropna() % 1 == 0).all():
        return column.astype("Int64")
    several = column.dtype == object and len(set(map(type, column.dropna()))) > 1
    return column.map(str, na_action="ignore") if several else column


def read_text_columns(source: TextSource) -> list[TextTable]:
    """Read the cells of a table as texts: one ``TextTable``, or in JSON one per distinct set of keys."""
    columns: Mapping[str, Texts] | None = None
    if isinstance(source, Frame):
        columns = source.columns
    elif isinstance(source, Rows) or (kind := table_format(source)) in {"json", "jsonl"}:
        return _tables_of_rows(read_rows(source))
    elif kind == "parquet":
        with open_parquet(Path(source)) as file:
            if not is_laid_out(Path(source)):
                columns = _columns_of_arrow(Path(source), file.read())
        if columns is None:
            return [table._replace(line=None) for table in _tables_of_rows(read_rows(source))]
    elif (columns := _delimited_columns(Path(source))) is None:
        return [table._replace(line=None) for table in _tables_of_rows(read_rows(source))]
    size = next(iter(columns.values())).codes.size if columns else 0
    if not size:
        raise DataError(str(source), "the table has no rows; add at least one")
    return [TextTable(columns, np.arange(size), None)]


def row_at(source: TextSource, place: int) -> Row:
    """The row at an index (from 0), for an error message about it; for a data frame the row has no cells."""
    if isinstance(source, Frame):
        return Row(Path(source.name), place + 1, {})
    return next(itertools.islice(read_rows(source), place, None))


def _delimited_columns(path: Path) -> dict[str, Texts] | None:
    """The columns of a CSV or TSV file; ``None`` if Arrow may misread the file, which must then be read row by row."""
    import pyarrow as pa
    from pyarrow import csv

    delimiter = csv_delimiter(path)
    start, header = csv_header(path, delimiter)
    if is_laid_out(path):
        return None
    quoted = False
    with open_binary(path) as raw:
        while block := raw.read(_BLOCK):
            quoted |= b'"' in block
            if b"\0" in block:
                return None
    if quoted:  # Arrow accepts faulty quotes, such as one that is never closed
        try:
            deque(csv_records(path, delimiter), maxlen=0)
        except DataError:
            return None
    numbers = [str(number) for number in range(len(header))]
    try:
        # Arrow's threads must not hold a Python file: releasing one while the program exits would abort it.
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
    except (pa.ArrowException, OSError):  # such as zeros after the gzip data
        return None
    names = [name for name in header if name]
    columns = {name: _texts(path, column) for name, column in zip(names, table.columns, strict=True)}
    return None if _has_blank_row(columns.values()) else columns


def _has_blank_row(columns: Iterable[Texts]) -> bool:
    blank_rows: NDArray[np.bool_] | None = None
    for column in columns:
        blank_names = np.array([not (name or "").strip() for name in column.names], np.bool_)
        if not blank_names.any():
            return False
        blank_rows = blank_names[column.codes] if blank_rows is None else blank_rows & blank_names[column.codes]
    return blank_rows is not None and bool(blank_rows.any())


def _columns_of_arrow(path: Path, table: pa.Table) -> dict[str, Texts]:
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
    """An Arrow column of any type as texts, written as a CSV file would contain them."""
    import pyarrow as pa

    type_ = column.type
    if pa.types.is_nested(type_):
        index: dict[str, int] = {}
        nested = (cell_text(plain(cell)) for chunk in column.chunks for cell in cells(path, chunk))
        numbers = array("i", (index.setdefault(text, len(index)) for text in nested))
        return Texts(list(index), np.frombuffer(numbers, np.int32))
    if not pa.types.is_dictionary(type_):
        column = column.dictionary_encode()
    encoded = column.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # a table without rows has no chunk
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], column.type)
    names = [cell_text(plain(cell)) for cell in encoded.dictionary.to_pylist()]
    codes = encoded.indices.cast(pa.int32())
    if codes.null_count:
        codes = codes.fill_null(pa.scalar(len(names), pa.int32()))
        names.append("")
    # Reads Arrow's buffer directly: Arrow's conversion to numpy imports pandas, which takes half a second.
    return _distinct(names, np.frombuffer(codes.buffers()[1], np.int32)[codes.offset : codes.offset + len(codes)])


def _distinct(names: list[str], codes: NDArray[np.int32]) -> Texts:
    used = np.bincount(codes, minlength=len(names)) > 0
    if used.all() and len(set(names)) == len(names):
        return Texts(names, codes)
    index: dict[str, int] = {}
    renumbered = [
        index.setdefault(name, len(index)) if is_used else -1 for name, is_used in zip(names, used, strict=True)
    ]
    return Texts(list(index), np.array(renumbered, np.int32)[codes])


def _tables_of_rows(rows: Iterator[Row]) -> list[TextTable]:
    """Group rows into one table for each distinct set of columns."""
    tables: dict[tuple[str, ...], tuple[Row, array[int], dict[str, tuple[dict[str, int], array[int]]]]] = {}
    for place, row in enumerate(rows):
        header = tuple(row.values)
        if header not in tables:
            tables[header] = row, array("q"), {name: ({}, array("i")) for name in header}
        _, places, columns = tables[header]
        places.append(place)
        for name, cell in row.values.items():
            names, codes = columns[name]
            codes.append(names.setdefault(cell_text(cell), len(names)))
    return [
        TextTable(
            {name: Texts(list(names), np.frombuffer(codes, np.int32)) for name, (names, codes) in columns.items()},
            np.frombuffer(places, np.int64),
            first.line,
            first.form,
        )
        for first, places, columns in tables.values()
    ]
