"""A tournament's stages in one queue: each want as soon as what it needs is there."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from arena.game_batches import GameBatches
from arena.labels import Labelling
from arena.prompting import Prompting
from arena.run.follow_ups import FollowUps
from arena.run.ledger import Ledger, Progress
from arena.run.queue import Lookup
from arena.run.work import Work
from arena.stages.base import Release
from arena.stages.samples import Combine
from arena.store import Result, Wanted, chunks
from arena.store.runs import Runs
from judges.types import EXAM_TASKS, Task

_BLOCK = 256
"""Wants that a runner beside others does in their order."""


class StageRunner:
    """Judges what the stages of one tournament want and the store does not know.

    Documents come first. A query's games, grades and nuggets follow as soon as all its documents have their labels, so
    nobody waits for the slowest query. An adaptive schedule is asked for its next games once its last ones are judged
    (``GameBatches``). What a settled want releases follows at once (``FollowUps``).

    Args:
        lookup: the tournament, its judges and its store.
        prompting: renders its prompts, and is given labels as they come.
        how: by judge, how several samples become one outcome.
        asked: the stages to do; of the others, what is known is found again.
        progress: told of every want.
    """

    def __init__(
        self, lookup: Lookup, prompting: Prompting, how: dict[str, Combine], asked: Sequence[Task], progress: Progress
    ) -> None:
        self._prompting, self._how, self._asked = prompting, how, asked
        self._work = Work(lookup, progress, self._settled, self._judge_ended, self._left_out)
        self._follow_ups = FollowUps(self._work, prompting, asked)
        games = prompting.adaptive_games()
        self._games = None if games is None else GameBatches(self._work, prompting, games, how)
        self._waiting: defaultdict[str, list[Wanted]] = defaultdict(list)
        self._ended: set[str] = set()
        self._labels_over = asyncio.Event()

    @property
    def ledger(self) -> Ledger:
        """What became of every want."""
        return self._work.ledger

    async def run(self, wants: Iterable[Wanted]) -> None:
        """Judge these wants, and those that they lead to.

        Raises:
            StoreError: the store cannot be read or written.
        """
        by_task: defaultdict[Task, list[Wanted]] = defaultdict(list)
        for want in self._in_own_order(list(wants)):
            by_task[want.task].append(want)
        self._labelling = Labelling(self._prompting, self._how, by_task[Task.RELEVANCE])
        if Task.RELEVANCE not in self._asked:
            for want, known in await self._work.known(by_task[Task.RELEVANCE]):
                if known is not None:
                    self._labelling.take(want, known)
        for task in self._asked:
            self._begin(task, by_task[task])
        not_asked = by_task.keys() - {Task.RELEVANCE, *self._asked}
        for task in filter(self._prompting.releases, not_asked):
            self._follow_ups.add(Release(ready=by_task[task]))
        for query_id in self._prompting.data.queries:
            self._follow_ups.add(self._prompting.begin_nuggets(query_id))
        self._see_if_labelled()
        await self._work.run(self._drive())
        await self._work.count_rest([want for wants in self._waiting.values() for want in wants])
        await self._find_rest([want for task in not_asked for want in by_task[task]])

    def _in_own_order(self, wants: list[Wanted]) -> list[Wanted]:
        """The wants in the plan's order, or its blocks in an order of this runner's own where others are at work.

        Side by side all would want the same at once, and most of what each looks up would be another's.
        """
        lookup = self._work.lookup
        if not Runs(lookup.store, lookup.tournament).others(lookup.runner):
            return wants
        blocks = list(chunks(wants, _BLOCK))
        random.Random(lookup.runner.runner_id).shuffle(blocks)  # noqa: S311 - not secret
        return list(chain.from_iterable(blocks))

    async def _find_rest(self, not_asked: Sequence[Wanted]) -> None:
        """Link what is known of the stages that were not asked for, and of what the last results have led to."""
        await self._follow_ups.run()
        await self._work.known(not_asked)
        if self._games is not None and Task.PAIRWISE in self._asked:
            await self._games.play_on()
        elif self._games is not None:
            await self._games.find_again(asked=False)

    def _begin(self, task: Task, wants: Sequence[Wanted]) -> None:
        """Put a stage's wants where they belong: to their judge, or behind their query's labels."""
        grows = task in EXAM_TASKS and any(map(self._prompting.releases, self._asked))
        adaptive = task is Task.PAIRWISE and self._games is not None
        self._work.begin(task, len(wants), self._prompting.expected(task) if grows or adaptive else None)
        waits = Task.RELEVANCE in self._asked and self._prompting.needs_labels(task)
        for want in wants:
            if waits and self._labelling.is_open(want.query_id):
                self._waiting[want.query_id].append(want)
            else:
                self._follow_ups.put(want)

    def _settled(self, want: Wanted, result: Result) -> None:
        if want.task is Task.RELEVANCE:
            if self._labelling.take(want, result):
                self._work.put(self._waiting.pop(want.query_id, ()))
                self._follow_ups.add(self._prompting.begin_nuggets(want.query_id))
            self._see_if_labelled()
        elif self._games is not None and want.task is Task.PAIRWISE:
            self._games.settled(want)
        else:
            self._follow_ups.settled(want, result)

    def _judge_ended(self, judge: str) -> None:
        """A judge takes nothing more: labels, games or items that others wait for may never come."""
        self._ended.add(judge)
        self._see_if_labelled()
        self._follow_ups.judge_ended(judge)
        pairwise = self._prompting.config.pairwise
        if self._games is not None and pairwise is not None and judge in pairwise.judges:
            self._games.end()

    def _left_out(self, wants: Collection[Wanted]) -> None:
        """Wants cannot be asked for in this run, such as games with a document that has no label."""
        self._follow_ups.left_out(wants)
        if self._games is not None:
            self._games.left_out(wants)

    def _see_if_labelled(self) -> None:
        """Tell whoever waits that no further label will come, once that is so."""
        if Task.RELEVANCE not in self._asked or self._labelling.over(self._ended):
            self._labels_over.set()
            self._follow_ups.all_begun()

    async def _drive(self) -> None:
        """Put in what comes only as others are settled, and tell the judges when nothing more will come."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._play())
            group.create_task(self._follow_ups.run())
        self._work.close()

    async def _play(self) -> None:
        await self._labels_over.wait()
        if self._games is not None and Task.PAIRWISE in self._asked:
            await self._games.play()
