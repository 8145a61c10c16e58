"""Runs of agents that are killed, interrupted, or have company on their store; each run is a process of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from arena.config.schema import load_config
from arena.run.answers import AskedAgent
from arena.run.judging import load_data
from arena.store import Store
from arena.store.runs import Runs, StoredRun
from judges.types import Query
from retrieval_eval.agents.types import AgentFailure, AgentReply
from tests.support.agents import answering, http_agent, write_config
from tests.support.children import Child, begin, ended
from tests.support.llm_server import Call, LLMServer, Reply

QUERIES = [f"q{number}" for number in range(16)]
AT_ONCE = 3
AGENTS = ("x", "y")
ALL = len(AGENTS) * len(QUERIES)

Start = Callable[..., Child]


@pytest.fixture
def server() -> Iterator[LLMServer]:
    def slowly(call: Call) -> Reply:
        reply = answering()(call)
        return Reply(body=reply.body, delay_s=0.05)

    with LLMServer(slowly) as running:
        yield running


@pytest.fixture
def config(tmp_path: Path, server: LLMServer) -> Path:
    urls = {name: f"http://127.0.0.1:{server.port}/{name}" for name in AGENTS}
    return write_config(tmp_path, {name: http_agent(url, concurrency=AT_ONCE) for name, url in urls.items()}, QUERIES)


@pytest.fixture
def running() -> Iterator[Start]:
    children: list[Child] = []

    def start(config: Path, *arguments: str) -> Child:
        children.append(begin("make", "answers", config, *arguments, folder=config.parent))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.communicate()


def wait_for(server: LLMServer, asked: int, child: Child) -> None:
    deadline = time.monotonic() + 60
    while len(server.calls) < asked:
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def kept(config: Path) -> int:
    return len(load_data(load_config(config)).answers)


def recorded(config: Path) -> list[StoredRun]:
    loaded = load_config(config)
    with closing(Store.open(loaded.store)) as store:
        return Runs(store, loaded.name).all()


def times_asked(server: LLMServer) -> Counter[tuple[str, str]]:
    return Counter((call.path, call.sha256) for call in server.calls)


def test_a_run_killed_twice_asks_everything_once(config: Path, server: LLMServer, running: Start) -> None:
    for moment in (ALL // 4, ALL // 2):
        child = running(config)
        wait_for(server, moment, child)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert kept(config) >= len(server.calls) - 2 * 2 * len(AGENTS) * AT_ONCE
    last = ended(running(config, "--format", "json"))
    assert last.status == 0, last.err
    told = json.loads(last.out)["agents"]
    assert all(own["answered"] + own["known"] == len(QUERIES) for own in told.values())
    asked = times_asked(server)
    assert len(asked) == kept(config) == ALL
    assert sum(asked.values()) - ALL <= 2 * 2 * len(AGENTS) * AT_ONCE, "in flight, or on their way into the store"
    made = recorded(config)
    assert [each.state for each in made] == ["complete", "killed", "killed"]
    assert sum(own.judged for each in made for own in each.spent.values()) == ALL, (
        "what is kept is on one run's account each"
    )


def test_a_whole_run_that_is_interrupted_among_its_agents_judges_nothing(
    config: Path, server: LLMServer, running: Start
) -> None:
    child = begin("run", config, folder=config.parent)
    wait_for(server, 2 * AT_ONCE, child)
    child.send_signal(signal.SIGINT)
    stopped = ended(child)
    assert (stopped.status, stopped.out) == (3, "")
    assert "pairwise" not in stopped.err


class Raising:
    name, identity, notes = "x", "x", ()

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def reply(self, query: Query) -> AgentReply:
        if query.query_id == "odd":
            raise self._error
        return AgentReply("An answer.")

    async def close(self) -> None: ...


@pytest.mark.parametrize("error", [ZeroDivisionError("half"), SystemExit(2), TimeoutError(), asyncio.CancelledError()])
async def test_whatever_an_agent_raises_is_a_failure_of_that_answer(error: BaseException) -> None:
    asked = AskedAgent(Raising(error), None, 1, asyncio.Semaphore(1))

    def request(query_id: str) -> Any:
        return SimpleNamespace(query=Query(query_id, "What?"), judgment_id=query_id)

    failure = await asked.judge(request("odd"))
    assert isinstance(failure, AgentFailure)
    assert failure.cause == "exception"
    assert failure.message.startswith(type(error).__name__)
    assert await asked.judge(request("q1")) == AgentReply("An answer.")
    assert not asked.halted.is_set()
