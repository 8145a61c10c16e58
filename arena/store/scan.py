"""All rows of a table that keeps a checksum of each, as columns, seen to be what was written.

A file of SQLite puts the values of many rows together itself, in a few long texts: that makes no object for a row and
needs no lock of Python's. Only where such a block is not surely what was written are its rows read one by one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Float, Select, Table, case, func, literal, literal_column, select
from sqlalchemy.exc import DBAPIError

from arena.store.bulk import Columns, stream
from arena.store.rows import JUDGMENT_ROWS, WANTED_ROWS, checksum
from retrieval_eval.data.columns import Texts

_BLOCK: Final = 4_000
"""Rows that are in memory at once where they are read one by one, and of the first block that is not."""
_LONG: Final = 4_000_000
"""Characters of a block: two threads that take turns should not do so too often, nor hold too much."""
_MOST: Final = 50_000
"""Rows of a block."""
_NEXT, _NULL = "\x1e", "\x1d"
"""Between the rows of a long text, and in place of null. Where a text holds the first, rows are read one by one."""
_BETWEEN = "\x1f"
"""Between the values of a row, as ``checksum`` has it."""

Item = TypeVar("Item")
Ints = NDArray[np.int32]
Idents = NDArray[np.void]
Block = Sequence[Sequence[Any]]

_IDENT: Final = np.dtype([("first", np.uint64), ("second", np.uint64)])
_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], np.uint64)

COVERED: Final[Mapping[str, Sequence[Any]]] = {
    JUDGMENT_ROWS.name: [column for column in JUDGMENT_ROWS.c if column.name != "checksum"],
    WANTED_ROWS.name: [*WANTED_ROWS.primary_key, WANTED_ROWS.c.judgment_id],
}
"""Columns that a row's checksum covers; numbers with a fraction come last."""
ADDED: Final[Mapping[str, Any]] = {JUDGMENT_ROWS.name: 0, WANTED_ROWS.name: WANTED_ROWS.c.position}
"""What is added to the checksum of these as it is stored."""


class Picked(NamedTuple):
    """What is read of each row: texts of which there are few, whole numbers, and the id of a judgment."""

    texts: Mapping[str, ColumnElement[Any]]
    numbers: Mapping[str, ColumnElement[Any]]
    ident: ColumnElement[Any]


class _Numbering(dict[Any, int]):
    """A number for each value, in the order in which they come."""

    def __missing__(self, value: Any) -> int:
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
    connection: Connection, kind: Table, picked: Picked, damaged: list[Sequence[Any]], *where: ColumnElement[bool]
) -> tuple[Columns, Idents]:
    """Read all rows of a table.

    Args:
        connection: to read.
        kind: judgments or wants.
        picked: what is wanted of each row.
        damaged: gets the rows that are not what was written, as ``with_checksum`` has them.
        where: which rows, all if absent.

    Returns:
        What was picked, a row each, in no order; and the ids, as ``fingerprints`` of them.
    """
    numbered = {name: _Numbering() for name in picked.texts}
    parts = {name: _Column(np.dtype(np.int32)) for name in (*picked.texts, *picked.numbers)}
    idents = _Column(_IDENT)
    texts = [func.coalesce(column, _NULL) for column in (picked.ident, *picked.texts.values())]
    wanted = [*texts, *picked.numbers.values()]
    for named, *columns in _blocks(connection, kind, wanted, damaged, where):
        idents.add(fingerprints(named))
        for (name, part), values in zip(parts.items(), columns, strict=True):
            number = numbered[name].__getitem__ if name in numbered else int
            part.add(np.fromiter(map(number, values), np.int32, len(values)))
    coded = {
        name: Texts([None if text == _NULL else text for text in numbering], parts[name].whole())
        for name, numbering in numbered.items()
    }
    return Columns(coded, {name: parts[name].whole() for name in picked.numbers}), idents.whole()


def damaged_rows(connection: Connection, kind: Table, *where: ColumnElement[bool]) -> list[Sequence[Any]]:
    """The rows that are not what was written, as ``with_checksum`` has them."""
    damaged: list[Sequence[Any]] = []
    for _ in _blocks(connection, kind, [], damaged, where):
        pass
    return damaged


def with_checksum(kind: Table) -> Select[Any]:
    """All columns that a checksum covers, and the checksum of these."""
    return select(*COVERED[kind.name], _summed(kind))


