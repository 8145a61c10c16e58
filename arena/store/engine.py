"""Opens a store's database, an SQLite file or a PostgreSQL server, and translates its errors.

Each error becomes one line in the user's terms. A process that runs judges waits while the store's database server
restarts.
"""

from __future__ import annotations

import logging
import os
import random
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, DisconnectionError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from judges.errors import PROGRESS, InputError, MissingExtraError, StoreError, StoreGoneError
from retrieval_eval.data.rows import unstorable

logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())  # hides its traceback if Ctrl-C interrupts a close

PATIENCE_S = 30.0
"""Timeout in seconds while another program locks the store, or while its database server is unreachable."""
_CONNECTIONS: Final = 15
"""Size of the connection pool for a PostgreSQL store; by default SQLAlchemy keeps only five connections open."""
_LEAST_S: Final = 0.1
"""Minimum lock timeout in seconds, even if waiting for this process's other threads has used up the timeout."""
_PAUSE_S = 0.05
_TRIES = int(PATIENCE_S / _PAUSE_S)
_LOCK: Final = 0x7261676172656E61
"""Key of PostgreSQL's advisory lock for writers: an arbitrary number that must not change."""


def sqlite_path(location: str) -> Path | None:
    """Path of an SQLite store's file; ``None`` if the location is the URL of a database server.

    Raises:
        InputError: the path is one of SQLite's special names (``:memory:``, ``file:``), or cannot be a file name.
    """
    if not location.startswith("sqlite:///") and "://" in location:
        return None
    path = Path(location.removeprefix("sqlite:///"))
    if ":memory:" in path.name or path.name.startswith("file:"):
        raise InputError(
            f"store: {path.name!r}: a store must be a file, so that paid judgments are not lost; name a path"
        )
    if (problem := unstorable(location)) is not None:
        raise InputError(f"store: {location!a}: {problem}")
    return path


def lacks_file(location: str) -> bool:
    path = sqlite_path(location)
    return path is not None and not path.is_file()


def missing(location: str) -> bool:
    """Whether the location holds no store yet: there is no file, or the database has no tables.

    Raises:
        InputError: the location is not valid.
        StoreError: the database does not answer.
    """
    if lacks_file(location):
        return True
    engine = open_engine(location)
    try:
        with translated_errors(shown(location)), engine.connect() as connection:
            return not inspect(connection).get_table_names()
    finally:
        engine.dispose()


_PLAIN: Final = frozenset(
    {"application_name", "connect_timeout", "dbname", "host", "hostaddr", "passfile", "port", "service", "sslcert"}
    | {"sslkey", "sslmode", "sslrootcert", "target_session_attrs", "user"}
)
"""Parameters of a PostgreSQL URL that never hold a secret. Others may, such as ``password`` or ``options``."""
_AFTER_NAME: Final = re.compile("[&;=#].*", re.DOTALL)


def shown(location: str) -> str:
    """The location in a form that is safe to print: passwords in a database URL are hidden."""
    if sqlite_path(location) is not None:
        return location
    try:
        url = make_url(location)
    except (ArgumentError, ValueError):
        return location.partition("://")[0] + "://..."
    plain = {name: value for name, value in url.query.items() if name in _PLAIN}
    # Text before an '@' in the host, or after '&' in the database's name, may be part of an unescaped password.
    host, database = url.host and url.host.rpartition("@")[2], url.database and _AFTER_NAME.sub("", url.database)
    hidden = "" if (plain, database) == (url.query, url.database) else "&***" if plain else "?***"
    return url.set(query=plain, host=host, database=database).render_as_string(hide_password=True) + hidden


def open_engine(location: str, *, to_make: bool = False, write_ahead: bool = False) -> Engine:
    """Create the SQLAlchemy engine for a store, without connecting to the database yet.

    Args:
        location: a path, ``sqlite:///PATH``, or ``postgresql://USER@HOST/DATABASE``.
        to_make: whether to create an SQLite file if it does not exist. A reader must not: it would silently replace a
            deleted store with an empty one.
        write_ahead: whether to switch the SQLite file permanently to write-ahead logging, with which readers never
            wait, and a killed process loses no committed transaction.

    Raises:
        InputError: the folder does not exist, the location is itself a folder, or the kind of database is not
            supported.
    """
    path = sqlite_path(location)
    return _postgres(location) if path is None else _sqlite(location, path, to_make, write_ahead)


