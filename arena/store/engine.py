"""The database behind a store, a file of SQLite or a PostgreSQL server: opening it, and what goes wrong with it.

Problems are told as one line in a user's terms. A server may go away while this process judges for a store, and come
back: restarted, or another one.
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

logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())  # a Ctrl-C while a connection closes is no news

PATIENCE_S = 30.0
"""How long a store is waited for that another program keeps locked, or whose server is away."""
_CONNECTIONS: Final = 15
"""To a server, of one store at most; SQLAlchemy would close all but five after each use."""
_LEAST_S: Final = 0.1
"""How long it is waited for at least by somebody who has waited for others."""
_PAUSE_S = 0.05
_TRIES = int(PATIENCE_S / _PAUSE_S)
_LOCK: Final = 0x7261676172656E61
"""The advisory lock by which PostgreSQL's writers keep out of each other's way; the number means nothing, and stays."""


def sqlite_path(location: str) -> Path | None:
    """The file of an SQLite store, ``None`` for a database server.

    Raises:
        InputError: what stands there is a name of SQLite's for no file, or cannot be the name of a file.
    """
    if not location.startswith("sqlite:///") and "://" in location:
        return None
    path = Path(location.removeprefix("sqlite:///"))
    if ":memory:" in path.name or path.name.startswith("file:"):
        raise InputError(f"store: {path.name!r}: a store is a file, which keeps what was paid for; name one")
    if (problem := unstorable(location)) is not None:
        raise InputError(f"store: {location!a}: {problem}")
    return path


def lacks_file(location: str) -> bool:
    """Whether the location is a path where no file is."""
    path = sqlite_path(location)
    return path is not None and not path.is_file()


def missing(location: str) -> bool:
    """Whether there is nothing yet: no file, or a database without tables. A run would make a store of it.

    Raises:
        InputError: the location is none of a store.
        StoreError: the database does not answer.
    """
    if lacks_file(location):
        return True
    engine = open_engine(location)
    try:
        with told(shown(location)), engine.connect() as connection:
            return not inspect(connection).get_table_names()
    finally:
        engine.dispose()


_PLAIN: Final = frozenset(
    {"application_name", "connect_timeout", "dbname", "host", "hostaddr", "passfile", "port", "service", "sslcert"}
    | {"sslkey", "sslmode", "sslrootcert", "target_session_attrs", "user"}
)
"""Parameters of an address that hold no secret; others may, such as ``password``, ``sslpassword`` or ``options``."""
_AFTER_NAME: Final = re.compile("[&;=#].*", re.DOTALL)


def shown(location: str) -> str:
    """The location as it may be printed: no password of a database, wherever its address holds one."""
    if sqlite_path(location) is not None:
        return location
    try:
        url = make_url(location)
    except (ArgumentError, ValueError):
        return location.partition("://")[0] + "://..."
    plain = {name: value for name, value in url.query.items() if name in _PLAIN}
    # What stands before an '@' in the host, or after '&' in the database's name, may be a part of a password.
    host, database = url.host and url.host.rpartition("@")[2], url.database and _AFTER_NAME.sub("", url.database)
    hidden = "" if (plain, database) == (url.query, url.database) else "&***" if plain else "?***"
    return url.set(query=plain, host=host, database=database).render_as_string(hide_password=True) + hidden


def open_engine(location: str, *, to_make: bool = False, write_ahead: bool = False) -> Engine:
    """The engine for a path or URL; nothing is read or written yet.

    Args:
        location: a path, ``sqlite:///PATH``, or ``postgresql://USER@HOST/DATABASE``.
        to_make: make the file where there is none. Else one that went away would come back empty.
        write_ahead: turn the file to write-ahead logging, for good: readers never wait, and a killed process loses no
            committed transaction.

    Raises:
        InputError: the location is in no folder that exists, is a folder itself, or names a kind of database that is
            not supported.
    """
    path = sqlite_path(location)
    return _postgres(location) if path is None else _sqlite(location, path, to_make, write_ahead)


def writing(engine: Engine, patience_s: float | None = None, *, waited_s: float = 0.0) -> Engine:
    """The engine for transactions that write: each sees what others have just written.

    Args:
        engine: the store's.
        patience_s: how long a lock is waited for, where that is less than ``PATIENCE_S``.
        waited_s: how long this process's other writers were waited for. Behind one whom another program has locked out
            nobody need find that out anew.
    """
    if engine.dialect.name == "sqlite":
        patience_s = PATIENCE_S if patience_s is None else patience_s
        return engine.execution_options(patience_s=max(patience_s - waited_s, min(patience_s, _LEAST_S)))
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
        import psycopg  # SQLAlchemy would import it, with an error that does not say what to do
    except ImportError as error:
        raise MissingExtraError("postgres", shown(location)) from error
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    odd = "@" in (url.host or "") or _AFTER_NAME.search(url.database or "") or url.query.keys() - known
    if odd:  # the driver's own error would show a part of the password
        raise InputError(
            f"{shown(location)}: not the address of a database; write '@' in a password as %40, '&' as %26, or leave "
            "the password to PGPASSWORD"
        )
    # A reader of several tables sees all of them at one moment.
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="REPEATABLE READ",
        pool_size=_CONNECTIONS,
        max_overflow=0,
        connect_args={
            "connect_timeout": int(PATIENCE_S),
            "tcp_user_timeout": int(PATIENCE_S * 1000),  # a machine that is gone says nothing
            "keepalives_idle": int(PATIENCE_S / 3),
            "keepalives_interval": int(PATIENCE_S / 3),
            "keepalives_count": 2,
        },
    )


def _sqlite(location: str, path: Path, to_make: bool, write_ahead: bool) -> Engine:
    if not path.parent.is_dir():
        raise InputError(f"{location}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise InputError(f"{location}: a folder stands there; name a file")
    if to_make and not path.exists():
        with suppress(OSError):  # what is wrong shows when it is opened
            path.touch()
    at_rest = _at_rest(path)
    option = {"immutable": "1"} if at_rest else {"mode": "rw"}
    url = URL.create("sqlite", database=path.resolve().as_uri(), query={**option, "uri": "true"})
    engine = create_engine(url, connect_args={"timeout": PATIENCE_S, "isolation_level": None})
    event.listen(engine, "connect", _set_write_ahead if write_ahead else _set_pragmas)
    if not at_rest:
        _keep_in_place(engine, location, path)
    event.listen(engine, "begin", _begin)
    return engine


_put_back: set[tuple[int, int] | None] = set()
"""Files that this process has put in the place of others."""


def _keep_in_place(engine: Engine, location: str, path: Path) -> None:
    """Put a store's file back where somebody removes, renames or replaces it while it is in use.

    Until its last connection closes, the system keeps all that is in it.
    """
    aside = path.with_name(f"{path.stem}.{secrets.token_hex(2)}{path.suffix}")

    def note(_connection: Any, record: Any) -> None:
        record.info["file"] = _file_at(path)

    def look(_connection: Any, record: Any, _proxy: Any) -> None:
        there = _file_at(path)
        if there != record.info["file"] and there in _put_back:
            raise DisconnectionError  # and connect anew

    def put_back(connection: Connection) -> None:
        there = _file_at(path)
        if there == connection.info["file"] or "patience_s" not in connection.get_execution_options():
            return
        place = path if there is None else aside
        try:
            _write_back(connection.connection.dbapi_connection, place)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{location}: somebody removed it while it was in use: {error}") from error
        if there is not None:
            raise StoreError(f"{location}: somebody replaced it while it was in use; what it held is in {place}")
        _put_back.add(_file_at(path))
        said = f"{location}: somebody removed it while it was in use; it was put back with all that it held"
        PROGRESS.warning(said)
        raise ServerLostError(f"{said}, try again")

    event.listen(engine, "connect", note)
    event.listen(engine, "checkout", look)
    event.listen(engine, "begin", put_back)


def _file_at(path: Path) -> tuple[int, int] | None:
    try:
        there = path.stat()
    except OSError:
        return None
    return there.st_dev, there.st_ino


def _write_back(connection: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with closing(sqlite3.connect(draft)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode=WAL")
        for beside in ("-wal", "-shm"):  # of the file that went: the copy has what they held
            Path(f"{path}{beside}").unlink(missing_ok=True)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read_earlier(engine: Engine) -> None:
    """Let a store of the last version be read as it is: views that only this process has lend it the new columns."""

    def lend(connection: Any, _record: Any) -> None:
        if engine.dialect.name == "sqlite":
            home, columns = "main", "rowid, *"
            connection.execute("PRAGMA temp_store=MEMORY")
        else:
            connection.execute("SET TRANSACTION READ WRITE")  # views of a session are allowed where all else is read
            home, columns = connection.execute("SELECT current_schema()").fetchone()[0], "*"
        for table in ("judgment", "wanted"):
            lent = f"SELECT {columns}, CAST(NULL AS BIGINT) AS checksum FROM {home}.{table}"  # noqa: S608 - names of our tables
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
    patience_s = connection.get_execution_options().get("patience_s")
    if patience_s is not None:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={patience_s * 1000:.0f}")
    connection.exec_driver_sql("BEGIN" if patience_s is None else "BEGIN IMMEDIATE")


DAMAGED: Final = "damaged; restore a copy, or name a new store"
_EARLIER: Final = (
    "written by an earlier version of ragleague; reading it takes temporary views, which this role or server does not "
    "allow; 'ragleague run' brings it up to date"
)
_PROBLEMS: Final = {
    "permission denied to create temporary": _EARLIER,
    "read-write mode during recovery": _EARLIER,
    "no such table": "not a ragleague store; name another",
    "no such column": "not a ragleague store; name another",
    'relation "': "not a ragleague store; name another",
    "column state.": "not a ragleague store; name another",
    "not a database": "not a ragleague store, or damaged; name another, or restore it",
    "unsupported file format": "not a ragleague store, or damaged; name another, or restore it",
    "malformed": DAMAGED,
    "decode": DAMAGED,
    "locked": "another program keeps it locked; try again when it is done",
    "readonly": "cannot be written; mend its permissions, or name a store elsewhere",
    "unable to open": "cannot be opened; mend the permissions of the file and its folder, or name a store elsewhere",
    "disk is full": "the disk is full; make room and run again, what was kept before is whole",
    "disk I/O error": "the disk is full or fails; make room and run again, what was kept before is whole",
    "No space left": "the server's disk is full; make room and run again, what was kept before is whole",
    "server closed the connection": "the database server went away; run again, what was kept before is whole",
    "terminating connection": "the database server went away; run again, what was kept before is whole",
    "the database system is": "the database server starts or stops; run again in a moment",
    "Is the server running": "no database server answers there; start it, or mend the address",
    "Connection refused": "no database server answers there; start it, or mend the address",
    "setsockopt(": "no database server answers there; start it, or mend the address",  # refused before it was set up
}
"""What SQLite and PostgreSQL say, and what that means."""


def _is_gone(path: Path | None) -> bool:
    return path is not None and not path.exists() and (not path.parent.exists() or os.access(path.parent, os.W_OK))


class ServerLostError(StoreError):
    """There is no connection to the server of a store, or none any more."""


@contextmanager
def told(name: str) -> Iterator[None]:
    """Database errors as one line that names the store.

    Raises:
        StoreError: in place of an error of the database.
        ServerLostError: where its server is away, so that the same may work later.
    """
    try:
        yield
    except IntegrityError:
        raise
    except PoolTimeoutError as error:  # every connection was in use for as long as SQLAlchemy waits
        raise StoreError(f"{name}: too many readers at once; try again in a moment") from error
    except DatabaseError as error:
        problem = " ".join(str(error.orig).split())
        words = next((words for sign, words in _PROBLEMS.items() if sign in problem), problem)
        if gone := words is _PROBLEMS["unable to open"] and _is_gone(sqlite_path(name)):
            words = "somebody removed it while it was in use; restore a copy, or run again to begin anew"
        raise (ServerLostError if gone or _lost(error) else StoreError)(f"{name}: {words}") from error


def _lost(error: DatabaseError) -> bool:
    """Whether an error is of the connection: it broke, or none was made, of which a server gives no class of error."""
    state = getattr(error.orig, "sqlstate", "")
    refused = error.statement is None and isinstance(error, OperationalError) and state is None
    return error.connection_invalidated or refused or str(state).startswith(("08", "57P"))


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_RECONNECT_S: Final = 0.25
_awaited: dict[str, bool] = {}
"""By the name of each store that this process judges for, whether its server is waited for still."""


class WaitingStore(Protocol):
    """A store, or a part of one, that waits for its server."""

    @property
    def location(self) -> str:
        """The store's, as it may be printed."""
        ...


