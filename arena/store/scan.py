"""All rows of a table that keeps a checksum of each, as columns, seen to be what was written.

A file of SQLite puts the values of many rows together itself, in a long text for each column, and Arrow takes these
apart: that makes no object for a value and needs no lock of Python's. Only where such a block is not surely what was
written are its rows read one by one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Float, Select, Table, case, func, literal_column, select
from sqlalchemy.exc import DBAPIError

from arena.store.bulk import Columns, stream
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
_NEXT: Final = "\x1e"
"""Between the rows of a long text. Where a text holds it, rows are read one by one."""
_BETWEEN: Final = b"\x1f"
"""Between the values of a row, as ``checksum`` has it."""
NONE: Final = "None"
"""In place of null, as ``checksum`` has it."""

Item = TypeVar("Item")
Idents: TypeAlias = NDArray[np.void]
Block: TypeAlias = "Callable[[str], pa.Array]"
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
    """Values that come in blocks, in one array that doubles when it is full: what small ones take is not given back."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._held, self._size = np.empty(_BLOCK, kind), 0

    def add(self, values: NDArray[Any]) -> None:
        size = self._size + values.size
        if size > self._held.size:
            held = np.empty(2 * size, self._held.dtype)
            held[: self._size] = self._held[: self._size]
            self._held = held
        self._held[self._size : size] = values
        self._size = size

    def whole(self) -> NDArray[Any]:
        return self._held[: self._size]


def scan(
    connection: Connection,
    kind: Table,
    texts: Callable[[Block], Mapping[str, pa.Array]],
    numbers: Sequence[str],
    damaged: list[Sequence[Any]],
    *where: ColumnElement[bool],
) -> tuple[Columns, Idents]:
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
            parts.setdefault(name, _Column(codes.dtype)).add(codes[coded.indices])
        for name in numbers:
            parts.setdefault(name, _Column(np.dtype(np.int32))).add(_whole_numbers(block(name)))
    return Columns(
        {name: Texts([*map(_decoded, own)], parts[name].whole()) for name, own in numbered.items()},
        {name: parts[name].whole() for name in numbers},
    ), idents.whole()


def or_none(column: pa.Array) -> pa.Array:
    """A column that may be null, with null where it is."""
    from pyarrow import compute

    return compute.if_else(compute.equal(column, NONE.encode()), None, column)


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
) -> Iterator[Block]:
    one_by_one = with_checksum(kind).add_columns(*_added(kind)).where(*where)
    if connection.dialect.name != "sqlite":
        for rows in stream(connection, one_by_one, _BLOCK):
            yield _looked_through(kind, rows, damaged)
        return
    unsure = []
    for packed, limits in _ahead(_packed(connection, kind, where)):
        block = _sound(kind, packed)
        if block is None:
            unsure.append(limits)
        else:
            yield block
    rowid: ColumnElement[int] = literal_column(f"{kind.name}.rowid")
    for after, last in unsure:
        if found := connection.execute(one_by_one.where(rowid > after, rowid <= last)).all():
            yield _looked_through(kind, found, damaged)


def _added(kind: Table) -> list[Any]:
    """The columns that are read besides those that a checksum covers."""
    return [each for each in (ADDED[kind.name],) if isinstance(each, ColumnElement)]


def _names(kind: Table) -> list[str]:
    """Of what is read: the covered columns, the checksum of these, and what was added to it."""
    return [*(column.name for column in COVERED[kind.name]), "summed", *(column.name for column in _added(kind))]


def _looked_through(kind: Table, rows: Sequence[Any], damaged: list[Sequence[Any]]) -> Block:
    size = len(COVERED[kind.name])
    damaged += [row for row in rows if row[size] is not None and row[size] != checksum(tuple(row[:size]))]
    return _block_of(dict(zip(_names(kind), zip(*rows, strict=True), strict=True)))


def _block_of(columns: Mapping[str, Sequence[Any]]) -> Block:
    """Rows that were read one by one."""
    import pyarrow as pa

    def column(name: str) -> pa.Array:
        return pa.array([str(value).encode("utf-8", "surrogatepass") for value in columns.get(name, ())], pa.binary())

    return column


