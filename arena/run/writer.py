"""Results into the store, as fast as they come and as few at a time as that allows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from arena.run.claims import Claims
from judges.errors import StoreError

_GATHERED_S = 0.04
"""How long results are gathered before they are committed together: a commit each would cost more than the call."""
MOST_OPEN = 256
"""Results that may be on their way into the store before whoever brings one is held back."""

Entry = TypeVar("Entry")


class Writer(Generic[Entry]):
    """Commits results as they come: what has arrived within some hundredths of a second, or half of what may be open.

    Calls go on meanwhile, unless the store falls behind: a process killed at any moment loses the calls in flight and
    the replies of the last few milliseconds.

    Args:
        save: puts results into the store; runs in a thread.
        settled: told of each result once it is committed.
        calls: how many calls a result took.
        most_open: results that a kill may cost, besides calls in flight.
    """

    def __init__(
        self,
        save: Callable[[Sequence[Entry]], None],
        settled: Callable[[Entry], None],
        calls: Callable[[Entry], int],
        most_open: int = MOST_OPEN,
    ) -> None:
        self._save, self._settled, self._calls = save, settled, calls
        self._room = asyncio.Semaphore(most_open)
        self._arrived: asyncio.Queue[Entry] = asyncio.Queue()
        self._writing: list[Entry] = []
        self._unkept = 0
        self._most_gathered = max(1, most_open // 2)
        self._enough = asyncio.Event()

    async def put(self, entry: Entry) -> None:
        """Take a result; waits while the store is behind."""
        self._unkept += self._calls(entry) > 0
        await self._room.acquire()
        self._arrived.put_nowait(entry)
        if self._arrived.qsize() >= self._most_gathered:
            self._enough.set()

    async def work(self) -> None:
        """Write until cancelled.

        Raises:
            StoreError: the store cannot be written.
        """
        while True:
            self._writing = [await self._arrived.get()]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GATHERED_S):
                    await self._enough.wait()
            self._enough.clear()
            while not self._arrived.empty():
                self._writing.append(self._arrived.get_nowait())
            await asyncio.to_thread(self._save, self._writing)
            for entry in self._writing:
                self._unkept -= self._calls(entry) > 0
                self._settled(entry)
                self._arrived.task_done()
                self._room.release()
            self._writing = []

    def rescue(self) -> int:
        """Try once more to keep what has arrived, after the work broke off; returns how many replies are lost."""
        rest = list(self._writing)
        while not self._arrived.empty():
            rest.append(self._arrived.get_nowait())
        try:
            if rest:
                self._save(rest)
        except StoreError:
            return self._unkept
        return self._unkept - sum(self._calls(entry) > 0 for entry in rest)

    async def finish(self) -> None:
        """Wait until everything that has arrived is committed; nothing more comes."""
        self._enough.set()
        await self._arrived.join()


async def write_while(claims: Claims, writer: Writer[Any], work: Coroutine[None, None, None]) -> None:
    """Do work that puts results into a writer until it ends and all are kept; other processes see that it goes on.

    Raises:
        StoreError: the store cannot be read or written. Says how many replies were lost by that.
    """
    try:
        await claims.begin()
        await _write_while(claims, writer, work)
    finally:
        work.close()  # where it never began
        with contextlib.suppress(StoreError):  # then its own error is on the way, and who is gone claims nothing
            claims.leave()


async def _write_while(claims: Claims, writer: Writer[Any], work: Coroutine[None, None, None]) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            endless = [group.create_task(writer.work()), group.create_task(claims.go_on())]
            await work
            await writer.finish()
            for task in endless:
                task.cancel()
    except BaseException as problem:
        lost = writer.rescue()
        if lost and (error := _store_error(problem)) is not None:
            raise type(error)(f"{error}; replies that came and could not be kept: {lost}") from problem
        raise


def _store_error(problem: BaseException) -> StoreError | None:
    """The store's error among those of tasks that ran together."""
    if isinstance(problem, BaseExceptionGroup):
        return next(filter(None, map(_store_error, problem.exceptions)), None)
    return problem if isinstance(problem, StoreError) else None
