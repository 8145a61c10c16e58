"""Requests that come one by one, worked off in batches by one thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Collects what is waiting while the last batch is worked on.

    Args:
        work: takes a batch and gives a result or an exception for each of its items; runs in one thread of its own.
        size: largest batch.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Sequence[Result | Exception]], size: int) -> None:
        self._work = work
        self._size = size
        self._waiting: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._running: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Result:
        """Wait for the item's result, or raise its exception."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._work_off())
        return await future

    async def _work_off(self) -> None:
        await asyncio.sleep(0)  # whoever is about to ask now joins the first batch
        while batch := self._next_batch():
            items = [item for item, _ in batch]
            try:
                results = await asyncio.get_running_loop().run_in_executor(self._thread, self._work, items)
            except Exception as error:
                results = [error] * len(batch)
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():  # whoever asked has given up meanwhile
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def _next_batch(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        while self._waiting and len(batch) < self._size:
            item, future = self._waiting.popleft()
            if not future.done():
                batch.append((item, future))
        return batch

    async def close(self) -> None:
        """End after the batch in work; whoever still waits is cancelled."""
        while self._waiting:
            self._waiting.popleft()[1].cancel()
        if self._running is not None:
            await self._running
        self._thread.shutdown()
