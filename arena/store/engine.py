"""Opening the database behind a store."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlmodel import create_engine

from judges.errors import InputError

_PATIENCE_S = 30.0
"""How long a locked store is waited for."""
_PAUSE_S = 0.05
_TRIES = int(_PATIENCE_S / _PAUSE_S)


def sqlite_path(location: str) -> Path | None:
    """The file of an SQLite store, ``None`` for a database server."""
    if location.startswith("sqlite:///"):
        return Path(location.removeprefix("sqlite:///"))
    return None if "://" in location else Path(location)


def open_engine(location: str, *, write_ahead: bool = False) -> Engine:
    """The engine for a path or URL; nothing is read or written yet.

    Args:
        location: a path, or a database URL.
        write_ahead: turn the file to write-ahead logging, for good: readers never wait, and a killed process loses no
            committed transaction.

    Raises:
        InputError: the location names no folder that exists, or a kind of database that is not supported.
    """
    path = sqlite_path(location)
    if path is None:
        raise InputError(f"{location}: only SQLite stores are supported: give a path or sqlite:///PATH")
    if not path.parent.is_dir():
        raise InputError(f"{location}: the folder {path.parent} does not exist")
    where = f"{path.resolve().as_uri()}?immutable=1&uri=true" if _at_rest(path) else str(path)
    engine = create_engine(f"sqlite:///{where}", connect_args={"timeout": _PATIENCE_S, "isolation_level": None})
    event.listen(engine, "connect", _set_write_ahead if write_ahead else _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


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
