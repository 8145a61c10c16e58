"""A tournament's stages in one queue: each want as soon as what it needs is there."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from arena.adaptive_games import AdaptiveGames
from arena.labels import Labelling
from arena.leaderboard import game_verdicts
from arena.nuggets.work import NuggetWork
from arena.prompting import Prompting
from arena.runtime.feed import Lookup
from arena.runtime.ledger import Ledger, Progress
from arena.runtime.work import Work
from arena.samples import Combine, combined
from arena.store import Result, Wanted
from judges.types import EXAM_TASKS, NUGGET_TASKS, Task


class StageRunner:
    """Judges what the stages of one tournament want and the store does not know.

    Documents come first. A query's games and grades follow as soon as all its documents have their labels, so nobody
    waits for the slowest query. An adaptive schedule is asked for its next games once its last ones are judged. What a
    settled want of the exam releases follows at once.

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
        self._lookup, self._prompting, self._how, self._asked = lookup, prompting, how, asked
        self._work = Work(lookup, progress, self._settled, self._judge_ended, self._left_out)
        self._games = prompting.adaptive_games()
        self._nuggets = None if prompting.nuggets is None else NuggetWork(self._work, prompting.nuggets, asked)
        self._waiting: defaultdict[str, list[Wanted]] = defaultdict(list)
        self._ended: set[str] = set()
        self._labels_over = asyncio.Event()
        self._batch_open: set[Wanted] = set()
        self._batch_over = asyncio.Event()
        self._releasing: set[Wanted] = set()
        self._released: list[Wanted] = []
        self._release = asyncio.Event()
        self._games_over = False
        self._last_batch: list[Wanted] = []

    @property
    def ledger(self) -> Ledger:
        """What became of every want."""
        return self._work.ledger

    async def run(self, wants: Iterable[Wanted]) -> None:
        """Judge these wants, and those that an adaptive schedule adds.

        Raises:
            StoreError: the store cannot be read or written.
        """
        by_task: defaultdict[Task, list[Wanted]] = defaultdict(list)
        for want in wants:
            by_task[want.task].append(want)
        self._labelling = Labelling(self._prompting, self._how, by_task[Task.RELEVANCE])
        if Task.RELEVANCE not in self._asked:
            for want, known in self._work.known(by_task[Task.RELEVANCE]):
                if known is not None:
                    self._labelling.take(want, known)
        for task in self._asked:
            self._begin(task, by_task[task])
        for query_id in self._prompting.data.queries:
            self._begin_nuggets(query_id)
        self._see_if_labelled()
        await self._work.run(self._drive())
        await self._work.count_rest([want for wants in self._waiting.values() for want in wants])
        await self._find_others(by_task)

    async def _find_others(self, by_task: Mapping[Task, Sequence[Wanted]]) -> None:
        """Link what is known of the stages that were not asked for, and of what the last results have led to."""
        if self._nuggets is not None:
            await self._nuggets.run()
        while self._released:  # by what was known already when the judges could not go on
            self._work.count_known(await self._take_released())
        for task in by_task.keys() - {Task.RELEVANCE, *self._asked}:
            self._find_again(by_task[task])
        if self._games is not None and Task.PAIRWISE not in self._asked:
            self._find_games_again(self._games)
        elif self._games is not None and self._last_batch and not self._batch_open:
            self._games.learn(game_verdicts(self._known(self._last_batch)))
            self._find_games_again(self._games)

    def _begin(self, task: Task, wants: Sequence[Wanted]) -> None:
        """Put a stage's wants where they belong: to their judge, or behind their query's labels."""
        adaptive = task is Task.PAIRWISE and self._games is not None
        grows = task in EXAM_TASKS and any(map(self._prompting.releases, self._asked))
        shown = self._prompting.expected(task) if adaptive or grows else None
        self._work.begin(task, len(wants), shown)
        if self._prompting.releases(task):
            self._releasing.update(wants)
        waits = Task.RELEVANCE in self._asked and self._prompting.needs_labels(task)
        for want in wants:
            if waits and self._labelling.is_open(want.query_id):
                self._waiting[want.query_id].append(want)
            else:
                self._work.put([want])

    def _settled(self, want: Wanted, result: Result) -> None:
        if want.task is Task.RELEVANCE:
            if self._labelling.take(want, result):
                self._work.put(self._waiting.pop(want.query_id, ()))
                self._begin_nuggets(want.query_id)
            self._see_if_labelled()
        elif want.task in NUGGET_TASKS:
            assert self._nuggets is not None
            self._nuggets.settled(want, result)
        elif want in self._batch_open:
            self._batch_open.remove(want)
            if not self._batch_open:
                self._batch_over.set()
        elif self._prompting.releases(want.task):
            self._releasing.discard(want)
            self._released += self._prompting.released(want, result)
            self._release.set()

    def _judge_ended(self, judge: str) -> None:
        """A judge takes nothing more: labels, games or items that others wait for may never come."""
        self._ended.add(judge)
        self._releasing = {want for want in self._releasing if want.judge != judge}
        self._release.set()
        config = self._prompting.config
        self._see_if_labelled()
        if self._nuggets is not None and config.nuggets is not None and config.nuggets.judge == judge:
            self._nuggets.judge_ended()
        if config.pairwise is not None and judge in config.pairwise.judges:
            self._end_games()

    def _left_out(self, wants: Collection[Wanted]) -> None:
        """Wants cannot be asked for in this run, such as games with a document that has no label."""
        if self._nuggets is not None:
            self._nuggets.left_out(wants)
        if not self._batch_open.isdisjoint(wants):
            self._end_games()

    def _end_games(self) -> None:
        """The present batch of an adaptive schedule is the last one."""
        self._games_over = True
        self._batch_over.set()

    def _see_if_labelled(self) -> None:
        """Tell whoever waits that no further label will come, once that is so."""
        if Task.RELEVANCE not in self._asked or self._labelling.over(self._ended):
            self._labels_over.set()
            if self._nuggets is not None:
                self._nuggets.no_more_queries()

    def _begin_nuggets(self, query_id: str) -> None:
        """A query has its labels, but for those that a later run may bring: then its nuggets wait for that run."""
        stages = self._prompting.nuggets
        if self._nuggets is None or stages is None:
            return
        labels = self._prompting.labels_of(query_id) if stages.reads_documents else {}
        if labels is not None:
            self._nuggets.begin(query_id, self._prompting.ranked(query_id), labels)

    async def _drive(self) -> None:
        """Put in what comes only as others are settled, and tell the judges when nothing more will come."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._play())
            group.create_task(self._follow())
            if self._nuggets is not None:
                group.create_task(self._nuggets.run())
        self._work.close()

    async def _follow(self) -> None:
        """Put in what settled wants release, for as long as some may."""
        while self._releasing or self._released:
            self._release.clear()
            if not self._released:
                await self._release.wait()
                continue
            asked = await self._take_released()
            self._releasing.update(
                want for want in asked if self._prompting.releases(want.task) and want.judge not in self._ended
            )
            self._work.put(asked)

    async def _take_released(self) -> list[Wanted]:
        """Make what was released part of the tournament; gives what of it is to be asked for."""
        batch, self._released = self._released, []
        await asyncio.to_thread(self._lookup.store.extend, self._lookup.tournament, batch)
        asked = [want for want in batch if want.task in self._asked]
        for want in asked:
            self.ledger.want(want.task, 1)
        return asked

    async def _play(self) -> None:
        """Choose games batch by batch until they decide, or a judge cannot go on.

        The store holds all that decides: a run that begins again chooses the same games from the same verdicts, and
        asks where it left off. A batch that is not finished, because a judge or the run stopped or labels are missing,
        is the last one.
        """
        await self._labels_over.wait()
        games = self._games
        if games is None or Task.PAIRWISE not in self._asked:
            return
        while batch := list(self._prompting.game_wants(games.choose())):
            await asyncio.to_thread(self._lookup.store.extend, self._lookup.tournament, batch)
            self.ledger.want(Task.PAIRWISE, len(batch))
            if any(self._prompting.prompt(want) is None for want in batch):
                break  # it would wait for labels that this run does not get
            self._batch_open.update(batch)
            self._work.put(batch)
            await self._batch_over.wait()
            if self._games_over:
                self._last_batch = batch
                break
            self._batch_over.clear()
            games.learn(game_verdicts(self._known(batch)))

    def _find_again(self, wants: Sequence[Wanted]) -> None:
        """Link wants of stages that are not asked, and what they release, to what the store knows."""
        known = self._work.known(wants)
        released = [
            each for want, result in known if result is not None for each in self._prompting.released(want, result)
        ]
        if released:
            self._lookup.store.extend(self._lookup.tournament, released)
            self._find_again(released)

    def _find_games_again(self, games: AdaptiveGames) -> None:
        """Follow the schedule as far as the verdicts in the store take it; what it wants next is left."""
        while batch := list(self._prompting.game_wants(games.choose())):
            self._lookup.store.extend(self._lookup.tournament, batch)
            if Task.PAIRWISE in self._asked:
                self.ledger.want(Task.PAIRWISE, len(batch))
                self._work.count_known(batch)
            outcomes = self._known(batch)
            if any(result is None for _, result in outcomes):
                break
            games.learn(game_verdicts(outcomes))

    def _known(self, wants: Sequence[Wanted]) -> list[tuple[Wanted, Result | None]]:
        """What the store knows of these wants by now, samples combined."""
        return combined(self._work.known(wants), self._how)
