"""A database server that goes away while this process judges for a store, and comes back: restarted, or another one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from arena.store import engine
from arena.store.problems import ServerLostError
from judges.errors import StoreGoneError

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
