"""From requests to judgments: every judge works off its own source, as many at once as it may."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from judges.account import Request
from judges.judge import Judge, Result


class Source(Protocol):
    """Where one judge's requests come from, made no earlier than they are taken."""

    def take(self) -> Request | None:
        """The next request, ``None`` while there is none."""
        ...

    async def more(self) -> bool:
        """Wait until there may be another request; ``False`` once there will be none."""
        ...

    def put_back(self, request: Request) -> None:
        """A request that was taken has not been sent, since the judge cannot go on."""
        ...

    def end(self) -> None:
        """Nothing is taken any more: the judge cannot go on, or everything has been judged."""
        ...


Sink = Callable[[str, Request, Result], Awaitable[None]]
"""Takes a judge's name, the request and its result; is awaited, so it can hold the judges back."""


async def judge_all(sources: Mapping[str, Source], judges: Mapping[str, Judge], sink: Sink) -> None:
    """Judge everything the sources give, each judge from its own and at its own concurrency.

    Requests that are left when a judge halts are not taken: they stay unjudged, and the caller sees what is missing.

    Args:
        sources: per judge name; a request is taken only when it can be worked on.
        judges: the judges by name.
        sink: called with each result.
    """
    async with asyncio.TaskGroup() as group:
        for name, source in sources.items():
            group.create_task(_work_off(judges[name], source, sink))


async def _work_off(judge: Judge, source: Source, sink: Sink) -> None:
    free = asyncio.Semaphore(judge.spec.at_once)

    async def work(request: Request) -> None:
        try:
            result = await judge.judge(request)
            if result is None:
                source.put_back(request)
            else:
                await sink(judge.name, request, result)
        finally:
            free.release()

    try:
        async with asyncio.TaskGroup() as group:
            while not judge.halted.is_set():
                await free.acquire()
                request = None if judge.halted.is_set() else source.take()
                if request is not None:
                    group.create_task(work(request))
                    continue
                free.release()
                if not await _more(source, judge):
                    break
    finally:
        source.end()


async def _more(source: Source, judge: Judge) -> bool:
    """Wait until the source may have another request; ``False`` if it never will, or the judge halts before."""
    waiting = [asyncio.ensure_future(source.more()), asyncio.ensure_future(judge.halted.wait())]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return not judge.halted.is_set() and waiting[0].result()
    finally:
        for task in waiting:
            task.cancel()
