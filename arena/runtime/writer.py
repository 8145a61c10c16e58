"""Results into the store, as fast as they come and as few at a time as that allows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from arena.store import Result, Store
from judges.errors import StoreError
from judges.judge import Request
from judges.types import Prompt, Task

_GATHERED_S = 0.01
"""How long results are gathered before they are committed together: a commit each would cost more than the call."""
_BACKLOG = 256
"""Results that may wait before whoever brings one is held back."""


@dataclass(frozen=True, slots=True)
class _Arrived:
    """A result on its way into the store."""

    task: Task
    label: str
    result: Result


class Writer:
    """Commits results as they come: what has arrived within a hundredth of a second, or while the last commit ran.

    Judges go on meanwhile, unless the store falls behind: a process killed at any moment loses the calls in flight and
    the replies of the last few milliseconds.

    Args:
        store: where to.
        settled: told of each result once it is committed.
    """

    def __init__(self, store: Store, settled: Callable[[Result], None]) -> None:
        self._store, self._settled = store, settled
        self._arrived: asyncio.Queue[_Arrived] = asyncio.Queue(_BACKLOG)
        self._writing: list[_Arrived] = []
        self._unkept = 0

    async def put(self, _judge: str, request: Request, result: Result) -> None:
        """Take a result; waits while the store is behind."""
        self._unkept += result.calls > 0
        await self._arrived.put(_Arrived(request.prompt.task, prompt_label(request.prompt), result))

    async def work(self) -> None:
        """Write until cancelled.

        Raises:
            StoreError: the store cannot be written.
        """
        while True:
            self._writing = [await self._arrived.get()]
            await asyncio.sleep(_GATHERED_S)
            while not self._arrived.empty():
                self._writing.append(self._arrived.get_nowait())
            await asyncio.to_thread(self._save, self._writing)
            for entry in self._writing:
                self._unkept -= entry.result.calls > 0
                self._settled(entry.result)
                self._arrived.task_done()
            self._writing = []

    def rescue(self) -> int:
        """Try once more to keep what has arrived, after the work broke off; returns how many replies are lost."""
        rest = list(self._writing)
        while not self._arrived.empty():
            rest.append(self._arrived.get_nowait())
        try:
            self._save(rest)
        except StoreError:
            return self._unkept
        return self._unkept - sum(entry.result.calls > 0 for entry in rest)

    def _save(self, entries: list[_Arrived]) -> None:
        if entries:
            self._store.save([(entry.task, entry.label, entry.result) for entry in entries])

    async def finish(self) -> None:
        """Wait until everything that has arrived is committed."""
        await self._arrived.join()


def prompt_label(prompt: Prompt) -> str:
    """``name@version``, as the store keeps it."""
    return f"{prompt.name}@{prompt.version}"
