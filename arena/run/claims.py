"""This process's claims on judgments; other runners release them when its heartbeat stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from arena.store import Store, runners
from arena.store.runners import Runner


class Claims:
    """Checks before each call whether this process still holds its claim.

    Other runners release the claims of a runner that sent no heartbeat for ``SILENT_S``: the laptop was closed, the
    process was suspended, or the store was unreachable. A runner that sent none for half that time counts its claims as
    lost and claims again.

    Args:
        store: the store with the claims.
        runner: this process's entry in the store.
        unsettled: function that returns the claimed ids without a stored result.

    Attributes:
        losses: number of times that all claims were lost.
    """

    def __init__(self, store: Store, runner: Runner, unsettled: Callable[[], Iterable[str]]) -> None:
        self.losses = 0
        self._store, self._runner, self._unsettled = store, runner, unsettled
        self._lost: set[str] = set()
        self._beat_at = _clocks()
        self._beating = asyncio.Lock()

    async def begin(self) -> None:
        """Send the first heartbeat."""
        self._beat_at = _clocks()
        await asyncio.to_thread(self._store.beat, self._runner)

    async def beat_forever(self) -> None:
        """Send a heartbeat every ``BEAT_S`` seconds, until cancelled.

        Raises:
            StoreError: the store cannot be written.
        """
        while True:
            await asyncio.sleep(runners.BEAT_S)
            await self.beat()

    async def beat(self) -> None:
        """Send a heartbeat; if it is late, or other runners declared this one dead, all claims count as lost."""
        async with self._beating:
            await self._beat()

    async def still_holds(self, ident: str) -> bool:
        """Whether this process still holds its claim on this id.

        Raises:
            StoreError: the store cannot be read or written.
        """
        if self._is_late():
            async with self._beating:
                if self._is_late():
                    await self._beat()
        return ident not in self._lost

    def is_lost(self, ident: str) -> bool:
        return ident in self._lost

    def reclaim(self, ident: str) -> None:
        """Drop a lost claim: the id is claimed again before any call."""
        self._lost.discard(ident)

    def release(self) -> None:
        """Release all claims."""
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
    """Seconds on two clocks: the monotonic one may stand still during sleep, the other may be set back."""
    return time.monotonic(), time.time()
