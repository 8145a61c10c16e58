"""Opening the database behind a store: a file of SQLite, or a PostgreSQL server."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError
from sqlmodel import create_engine

from arena.store.problems import told
from judges.errors import InputError

PATIENCE_S = 30.0
"""How long a store is waited for that another program keeps locked, or whose server is away."""
_PAUSE_S = 0.05
_TRIES = int(PATIENCE_S / _PAUSE_S)
_LOCK: Final = 0x7261676172656E61
"""The advisory lock by which PostgreSQL's writers keep out of each other's way: "ragarena" in ASCII."""


def sqlite_path(location: str) -> Path | None:
    """The file of an SQLite store, ``None`` for a database server."""
    if location.startswith("sqlite:///"):
        return Path(location.removeprefix("sqlite:///"))
    return None if "://" in location else Path(location)


def missing(location: str) -> bool:
    """Whether there is nothing yet: no file, or a database without tables. A run would make a store of it.

    Raises:
        InputError: the location is none of a store.
        StoreError: the database does not answer.
    """
    path = sqlite_path(location)
    if path is not None:
        return not path.is_file()
    engine = open_engine(location)
    try:
        with told(shown(location)), engine.connect() as connection:
            return not inspect(connection).get_table_names()
    finally:
        engine.dispose()


def shown(location: str) -> str:
    """The location as it may be printed, without the password of a database."""
    if sqlite_path(location) is not None:
        return location
    try:
        return make_url(location).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return location.partition("://")[0] + "://..."


def open_engine(location: str, *, write_ahead: bool = False) -> Engine:
    """The engine for a path or URL; nothing is read or written yet.

    Args:
        location: a path, ``sqlite:///PATH``, or ``postgresql://USER@HOST/DATABASE``.
        write_ahead: turn the file to write-ahead logging, for good: readers never wait, and a killed process loses no
            committed transaction.

    Raises:
        InputError: the location names no folder that exists, or a kind of database that is not supported.
    """
    path = sqlite_path(location)
    return _postgres(location) if path is None else _sqlite(location, path, write_ahead=write_ahead)


def writing(engine: Engine) -> Engine:
    """The engine for transactions that write: each sees what others have just written."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(writes=True)
    return engine.execution_options(isolation_level="READ COMMITTED")


def wait_for_others(connection: Connection, *, alone: bool) -> None:
    """Wait until a transaction may write: alone, or beside others that touch other rows.

    SQLite has one writer at a time anyway. On PostgreSQL whoever changes what others build on writes alone: two runners
    that begin the same tournament would each make it.
    """
    if connection.dialect.name != "sqlite":
        kind = "" if alone else "_shared"
        connection.execute(text(f"SELECT pg_advisory_xact_lock{kind}(:lock)"), {"lock": _LOCK})


def _postgres(location: str) -> Engine:
    try:
        url = make_url(location)
    except (ArgumentError, ValueError) as error:
        raise InputError(f"{shown(location)}: not the address of a database") from error
    if url.drivername not in {"postgresql", "postgresql+psycopg"}:
        raise InputError(
            f"{shown(location)}: only SQLite and PostgreSQL stores are supported: give a path or postgresql://..."
        )
    try:
        import psycopg  # noqa: F401 - SQLAlchemy would import it, with an error that does not say what to do
    except ImportError as error:
        raise InputError(
            f"{shown(location)}: PostgreSQL needs a driver: install the extra 'postgres' (ragarena[postgres])"
        ) from error
    # A reader of several tables sees all of them at one moment.
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="REPEATABLE READ",
        connect_args={
            "connect_timeout": int(PATIENCE_S),
            "tcp_user_timeout": int(PATIENCE_S * 1000),  # a machine that is gone says nothing
            "keepalives_idle": int(PATIENCE_S / 3),
            "keepalives_interval": int(PATIENCE_S / 3),
            "keepalives_count": 2,
        },
    )


def _sqlite(location: str, path: Path, *, write_ahead: bool) -> Engine:
    if not path.parent.is_dir():
        raise InputError(f"{location}: the folder {path.parent} does not exist")
    # A path is not pasted into a URL as it is, where a question mark begins its options.
    at_rest = f"sqlite:///{path.resolve().as_uri()}?immutable=1&uri=true"
    url = at_rest if _at_rest(path) else URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"timeout": PATIENCE_S, "isolation_level": None})
    event.listen(engine, "connect", _set_write_ahead if write_ahead else _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def read_earlier(engine: Engine) -> None:
    """Let a store of the last version be read as it is: views that only this process has lend it the new columns."""

    def lend(connection: Any, _record: Any) -> None:
        if engine.dialect.name == "sqlite":
            home = "main"
            connection.execute("PRAGMA temp_store=MEMORY")
        else:
            connection.execute("SET TRANSACTION READ WRITE")  # views of a session are allowed where all else is read
            home = connection.execute("SELECT current_schema()").fetchone()[0]
        for table in ("judgment", "wanted"):
            lent = f"SELECT *, CAST(NULL AS BIGINT) AS checksum FROM {home}.{table}"  # noqa: S608 - names of our tables
            connection.execute(f"CREATE TEMP VIEW {table} AS {lent}")
        connection.commit()

    engine.dispose()
    event.listen(engine, "connect", lend)


def _at_rest(path: Path) -> bool:
    """Whether nobody can be writing to a store, and a reader cannot put the files beside it that it else needs."""
    return path.is_file() and not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()


def _set_pragmas(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _set_write_ahead(connection: Any, record: Any) -> None:
    """SQLite does not wait for this lock by itself: while another process turns the same new file, try again."""
    for patience in range(_TRIES, -1, -1):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or not patience:
                raise
            time.sleep(_PAUSE_S)
    _set_pragmas(connection, record)


def _begin(connection: Connection) -> None:
    """Writers take the lock at once: a deferred transaction that reads and then writes fails under contention."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
