"""Ctrl-C: the first finishes what is in flight, the second ends the work, and neither breaks into a transaction."""

from __future__ import annotations

import asyncio
import signal

import pytest

from arena.runtime.interrupts import ctrl_c_waits, stopping_on_ctrl_c
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


def test_what_leaves_processes_behind_when_broken_off_is_finished_first() -> None:
    done: list[str] = []

    def begin() -> None:
        with ctrl_c_waits():
            signal.raise_signal(signal.SIGINT)
            done.append("begun whole")
        done.append("went on")

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        begin()
    assert done == ["begun whole"]
    assert signal.getsignal(signal.SIGINT) is handler
