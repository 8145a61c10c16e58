"""Copies a store into another database in one transaction, and verifies the copy before it commits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Column, Connection, Table, func, select, text

from arena.store import Store, shown
from arena.store.bulk import load
from arena.store.tables import FIGURES, LEASE, METADATA, RUNNER, STATE
from judges.errors import InputError, StoreError

_NOT_COPIED: Final = {row.name for row in (RUNNER, LEASE, STATE, FIGURES)}
"""Tables that are not copied: active runners and their claims, the store's state, and the cache."""
_FETCHED: Final = 2_000
_DIGITS: Final = 16


class Content(Struct, frozen=True):
    """Number of rows of a table, and a digest of their content.

    Attributes:
        digest: 32 hexadecimal digits that do not depend on the order of the rows.
    """

    rows: int
    digest: str


def copy(source: str, target: str) -> dict[str, Content]:
    """Copy a store into a new or empty store, in one transaction.

    Args:
        source: a path or database URL; if a run is in progress there, its results so far are copied.
        target: a path or database URL; SQLite can be copied to PostgreSQL and back.

    Returns:
        Number of rows and digest of each copied table.

    Raises:
        InputError: the source is not a ragleague store, or the target is not empty.
        StoreError: one of them cannot be opened, read or written, or the copy differs from the source.
    """
    source_store = Store.open(source)
    try:
        target_store = Store.create(target, to_fill=True)
        try:
            return _copy(source_store, target_store, shown(target))
        finally:
            target_store.close()
    finally:
        source_store.close()


def content(store: Store) -> dict[str, Content]:
    """Number of rows and digest of each table of an open store; equal stores give equal values in any database."""
    with store.reading() as connection:
        return {table.name: _content(connection, table) for table in _tables()}


def _copy(source: Store, target: Store, name: str) -> dict[str, Content]:
    with source.reading() as reader, target.writing(alone=True) as writer:
        if filled := [table.name for table in _tables() if writer.execute(select(table).limit(1)).first() is not None]:
            raise InputError(
                f"{name}: is not empty, its table {filled[0]!r} has rows; name a new file or an empty database"
            )
        contents = {}
        for table in _tables():
            rows = _Digested(_rows(reader, table))
            load(writer, table, rows)
            contents[table.name] = rows.content()
            _advance_sequence(writer, table)
            if _content(writer, table) != contents[table.name]:
                raise StoreError(
                    f"{name}: the copy of table {table.name!r} differs from the source; nothing was copied; "
                    "try again, or run 'ragleague store check' on the source"
                )
        if writer.dialect.name != "sqlite":
            writer.execute(text("ANALYZE"))
        return contents


def _tables() -> list[Table]:
    return [table for table in METADATA.sorted_tables if table.name not in _NOT_COPIED]


class _Digested:
    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows, self._count, self._sum = rows, 0, 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for row in self._rows:
            self._count += 1
            self._sum += int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=_DIGITS).digest())
            yield row

    def content(self) -> Content:
        return Content(self._count, f"{self._sum % (1 << 8 * _DIGITS):0{2 * _DIGITS}x}")


def _content(connection: Connection, table: Table) -> Content:
    rows = _Digested(_rows(connection, table))
    for _ in rows:
        pass
    return rows.content()


def _rows(connection: Connection, table: Table) -> Iterator[tuple[Any, ...]]:
    rows = connection.execute(select(table).execution_options(yield_per=_FETCHED))
    return (tuple(row) for row in rows)


def _advance_sequence(connection: Connection, table: Table) -> None:
    """Make PostgreSQL's automatic numbers for new rows continue after those of the copied rows."""
    column: Column[Any] | None = table.autoincrement_column
    if column is not None and connection.dialect.name != "sqlite":
        last = connection.execute(select(func.max(column))).scalar()
        if last is not None:
            connection.execute(select(func.setval(func.pg_get_serial_sequence(table.name, column.name), last)))
