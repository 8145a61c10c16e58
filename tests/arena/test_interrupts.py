"""Ctrl-C: the first finishes what is in flight, the second ends the work, and neither breaks into a transaction."""

from __future__ import annotations

import asyncio
import signal

import pytest

from arena.runtime.interrupts import stopping_on_ctrl_c
from judges.judge import Stop


def test_a_second_interrupt_breaks_into_nothing_that_does_not_wait() -> None:
    done: list[str] = []

    async def work() -> None:
        stop = Stop()
        stop.tell(lambda: done.append("asked to stop"))
        with stopping_on_ctrl_c(stop):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0.05)
            signal.raise_signal(signal.SIGINT)
            done.append("transaction ended")
            await asyncio.sleep(30)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work())
    assert done == ["asked to stop", "transaction ended"]
