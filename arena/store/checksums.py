"""All rows of a table that keeps a checksum of each, as columns, seen to be what was written.

The database puts the values of many rows together itself, in a long text for each column, and Arrow takes these apart:
that makes no object for a value and needs no lock of Python's. Where all rows of such a block have one value in a
column, the database only compares it. Only where a block is not surely what was written are its rows read one by one.
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
"""Rows that are in memory at once where they are read one by one, and of the first block that is not."""
_LONG: Final = 8_000_000
"""Characters of a block: two threads that take turns should not do so too often, nor hold too much."""
_MOST: Final = 10_000
"""Rows of a block."""
_SHORT: Final = 100
"""Characters of a value that all rows of a block may share: it is written out for each of them later."""
_NEXT: Final = "\x1e"
"""Between the rows of a long text. Where a text holds it, rows are read one by one."""
_BETWEEN: Final = "\x1f"
"""Between the values of a row, as ``checksum`` has it."""
NONE: Final = "None"
"""In place of null, as ``checksum`` has it."""

Item = TypeVar("Item")
Number = TypeVar("Number", bound=np.integer[Any])
Idents: TypeAlias = NDArray[np.void]
ToArray: TypeAlias = "Callable[[str], pa.Array]"
"""Rows, by the names of their columns: each value as the bytes of its text."""

_IDENT: Final = np.dtype([("first", np.uint64), ("second", np.uint64)])
_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], np.uint64)

COVERED: Final[Mapping[str, Sequence[Any]]] = {
    JUDGMENT_ROWS.name: [column for column in JUDGMENT_ROWS.c if column.name != "checksum"],
    WANTED_ROWS.name: [*WANTED_ROWS.primary_key, WANTED_ROWS.c.judgment_id],
}
"""Columns that a row's checksum covers; numbers with a fraction come last."""
ADDED: Final[Mapping[str, Any]] = {JUDGMENT_ROWS.name: 0, WANTED_ROWS.name: WANTED_ROWS.c.position}
"""What is added to the checksum of these as it is stored."""


class _Numbering(dict[bytes | None, int]):
    """A number for each value, in the order in which they come."""

    def __missing__(self, value: bytes | None) -> int:
        self[value] = len(self)
        return self[value]


class _Column:
    """Values that come in blocks, in one array that grows where it stands: what small ones take is not given back."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._held, self._size = np.empty(_BLOCK, kind), 0

    def add(self, values: NDArray[Any]) -> None:
        size = self._size + values.size
        if size > self._held.size:
            self._held.resize(size + size // 8, refcheck=False)
        self._held[self._size : size] = values
        self._size = size

    def whole(self) -> NDArray[Any]:
        return self._held[: self._size]


def scan(
    connection: Connection,
    kind: Table,
    texts: Callable[[ToArray], Mapping[str, pa.Array]],
    numbers: Sequence[str],
    damaged: list[Sequence[Any]],
    *where: ColumnElement[bool],
) -> tuple[RowColumns, Idents]:
    """Read all rows of a table.

    Args:
        connection: to read.
        kind: judgments or wants.
        texts: of a block, what is wanted of each row; only few may differ.
        numbers: columns of whole numbers that are wanted besides.
        damaged: gets the rows that are not what was written, as ``with_checksum`` has them.
        where: which rows, all if absent.

    Returns:
        What is wanted, a row each, in no order; and the ids of the judgments, as ``fingerprints`` of them.
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
        {name: Texts([*map(_decoded, own)], parts[name].whole()) for name, own in numbered.items()},
        {name: parts[name].whole() for name in numbers},
    ), idents.whole()


