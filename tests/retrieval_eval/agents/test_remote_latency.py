"""An agent's seconds are its own: from the request to the last byte, of the attempt that brought the answer."""

from __future__ import annotations

import asyncio
import json
import statistics
import threading
import time
from typing import Any

from judges.types import Query
from retrieval_eval.agents.types import AgentFailure, AgentReply
from tests.support.agent_fixtures import answered, build, failed, only
from tests.support.llm_server import LLMServer, Reply

SMALL = Reply(body={"answer": "Yes."})


def http(server: LLMServer, path: str = "a", **settings: Any) -> dict[str, Any]:
    url, mapping = f"http://127.0.0.1:{server.port}/{path}", {"answer": "answer"}
    return {"kind": "http", "url": url, "request": {"q": "{query}"}, "mapping": mapping, "max_attempts": 2, **settings}


async def test_a_failed_attempt_is_counted_beside_the_latency_of_the_answer() -> None:
    with LLMServer([Reply(status=500, delay_s=0.4), SMALL]) as server:
        reply = await answered(only(http(server)))
    assert reply.latency_s is not None
    assert reply.tried_s is not None
    assert reply.calls == 2
    assert 0 < reply.latency_s < 0.4 <= reply.tried_s - reply.latency_s


async def test_what_a_server_asks_to_wait_is_in_no_seconds() -> None:
    started = time.perf_counter()
    with LLMServer([Reply(status=429, headers={"Retry-After": "0.6"}), SMALL]) as server:
        reply = await answered(only(http(server)))
    assert time.perf_counter() - started > 0.6
    assert (reply.tried_s or 9) < 0.5


async def test_an_answer_at_once_took_what_it_took_and_a_failure_all_its_attempts() -> None:
    with LLMServer([SMALL]) as server:
        reply = await answered(only(http(server)))
    assert reply.tried_s == reply.latency_s
    with LLMServer(lambda call: Reply(status=503, delay_s=0.1)) as server:
        failure = await failed(only(http(server)))
    assert failure.calls == 2
    assert (failure.tried_s or 0) > 0.2


async def test_the_last_byte_counts_not_the_first() -> None:
    with LLMServer([Reply(body={"answer": "a" * 3_000_000}, delay_s=0.2)]) as server:
        reply = await answered(only(http(server)))
    assert (reply.latency_s or 0) > 0.2


async def test_work_of_this_program_is_in_no_latency() -> None:
    """Before, the seconds ended when the program had time to look."""
    with LLMServer([SMALL]) as server:
        agent = only(http(server))
        asked = asyncio.create_task(agent.reply(Query("q", "Q?")))
        while not server.calls:
            await asyncio.sleep(0)
        time.sleep(0.5)  # as a local model on the program's own loop does
        reply = await asked
        await agent.close()
    assert isinstance(reply, AgentReply)
    assert (reply.latency_s or 9) < 0.3


async def test_large_bodies_of_one_agent_are_not_in_the_latency_of_others() -> None:
    """A body with so many objects that it takes long to decode, and two that are larger than any reply."""
    large = json.dumps({"answer": "Yes.", "pad": [{"n": n} for n in range(200_000)]}).encode()
    bodies = {"/large": large, "/beyond": b"[" + b" " * 40_000_000 + b"]"}

    def script(call: Any) -> Reply:
        content = bodies.get(call.path)
        return SMALL if content is None else Reply(raw=lambda body: content, body={})

    with LLMServer(script) as big, LLMServer(script) as small:
        specs = {"large": http(big, "large"), "beyond": http(big, "beyond"), "instant": http(small, "instant")}
        agents = build(specs)
        await agents["instant"].reply(Query("first", "Q?"))  # what opening connections takes is another matter
        names, started = ("large", "beyond", "beyond"), time.perf_counter()
        others = asyncio.gather(*(agents[name].reply(Query(f"q{n}", "Q?")) for n, name in enumerate(names)))
        quick: list[float] = []
        while not others.done():
            reply = await agents["instant"].reply(Query(f"q{len(quick)}", "Q?"))
            quick.append(reply.latency_s or 9)
            await asyncio.sleep(0.005)
        wall, replies = time.perf_counter() - started, await others
        for agent in agents.values():
            await agent.close()
    assert isinstance(replies[0], AgentReply)
    assert {reply.message for reply in replies[1:] if isinstance(reply, AgentFailure)} == {
        "beyond: the answer is larger than 33554432 bytes"
    }
    assert len(quick) > 5, "the program goes on while it decodes"
    assert statistics.median(quick) < wall / 10


async def test_the_thread_of_an_agent_ends_with_it() -> None:
    before = threading.active_count()
    with LLMServer([SMALL]) as server:
        agent = only(http(server))
        await agent.reply(Query("q", "Q?"))
        await agent.close()
    assert threading.active_count() <= before
