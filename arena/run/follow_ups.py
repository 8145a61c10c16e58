"""Stages that come about step by step, beside a run's other ones: each want as soon as what it shows is there."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence

from arena.run.work import Work
from arena.stages.base import Release, Releasing
from arena.store import Result, Wanted
from judges.types import Task


class FollowUps:
    """Puts into a run what its settled wants release, until nothing more can be.

    Args:
        work: the run's queue.
        releasing: what settled wants lead to.
        asked: the tasks to do; of the others, what is known is found again, and what that releases follows.
    """

    def __init__(self, work: Work, releasing: Releasing, asked: Collection[Task]) -> None:
        self._work, self._releasing, self._asked = work, releasing, asked
        self._released: list[Release] = []
        self._open: set[Wanted] = set()
        self._ended: set[str] = set()
        self._begun = False
        self._changed = asyncio.Event()

    def add(self, release: Release) -> None:
        """Take wants in from outside, or from a want that was settled."""
        if release.wanted or release.ready:
            self._released.append(release)
            self._changed.set()

    def put(self, want: Wanted) -> None:
        """Hand a want to its judge, and wait for what it may release."""
        if self._releasing.releases(want.task):
            self._open.add(want)
        self._work.put([want])

    def all_begun(self) -> None:
        """Nothing more comes from outside."""
        self._begun = True
        self._changed.set()

    def settled(self, want: Wanted, result: Result) -> None:
        """A want has its result."""
        if self._releasing.releases(want.task):
            self._open.discard(want)
            self._changed.set()
            self.add(self._releasing.released(want, result))

    def left_out(self, wants: Collection[Wanted]) -> None:
        """These wants cannot be asked for in this run."""
        self._open.difference_update(wants)
        self._changed.set()

    def judge_ended(self, judge: str) -> None:
        """A judge takes nothing more: what it has open stays so."""
        self._ended.add(judge)
        self._open = {want for want in self._open if want.judge != judge}
        self._changed.set()

    async def run(self) -> None:
        """Hand in whatever is released; ends when nothing more can be."""
        while True:
            while self._released:
                batch, self._released = self._released, []
                await self._hand_in(
                    [want for each in batch for want in each.wanted], [want for each in batch for want in each.ready]
                )
            if self._begun and not self._open:
                return
            self._changed.clear()
            await self._changed.wait()

    async def _hand_in(self, wanted: Sequence[Wanted], ready: Sequence[Wanted]) -> None:
        lookup = self._work.lookup
        await asyncio.to_thread(lookup.store.extend, lookup.tournament, wanted)
        for task, number in Counter(want.task for want in wanted if want.task in self._asked).items():
            self._work.ledger.want(task, number)
        asked = [want for want in ready if want.task in self._asked]
        for want in asked:
            if want.judge not in self._ended:
                self.put(want)
        await self._work.count_known([want for want in asked if want.judge in self._ended])
        others = [want for want in ready if want.task not in self._asked]
        for want, known in await self._work.known(others):
            if known is not None:
                self.settled(want, known)
