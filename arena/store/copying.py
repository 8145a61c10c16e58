"""A store from one database into another: all of it or nothing, and looked at again before it is committed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Column, Connection, Table, func, inspect, select, text

from arena.store import Store, shown
from arena.store.bulk import load
from arena.store.rows import FIGURES_ROWS, LEASE_ROWS, METADATA, RUNNER_ROWS, STATE_ROWS
from judges.errors import InputError, StoreError

_OF_THE_MOMENT: Final = {row.name for row in (RUNNER_ROWS, LEASE_ROWS, STATE_ROWS, FIGURES_ROWS)}
"""What says who judges now, what every store has of its own, and what is made of the rest."""
_FETCHED: Final = 2_000
"""Rows that are in memory at once."""
_DIGITS: Final = 16


class Content(Struct, frozen=True):
    """What a store or a table holds.

    Attributes:
        rows: how many.
        digest: 32 hexadecimal digits, the same for the same rows in whatever order.
    """

    rows: int
    digest: str


def copy(source: str, target: str) -> dict[str, Content]:
    """Copy a store to a place where there is none, or an empty one, in one transaction.

    Args:
        source: a path or database URL; a run that goes on there meanwhile is copied as it stands now.
        target: the same, of either kind of database.

    Returns:
        What was copied, by table.

    Raises:
        InputError: the source is no store, or the target holds something.
        StoreError: one of them cannot be opened, read or written, or what arrived is not what was sent.
    """
    there = Store.open(source)
    try:
        here = Store.create(target, to_fill=True)
        try:
            return _copied(there, here, shown(target))
        finally:
            here.close()
    finally:
        there.close()


def content(store: Store) -> dict[str, Content]:
    """What an open store holds, by table: equal for equal stores on whatever database."""
    with store.reading() as connection:
        return {each.name: _content(connection, each) for each in _tables()}


def _copied(source: Store, target: Store, name: str) -> dict[str, Content]:
    with source.reading() as there, target.writing(alone=True) as here:
        if filled := [each.name for each in _tables() if here.execute(select(each).limit(1)).first() is not None]:
            raise InputError(f"{name}: holds something already (in {filled[0]!r}); name a place without a store")
        sent = {}
        for each in _tables():
            summing = _Summing(_rows(there, each))
            load(here, each, summing)
            sent[each.name] = summing.content()
            _count_on(here, each)
            if _content(here, each) != sent[each.name]:
                raise StoreError(f"{name}: what arrived in {each.name!r} is not what was sent; nothing was kept there")
        if here.dialect.name != "sqlite":
            here.execute(text("ANALYZE"))
        return sent


def _tables() -> list[Table]:
    return [each for each in METADATA.sorted_tables if each.name not in _OF_THE_MOMENT]


class _Summing:
    """Rows that are passed on, and summed up on the way."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows, self._count, self._sum = rows, 0, 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for row in self._rows:
            self._count += 1
            self._sum += int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=_DIGITS).digest())
            yield row

    def content(self) -> Content:
        """Of the rows so far."""
        return Content(self._count, f"{self._sum % (1 << 8 * _DIGITS):0{2 * _DIGITS}x}")


def _content(connection: Connection, of: Table) -> Content:
    summing = _Summing(_rows(connection, of))
    for _ in summing:
        pass
    return summing.content()


def _rows(connection: Connection, of: Table) -> Iterator[tuple[Any, ...]]:
    """All rows, as they come from the database bit by bit; none where a store is older than the table."""
    if not inspect(connection).has_table(of.name):
        return iter(())
    found = connection.execute(select(of).execution_options(yield_per=_FETCHED))
    return (tuple(row) for row in found)


def _count_on(connection: Connection, of: Table) -> None:
    """Let the server number new rows after those that came with their number."""
    column: Column[Any] | None = of.autoincrement_column
    if column is not None and connection.dialect.name != "sqlite":
        last = connection.execute(select(func.max(column))).scalar()
        if last is not None:
            connection.execute(select(func.setval(func.pg_get_serial_sequence(of.name, column.name), last)))