def writing(engine: Engine, patience_s: float | None = None, *, waited_s: float = 0.0) -> Engine:
    """The engine with the options for write transactions; these see rows that others commit meanwhile.

    Args:
        patience_s: lock timeout in seconds; ``PATIENCE_S`` if ``None``.
        waited_s: seconds already spent waiting for other threads of this process, subtracted from the timeout. If
            another program holds the lock, all threads then time out together and not one after the other.
    """
    if engine.dialect.name == "sqlite":
        patience_s = PATIENCE_S if patience_s is None else patience_s
        return engine.execution_options(patience_s=max(patience_s - waited_s, min(patience_s, _LEAST_S)))
    return engine.execution_options(isolation_level="READ COMMITTED")


def wait_for_others(connection: Connection, *, alone: bool) -> None:
    """Wait for the lock that a write transaction needs.

    SQLite has one writer at a time anyway. On PostgreSQL the lock is exclusive if ``alone``; otherwise it is shared, so
    that transactions write different rows at the same time. Use ``alone`` for a change that other runners depend on:
    without it, two runners that begin the same tournament would both create it.
    """
    if connection.dialect.name != "sqlite":
        kind = "" if alone else "_shared"
        connection.execute(text(f"SELECT pg_advisory_xact_lock{kind}(:lock)"), {"lock": _LOCK})


def _postgres(location: str) -> Engine:
    try:
        url = make_url(location)
    except (ArgumentError, ValueError) as error:
        raise InputError(
            f"{shown(location)}: not the address of a database; write postgresql://USER@HOST/DATABASE"
        ) from error
    if url.drivername not in {"postgresql", "postgresql+psycopg"}:
        raise InputError(
            f"{shown(location)}: only SQLite and PostgreSQL stores are supported: give a path or postgresql://..."
        )
    try:
        import psycopg  # before SQLAlchemy does, whose error does not name the extra to install
    except ImportError as error:
        raise MissingExtraError("postgres", shown(location)) from error
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    malformed = "@" in (url.host or "") or _AFTER_NAME.search(url.database or "") or url.query.keys() - known
    if malformed:  # the driver's error would show a part of the password
        raise InputError(
            f"{shown(location)}: not the address of a database; write '@' in a password as %40, '&' as %26, or leave "
            "the password to PGPASSWORD"
        )
    # Repeatable read gives a reader of several tables one consistent snapshot.
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="REPEATABLE READ",
        pool_size=_CONNECTIONS,
        max_overflow=0,
        connect_args={
            "connect_timeout": int(PATIENCE_S),
            "tcp_user_timeout": int(PATIENCE_S * 1000),  # a dead machine does not close its connections
            "keepalives_idle": int(PATIENCE_S / 3),
            "keepalives_interval": int(PATIENCE_S / 3),
            "keepalives_count": 2,
        },
    )


def _sqlite(location: str, path: Path, to_make: bool, write_ahead: bool) -> Engine:
    if not path.parent.is_dir():
        raise InputError(f"{location}: the folder {path.parent} does not exist; make it, or name another")
    if path.is_dir():
        raise InputError(f"{location}: this is a folder; name a file")
    if to_make and not path.exists():
        with suppress(OSError):  # opening it reports the problem
            path.touch()
    at_rest = _at_rest(path)
    option = {"immutable": "1"} if at_rest else {"mode": "rw"}
    url = URL.create("sqlite", database=path.resolve().as_uri(), query={**option, "uri": "true"})
    engine = create_engine(url, connect_args={"timeout": PATIENCE_S, "isolation_level": None})
    event.listen(engine, "connect", _set_write_ahead if write_ahead else _set_pragmas)
    if not at_rest:
        _restore_if_lost(engine, location, path)
    event.listen(engine, "begin", _begin)
    return engine


