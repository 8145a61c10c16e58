"""Saves results in the store soon after they arrive, and keeps this process's claims on judgments alive."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Generic, TypeVar

from arena.store import Store, runners
from arena.store.runners import Runner
from judges.errors import StoreError

_GATHERED_S = 0.04
"""Seconds for which results are collected for one commit: a commit for each would cost more than its call."""
MOST_OPEN = 256
"""Maximum number of results not yet committed; ``put`` waits while there are more."""

Entry = TypeVar("Entry")


class Writer(Generic[Entry]):
    """Commits results in small batches: every few hundredths of a second, or once ``most_open / 2`` are waiting.

    Calls continue meanwhile unless the store is too slow. A killed process loses only the calls in flight and the
    replies of the last few milliseconds.

    Args:
        save: function that saves results in the store; runs in a thread.
        settled: called with each result once it is committed.
        calls: function that returns the number of calls made for a result.
        most_open: maximum number of results not yet committed.
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
        self._unsaved = 0
        self._most_gathered = max(1, most_open // 2)
        self._enough = asyncio.Event()

    async def put(self, entry: Entry) -> None:
        """Accept a result to save; waits while too many results are not yet committed."""
        self._unsaved += self._calls(entry) > 0
        await self._room.acquire()
        self._arrived.put_nowait(entry)
        if self._arrived.qsize() >= self._most_gathered:
            self._enough.set()

    async def work(self) -> None:
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
                self._unsaved -= self._calls(entry) > 0
                self._settled(entry)
                self._arrived.task_done()
                self._room.release()
            self._writing = []

    def rescue(self) -> int:
        """Try once more to save results after a failure; returns the number of replies that are lost."""
        rest = list(self._writing)
        while not self._arrived.empty():
            rest.append(self._arrived.get_nowait())
        try:
            if rest:
                self._save(rest)
        except StoreError:
            return self._unsaved
        return self._unsaved - sum(self._calls(entry) > 0 for entry in rest)

    async def finish(self) -> None:
        self._enough.set()
        await self._arrived.join()

    async def run(self, claims: Claims, work: Coroutine[None, None, None]) -> None:
        """Run ``work``, which puts results, and send heartbeats until every result is committed."""
        try:
            await claims.begin()
            await self._run(claims, work)
        finally:
            work.close()  # in case it never started
            with contextlib.suppress(
                StoreError
            ):  # that error is raised already, and a silent runner's claims are released anyway
                claims.release()

    async def _run(self, claims: Claims, work: Coroutine[None, None, None]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                endless = [group.create_task(self.work()), group.create_task(claims.beat_forever())]
                await work
                await self.finish()
                for task in endless:
                    task.cancel()
        except BaseException as problem:
            lost = self.rescue()
            if lost and (error := _store_error(problem)) is not None:
                raise type(error)(f"{error}; replies that arrived but could not be stored: {lost}") from problem
            raise


def _store_error(problem: BaseException) -> StoreError | None:
    """The first ``StoreError`` in a possibly nested group of exceptions, or the exception itself if it is one."""
    if isinstance(problem, BaseExceptionGroup):
        return next(filter(None, map(_store_error, problem.exceptions)), None)
    return problem if isinstance(problem, StoreError) else None


class Claims:
    """Checks before each call whether this process still holds its claim on the judgment.

    Other runners release the claims of a runner that sent no heartbeat for ``SILENT_S``: the laptop was closed, the
    process was suspended, or the store was unreachable. A runner that sent none for half that time counts its claims
    as lost and claims again. ``unsettled`` returns the claimed ids without a stored result; ``losses`` counts how often
    all claims were lost.
    """

    def __init__(self, store: Store, runner: Runner, unsettled: Callable[[], Iterable[str]]) -> None:
        self.losses = 0
        self._store, self._runner, self._unsettled = store, runner, unsettled
        self._lost: set[str] = set()
        self._beat_at = _clocks()
        self._beating = asyncio.Lock()

    async def begin(self) -> None:
        self._beat_at = _clocks()
        await asyncio.to_thread(self._store.beat, self._runner)

    async def beat_forever(self) -> None:
        """Send a heartbeat every ``BEAT_S`` seconds, until cancelled."""
        while True:
            await asyncio.sleep(runners.BEAT_S)
            await self.beat()

    async def beat(self) -> None:
        """Send a heartbeat; if it is late, or other runners have declared this one dead, its claims count as lost."""
        async with self._beating:
            await self._beat()

    async def still_holds(self, ident: str) -> bool:
        if self._is_late():
            async with self._beating:
                if self._is_late():
                    await self._beat()
        return ident not in self._lost

    def is_lost(self, ident: str) -> bool:
        return ident in self._lost

    def reclaim(self, ident: str) -> None:
        """Forget that the claim on this id was lost, because the caller will claim the id again before any call."""
        self._lost.discard(ident)

    def release(self) -> None:
        self._store.leave(self._runner)

    async def _beat(self) -> None:
        at, late = _clocks(), self._is_late()
        registered = await asyncio.to_thread(self._store.beat, self._runner)
        if late or not registered:
            self.losses += 1
            self._lost.update(self._unsettled())
        self._beat_at = at

    def _is_late(self) -> bool:
        return any(now - at > runners.SILENT_S / 2 for now, at in zip(_clocks(), self._beat_at, strict=True))


def _clocks() -> tuple[float, float]:
    """The seconds of two clocks: the monotonic clock may stop during sleep, the other may be set back."""
    return time.monotonic(), time.time()