def _summed(kind: Table) -> ColumnElement[int]:
    summed: ColumnElement[int] = (kind.c.checksum - ADDED[kind.name]).label("summed")
    return summed


def _blocks(
    connection: Connection,
    kind: Table,
    picked: Sequence[ColumnElement[Any]],
    damaged: list[Sequence[Any]],
    where: Sequence[ColumnElement[bool]],
) -> Iterator[Block]:
    """What is picked of the rows, a sequence for each column; whole numbers may come as texts."""
    one_by_one = with_checksum(kind).add_columns(*picked).where(*where)
    if connection.dialect.name != "sqlite":
        for rows in stream(connection, one_by_one, _BLOCK):
            yield _looked_through(kind, rows, damaged)
        return
    unsure = []
    for packed, limits in _ahead(_packed(connection, kind, picked, where)):
        block = _sound(packed)
        if block is None:
            unsure.append(limits)
        else:
            yield block
    rowid: ColumnElement[int] = literal_column(f"{kind.name}.rowid")
    for after, last in unsure:
        if found := connection.execute(one_by_one.where(rowid > after, rowid <= last)).all():
            yield _looked_through(kind, found, damaged)


def _looked_through(kind: Table, rows: Sequence[Any], damaged: list[Sequence[Any]]) -> Block:
    size = len(COVERED[kind.name])
    damaged += [row for row in rows if row[size] is not None and row[size] != checksum(tuple(row[:size]))]
    return list(zip(*rows, strict=True))[size + 1 :]


def _ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same; the next one is made in a thread while one is used."""
    with ThreadPoolExecutor(1) as beside:
        coming = beside.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = beside.submit(next, items, None)
            yield item


def _packed(
    connection: Connection, kind: Table, picked: Sequence[ColumnElement[Any]], where: Sequence[ColumnElement[bool]]
) -> Iterator[tuple[Sequence[Any], tuple[int, int]]]:
    """By block the long texts, and the limits of its rowids; nothing where the database cannot put as much together.

    The long texts: covered values, but for those with a fraction, these, the checksums, and each column that is picked.
    """
    rowid: ColumnElement[int] = literal_column(f"{kind.name}.rowid")
    whole = [column for column in COVERED[kind.name] if not isinstance(column.type, Float)]
    fractions = COVERED[kind.name][len(whole) :]
    told = (func.coalesce(column, "None") if column.nullable else column for column in whole)
    values = func.format(_BETWEEN.join(["%s"] * len(whole)), *told)
    digits = [case((column.is_(None), "None"), else_=func.format("%!.17g", column)) for column in fractions]
    behind = func.format(_BETWEEN.join(["%s"] * len(digits)), *digits) if digits else literal("")
    long = [values, behind, _summed(kind), *picked]
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
        if packed and packed[0]:
            size = min(_MOST, max(1, size * _LONG // len(packed[0])))


def _written(connection: Connection, chosen: Select[Any]) -> str:
    return str(chosen.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True}))


def _sound(packed: Sequence[Any]) -> Block | None:
    """What is picked of a block; ``None`` if its rows are not surely what was written."""
    if None in packed or not packed:
        return None
    rows = packed[0].encode("utf-8", "surrogatepass").split(_NEXT.encode())
    behind, stored, *picked = (text.split(_NEXT) for text in packed[1:])
    if any(len(column) != len(rows) for column in (behind, stored, *picked)):
        return None
    made = map(zlib.crc32, map(_fractions, behind), map(zlib.crc32, rows))
    return picked if list(made) == list(map(int, stored)) else None


@lru_cache(maxsize=1024)
def _fractions(written: str) -> bytes:
    """Numbers that the database has written with all their digits, as ``checksum`` has them behind other values."""
    numbers = [number if number == "None" else repr(float(number)) for number in written.split(_BETWEEN) if number]
    return "".join(f"{_BETWEEN}{number}" for number in numbers).encode()


def fingerprints(idents: Sequence[str]) -> Idents:
    """128 bits of each id, as many as a digest of its own has."""
    joined, width = "".join(idents).encode(), len(idents[0])
    alike = len(joined) == width * len(idents) and set(map(len, idents)) == {width}
    texts = np.frombuffer(joined, f"S{width}") if alike else np.array(list(map(str.encode, idents)))
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