_restored_files: set[tuple[int, int] | None] = set()


def _restore_if_lost(engine: Engine, location: str, path: Path) -> None:
    """Restore an SQLite store if somebody removes, renames or replaces its file while it is in use.

    Each write transaction checks the file first. If the file is gone, the connection, which can still read the removed
    file, copies its content to a new file.
    """
    aside = path.with_name(f"{path.stem}.{secrets.token_hex(2)}{path.suffix}")

    def remember_file(_connection: Any, record: Any) -> None:
        record.info["file"] = _device_and_inode(path)

    def reconnect_if_restored(_connection: Any, record: Any, _proxy: Any) -> None:
        current = _device_and_inode(path)
        if current != record.info["file"] and current in _restored_files:
            raise DisconnectionError  # SQLAlchemy then opens a new connection

    def restore(connection: Connection) -> None:
        current = _device_and_inode(path)
        if current == connection.info["file"] or "patience_s" not in connection.get_execution_options():
            return
        destination = path if current is None else aside
        try:
            _copy_to(connection.connection.dbapi_connection, destination)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"{location}: somebody removed it while it was in use, and it could not be restored ({error}); "
                "restore a copy, or run again to start a new one"
            ) from error
        if current is not None:
            raise StoreError(
                f"{location}: somebody replaced it while it was in use; its content was saved to {destination}; "
                "name that file, or run again with the new one"
            )
        _restored_files.add(_device_and_inode(path))
        warning = f"{location}: somebody removed it while it was in use; it was restored with all its content"
        PROGRESS.warning(warning)
        raise ServerLostError(f"{warning}, try again")

    event.listen(engine, "connect", remember_file)
    event.listen(engine, "checkout", reconnect_if_restored)
    event.listen(engine, "begin", restore)


