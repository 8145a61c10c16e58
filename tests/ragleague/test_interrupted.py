"""A run that ends early: it raises, what was paid for is kept, and nothing more is sent."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ragleague as rl
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge

QUERIES, AT_ONCE = 30, 4
GAMES = 2 * QUERIES
RUN = """
import asyncio, sys
import ragleague as rl

data = rl.load({name: [{"question": f"Why {n}?", "answer": f"{name} {n}"} for n in range(30)] for name in "xy"})
judge = {"provider": "openai", "model": "m", "base_url": sys.argv[1], "api_key_env": "KEY", "concurrency": 4}

def run():
    try:
        board = rl.run(data, judge=judge, progress=False)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        raise
    print(len(board.games()), board.complete)

async def in_a_loop():
    run()

"""


def slowly(call: Call) -> Reply:
    return Reply(text=steady_judge(call).text, delay_s=0.1)


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer(slowly) as running:
        yield running


@pytest.fixture
def options(server: LLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY", "a-key-of-a-test")
    judge = {"provider": "openai", "model": "m", "base_url": server.openai_url, "api_key_env": "KEY", "concurrency": 4}
    return {"judge": judge, "progress": False}


def loaded() -> Any:
    return rl.load({name: [{"question": f"Why {n}?", "answer": f"{name} {n}"} for n in range(30)] for name in "xy"})


def kept() -> int:
    return len(rl.open("ragleague.db").games())


def wait_for(server: LLMServer, calls: int) -> None:
    deadline = time.monotonic() + 60
    while len(server.calls) < calls:
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def stays(server: LLMServer) -> int:
    """Number of calls, once no more come."""
    before = len(server.calls)
    await asyncio.sleep(0.5)
    assert len(server.calls) == before
    return before


@pytest.mark.parametrize("by", ["cancel", "timeout"])
async def test_a_run_that_is_cancelled_sends_nothing_more_and_goes_on_later(
    by: str, server: LLMServer, options: dict[str, Any]
) -> None:
    running = asyncio.create_task(rl.arun(loaded(), **options))
    await asyncio.to_thread(wait_for, server, 8)
    before = len(server.calls)
    if by == "cancel":
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    else:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running, 0.01)
    made = await stays(server)
    assert made <= before + AT_ONCE
    assert kept() == made < GAMES, "what was in flight has been paid for"
    board = await rl.arun(loaded(), **options)
    assert board.complete
    assert len(server.calls) == GAMES, "each was asked once"


async def test_a_second_cancellation_gives_up_what_is_in_flight(server: LLMServer, options: dict[str, Any]) -> None:
    server.script = lambda call: Reply(fault="stall")
    running = asyncio.create_task(rl.arun(loaded(), **options))
    await asyncio.to_thread(wait_for, server, 1)
    running.cancel()
    _, waiting = await asyncio.wait([running], timeout=0.5)
    assert waiting, "it waits for what is in flight"
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 30)
    await stays(server)


async def test_a_run_that_is_cancelled_before_it_begins_sends_nothing(
    server: LLMServer, options: dict[str, Any]
) -> None:
    running = asyncio.create_task(rl.arun(loaded(), **options))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await stays(server) == 0


async def test_agents_that_are_asked_are_asked_nothing_more(server: LLMServer, options: dict[str, Any]) -> None:
    asked: list[str] = []

    async def agent(query: rl.Query) -> str:
        asked.append(query.text)
        await asyncio.sleep(0.1)
        return "An answer."

    failing = {"kind": "endpoint", "base_url": server.openai_url, "model": "away", "max_attempts": 9}
    server.script = lambda call: Reply("busy", status=500) if call.body["model"] == "away" else slowly(call)
    running = asyncio.create_task(rl.arun(loaded(), agents={"z": agent, "away": failing}, **options))
    await asyncio.to_thread(wait_for, server, 2)
    while len(asked) < 3:
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    ended = len(asked)
    await stays(server)
    assert len(asked) == ended < QUERIES
    assert not [call for call in server.calls if call.body["model"] == "m"], "no game is judged of a part"


@pytest.mark.parametrize("call", ["run()", "asyncio.run(in_a_loop())"], ids=["program", "loop"])
async def test_ctrl_c_raises_and_the_next_run_goes_on(call: str, server: LLMServer, options: dict[str, Any]) -> None:
    command = [sys.executable, "-c", f"{RUN}\n{call}", server.openai_url]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    await asyncio.to_thread(wait_for, server, 8)
    before = len(server.calls)
    child.send_signal(signal.SIGINT)
    out, err = await asyncio.to_thread(child.communicate, timeout=60)
    assert (out, child.returncode) == ("interrupted\n", -signal.SIGINT), err
    made = await stays(server)
    assert kept() == made <= before + AT_ONCE
    again = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert again.stdout == f"{GAMES} True\n", again.stderr
    assert len(server.calls) == GAMES
