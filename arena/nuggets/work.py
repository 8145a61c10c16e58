"""Nuggets beside a tournament's other stages: each want as soon as what it shows has come about."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence

from arena.nuggets.stages import NuggetStages, Release
from arena.runtime.work import Work
from arena.store import Result, Wanted
from judges.types import NUGGET_TASKS, Task


class NuggetWork:
    """Puts in what the nuggets of each query want, and learns what becomes of it.

    Args:
        work: the run's queue.
        stages: what the nuggets want.
        asked: the stages to do; of the others, what is known is found again.
    """

    def __init__(self, work: Work, stages: NuggetStages, asked: Collection[Task]) -> None:
        self._work, self._stages = work, stages
        self._asked = [task for task in NUGGET_TASKS if task in asked]
        self._released: deque[Release] = deque()
        self._open: set[Wanted] = set()
        self._no_more_queries = False
        self._halted = False
        self._changed = asyncio.Event()

    def begin(self, query_id: str, ranked: Sequence[str], labels: Mapping[str, int]) -> None:
        """Begin with a query, unless it has begun, see ``NuggetStages.begin``."""
        if not self._stages.has_begun(query_id):
            self._release(self._stages.begin(query_id, ranked, labels))

    def no_more_queries(self) -> None:
        """Every query has begun that will."""
        self._no_more_queries = True
        self._changed.set()

    def settled(self, want: Wanted, result: Result) -> None:
        """A want has its result."""
        self._open.discard(want)
        self._release(self._stages.take(want, result))

    def left_out(self, wants: Collection[Wanted]) -> None:
        """These wants cannot be asked for in this run."""
        self._open.difference_update(wants)
        self._changed.set()

    def judge_ended(self) -> None:
        """The judge takes nothing more: what is open stays so."""
        self._halted = True
        self._changed.set()

    async def run(self) -> None:
        """Hand in whatever is released, until nothing more can be."""
        lookup = self._work.lookup
        while True:
            while self._released:
                release = self._released.popleft()
                await asyncio.to_thread(lookup.store.extend, lookup.tournament, release.wanted)
                for task, number in Counter(want.task for want in release.wanted if want.task in self._asked).items():
                    self._work.ledger.add(task, number)
                await self._hand_in(release.ready)
            if self._halted or (self._no_more_queries and not self._open):
                return
            self._changed.clear()
            await self._changed.wait()

    async def _hand_in(self, wants: Sequence[Wanted]) -> None:
        for_judge = [want for want in wants if want.task in self._asked and not self._halted]
        self._open.update(for_judge)
        self._work.put(for_judge)
        if self._halted:
            self._work.count_known([want for want in wants if want.task in self._asked])
        others = [want for want in wants if want.task not in self._asked]
        for want, known in await asyncio.to_thread(self._work.known, others):
            if known is not None:
                self._release(self._stages.take(want, known))

    def _release(self, release: Release) -> None:
        if release.wanted or release.ready:
            self._released.append(release)
        self._changed.set()
