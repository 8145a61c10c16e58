"""Fast scan of a whole table into columns, verifying the checksum of each row.

The database concatenates a column's values over a block of rows, and Arrow splits them again: this creates no Python
object per value and runs without the interpreter lock. If all rows of a block share a column's value, the database only
compares it. Rows are read one by one only in blocks that cannot be verified this way.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Select,
    Table,
    Text,
    and_,
    case,
    cast,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.exc import DBAPIError

from arena.store.bulk import RowColumns
from arena.store.rows import JUDGMENT_ROWS, WANTED_ROWS, checksum
from retrieval_eval.data.columns import Texts

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK: Final = 4_000
"""Rows of the first block, and initial capacity of a column."""
_MAX_BLOCK_CHARS: Final = 8_000_000
"""Characters of a block: large enough that the two threads seldom switch, small enough for memory."""
_MAX_BLOCK_ROWS: Final = 10_000
"""Rows of a block."""
_MAX_SHARED_CHARS: Final = 100
"""Length of a shared value; longer ones are not shared, because a shared value is repeated for each row."""
_ROW_SEPARATOR: Final = "\x1e"
"""Separates the rows of a concatenated text. If a value contains it, the block's rows are read one by one."""
_VALUE_SEPARATOR: Final = "\x1f"
"""Separates the values of a row, as in ``checksum``."""
NONE: Final = "None"
"""The text of null, as in ``checksum``."""

Item = TypeVar("Item")
Number = TypeVar("Number", bound=np.integer[Any])
Idents: TypeAlias = NDArray[np.void]
ToArray: TypeAlias = "Callable[[str], pa.Array]"
"""A block of rows: takes a column's name, returns its values as the bytes of their texts."""

_IDENT: Final = np.dtype([("first", np.uint64), ("second", np.uint64)])
_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], np.uint64)

COVERED: Final[Mapping[str, Sequence[Any]]] = {
    JUDGMENT_ROWS.name: [column for column in JUDGMENT_ROWS.c if column.name != "checksum"],
    WANTED_ROWS.name: [*WANTED_ROWS.primary_key, WANTED_ROWS.c.judgment_id],
}
"""Columns that a row's checksum covers, by table."""
ADDED: Final[Mapping[str, Any]] = {JUDGMENT_ROWS.name: 0, WANTED_ROWS.name: WANTED_ROWS.c.position}
"""What the stored checksum adds to that of the covered columns, by table."""


class _Numbering(dict[bytes | None, int]):
    """Numbers distinct values from 0, in order of appearance."""

    def __missing__(self, value: bytes | None) -> int:
        self[value] = len(self)
        return self[value]


