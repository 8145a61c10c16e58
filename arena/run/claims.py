"""What this process has claimed in the store is its to ask for only while others see it at work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from arena.store import Store, runners
from arena.store.runners import Runner


class Claims:
    """Asked before each call: may this process still ask for what it has claimed?

    Other runners release the claims of one that has been silent for ``SILENT_S``: its laptop was closed, its process
    stopped, its store out of reach. Whoever was silent for half as long takes its claims for lost and makes them anew.

    Args:
        store: where claims are kept.
        runner: this process.
        unsettled: the ids that it has claimed and that have no result in the store yet.

    Attributes:
        losses: how often all claims were lost.
    """

    def __init__(self, store: Store, runner: Runner, unsettled: Callable[[], Iterable[str]]) -> None:
        self.losses = 0
        self._store, self._runner, self._unsettled = store, runner, unsettled
        self._lost: set[str] = set()
        self._beat_at = _clocks()
        self._beating = asyncio.Lock()

    async def begin(self) -> None:
        """Say for the first time that this process is at work."""
        self._beat_at = _clocks()
        await asyncio.to_thread(self._store.beat, self._runner)

    async def go_on(self) -> None:
        """Beat every ``BEAT_S`` seconds, until cancelled.

        Raises:
            StoreError: the store cannot be written.
        """
        while True:
            await asyncio.sleep(runners.BEAT_S)
            await self.beat()

    async def beat(self) -> None:
        """Say that this process is at work, and find out whether others knew."""
        async with self._beating:
            await self._beat()

    async def hold(self, ident: str) -> bool:
        """Whether this process may ask for what it has claimed under this id.

        Raises:
            StoreError: that cannot be told.
        """
        if self._is_late():
            async with self._beating:
                if self._is_late():
                    await self._beat()
        return ident not in self._lost

    def is_lost(self, ident: str) -> bool:
        """Whether a claim is known to be lost."""
        return ident in self._lost

    def forget(self, ident: str) -> None:
        """A claim that was lost will be made anew before anything is asked."""
        self._lost.discard(ident)

    def leave(self) -> None:
        """Claim nothing any more."""
        self._store.leave(self._runner)

    async def _beat(self) -> None:
        at, late = _clocks(), self._is_late()
        there = await asyncio.to_thread(self._store.beat, self._runner)
        if late or not there:
            self.losses += 1
            self._lost.update(self._unsettled())
        self._beat_at = at

    def _is_late(self) -> bool:
        return any(now - at > runners.SILENT_S / 2 for now, at in zip(_clocks(), self._beat_at, strict=True))


def _clocks() -> tuple[float, float]:
    """Seconds by two clocks: one stands still while the machine sleeps, the other may be set back."""
    return time.monotonic(), time.time()
