"""Ctrl-C: the first finishes what is in flight, the second ends the work, and neither breaks into a transaction."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arena.run.interrupts import signals_wait, stopping_early
from arena.run.writer import Claims
from arena.store import Store
from arena.store.runners import SILENT_S, Runner
from judges.judge import Stop


def test_a_second_interrupt_breaks_into_nothing_that_does_not_wait() -> None:
    done: list[str] = []

    async def work() -> None:
        stop = Stop()
        stop.tell(lambda: done.append("asked to stop"))
        with stopping_early(stop):
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
        with signals_wait():
            signal.raise_signal(signal.SIGINT)
            done.append("begun whole")
        done.append("went on")

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        begin()
    assert done == ["begun whole"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_sighup_asks_to_stop_and_is_never_the_second_signal() -> None:
    done: list[str] = []

    async def work() -> None:
        stop = Stop()
        stop.tell(lambda: done.append("asked to stop"))
        with stopping_early(stop):
            for _ in range(2):
                signal.raise_signal(signal.SIGHUP)
                await asyncio.sleep(0.05)
        done.append("ended")

    asyncio.run(work())
    assert done == ["asked to stop", "asked to stop", "ended"]
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        asyncio.run(work())
    finally:
        signal.signal(signal.SIGHUP, before)
    assert done[3:] == ["ended"]


def test_processes_that_are_started_meanwhile_outlive_a_terminal() -> None:
    with signals_wait():
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    child.send_signal(signal.SIGHUP)
    child.communicate(b"\n")
    assert child.returncode == 0
    assert signal.SIGHUP not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


ASLEEP_S = SILENT_S - 1


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(str(tmp_path / "store.db"))


@pytest.mark.parametrize("clock", ["monotonic", "time"])
async def test_claims_are_lost_after_a_silence_by_either_clock(
    store: Store, clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a machine sleeps, one clock stands still; the other may be set back."""
    held = Claims(store, Runner(), lambda: ["claimed"])
    await held.begin()
    assert await held.still_holds("claimed")
    real = getattr(time, clock)
    monkeypatch.setattr(time, clock, lambda: real() + ASLEEP_S)
    assert not await held.still_holds("claimed")
    assert await held.still_holds("claimed since"), "it has just said again that it is at work"
    assert held.losses == 1
    held.reclaim("claimed")
    assert await held.still_holds("claimed")


async def test_claims_are_lost_where_others_took_the_process_for_dead(store: Store) -> None:
    runner = Runner()
    held = Claims(store, runner, lambda: ["claimed"])
    await held.begin()
    await held.beat()
    assert await held.still_holds("claimed")
    store.leave(runner)
    await held.beat()
    assert not await held.still_holds("claimed")