class _Column:
    """An array that grows in place, because the memory of many small arrays is not returned to the system."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._values, self._size = np.empty(_BLOCK, kind), 0

    def add(self, values: NDArray[Any]) -> None:
        size = self._size + values.size
        if size > self._values.size:
            self._values.resize(size + size // 8, refcheck=False)
        self._values[self._size : size] = values
        self._size = size

    def whole(self) -> NDArray[Any]:
        return self._values[: self._size]


def scan(
    connection: Connection,
    kind: Table,
    texts: Callable[[ToArray], Mapping[str, pa.Array]],
    numbers: Sequence[str],
    damaged: list[Sequence[Any]],
    *where: ColumnElement[bool],
) -> tuple[RowColumns, Idents]:
    """Read all rows of a table into columns, and verify their checksums.

    Args:
        connection: open for reading.
        kind: the table of judgments or of wants.
        texts: takes a block and returns its text columns to keep; each should have few distinct values.
        numbers: names of integer columns to keep as well.
        damaged: the rows whose checksum does not match are appended here, as selected by ``with_checksum``.
        where: conditions on the rows; without any, all rows.

    Returns:
        The columns, with the rows in no order; and the ``fingerprints`` of their judgment ids.
    """
    numbered: dict[str, _Numbering] = {}
    parts: dict[str, _Column] = {}
    idents = _Column(_IDENT)
    for block in chain([_block_of({})], _blocks(connection, kind, damaged, where)):
        idents.add(fingerprints(block("judgment_id")))
        for name, column in texts(block).items():
            coded, numbering = column.dictionary_encode("encode"), numbered.setdefault(name, _Numbering())
            codes = np.array([numbering[value] for value in coded.dictionary.to_pylist()], np.int32)
            parts.setdefault(name, _Column(codes.dtype)).add(codes[_in_numpy(coded.indices, np.int32)])
        for name in numbers:
            parts.setdefault(name, _Column(np.dtype(np.int32))).add(_whole_numbers(block(name)))
    return RowColumns(
        {name: Texts([*map(_decoded, values)], parts[name].whole()) for name, values in numbered.items()},
        {name: parts[name].whole() for name in numbers},
    ), idents.whole()


def in_arrow(values: Sequence[bytes]) -> pa.Array:
    """Values as an Arrow column; ``pa.array`` would import pandas."""
    import pyarrow as pa

    limits = np.array([*accumulate(map(len, values), initial=0)], np.int32)
    buffers = [None, pa.py_buffer(limits), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def scalar(text: str) -> pa.Scalar[Any]:
    """A text as an Arrow value."""
    return in_arrow([text.encode("utf-8", "surrogatepass")])[0]


def or_none(column: pa.Array) -> pa.Array:
    """Replace the text ``NONE`` in a column by null."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.if_else(compute.equal(column, scalar(NONE)), pa.NA, column)


def damaged_rows(connection: Connection, kind: Table, *where: ColumnElement[bool]) -> list[Sequence[Any]]:
    """The rows whose checksum does not match, as selected by ``with_checksum``."""
    damaged: list[Sequence[Any]] = []
    for _ in _blocks(connection, kind, damaged, where):
        pass
    return damaged


def with_checksum(kind: Table) -> Select[Any]:
    """A query for the covered columns of a table and their checksum."""
    return select(*COVERED[kind.name], _summed(kind))


def _summed(kind: Table) -> ColumnElement[int]:
    summed: ColumnElement[int] = (kind.c.checksum - ADDED[kind.name]).label("summed")
    return summed


def _blocks(
    connection: Connection, kind: Table, damaged: list[Sequence[Any]], where: Sequence[ColumnElement[bool]]
) -> Iterator[ToArray]:
    reader = (_SQLiteReader if connection.dialect.name == "sqlite" else _PostgresReader)(connection, kind, where)
    unverified = []
    for packed in _prefetch(_packed(reader)):
        block = _verified(kind, packed)
        if block is None:
            unverified.append(packed.limits)
        else:
            yield block
    one_by_one = reader.sql(with_checksum(kind).add_columns(*_added(kind)))
    for limits in unverified:
        if rows := connection.exec_driver_sql(one_by_one, limits).all():
            yield _block_of_rows(kind, rows, damaged)


def _added(kind: Table) -> list[Any]:
    """The column in ``ADDED``, if any."""
    return [each for each in (ADDED[kind.name],) if isinstance(each, ColumnElement)]


def _names(kind: Table) -> list[str]:
    """Names of the columns read: the covered columns, their checksum as ``summed``, and the one in ``ADDED``."""
    return [*(column.name for column in COVERED[kind.name]), "summed", *(column.name for column in _added(kind))]


def _block_of_rows(kind: Table, rows: Sequence[Any], damaged: list[Sequence[Any]]) -> ToArray:
    """The block of rows read one by one; rows whose checksum does not match are appended to ``damaged``."""
    size = len(COVERED[kind.name])
    damaged += [row for row in rows if row[size] is not None and row[size] != checksum(tuple(row[:size]))]
    return _block_of(dict(zip(_names(kind), zip(*rows, strict=True), strict=True)))


