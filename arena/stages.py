"""A run's one queue: all stages and judges at once, each want as soon as what it needs is there."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from arena.adaptive_games import AdaptiveGames
from arena.feed import Feed, Lookup
from arena.labels import Labelling
from arena.leaderboard import game_verdicts
from arena.ledger import Ledger, Progress
from arena.samples import Combine, combined
from arena.store import BEAT_S, Result, Wanted, chunks
from arena.writer import Writer
from judges.errors import StoreError
from judges.runtime import judge_all
from judges.types import Judgment, Task

_LOOKED_UP_AT_ONCE = 256


class StageRunner:
    """Judges what the stages of one tournament want and the store does not know.

    Documents come first. A query's games and grades follow as soon as all its documents have their labels, so nobody
    waits for the slowest query. An adaptive schedule is asked for its next games once its last ones are judged.

    Args:
        lookup: the tournament, its judges and its store.
        how: by judge, how several samples become one outcome.
        asked: the stages to do; of the others, what is known is found again.
        progress: told of every want.
    """

    def __init__(self, lookup: Lookup, how: dict[str, Combine], asked: Sequence[Task], progress: Progress) -> None:
        self._lookup, self._how, self._asked = lookup, how, asked
        self.ledger = Ledger(progress, self._settled)
        self._feeds = {
            name: Feed(lookup, self.ledger, judge.spec.concurrency, partial(self._feed_ended, name), self._left_out)
            for name, judge in lookup.judges.items()
        }
        self._games = lookup.prompting.adaptive_games() if Task.PAIRWISE in lookup.prompting.tasks() else None
        self._waiting: defaultdict[str, list[Wanted]] = defaultdict(list)
        self._labels_over = asyncio.Event()
        self._batch_open: Counter[Wanted] = Counter()
        self._batch_over = asyncio.Event()
        self._games_over = False
        self._last_batch: list[Wanted] = []

    async def run(self, wants: Iterable[Wanted]) -> None:
        """Judge these wants, and those that an adaptive schedule adds.

        Raises:
            StoreError: the store cannot be read or written.
        """
        by_task: defaultdict[Task, list[Wanted]] = defaultdict(list)
        for want in wants:
            by_task[want.task].append(want)
        relevance = by_task[Task.RELEVANCE]
        self._labelling = Labelling(self._lookup.prompting, self._how, relevance)
        if Task.RELEVANCE not in self._asked:
            self._find_again(relevance)
        for task in self._asked:
            self._begin(task, by_task[task])
        try:
            self._lookup.store.beat(self._lookup.runner)
            await self._judge()
        finally:
            with contextlib.suppress(StoreError):  # then its own error is on the way, and who is gone claims nothing
                self._lookup.store.leave(self._lookup.runner)
        await self._count_the_rest()
        for task in set(by_task) - {Task.RELEVANCE, *self._asked}:
            self._find_again(by_task[task])
        if self._games and Task.PAIRWISE not in self._asked:
            self._find_games_again(self._games)
        elif self._games and self._last_batch and not self._batch_open:
            self._games.learn(game_verdicts(self._known(self._last_batch)))
            self._find_games_again(self._games)

    async def _judge(self) -> None:
        concurrency = sum(judge.spec.concurrency for judge in self._lookup.judges.values())
        writer = Writer(self._lookup.store, concurrency, self.ledger.settle)
        async with asyncio.TaskGroup() as group:
            endless = [group.create_task(writer.work()), group.create_task(self._beat())]
            playing = group.create_task(self._play())
            self._close_if_over()
            await judge_all(self._feeds, self._lookup.judges, writer.put)
            await writer.finish()
            await playing
            for task in endless:
                task.cancel()

    def _begin(self, task: Task, wants: Sequence[Wanted]) -> None:
        """Put a stage's wants where they belong: to their judge, or behind their query's labels."""
        adaptive = task is Task.PAIRWISE and self._games is not None
        shown = sum(1 for want in self._lookup.prompting.wants() if want.task is task) if adaptive else len(wants)
        self.ledger.begin(task, shown)
        self.ledger.want(task, len(wants))
        if task is Task.RELEVANCE:
            for want in wants:
                self._feeds[want.judge].put([want])
            return
        waits = Task.RELEVANCE in self._asked and self._lookup.prompting.needs_labels(task)
        for want in wants:
            if waits and self._labelling.is_open(want.query_id):
                self._waiting[want.query_id].append(want)
            else:
                self._feeds[want.judge].put([want])

    def _settled(self, want: Wanted, result: Result) -> None:
        if want.task is Task.RELEVANCE:
            if self._labelling.take(want, result):
                for waiting in self._waiting.pop(want.query_id, ()):
                    self._feeds[waiting.judge].put([waiting])
                self._close_if_over()
        elif want in self._batch_open:
            del self._batch_open[want]
            if not self._batch_open:
                self._batch_over.set()

    def _feed_ended(self, judge: str) -> None:
        """A judge takes nothing more: labels or games that others wait for may never come."""
        config = self._lookup.prompting.config
        if config.retrieval is not None and config.retrieval.judge == judge:
            self._close_if_over(labels_ended=True)
        if config.pairwise is not None and judge in config.pairwise.judges:
            self._end_games()

    def _left_out(self, wants: Collection[Wanted]) -> None:
        """Games cannot be asked for in this run, since a document has no label."""
        if not self._batch_open.keys().isdisjoint(wants):
            self._end_games()

    def _end_games(self) -> None:
        """The present batch of an adaptive schedule is the last one."""
        self._games_over = True
        self._batch_over.set()

    def _close_if_over(self, *, labels_ended: bool = False) -> None:
        """Tell the judges that nothing more will come, once that is so."""
        if labels_ended or Task.RELEVANCE not in self._asked or self._labelling.complete:
            self._labels_over.set()
            if self._games is None or Task.PAIRWISE not in self._asked:
                self._close()

    def _close(self) -> None:
        for feed in self._feeds.values():
            feed.close()

    async def _play(self) -> None:
        """Choose games batch by batch until they decide, or a judge cannot go on.

        The store holds all that decides: a run that begins again chooses the same games from the same verdicts, and
        asks where it left off. A batch that is not finished, because a judge or the run stopped, is the last one.
        """
        games = self._games
        if games is None or Task.PAIRWISE not in self._asked:
            return
        await self._labels_over.wait()
        while batch := list(self._lookup.prompting.game_wants(games.choose())):
            await asyncio.to_thread(self._lookup.store.extend, self._lookup.tournament, batch)
            self.ledger.want(Task.PAIRWISE, len(batch))
            self._batch_open.update(batch)
            for want in batch:
                self._feeds[want.judge].put([want])
            await self._batch_over.wait()
            if self._games_over:
                self._last_batch = batch
                break
            self._batch_over.clear()
            games.learn(game_verdicts(self._known(batch)))
        self._close()

    def _find_games_again(self, games: AdaptiveGames) -> None:
        """Follow the schedule as far as the verdicts in the store take it; what it wants next is left."""
        while batch := list(self._lookup.prompting.game_wants(games.choose())):
            self._lookup.store.extend(self._lookup.tournament, batch)
            if Task.PAIRWISE in self._asked:
                self.ledger.want(Task.PAIRWISE, len(batch))
                self._count_known(batch)
            outcomes = self._known(batch)
            if any(result is None for _, result in outcomes):
                break
            games.learn(game_verdicts(outcomes))

    def _known(self, wants: Sequence[Wanted]) -> list[tuple[Wanted, Result | None]]:
        """What the store knows of these wants by now, samples combined."""
        results: dict[Wanted, Result | None] = dict.fromkeys(wants)
        for chunk in chunks(wants, _LOOKED_UP_AT_ONCE):
            results.update((entry.want, known) for entry, known in self._lookup.known(chunk))
        return combined(results.items(), self._how)

    def _find_again(self, wants: Sequence[Wanted]) -> None:
        """Link a stage's wants to what the store knows, without asking."""
        for chunk in chunks(wants, _LOOKED_UP_AT_ONCE):
            for entry, known in self._lookup.known(chunk):
                if entry.want.task is Task.RELEVANCE and known is not None:
                    self._labelling.take(entry.want, known)

    async def _count_the_rest(self) -> None:
        """Nobody is asked any more, but what the store knows of the wants that are left is counted and linked."""
        left = [want for feed in self._feeds.values() for want in await feed.rest()]
        left += [want for wants in self._waiting.values() for want in wants]
        self._count_known(left)

    def _count_known(self, wants: Sequence[Wanted]) -> None:
        for chunk in chunks(wants, _LOOKED_UP_AT_ONCE):
            for entry, known in self._lookup.known(chunk):
                if isinstance(known, Judgment):
                    self.ledger.count(entry.want, "known", known)
                elif known is not None and not self._lookup.to_be_asked(known):
                    self.ledger.count(entry.want, "failed", known)

    async def _beat(self) -> None:
        """Tell other processes on the store that this one is at work."""
        while True:
            await asyncio.sleep(BEAT_S)
            await asyncio.to_thread(self._lookup.store.beat, self._lookup.runner)
