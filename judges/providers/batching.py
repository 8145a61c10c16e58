"""Requests that come one by one, worked off in batches by one thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

_QUIET_S = 0.002
"""A batch begins when it is full, or nobody has joined it for so long: a pass through a model takes longer."""

Model = TypeVar("Model")
Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Model, Item, Result]):
    """Collects what is waiting while the model works, and hands over each result the moment it is there.

    Args:
        load: makes the model, when the first item is there; if it raises an exception, every item gets that.
        work: takes the model and a batch; yields the place of an item in the batch and its result or an exception, in
            any order. Both run in one thread of their own.
        size: largest batch.
    """

    def __init__(
        self,
        load: Callable[[], Model],
        work: Callable[[Model, Sequence[Item]], Iterator[tuple[int, Result | Exception]]],
        size: int,
    ) -> None:
        self._load, self._work, self._size = load, work, size
        self._model: Model | None = None
        self._unloadable: Exception | None = None
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
        loop = asyncio.get_running_loop()
        while batch := await self._next_batch():
            items, futures = [item for item, _ in batch], [future for _, future in batch]
            problem: Exception = RuntimeError("the model gave no result")
            try:
                await loop.run_in_executor(self._thread, self._worked_off, items, futures, loop)
            except Exception as error:
                problem = error
            for future in futures:
                _settle(future, problem)

    def _worked_off(
        self, items: list[Item], futures: list[asyncio.Future[Result]], loop: asyncio.AbstractEventLoop
    ) -> None:
        if self._unloadable is not None:
            raise self._unloadable
        if self._model is None:
            try:
                self._model = self._load()
            except Exception as error:
                self._unloadable = error
                raise
        left = set(range(len(items)))
        for place, result in self._work(self._model, items):
            loop.call_soon_threadsafe(_settle, futures[place], result)
            left.discard(place)
            if all(futures[place].done() for place in left):  # whoever asked for the rest has given up
                return

    async def _next_batch(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        """What waits; whoever has just been answered, and is about to ask again, joins it."""
        before = -1
        while before < len(self._waiting) < self._size:
            before = len(self._waiting)
            await asyncio.sleep(_QUIET_S)
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        while self._waiting and len(batch) < self._size:
            item, future = self._waiting.popleft()
            if not future.done():
                batch.append((item, future))
        return batch

    async def close(self) -> None:
        """End after the pass through the model that is under way, and release its memory; who waits is cancelled."""
        while self._waiting:
            self._waiting.popleft()[1].cancel()
        if self._running is not None:
            await self._running
        self._thread.shutdown()
        self._model = None


def _settle(future: asyncio.Future[Result], result: Result | Exception) -> None:
    if future.done():  # whoever asked has given up meanwhile
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