def _block_of(columns: Mapping[str, Sequence[Any]]) -> ToArray:

    def column(name: str) -> pa.Array:
        return in_arrow([str(value).encode("utf-8", "surrogatepass") for value in columns.get(name, ())])

    return column


def _prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """The same items; a thread computes the next one while the caller uses the current one."""
    with ThreadPoolExecutor(1) as executor:
        upcoming = executor.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = executor.submit(next, items, None)
            yield item


KeyRange: TypeAlias = tuple[Any, Any]
"""Limits of a range of rows, as parameters of a statement built with ``_Reader.sql``."""


class _Reader(ABC):
    """Reads a table in ranges of rows, and concatenates the values of a range.

    Attributes:
        size: size of the first range, in the units of the subclass.
    """

    size: int

    def __init__(self, connection: Connection, kind: Table, where: Sequence[ColumnElement[bool]]) -> None:
        self._connection, self.kind, self._where = connection, kind, where

    @abstractmethod
    def ranges(self) -> Generator[KeyRange, int, None]:
        """Yield the limits of successive ranges; ``send`` the size of the next one after each."""

    @abstractmethod
    def sql(self, query: Select[Any]) -> str:
        """The SQL of a query limited to one range; the limits are its last parameters."""

    @abstractmethod
    def concatenated(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """SQL that joins the values of a column by ``_ROW_SEPARATOR``."""

    def first(self, statement: str, parameters: Sequence[Any]) -> Any:
        """The first row of a statement.

        Raises:
            DBAPIError: the database cannot build texts of this size; the transaction remains usable.
        """
        return self._connection.exec_driver_sql(statement, tuple(parameters)).first()

    def _within(self, query: Select[Any], *limits: ColumnElement[bool]) -> str:
        query = query.select_from(self.kind).where(*self._where, *limits)
        return str(query.compile(dialect=self._connection.dialect, compile_kwargs={"literal_binds": True}))


class _SQLiteReader(_Reader):
    """Reads SQLite in ranges of rowids, ``size`` rows each; a range excludes its first limit and includes its last."""

    size = _BLOCK

    def ranges(self) -> Generator[KeyRange, int, None]:
        rowid, after, end = self._rowid(), -(2**63), 2**63 - 1
        parameter: ColumnElement[int] = literal_column("?")
        last = self._within(select(rowid).order_by(rowid).offset(parameter).limit(1), rowid > parameter)
        size = self.size
        while after != end:
            last_rowid = self._connection.exec_driver_sql(self._without_index(last), (after, size - 1)).scalar()
            limits = after, end if last_rowid is None else int(last_rowid)
            size = yield limits
            after = limits[1]

    def sql(self, query: Select[Any]) -> str:
        rowid = self._rowid()
        parameter: ColumnElement[int] = literal_column("?")
        return self._without_index(self._within(query, rowid > parameter, rowid <= parameter))

    def concatenated(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        # group_concat skips null and rounds floats.
        if isinstance(column.type, Float):
            column = case((column.is_(None), NONE), else_=func.format("%!.17g", column))
        return func.group_concat(func.coalesce(column, NONE), _ROW_SEPARATOR)

    def _rowid(self) -> ColumnElement[int]:
        return literal_column(f"{self.kind.name}.rowid")

    def _without_index(self, statement: str) -> str:
        """Make SQLite go by rowid, which limits the range better than any index."""
        return statement.replace(f"FROM {self.kind.name}", f"FROM {self.kind.name} NOT INDEXED", 1)


class _PostgresReader(_Reader):
    """Reads PostgreSQL in ranges of ``size`` pages; a range includes its first limit and excludes its last."""

    size = 4

    def ranges(self) -> Generator[KeyRange, int, None]:
        page_count = "SELECT pg_relation_size(%s) / current_setting('block_size')::int"
        pages = int(self._connection.exec_driver_sql(page_count, (self.kind.name,)).scalar_one())
        start, size = 0, self.size
        while start < pages:  # this transaction cannot see rows on pages added later
            limits = f"({start},0)", f"({start + size},0)"
            start, size = start + size, (yield limits)

    def sql(self, query: Select[Any]) -> str:
        ctid: ColumnElement[str] = literal_column(f"{self.kind.name}.ctid")
        parameter: ColumnElement[str] = literal_column("CAST(? AS tid)")
        return self._within(query, ctid >= parameter, ctid < parameter).replace("?", "%s")

    def concatenated(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return func.string_agg(func.coalesce(cast(column, Text), NONE), _ROW_SEPARATOR)

    def first(self, statement: str, parameters: Sequence[Any]) -> Any:
        with self._connection.begin_nested():
            return super().first(statement, parameters)


class _Packed(NamedTuple):
    """A range of rows, concatenated by the database.

    Attributes:
        limits: the limits of the range.
        rows: number of rows; 1 if the database could not concatenate them.
        texts: the concatenated values of each of ``_names`` that is not shared; empty if the database could not.
        shared: the columns with one value in all rows, and that value.
    """

    limits: KeyRange
    rows: int
    texts: Mapping[str, str | None]
    shared: Mapping[str, Any]


def _packed(reader: _Reader) -> Iterator[_Packed]:
    """All rows of a table in ranges, skipping empty ones."""
    kind = reader.kind
    covered = COVERED[kind.name]
    query: Select[Any] = select(*covered)
    first_row = reader.sql(query.limit(1))

    @cache
    def packing(shared: tuple[str, ...]) -> str:
        """SQL that counts a range's rows and those with the shared values, and concatenates the other columns."""
        varying = [*(each for each in covered if each.name not in shared), _summed(kind), *_added(kind)]
        same = [kind.c[name].is_not_distinct_from(literal_column("?")) for name in shared]
        counts: list[Any] = [func.count(), func.count().filter(and_(true(), *same))]
        return reader.sql(select(*counts, *map(reader.concatenated, varying)))

    def pack(limits: KeyRange, names: Collection[str]) -> _Packed | None:
        """Pack a range, treating the columns ``names`` as shared; ``None`` if they are not."""
        row = reader.first(first_row, limits) if names else None
        values = zip((each.name for each in covered), row or (), strict=False)
        shared = {name: value for name, value in values if name in names and len(str(value)) <= _MAX_SHARED_CHARS}
        rows, alike, *texts = reader.first(packing((*shared,)), (*shared.values(), *limits))
        varying = [name for name in _names(kind) if name not in shared]
        return _Packed(limits, rows, dict(zip(varying, texts, strict=True)), shared) if rows == alike else None

    names = {each.name for each in covered if each.name != "judgment_id"}  # ids nearly always differ
    size, ranges = reader.size, reader.ranges()
    limits = next(ranges, None)
    while limits is not None:
        try:
            packed = pack(limits, names)
            if packed is None and (packed := pack(limits, ())):
                names = {name for name in names if _is_shared(packed.texts[name])}  # a column that varies stays out
        except DBAPIError:
            packed = _Packed(limits, 1, {}, {})
        if packed is None or packed.rows:
            yield packed or _Packed(limits, 1, {}, {})
        if packed and (length := sum(len(text or "") for text in packed.texts.values())):
            size = max(1, min(size * _MAX_BLOCK_CHARS // length, size * _MAX_BLOCK_ROWS // packed.rows))
        try:
            limits = ranges.send(size)
        except StopIteration:
            limits = None


def _is_shared(text: str | None) -> bool:
    """Whether all values of a concatenated text are equal."""
    values = (text or "").split(_ROW_SEPARATOR)
    return values.count(values[0]) == len(values)


def _verified(kind: Table, packed: _Packed) -> ToArray | None:
    """The block of a range; ``None`` if it cannot be split or a checksum does not match."""
    texts = {name: text for name, text in packed.texts.items() if text is not None}
    if not texts or len(texts) < len(packed.texts):
        return None
    import pyarrow as pa
    from pyarrow import compute

    columns = {name: _split(text) for name, text in texts.items()}
    shared = {name: scalar(str(value)) for name, value in packed.shared.items()}
    size = len(columns["summed"])
    if any(len(column) != size for column in columns.values()):
        return None
    covered = COVERED[kind.name]
    fractions = [each.name for each in covered if each.name in columns and isinstance(each.type, Float)]
    try:
        stored = _whole_numbers(columns["summed"])
        numbers = {name: _as_python_floats(columns[name]) for name in fractions}
    except ValueError:  # not a number
        return None
    values = {**shared, **columns, **numbers}
    rows = compute.binary_join_element_wise(*(values[each.name] for each in covered), scalar(_VALUE_SEPARATOR))
    terminated = compute.binary_join_element_wise(rows, scalar(""), scalar(_ROW_SEPARATOR))
    computed = map(zlib.crc32, terminated.buffers()[2].to_pybytes().split(_ROW_SEPARATOR.encode())[:-1])
    if not np.array_equal(np.fromiter(computed, np.int64), stored):
        return None
    return lambda name: columns[name] if name in columns else pa.repeat(shared[name], size)


def _split(text: str) -> pa.Array:
    """The values of a concatenated text."""
    from pyarrow import compute

    whole = in_arrow([text.encode("utf-8", "surrogatepass")])
    return compute.split_pattern(whole, _ROW_SEPARATOR.encode()).flatten()


def _whole_numbers(column: pa.Array) -> NDArray[np.int64]:
    return _in_numpy(column.cast("string").cast("int64"), np.int64)


def _in_numpy(whole: pa.Array, kind: type[Number]) -> NDArray[Number]:
    """A column without nulls as an array; ``to_numpy`` would import pandas."""
    return np.frombuffer(whole.buffers()[1], kind, len(whole))


def _as_python_floats(column: pa.Array) -> pa.Array:
    """Floats read as text, formatted the way ``checksum`` formats them."""
    coded = column.dictionary_encode()
    none = NONE.encode()
    texts = [each if each == none else repr(float(each)).encode() for each in coded.dictionary.to_pylist()]
    return in_arrow(texts).take(coded.indices)


def _decoded(text: bytes | None) -> str | None:
    return None if text is None else text.decode("utf-8", "surrogatepass")


def fingerprints(idents: pa.Array) -> Idents:
    """A 128-bit hash of each id."""
    _, limits, data = idents.buffers()
    ends = np.frombuffer(limits, np.int32)[idents.offset : idents.offset + len(idents) + 1]
    width = ends[1] - ends[0] if len(idents) else 0
    if width and (np.diff(ends) == width).all():
        texts = np.frombuffer(data, f"S{width}", len(idents), ends[0])
    else:
        texts = np.array(idents.to_pylist(), np.bytes_)
    size = -(-texts.itemsize // 8)
    hashes = np.zeros(texts.size, _IDENT)
    for word in texts.astype(f"S{8 * size}").view(np.uint64).reshape(-1, size).T:
        for name, factor in zip(_IDENT.names or (), _FACTORS, strict=True):
            hashes[name] = np.where(word, hashes[name] * factor + word, hashes[name])  # padding does not count
    return hashes


def places(sought: Idents, known: Idents) -> NDArray[np.intp]:
    """Index in ``known`` of each id in ``sought``, or -1; ``known`` has no duplicates."""
    order = np.argsort(known["first"])
    ascending = np.argsort(sought["first"])  # searching in ascending order uses the processor's cache better
    at = np.searchsorted(known["first"][order], sought["first"][ascending])
    indices = np.full(sought.size, -1)
    left = np.arange(sought.size)
    while (left := left[at[left] < known.size]).size:  # steps through ids that share their first half
        row, want = order[at[left]], ascending[left]
        indices[want] = np.where(known["second"][row] == sought["second"][want], row, indices[want])
        left = left[(known["first"][row] == sought["first"][want]) & (indices[want] < 0)]
        at[left] += 1
    return indices
