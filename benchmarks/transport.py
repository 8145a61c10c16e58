"""What one call costs in CPU, by the way it is sent: why ``judges.providers.endpoint`` is as it is.

The same pairwise prompt is sent to a loopback server with a fixed delay: ``python -m benchmarks.transport``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import httpx2
import openai

from benchmarks.loopback import server
from judges.providers.hosted import OpenAIProvider
from judges.spec import JudgeSpec
from tests.support.prompts import pairwise

Call = Callable[[], Awaitable[object]]
Way = Callable[[JudgeSpec, AsyncExitStack], Call]
PROMPT = pairwise()


def sdk(spec: JudgeSpec, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="k", base_url=spec.base_url, max_retries=0, http_client=http)


def http_client(spec: JudgeSpec, kind: Any, stack: AsyncExitStack) -> httpx2.AsyncClient:
    at_once = httpx2.Limits(max_connections=spec.concurrency, max_keepalive_connections=spec.concurrency)
    client: httpx2.AsyncClient = kind(limits=at_once, timeout=spec.timeout_s)
    stack.push_async_callback(client.aclose)
    return client


def typed(kind: Any) -> Way:
    def prepare(spec: JudgeSpec, stack: AsyncExitStack) -> Call:
        client, body = sdk(spec, http_client(spec, kind, stack)), OpenAIProvider(spec).request(PROMPT)
        return lambda: client.chat.completions.create(**body)

    return prepare


def raw(kind: Any) -> Way:
    def prepare(spec: JudgeSpec, stack: AsyncExitStack) -> Call:
        client, provider = sdk(spec, http_client(spec, kind, stack)), OpenAIProvider(spec)

        async def call() -> object:
            content = json.dumps(provider.request(PROMPT)).encode()
            options: Any = {"headers": {"Content-Type": "application/json"}}
            path = "/chat/completions"
            response = await client.post(path, content=content, options=options, cast_to=httpx2.Response)
            return json.loads(response.content)

        return call

    return prepare


def client(spec: JudgeSpec, stack: AsyncExitStack) -> Call:
    http, used = http_client(spec, openai.DefaultAioHttpClient, stack), OpenAIProvider(spec)
    url, headers = (
        f"{spec.base_url}/chat/completions",
        {"Authorization": "Bearer k", "Content-Type": "application/json"},
    )

    async def call() -> object:
        content = json.dumps(used.request(PROMPT)).encode()
        return json.loads((await http.send(httpx2.Request("POST", url, headers=headers, content=content))).content)

    return call


def provider(spec: JudgeSpec, stack: AsyncExitStack) -> Call:
    used = OpenAIProvider(spec)
    stack.push_async_callback(used.close)
    return lambda: used.complete(PROMPT)


def plain(spec: JudgeSpec, stack: AsyncExitStack) -> Call:
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=spec.concurrency))
    stack.push_async_callback(session.close)
    used = OpenAIProvider(spec)
    headers = {"Authorization": "Bearer k", "Content-Type": "application/json"}

    async def call() -> object:
        content = json.dumps(used.request(PROMPT)).encode()
        async with session.post(f"{spec.base_url}/chat/completions", data=content, headers=headers) as response:
            return json.loads(await response.read())

    return call


WAYS: dict[str, Way] = {
    "SDK, typed method, httpx2": typed(openai.DefaultAsyncHttpxClient),
    "SDK, typed method, aiohttp": typed(openai.DefaultAioHttpClient),
    "SDK, raw post, httpx2": raw(openai.DefaultAsyncHttpxClient),
    "SDK, raw post, aiohttp": raw(openai.DefaultAioHttpClient),
    "SDK's HTTP client on aiohttp": client,
    "ragleague": provider,
    "plain aiohttp": plain,
}


async def measure(way: Way, spec: JudgeSpec, calls: int) -> tuple[float, float]:
    """Wall seconds and CPU seconds of ``calls`` calls, once the connections are there."""
    async with AsyncExitStack() as stack:
        call, left = way(spec, stack), iter(range(calls))

        async def work() -> None:
            for _ in left:
                await call()

        await asyncio.gather(*(call() for _ in range(spec.concurrency)))
        before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        await asyncio.gather(*(work() for _ in range(spec.concurrency)))
        wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay-ms", type=float, default=50)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with server(given.delay_ms) as base_url:
        spec = JudgeSpec(provider="openai", model="m", base_url=base_url, concurrency=given.concurrency)
        print(f"{'way':36s}  CPU ms per call  share of the bound")
        for name, way in WAYS.items():
            wall, cpu = min(asyncio.run(measure(way, spec, given.calls)) for _ in range(given.rounds))
            share = given.calls * given.delay_ms / 1000 / given.concurrency / wall
            print(f"{name:36s}  {1000 * cpu / given.calls:15.2f}  {share:18.2f}")


if __name__ == "__main__":
    main()
