"""Opens a store's database, checks its version, and reads or writes in transactions; error messages name the store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final, Self
from weakref import WeakSet

from sqlalchemy import Connection, Engine, delete, inspect, select, update

from arena.store.engine import (
    DAMAGED,
    lacks_file,
    open_engine,
    retry_while_away,
    shown,
    translated_errors,
    wait_for_others,
)
from arena.store.engine import writing as transactions
from arena.store.tables import AGENT_REPLY, FIGURES, METADATA, SCHEMA_VERSION, STATE
from judges.errors import InputError, StoreError

_NEWEST: Final = AGENT_REPLY.c.made_at
"""The column that was added last: a store without it is of an earlier version."""
_FORGET_FIGURES: Final = delete(FIGURES)
_COUNT_CHANGE: Final = update(STATE).values(changes=STATE.c.changes + 1)


class Database:
    """A store's database: its connections, and the transactions that read and write it.

    Attributes:
        location: path or URL of the store, without its password.
    """

    used: ClassVar[WeakSet[Database]] = WeakSet()

    def __init__(self, engine: Engine, location: str) -> None:
        Database.used.add(self)
        self._engine = engine
        self.location = location
        self._write_lock = threading.Lock()

    @classmethod
    def open(cls, location: str) -> Self:
        """Open an existing store.

        Raises:
            InputError: the location holds no store.
            StoreError: the store cannot be read, or was written by another version.
        """
        return retry_while_away(shown(location), lambda _: cls.open_existing(location))

    @classmethod
    def open_existing(cls, location: str, *, to_write: bool = False) -> Self:
        """Open an existing store; unlike ``open``, it does not retry while the database server is unreachable."""
        if lacks_file(location):
            raise no_store(location)
        store = cls(open_engine(location), shown(location))
        try:
            store.check_version(to_write=to_write)
        except BaseException:
            Database.used.discard(store)  # refused, so no later error comes from it
            store.close()
            raise
        return store

    def close(self) -> None:
        self._engine.dispose()

    def check_version(self, *, to_write: bool = False) -> None:
        """Check that this version of ragleague can read the store.

        Args:
            to_write: whether to accept an empty database, in which the caller then creates the tables.

        Raises:
            InputError: the database is empty.
            StoreError: another version wrote the store, or a table is missing.
        """
        with self.reading() as connection:
            inspector = inspect(connection)
            tables = inspector.get_table_names()
            if not tables:
                if to_write:
                    return
                raise no_store(self.location)
            version = connection.execute(select(STATE.c.schema_version)).scalar()
            newest = AGENT_REPLY.name in tables and inspector.get_columns(AGENT_REPLY.name)
        differs = "" if version == SCHEMA_VERSION else f"schema {version}, not {SCHEMA_VERSION}"
        if newest and _NEWEST.name not in {column["name"] for column in newest}:
            differs = differs or f"without the column {_NEWEST}"
        if differs:
            raise StoreError(f"{self.location}: written by another version of ragleague ({differs}); name a new store")
        if lost := [name for name in METADATA.tables if name not in tables]:
            raise StoreError(f"{self.location}: {DAMAGED} (the table {lost[0]!r} is gone)")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a connection for reading; database errors become a ``StoreError`` that names the store."""
        try:
            with translated_errors(self.location), self._engine.connect() as connection:
                yield connection
        except (ValueError, TypeError) as error:  # the stored bytes do not decode
            raise StoreError(f"{self.location}: {DAMAGED}") from error

    @contextmanager
    def writing(
        self, *, alone: bool = False, judged: bool = True, patience_s: float | None = None
    ) -> Iterator[Connection]:
        """Run a write transaction.

        Args:
            alone: whether to lock out all other writers for the whole transaction.
            judged: whether to call ``count_change`` at the end, which drops cached figures.
            patience_s: lock timeout in seconds; ``engine.PATIENCE_S`` if ``None``.
        """
        # The lock makes this process's threads take turns: SQLite itself would wait by sleeping and trying again.
        started = time.monotonic()
        with (
            self._write_lock,
            translated_errors(self.location),
            transactions(self._engine, patience_s, waited_s=time.monotonic() - started).begin() as connection,
        ):
            wait_for_others(connection, alone=alone)
            yield connection
            if judged:
                count_change(connection)


def no_store(location: str) -> InputError:
    return InputError(f"{shown(location)}: no store there; 'ragleague run' makes one")


def count_change(connection: Connection) -> None:
    """Increment the store's change counter and drop cached figures.

    Call it last in a transaction: from then until the commit, other writers wait for the row with the counter.
    """
    connection.execute(_FORGET_FIGURES)
    connection.execute(_COUNT_CHANGE)
