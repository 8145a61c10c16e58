"""What a database says when something is wrong, as one line in a user's terms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError

from judges.errors import StoreError

DAMAGED: Final = "damaged; restore a copy, or name a new store"
_EARLIER: Final = (
    "written by an earlier version of ragarena; reading it takes temporary views, which this role or server does not "
    "allow; 'ragarena run' brings it up to date"
)
_PROBLEMS: Final = {
    "permission denied to create temporary": _EARLIER,
    "read-write mode during recovery": _EARLIER,
    "no such table": "not a ragarena store",
    "no such column": "not a ragarena store",
    'relation "': "not a ragarena store",
    "column state.": "not a ragarena store",
    "not a database": "not a ragarena store, or damaged",
    "unsupported file format": "not a ragarena store, or damaged",
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
}
"""What SQLite and PostgreSQL say, and what that means."""


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
    except DatabaseError as error:
        problem = " ".join(str(error.orig).split())
        words = next((words for sign, words in _PROBLEMS.items() if sign in problem), problem)
        raise (ServerLostError if _lost(error) else StoreError)(f"{name}: {words}") from error


def _lost(error: DatabaseError) -> bool:
    """Whether an error is of the connection: it broke, or none was made, of which a server gives no class of error."""
    state = getattr(error.orig, "sqlstate", "")
    refused = error.statement is None and isinstance(error, OperationalError) and state is None
    return error.connection_invalidated or refused or str(state).startswith(("08", "57P"))