def in_arrow(values: Sequence[bytes]) -> pa.Array:
    """The same as a column; Arrow's own way loads pandas."""
    import pyarrow as pa

    limits = np.array([*accumulate(map(len, values), initial=0)], np.int32)
    buffers = [None, pa.py_buffer(limits), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def scalar(text: str) -> pa.Scalar[Any]:
    """A text as one value, made as a column is."""
    return in_arrow([text.encode("utf-8", "surrogatepass")])[0]


def or_none(column: pa.Array) -> pa.Array:
    """A column that may be null, with null where it is."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.if_else(compute.equal(column, scalar(NONE)), pa.NA, column)


def damaged_rows(connection: Connection, kind: Table, *where: ColumnElement[bool]) -> list[Sequence[Any]]:
    """The rows that are not what was written, as ``with_checksum`` has them."""
    damaged: list[Sequence[Any]] = []
    for _ in _blocks(connection, kind, damaged, where):
        pass
    return damaged


def with_checksum(kind: Table) -> Select[Any]:
    """All columns that a checksum covers, and the checksum of these."""
    return select(*COVERED[kind.name], _summed(kind))


def _summed(kind: Table) -> ColumnElement[int]:
    summed: ColumnElement[int] = (kind.c.checksum - ADDED[kind.name]).label("summed")
    return summed


def _blocks(
    connection: Connection, kind: Table, damaged: list[Sequence[Any]], where: Sequence[ColumnElement[bool]]
) -> Iterator[ToArray]:
    reading = (_File if connection.dialect.name == "sqlite" else _Server)(connection, kind, where)
    unsure = []
    for packed in _ahead(_packed(reading)):
        block = _sound(kind, packed)
        if block is None:
            unsure.append(packed.limits)
        else:
            yield block
    one_by_one = reading.written(with_checksum(kind).add_columns(*_added(kind)))
    for limits in unsure:
        if found := connection.exec_driver_sql(one_by_one, limits).all():
            yield _looked_through(kind, found, damaged)


def _added(kind: Table) -> list[Any]:
    """The columns that are read besides those that a checksum covers."""
    return [each for each in (ADDED[kind.name],) if isinstance(each, ColumnElement)]


def _names(kind: Table) -> list[str]:
    """Of what is read: the covered columns, the checksum of these, and what was added to it."""
    return [*(column.name for column in COVERED[kind.name]), "summed", *(column.name for column in _added(kind))]


def _looked_through(kind: Table, rows: Sequence[Any], damaged: list[Sequence[Any]]) -> ToArray:
    size = len(COVERED[kind.name])
    damaged += [row for row in rows if row[size] is not None and row[size] != checksum(tuple(row[:size]))]
    return _block_of(dict(zip(_names(kind), zip(*rows, strict=True), strict=True)))


def _block_of(columns: Mapping[str, Sequence[Any]]) -> ToArray:
    """Rows that were read one by one."""

    def column(name: str) -> pa.Array:
        return in_arrow([str(value).encode("utf-8", "surrogatepass") for value in columns.get(name, ())])

    return column


def _ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same; the next one is made in a thread while one is used."""
    with ThreadPoolExecutor(1) as beside:
        coming = beside.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = beside.submit(next, items, None)
            yield item


KeyRange: TypeAlias = tuple[Any, Any]
"""Places in a table: behind the first one, up to the last."""


class _Reading(ABC):
    """How a kind of database reads a table in ranges of rows, and puts the values of a range together.

    Attributes:
        size: of the first range.
    """

    size: int

    def __init__(self, connection: Connection, kind: Table, where: Sequence[ColumnElement[bool]]) -> None:
        self._connection, self.kind, self._where = connection, kind, where

    @abstractmethod
    def ranges(self) -> Generator[KeyRange, int, None]:
        """The limits of one range after the other, each of the size that is sent; nothing is sent for the first."""

    @abstractmethod
    def written(self, chosen: Select[Any]) -> str:
        """A statement over one range, whose last parameters are the limits."""

    @abstractmethod
    def together(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """The values of a column in a long text."""

    def first(self, statement: str, parameters: Sequence[Any]) -> Any:
        """The first row of a statement.

        Raises:
            DBAPIError: that is more than the database can do; the transaction goes on.
        """
        return self._connection.exec_driver_sql(statement, tuple(parameters)).first()

    def _within(self, chosen: Select[Any], *place: ColumnElement[bool]) -> str:
        chosen = chosen.select_from(self.kind).where(*self._where, *place)
        return str(chosen.compile(dialect=self._connection.dialect, compile_kwargs={"literal_binds": True}))


class _File(_Reading):
    """SQLite, in ranges of rowids that hold ``size`` rows."""

    size = _BLOCK

    def ranges(self) -> Generator[KeyRange, int, None]:
        rowid, after, end = self._rowid(), -(2**63), 2**63 - 1
        place: ColumnElement[int] = literal_column("?")
        last = self._within(select(rowid).order_by(rowid).offset(place).limit(1), rowid > place)
        size = self.size
        while after != end:
            found = self._connection.exec_driver_sql(self._by_rowid(last), (after, size - 1)).scalar()
            limits = after, end if found is None else int(found)
            size = yield limits
            after = limits[1]

    def written(self, chosen: Select[Any]) -> str:
        rowid = self._rowid()
        place: ColumnElement[int] = literal_column("?")
        return self._by_rowid(self._within(chosen, rowid > place, rowid <= place))

    def together(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """``group_concat`` leaves out null, and writes too few digits."""
        if isinstance(column.type, Float):
            column = case((column.is_(None), NONE), else_=func.format("%!.17g", column))
        return func.group_concat(func.coalesce(column, NONE), _NEXT)

    def _rowid(self) -> ColumnElement[int]:
        return literal_column(f"{self.kind.name}.rowid")

    def _by_rowid(self, statement: str) -> str:
        """The rowids tell more than any index."""
        return statement.replace(f"FROM {self.kind.name}", f"FROM {self.kind.name} NOT INDEXED", 1)


class _Server(_Reading):
    """PostgreSQL, in ranges of ``size`` pages."""

    size = 4

    def ranges(self) -> Generator[KeyRange, int, None]:
        counted = "SELECT pg_relation_size(%s) / current_setting('block_size')::int"
        pages = int(self._connection.exec_driver_sql(counted, (self.kind.name,)).scalar_one())
        after, size = 0, self.size
        while after < pages:  # what comes later is not for this transaction
            limits = f"({after},0)", f"({after + size},0)"
            after, size = after + size, (yield limits)

    def written(self, chosen: Select[Any]) -> str:
        ctid: ColumnElement[str] = literal_column(f"{self.kind.name}.ctid")
        place: ColumnElement[str] = literal_column("CAST(? AS tid)")
        return self._within(chosen, ctid >= place, ctid < place).replace("?", "%s")

    def together(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return func.string_agg(func.coalesce(cast(column, Text), NONE), _NEXT)

    def first(self, statement: str, parameters: Sequence[Any]) -> Any:
        with self._connection.begin_nested():
            return super().first(statement, parameters)


class _Packed(NamedTuple):
    """The rows of a range, as the database puts them together.

    Attributes:
        limits: of the range.
        rows: how many, where that is known.
        texts: a long one for each of ``_names`` that is not shared; none where that is more than it can do.
        shared: what all rows have in common, which the database has only compared.
    """

    limits: KeyRange
    rows: int
    texts: Mapping[str, str | None]
    shared: Mapping[str, Any]


def _packed(reading: _Reading) -> Iterator[_Packed]:
    kind = reading.kind
    covered = COVERED[kind.name]
    chosen: Select[Any] = select(*covered)
    first = reading.written(chosen.limit(1))

    @cache
    def together(shared: tuple[str, ...]) -> str:
        long = [*(each for each in covered if each.name not in shared), _summed(kind), *_added(kind)]
        same = [kind.c[name].is_not_distinct_from(literal_column("?")) for name in shared]
        numbers: list[Any] = [func.count(), func.count().filter(and_(true(), *same))]
        return reading.written(select(*numbers, *map(reading.together, long)))

    def between(limits: KeyRange, names: Collection[str]) -> _Packed | None:
        """What is there; nothing if these columns are not the same in all rows."""
        row = reading.first(first, limits) if names else None
        values = zip((each.name for each in covered), row or (), strict=False)
        shared = {name: value for name, value in values if name in names and len(str(value)) <= _SHORT}
        rows, alike, *texts = reading.first(together((*shared,)), (*shared.values(), *limits))
        others = [name for name in _names(kind) if name not in shared]
        return _Packed(limits, rows, dict(zip(others, texts, strict=True)), shared) if rows == alike else None

    names = {each.name for each in covered if each.name != "judgment_id"}  # which nearly always differs
    size, ranges = reading.size, reading.ranges()
    limits = next(ranges, None)
    while limits is not None:
        try:
            packed = between(limits, names)
            if packed is None and (packed := between(limits, ())):
                names = {name for name in names if _is_shared(packed.texts[name])}  # for good
        except DBAPIError:
            packed = _Packed(limits, 1, {}, {})
        if packed is None or packed.rows:
            yield packed or _Packed(limits, 1, {}, {})
        if packed and (length := sum(len(text or "") for text in packed.texts.values())):
            size = max(1, min(size * _LONG // length, size * _MOST // packed.rows))
        try:
            limits = ranges.send(size)
        except StopIteration:
            limits = None


def _is_shared(text: str | None) -> bool:
    """Whether all values of a long text are the same."""
    values = (text or "").split(_NEXT)
    return values.count(values[0]) == len(values)


def _sound(kind: Table, packed: _Packed) -> ToArray | None:
    """The rows of a block; ``None`` if they are not surely what was written."""
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
        numbers = {name: _as_python_has(columns[name]) for name in fractions}
    except ValueError:  # no number
        return None
    values = {**shared, **columns, **numbers}
    rows = compute.binary_join_element_wise(*(values[each.name] for each in covered), scalar(_BETWEEN))
    ended = compute.binary_join_element_wise(rows, scalar(""), scalar(_NEXT))
    made = map(zlib.crc32, ended.buffers()[2].to_pybytes().split(_NEXT.encode())[:-1])
    if not np.array_equal(np.fromiter(made, np.int64), stored):
        return None
    return lambda name: columns[name] if name in columns else pa.repeat(shared[name], size)


def _split(text: str) -> pa.Array:
    """The values of a long text."""
    from pyarrow import compute

    whole = in_arrow([text.encode("utf-8", "surrogatepass")])
    return compute.split_pattern(whole, _NEXT.encode()).flatten()


def _whole_numbers(column: pa.Array) -> NDArray[np.int64]:
    return _in_numpy(column.cast("string").cast("int64"), np.int64)


def _in_numpy(whole: pa.Array, kind: type[Number]) -> NDArray[Number]:
    """Numbers of which none is null; Arrow's own way loads pandas."""
    return np.frombuffer(whole.buffers()[1], kind, len(whole))


def _as_python_has(column: pa.Array) -> pa.Array:
    """Numbers that the database has written with all their digits, as ``checksum`` has them."""
    coded = column.dictionary_encode()
    none = NONE.encode()
    texts = [each if each == none else repr(float(each)).encode() for each in coded.dictionary.to_pylist()]
    return in_arrow(texts).take(coded.indices)


def _decoded(text: bytes | None) -> str | None:
    return None if text is None else text.decode("utf-8", "surrogatepass")


def fingerprints(idents: pa.Array) -> Idents:
    """128 bits of each id, as many as a digest of its own has."""
    _, limits, data = idents.buffers()
    ends = np.frombuffer(limits, np.int32)[idents.offset : idents.offset + len(idents) + 1]
    width = ends[1] - ends[0] if len(idents) else 0
    if width and (np.diff(ends) == width).all():
        texts = np.frombuffer(data, f"S{width}", len(idents), ends[0])
    else:
        texts = np.array(idents.to_pylist(), np.bytes_)
    size = -(-texts.itemsize // 8)
    found = np.zeros(texts.size, _IDENT)
    for word in texts.astype(f"S{8 * size}").view(np.uint64).reshape(-1, size).T:
        for name, factor in zip(_IDENT.names or (), _FACTORS, strict=True):
            found[name] = np.where(word, found[name] * factor + word, found[name])  # no matter how many are padded
    return found


def places(sought: Idents, known: Idents) -> NDArray[np.intp]:
    """The row of ``known``, in which no id comes twice, that has each id; -1 where none has."""
    order = np.argsort(known["first"])
    ascending = np.argsort(sought["first"])  # a search that goes one way finds what it reads near the processor
    at = np.searchsorted(known["first"][order], sought["first"][ascending])
    found = np.full(sought.size, -1)
    left = np.arange(sought.size)
    while (left := left[at[left] < known.size]).size:  # of several that share their first half, one after the other
        row, want = order[at[left]], ascending[left]
        found[want] = np.where(known["second"][row] == sought["second"][want], row, found[want])
        left = left[(known["first"][row] == sought["first"][want]) & (found[want] < 0)]
        at[left] += 1
    return found