Part = TypeVar("Part", bound=WaitingStore)


def judged_for(location: str) -> None:
    """From now on this process waits for the server of a store: it has something to lose.

    A run that begins after another one gave up waits anew. Whoever only reads is told at once that the server is gone.
    """
    _awaited[location] = True


def outlasting(location: str, act: Callable[[bool], Result]) -> Result:
    """Do all of a transaction again, for as long as a store's server is away, but no longer than a lock is waited for.

    Args:
        location: of the store, as it may be printed.
        act: the transaction. It is told whether an earlier attempt broke off: that one may have been committed, so that
            doing it again must change nothing.

    Raises:
        StoreGoneError: the server did not come back.
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
                _awaited[location] = False  # who asks next need not find that out anew
                raise StoreGoneError(
                    f"{location}: the database server went away and was not back within {PATIENCE_S:.0f} s; "
                    "what was kept before is whole, run again to go on"
                ) from error
            time.sleep(_RECONNECT_S * random.uniform(0.5, 1.5))  # noqa: S311 - no secret


def patient(method: Callable[Concatenate[Part, Arguments], Result]) -> Callable[Concatenate[Part, Arguments], Result]:
    """For a method that is one transaction and may be done twice without a difference: see ``outlasting``."""

    @wraps(method)
    def whole(self: Part, /, *given: Arguments.args, **named: Arguments.kwargs) -> Result:
        return outlasting(self.location, lambda _: method(self, *given, **named))

    return whole