def _ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same; the next one is made in a thread while one is used."""
    with ThreadPoolExecutor(1) as beside:
        coming = beside.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = beside.submit(next, items, None)
            yield item


def _packed(
    connection: Connection, kind: Table, where: Sequence[ColumnElement[bool]]
) -> Iterator[tuple[Sequence[Any], tuple[int, int]]]:
    """By block a long text for each of ``_names``, and the limits of its rowids.

    There is no text where the database cannot put as much together.
    """
    rowid: ColumnElement[int] = literal_column(f"{kind.name}.rowid")
    long = [*map(_told, COVERED[kind.name]), _summed(kind), *_added(kind)]
    chosen = select(*(func.group_concat(column, _NEXT) for column in long)).where(*where)
    of_block = _written(connection, chosen.where(rowid > literal_column("?"), rowid <= literal_column("?")))
    of_block = of_block.replace(f"FROM {kind.name}", f"FROM {kind.name} NOT INDEXED", 1)  # the rowids tell more
    following = select(rowid).select_from(kind).where(rowid > literal_column("?")).order_by(rowid)
    limit = _written(connection, following.offset(literal_column("?")).limit(1))
    after, end, size = -(2**63), 2**63 - 1, _BLOCK
    while after != end:
        found = connection.exec_driver_sql(limit, (after, size - 1)).scalar()
        last = end if found is None else int(found)
        try:
            packed: Sequence[Any] = connection.exec_driver_sql(of_block, (after, last)).one()
        except DBAPIError:
            packed = ()
        yield packed, (after, last)
        after = last
        if length := sum(len(text or "") for text in packed):
            size = min(_MOST, max(1, size * _LONG // length))


def _told(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """A value as ``group_concat`` takes it: it leaves out null, and writes too few digits."""
    if isinstance(column.type, Float):
        return case((column.is_(None), NONE), else_=func.format("%!.17g", column))
    return func.coalesce(column, NONE)


def _written(connection: Connection, chosen: Select[Any]) -> str:
    return str(chosen.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True}))


def _sound(kind: Table, packed: Sequence[Any]) -> Block | None:
    """The rows of a block; ``None`` if they are not surely what was written."""
    if not packed or None in packed:
        return None
    from pyarrow import compute

    columns = dict(zip(_names(kind), map(_split, packed), strict=True))
    size = len(columns["summed"])
    if any(len(column) != size for column in columns.values()):
        return None
    covered = COVERED[kind.name]
    try:
        stored = _whole_numbers(columns["summed"])
        values = [
            _as_python_has(columns[each.name]) if isinstance(each.type, Float) else columns[each.name]
            for each in covered
        ]
    except ValueError:  # no number
        return None
    rows = compute.binary_join_element_wise(*values, _BETWEEN)
    ended = compute.binary_join_element_wise(rows, b"", _NEXT.encode())
    made = map(zlib.crc32, ended.buffers()[2].to_pybytes().split(_NEXT.encode())[:-1])
    return columns.__getitem__ if np.array_equal(np.fromiter(made, np.int64), stored) else None


def _split(text: str) -> pa.Array:
    """The values of a long text."""
    import pyarrow as pa
    from pyarrow import compute

    data = text.encode("utf-8", "surrogatepass")
    limits = np.array([0, len(data)], np.int32)
    one = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(limits), pa.py_buffer(data)])
    return compute.split_pattern(one, _NEXT.encode()).flatten()


def _whole_numbers(column: pa.Array) -> NDArray[np.int64]:
    found: NDArray[np.int64] = column.cast("string").cast("int64").to_numpy()
    return found


def _as_python_has(column: pa.Array) -> pa.Array:
    """Numbers that the database has written with all their digits, as ``checksum`` has them."""
    import pyarrow as pa

    coded = column.dictionary_encode()
    none = NONE.encode()
    texts = [each if each == none else repr(float(each)).encode() for each in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.binary()).take(coded.indices)


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
