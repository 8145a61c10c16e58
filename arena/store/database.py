"""A store as a database: open it, check its version, and read or write in transactions; errors name the store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from sqlalchemy import Connection, Engine, delete, inspect, select, update

from arena.store.data import DATA
from arena.store.engine import (
    DAMAGED,
    lacks_file,
    open_engine,
    read_earlier,
    retry_while_away,
    shown,
    translated_errors,
    wait_for_others,
)
from arena.store.engine import writing as transactions
from arena.store.rows import (
    FIGURES_ROWS,
    JUDGMENT_ROWS,
    LABEL_ROWS,
    SCHEMA_VERSION,
    STATE_ROWS,
    TOURNAMENT_ROWS,
    WANTED_ROWS,
    Damage,
)
from judges.errors import InputError, StoreError

_LAST_READ: Final = 3
"""The one earlier version whose stores can be read as they are."""
_LATER: Final = (LABEL_ROWS,)
"""Tables that stores of earlier versions may lack. A store without any other table would seem to hold no judgments."""
_NEEDED: Final = [row.name for row in (TOURNAMENT_ROWS, WANTED_ROWS, JUDGMENT_ROWS, *DATA) if row not in _LATER]
_FORGET_FIGURES: Final = delete(FIGURES_ROWS)
_COUNT_CHANGE: Final = update(STATE_ROWS).values(changes=STATE_ROWS.c.changes + 1)


class Database:
    """The connections of one store.

    Attributes:
        location: the path or URL, without its password.
    """

    def __init__(self, engine: Engine, location: str) -> None:
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
        """Open an existing store, without waiting for a server that is away."""
        if lacks_file(location):
            raise no_store(location)
        store = cls(open_engine(location), shown(location))
        try:
            store.check_version(to_write=to_write)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def check_version(self, *, to_write: bool = False) -> None:
        """Check that this version of ragleague can read the store.

        Args:
            to_write: the store may also be empty, or of an earlier version.

        Raises:
            InputError: the database is empty.
            StoreError: another version wrote it, or a table is gone.
        """
        with self.reading() as connection:
            tables = inspect(connection).get_table_names()
            if not tables:
                if to_write:
                    return
                raise no_store(self.location)
            version = connection.execute(select(STATE_ROWS.c.schema_version)).scalar()
        older = isinstance(version, int) and 0 < version < SCHEMA_VERSION
        if version == _LAST_READ and not to_write:
            read_earlier(self._engine)
        elif older and not to_write:
            raise StoreError(
                f"{self.location}: written by an earlier version of ragleague; 'ragleague run' brings it up to date"
            )
        if version != SCHEMA_VERSION and not older:
            raise StoreError(
                f"{self.location}: written by another version of ragleague (schema {version}, not {SCHEMA_VERSION})"
            )
        if lost := [name for name in _NEEDED if name not in tables]:
            raise StoreError(f"{self.location}: {DAMAGED} (the table {lost[0]!r} is gone)")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading; its errors name the store."""
        try:
            with translated_errors(self.location), self._engine.connect() as connection:
                yield connection
        except Damage as damage:
            raise self._damaged(damage) from None
        except (ValueError, TypeError) as error:  # the stored bytes do not decode
            raise StoreError(f"{self.location}: {DAMAGED}") from error

    @contextmanager
    def writing(
        self, *, alone: bool = False, judged: bool = True, patience_s: float | None = None
    ) -> Iterator[Connection]:
        """A write transaction.

        Args:
            alone: lock other writers out for the whole transaction.
            judged: figures computed earlier no longer hold, see ``count_change``.
            patience_s: how long to wait for a lock, in seconds; the default of ``engine`` if ``None``.
        """
        # The lock makes this process's threads take turns: SQLite itself would wait by sleeping and trying again.
        started = time.monotonic()
        try:
            with (
                self._write_lock,
                translated_errors(self.location),
                transactions(self._engine, patience_s, waited_s=time.monotonic() - started).begin() as connection,
            ):
                wait_for_others(connection, alone=alone)
                yield connection
                if judged:
                    count_change(connection)
        except Damage as damage:
            raise self._damaged(damage) from None

    def _damaged(self, damage: Damage) -> StoreError:
        return StoreError(
            f"{self.location}: {damage} is not what was written: the file is damaged; 'ragleague store check' lists "
            "all damage; restore a copy, or take the damaged parts out with its --discard"
        )


def no_store(location: str) -> InputError:
    """The error for a location without a store."""
    return InputError(f"{shown(location)}: no store there; 'ragleague run' makes one")


def count_change(connection: Connection) -> None:
    """Increment the store's change counter and drop cached figures.

    Call it last in a transaction: every writer waits for that one row.
    """
    connection.execute(_FORGET_FIGURES)
    connection.execute(_COUNT_CHANGE)
