"""Judging wants on one store: one queue for every judge, whatever stage they are of, until nothing more comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from arena.run.ledger import Ledger, Progress
from arena.run.queue import Feed, Lookup, prompt_label
from arena.run.writer import MOST_OPEN, Writer, write_while
from arena.store import Result, Wanted, chunks
from judges.judge import Request, judge_all
from judges.types import Judgment, Task

_LOOKED_UP_AT_ONCE = 256
_AHEAD = 1024
"""Requests that are ready before a judge takes them: what waits in batches is far more than has to be."""
_LEAST_OPEN = 16
"""Results that may be on their way into the store, however few calls are made at once: local judges are quick."""

_Judged: TypeAlias = tuple[Task, str, Result]
"""A result as the store keeps it, with its task and its prompt's name and version."""


class Work:
    """Wants go in, and come out settled: found in the store or judged, each exactly once.

    A settled want may release others, for as long as ``close`` has not been called. Whoever uses it decides that; it
    must call ``close`` at last, or the work never ends, unless all judges halt.

    Args:
        lookup: renders prompts and knows the store and the judges.
        progress: told of every want.
        settled: told of every want that nothing more will be asked for, with its result.
        ended: told of every judge that takes nothing more, because it halted or all is closed and judged.
        left_out: told of wants that have no prompt and thus cannot be asked for in this run.
    """

    def __init__(
        self,
        lookup: Lookup,
        progress: Progress,
        settled: Callable[[Wanted, Result], None],
        ended: Callable[[str], None],
        left_out: Callable[[Collection[Wanted]], None] = lambda _: None,
    ) -> None:
        self.lookup = lookup
        self.ledger = Ledger(progress, settled)
        self._feeds = {
            name: Feed(lookup, self.ledger, min(judge.spec.at_once, _AHEAD), partial(ended, name), left_out)
            for name, judge in lookup.judges.items()
        }

    def begin(self, task: Task, wanted: int, shown: int | None = None) -> None:
        """Begin a stage of so many wants; ``shown`` where more may be added and are to be expected."""
        self.ledger.begin(task, wanted if shown is None else shown)
        self.ledger.want(task, wanted)

    def put(self, wants: Iterable[Wanted]) -> None:
        """Hand wants of stages that have begun to their judges."""
        for want in wants:
            self._feeds[want.judge].put(want)

    def close(self) -> None:
        """Nothing more will be put in."""
        for feed in self._feeds.values():
            feed.close()

    async def run(self, beside: Coroutine[None, None, None] | None = None) -> None:
        """Judge until everything is closed and settled, or all judges have halted.

        Args:
            beside: runs at the same time and may put wants in; it must end when judges have.

        Raises:
            StoreError: the store cannot be read or written.
        """
        store = self.lookup.store
        in_flight = sum(judge.spec.at_once for judge in self.lookup.judges.values())
        writer: Writer[_Judged] = Writer(
            partial(store.save, runner=self.lookup.runner),
            lambda judged: self.ledger.settle(judged[2]),
            lambda judged: judged[2].calls,
            min(MOST_OPEN, max(_LEAST_OPEN, in_flight)),
        )
        await write_while(store, self.lookup.runner, writer, self._judge(writer, beside))

    async def _judge(self, writer: Writer[_Judged], beside: Coroutine[None, None, None] | None) -> None:
        async def put(_judge: str, request: Request, result: Result) -> None:
            await writer.put((request.prompt.task, prompt_label(request.prompt), result))

        async with asyncio.TaskGroup() as group:
            if beside is not None:
                group.create_task(beside)
            await judge_all(self._feeds, self.lookup.judges, put)
            await writer.finish()

    async def count_rest(self, further: Iterable[Wanted] = ()) -> None:
        """Count what the store knows of the wants that nobody took, and of ``further`` ones, without asking."""
        left = [want for feed in self._feeds.values() for want in await feed.rest()]
        await self.count_known([*left, *further])

    async def count_known(self, wants: Sequence[Wanted]) -> None:
        """Count those of these wants that the store knows."""
        async for want, known in self._looked_up(wants):
            if isinstance(known, Judgment):
                self.ledger.count(want, "known", known)
            elif known is not None and not self.lookup.to_be_asked(known):
                self.ledger.count(want, "failed", known)

    async def known(self, wants: Sequence[Wanted]) -> list[tuple[Wanted, Result | None]]:
        """What the store knows of these wants by now, in their order; nobody is asked."""
        results: dict[Wanted, Result | None] = dict.fromkeys(wants)
        async for want, known in self._looked_up(wants):
            results[want] = known
        return list(results.items())

    async def _looked_up(self, wants: Sequence[Wanted]) -> AsyncIterator[tuple[Wanted, Result | None]]:
        """What the store knows of those wants that can be rendered; there may be a hundred thousand.

        Whatever else waits for the loop is heard meanwhile, Ctrl-C for one, which ends it after the chunk at hand.
        """
        for chunk in chunks(wants, _LOOKED_UP_AT_ONCE):
            for entry, known in await asyncio.to_thread(self.lookup.known, chunk):
                yield entry.want, known
