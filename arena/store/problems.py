"""What a database says when something is wrong, as one line in a user's terms, and how long its server is waited for.

A server may go away while this process judges for a store, and come back: restarted, or another one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError

from judges.errors import StoreError, StoreGoneError

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


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_PAUSE_S: Final = 0.25
_awaited: dict[str, bool] = {}
"""By the name of each store that this process judges for, whether its server is waited for still."""


class Waiting(Protocol):
    """A store, or a part of one, that waits for its server."""

    @property
    def location(self) -> str:
        """The store's, as it may be printed."""
        ...


Part = TypeVar("Part", bound=Waiting)


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
            from arena.store import engine

            lost_at, again = lost_at or time.monotonic(), True
            if not _awaited[location] or time.monotonic() - lost_at > engine.PATIENCE_S:
                _awaited[location] = False  # who asks next need not find that out anew
                raise StoreGoneError(
                    f"{location}: the database server went away and was not back within {engine.PATIENCE_S:.0f} s; "
                    "what was kept before is whole, run again to go on"
                ) from error
            time.sleep(_PAUSE_S * random.uniform(0.5, 1.5))  # noqa: S311 - no secret


def patient(
    method: Callable[Concatenate[Part, Arguments], Result],
) -> Callable[Concatenate[Part, Arguments], Result]:
    """For a method that is one transaction and may be done twice without a difference: see ``outlasting``."""

    @wraps(method)
    def whole(self: Part, /, *given: Arguments.args, **named: Arguments.kwargs) -> Result:
        return outlasting(self.location, lambda _: method(self, *given, **named))

    return whole
