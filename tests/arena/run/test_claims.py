"""When a process takes its claims for lost: by either clock, or where others have taken it for dead."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from arena.run.writer import Claims
from arena.store import Store
from arena.store.runners import SILENT_S, Runner

ASLEEP_S = SILENT_S - 1


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(str(tmp_path / "store.db"))


@pytest.mark.parametrize("clock", ["monotonic", "time"])
async def test_claims_are_lost_after_a_silence_by_either_clock(
    store: Store, clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a machine sleeps one clock stands still; the other may be set back."""
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
    """By no clock of its own has it slept, such as in a virtual machine that was suspended."""
    runner = Runner()
    held = Claims(store, runner, lambda: ["claimed"])
    await held.begin()
    await held.beat()
    assert await held.still_holds("claimed")
    store.leave(runner)
    await held.beat()
    assert not await held.still_holds("claimed")
