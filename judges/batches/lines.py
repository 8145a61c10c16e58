"""Requests on their way: who waits for each, and in which batch it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from judges.batches.base import Batch, BatchServer
from judges.types import Completion

_LEAST_S, _MOST_S, _SHARE = 1.0, 60.0, 0.1
"""A batch is looked at again after a tenth of the time that it has taken so far, within these bounds."""


@dataclass(frozen=True, slots=True)
class Line:
    """A request that somebody waits for."""

    custom_id: str
    judgment_id: str
    content: bytes
    reply: asyncio.Future[Completion]

    def fail(self, error: Exception) -> None:
        """There is no reply; who has given up does not hear it."""
        if not self.reply.done():
            self.reply.set_exception(error)


@dataclass(slots=True)
class Followed:
    """A batch with the requests of it that are waited for.

    Attributes:
        to_submit: it has never been handed in, for certain.
        search_until: how long it is to be looked for if the server does not show it, in seconds since 1970.
        searched: whether it has been looked for in vain.
        since: when this process began to follow it, on the monotonic clock.
        due: when it is to be looked at again.
    """

    batch: Batch
    to_submit: bool
    search_until: float
    searched: bool = False
    lines: dict[str, Line] = field(default_factory=dict)
    since: float = field(default_factory=time.monotonic)
    due: float = 0.0


def portions(lines: Iterable[Line], server: BatchServer) -> Iterator[list[Line]]:
    """The requests in lists that one batch may hold."""
    portion: list[Line] = []
    size = 0
    for line in lines:
        longer = size + len(line.content) + 1
        if portion and (longer > server.most_bytes or len(portion) == server.most_requests):
            yield portion
            portion, longer = [], len(line.content) + 1
        portion.append(line)
        size = longer
    if portion:
        yield portion


def patient(since: float) -> float:
    """Seconds to wait for what has taken since then."""
    return min(_MOST_S, max(_LEAST_S, _SHARE * (time.monotonic() - since)))
