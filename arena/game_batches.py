"""The games of an adaptive schedule on a run's queue, batch by batch."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from arena.boards.results import game_verdicts
from arena.prompting import Prompting
from arena.run.work import Work
from arena.stages.adaptive import AdaptiveGames
from arena.stages.samples import Combine, combined
from arena.store import Result, Wanted
from judges.types import Task


class GameBatches:
    """Asks for the next games once the last ones are judged, until they decide or a judge cannot go on.

    The store holds all that decides: a run that begins again chooses the same games from the same verdicts, and asks
    where it left off. A batch that is not finished, because a judge or the run stopped or labels are missing, is the
    last one.

    Args:
        work: the run's queue.
        prompting: turns games into wants.
        games: the schedule.
        how: by judge, how several samples become one outcome.
    """

    def __init__(self, work: Work, prompting: Prompting, games: AdaptiveGames, how: Mapping[str, Combine]) -> None:
        self._work, self._prompting, self._games, self._how = work, prompting, games, how
        self._open: set[Wanted] = set()
        self._unfinished: Sequence[Wanted] = ()
        self._ended = False
        self._changed = asyncio.Event()

    def settled(self, want: Wanted) -> None:
        """A want has its result."""
        if want in self._open:
            self._open.remove(want)
            if not self._open:
                self._changed.set()

    def left_out(self, wants: Collection[Wanted]) -> None:
        """These wants cannot be asked for in this run."""
        if not self._open.isdisjoint(wants):
            self.end()

    def end(self) -> None:
        """The present batch is the last one."""
        self._ended = True
        self._changed.set()

    async def play(self) -> None:
        """Choose games and wait for their verdicts."""
        while batch := await self._next():
            self._work.ledger.want(Task.PAIRWISE, len(batch))
            if any(self._prompting.prompt(want) is None for want in batch):
                break  # it would wait for labels that this run does not get
            self._open.update(batch)
            self._work.put(batch)
            await self._changed.wait()
            if self._ended:
                self._unfinished = batch
                break
            self._changed.clear()
            self._games.learn(game_verdicts(await self._known(batch)))

    async def play_on(self) -> None:
        """Go on with what the store knows, once all judges have ended and the last batch is known all the same."""
        if self._unfinished and not self._open:
            self._games.learn(game_verdicts(await self._known(self._unfinished)))
            await self.find_again(asked=True)

    async def find_again(self, *, asked: bool) -> None:
        """Follow the schedule as far as the verdicts in the store take it; what it wants next is left.

        Args:
            asked: whether what is found counts in the run.
        """
        while batch := await self._next():
            if asked:
                self._work.ledger.want(Task.PAIRWISE, len(batch))
                await self._work.count_known(batch)
            outcomes = await self._known(batch)
            if any(result is None for _, result in outcomes):
                break
            self._games.learn(game_verdicts(outcomes))

    async def _next(self) -> list[Wanted]:
        """The next games' wants, which the store is told of; none at the end."""
        return await asyncio.to_thread(self._choose)

    def _choose(self) -> list[Wanted]:
        batch = list(self._prompting.game_wants(self._games.choose()))
        lookup = self._work.lookup
        if batch:
            lookup.store.extend(lookup.tournament, batch)
        return batch

    async def _known(self, wants: Sequence[Wanted]) -> list[tuple[Wanted, Result | None]]:
        """What the store knows of these wants by now, samples combined."""
        return combined(await self._work.known(wants), self._how)
