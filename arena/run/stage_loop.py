"""Runs the judging stages of a tournament: queues their judgments, and the judgments that results lead to."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from arena.run.ledger import Progress, RunSummary, summary_of
from arena.run.queue import Lookup, Queue
from arena.stages.base import TournamentStage
from arena.stages.together import TournamentStages
from arena.store import Result, Wanted, chunks
from arena.store.runs import Runs
from judges.judge import Stop
from judges.types import Task

_BLOCK = 256
"""Number of planned judgments in a block; several runners shuffle the blocks, but not the judgments in them."""

Begun: TypeAlias = Mapping[TournamentStage, Mapping[str, Sequence[Wanted]]]
"""The judgments planned from the start, by stage and query id."""


class Engine:
    """Makes all judgments that a tournament's stages need and the store lacks.

    Documents are labelled first. A query's other judgments follow as soon as all its documents have labels, so that no
    query waits for another query's labels. Judgments that a result leads to are queued at once. For tasks that are not
    in ``asked``, the engine only uses stored results.
    """

    def __init__(self, lookup: Lookup, stages: TournamentStages, asked: Collection[Task], progress: Progress) -> None:
        self._lookup, self._stages, self._asked = lookup, stages, asked
        self._queue = Queue(lookup, progress, self._settled, self._judge_ended, self._left_out)
        self._held: defaultdict[str, list[tuple[TournamentStage, Sequence[Wanted]]]] = defaultdict(list)
        self._not_asked: list[Wanted] = []
        self._planned: list[Wanted] = []
        self._ready: list[Wanted] = []
        self._results: list[tuple[Wanted, Result]] = []
        self._open: defaultdict[Task, set[Wanted]] = defaultdict(set)
        self._ended: set[str] = set()
        self._changed = asyncio.Event()

    async def run(self, begun: Begun, stop: Stop) -> RunSummary:
        """Make the judgments that the stages plan from the start, and those that their results lead to."""
        seconds, lookup = await self._queue.finish(self._run(begun), stop), self._lookup
        return summary_of(self._queue.ledger, lookup.judges, seconds, retried=lookup.retry_failed)

    async def _run(self, begun: Begun) -> None:
        wanted = Counter(want.task for by_query in begun.values() for wants in by_query.values() for want in wants)
        for task in self._stages.tasks:
            if task in self._asked:
                self._queue.begin(task, wanted[task], self._stages.of(task).most().get(task))
        for stage, by_query in begun.items():
            await self._begin(stage, by_query)
        await self._queue.run(self._drive())
        await self._follow()
        await self._queue.known(self._not_asked)

    async def _begin(self, stage: TournamentStage, by_query: Mapping[str, Sequence[Wanted]]) -> None:
        """Queue the first judgments of a stage, or hold those of a query back until its documents have labels."""
        ready: list[Wanted] = []
        for query_id, wants in by_query.items():
            if stage.waits_for_labels and (self._stages.labels.is_open(query_id) or not wants):
                self._held[query_id].append((stage, wants))
            else:
                ready += stage.ready(wants)
        self._put(self._in_runner_order([want for want in ready if want.task in self._asked]))
        not_asked = [want for want in ready if want.task not in self._asked]
        self._not_asked += [want for want in not_asked if not stage.leads_on(want.task)]
        await self._follow_stored([want for want in not_asked if stage.leads_on(want.task)])
        if Task.RELEVANCE in stage.tasks and Task.RELEVANCE not in self._asked:
            await self._follow()
            self._stages.labels.complete = True

    def _in_runner_order(self, wants: list[Wanted]) -> list[Wanted]:
        """The planned judgments in order, or in shuffled blocks if other runners work on this tournament.

        If all runners used the same order, each would mostly look up judgments that others have just claimed.
        """
        if not Runs(self._lookup.store, self._lookup.tournament).others(self._lookup.runner):
            return wants
        blocks = list(chunks(wants, _BLOCK))
        random.Random(self._lookup.runner.runner_id).shuffle(blocks)  # noqa: S311 - not secret
        return list(chain.from_iterable(blocks))

    def _put(self, wants: Sequence[Wanted]) -> None:
        for want in wants:
            if self._stages.leads_on(want.task):
                self._open[want.task].add(want)
        self._queue.put(wants)

    async def _follow_stored(self, wants: Sequence[Wanted]) -> None:
        """Look up judgments that this run does not ask for, and pass stored results on to their stages."""
        for want, known in await self._queue.known(wants):
            if known is not None:
                self._settled(want, known)

    def _settled(self, want: Wanted, result: Result) -> None:
        if self._stages.leads_on(want.task):
            self._results.append((want, result))
            self._changed.set()

    def _judge_ended(self, judge: str) -> None:
        """Wait no longer for the unfinished judgments of a judge that has stopped."""
        self._ended.add(judge)
        for task, wants in self._open.items():
            self._open[task] = {want for want in wants if want.judge != judge}
        self._changed.set()

    def _left_out(self, wants: Collection[Wanted]) -> None:
        """Wait no longer for judgments that this run cannot make, such as games with an unlabelled document."""
        for task in self._open:
            self._open[task].difference_update(wants)
        self._changed.set()

    async def _drive(self) -> None:
        """Queue judgments as results lead to them, and close the queue when none can follow."""
        labels = self._stages.labels
        while True:
            await self._follow()
            if self._held and not self._open[Task.RELEVANCE]:
                await self._queue.count_rest(halted=True)  # earlier failures that are not retried leave no label
                if self._results:
                    continue
                labels.complete = True  # this run cannot supply the missing labels
                await asyncio.to_thread(self._unhold, list(self._held))
            elif any(self._open.values()):
                self._changed.clear()
                await self._changed.wait()
            else:
                self._queue.close()
                return

    async def _follow(self) -> None:
        """Queue the judgments that new results lead to, until there is no new result."""
        while self._results or self._ready:
            results, self._results = self._results, []
            await asyncio.to_thread(self._after, results)
            for want, _ in results:
                self._open[want.task].discard(want)
            await self._put_ready()

    def _after(self, results: Sequence[tuple[Wanted, Result]]) -> None:
        """Collect the judgments that these results lead to, and those held back until now.

        Judgments on a query are held back until all its documents have labels.
        """
        for want, result in results:
            wants = self._stages.after(want, result)
            self._ready += wants
            self._planned += [each for each in wants if each.task not in self._stages.of(each.task).in_turn]
        labelled = dict.fromkeys(want.query_id for want, _ in results if want.task is Task.RELEVANCE)
        self._unhold(query_id for query_id in labelled if not self._stages.labels.is_open(query_id))

    def _unhold(self, query_ids: Iterable[str]) -> None:
        for query_id in query_ids:
            for stage, held in self._held.pop(query_id, ()):
                wants = held or self._stages.begin(stage, query_id)
                self._planned += [] if held else wants
                self._ready += stage.ready(wants)

    async def _put_ready(self) -> None:
        planned, ready, self._planned, self._ready = self._planned, self._ready, [], []
        if planned:
            await asyncio.to_thread(self._lookup.store.extend, self._lookup.tournament, planned)
        for task, number in Counter(want.task for want in planned if want.task in self._asked).items():
            self._queue.ledger.want(task, number)
        asked = [want for want in ready if want.task in self._asked]
        self._put([want for want in asked if want.judge not in self._ended])
        await self._queue.count_known([want for want in asked if want.judge in self._ended])
        await self._follow_stored([want for want in ready if want.task not in self._asked])