def _device_and_inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _copy_to(connection: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with closing(sqlite3.connect(draft)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode=WAL")
        for suffix in ("-wal", "-shm"):  # left over from the removed file; the copy includes their content
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _at_rest(path: Path) -> bool:
    """Whether no process writes to an SQLite store, and its folder is read-only, so SQLite can create no side files."""
    return path.is_file() and not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()


def _set_pragmas(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _set_write_ahead(connection: Any, record: Any) -> None:
    """Switch to write-ahead logging; retry while another process does so too: SQLite fails instead of waiting."""
    for tries_left in range(_TRIES, -1, -1):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or not tries_left:
                raise
            time.sleep(_PAUSE_S)
    _set_pragmas(connection, record)


def _begin(connection: Connection) -> None:
    """Begin an SQLite transaction. Writers lock at once, since locking at the first write fails under contention."""
    patience_s = connection.get_execution_options().get("patience_s")
    if patience_s is not None:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={patience_s * 1000:.0f}")
    connection.exec_driver_sql("BEGIN" if patience_s is None else "BEGIN IMMEDIATE")


DAMAGED: Final = "damaged; restore a copy, or name a new store"
_PROBLEMS: Final = {
    "no such table": "not a ragleague store; name another",
    "no such column": "not a ragleague store; name another",
    'relation "': "not a ragleague store; name another",
    "column state.": "not a ragleague store; name another",
    "not a database": "not a ragleague store, or damaged; name another, or restore it",
    "unsupported file format": "not a ragleague store, or damaged; name another, or restore it",
    "malformed": DAMAGED,
    "decode": DAMAGED,
    "locked": "another program keeps it locked; try again when it is done",
    "readonly": "cannot be written; fix its permissions, or choose another path",
    "unable to open": "cannot be opened; fix the permissions of the file and its folder, or choose another path",
    "disk is full": "the disk is full; make room and run again; the results saved so far are intact",
    "disk I/O error": "the disk is full or fails; make room and run again; the results saved so far are intact",
    "No space left": "the server's disk is full; make room and run again; the results saved so far are intact",
    "server closed the connection": "the database server went away; run again, the results saved so far are intact",
    "terminating connection": "the database server went away; run again, the results saved so far are intact",
    "the database system is": "the database server is starting or stopping; run again in a moment",
    "Is the server running": "no database server answers there; start it, or fix the address",
    "Connection refused": "no database server answers there; start it, or fix the address",
    "setsockopt(": "no database server answers there; start it, or fix the address",  # refused during its setup
}
"""Messages for the user, by a fragment of the error message of SQLite or PostgreSQL that they replace."""


def _is_gone(path: Path | None) -> bool:
    return path is not None and not path.exists() and (not path.parent.exists() or os.access(path.parent, os.W_OK))


class ServerLostError(StoreError):
    """The connection to a store's database server could not be made, or was lost."""


@contextmanager
def translated_errors(name: str) -> Iterator[None]:
    """Convert database errors raised in the block to a one-line ``StoreError`` that names the store.

    Raises:
        StoreError: the database reported an error.
        ServerLostError: the server is away, so that a retry may succeed.
    """
    try:
        yield
    except IntegrityError:
        raise
    except PoolTimeoutError as error:  # no connection became free within SQLAlchemy's timeout
        raise StoreError(f"{name}: too many readers at once; try again in a moment") from error
    except DatabaseError as error:
        problem = " ".join(str(error.orig).split())
        message = next((message for fragment, message in _PROBLEMS.items() if fragment in problem), problem)
        if gone := message is _PROBLEMS["unable to open"] and _is_gone(sqlite_path(name)):
            message = "somebody removed it while it was in use; restore a copy, or run again to start a new one"
        raise (ServerLostError if gone or _is_lost(error) else StoreError)(f"{name}: {message}") from error


def _is_lost(error: DatabaseError) -> bool:
    """Whether the connection broke or was refused; a refused connection has no SQL statement and no SQLSTATE."""
    state = getattr(error.orig, "sqlstate", "")
    refused = error.statement is None and isinstance(error, OperationalError) and state is None
    return error.connection_invalidated or refused or str(state).startswith(("08", "57P"))


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_RECONNECT_S: Final = 0.25
_awaited: dict[str, bool] = {}
"""Whether transactions wait for a store's server, by location; ``False`` once waiting has timed out."""


class WaitingStore(Protocol):
    """Interface of a store, or a part of one, whose methods ``retrying`` decorates."""

    @property
    def location(self) -> str: ...


Part = TypeVar("Part", bound=WaitingStore)


def wait_for_server(location: str) -> None:
    """Make this process retry transactions while the store's server is away, so that no results are lost.

    Call it again to turn retrying on again after a timeout. A process that only reads does not call it, and fails at
    once.
    """
    _awaited[location] = True


def retry_while_away(location: str, act: Callable[[bool], Result]) -> Result:
    """Run a transaction, and retry it for up to ``PATIENCE_S`` seconds while the store's server is away.

    Args:
        act: function that runs the transaction. Its argument says whether this is a retry; the earlier attempt may have
            been committed, so the function must be idempotent.

    Raises:
        StoreGoneError: the server did not come back in time.
    """
    lost_at, again = None, False
    while True:
        try:
            return act(again)
        except ServerLostError as error:
            if location not in _awaited:
                raise
            lost_at, again = lost_at or time.monotonic(), True
            if not _awaited[location] or time.monotonic() - lost_at > PATIENCE_S:
                _awaited[location] = False  # later transactions need not wait again
                raise StoreGoneError(
                    f"{location}: the database server went away and was not back within {PATIENCE_S:.0f} s; "
                    "the results saved so far are intact; run again to continue"
                ) from error
            time.sleep(_RECONNECT_S * random.uniform(0.5, 1.5))  # noqa: S311 - no secret


def retrying(method: Callable[Concatenate[Part, Arguments], Result]) -> Callable[Concatenate[Part, Arguments], Result]:
    """Decorate a method that runs one idempotent transaction: ``retry_while_away`` then runs it."""

    @wraps(method)
    def retried(self: Part, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return retry_while_away(self.location, lambda _: method(self, *args, **kwargs))

    return retried
