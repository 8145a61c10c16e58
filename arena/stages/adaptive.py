"""Chooses the games of an adaptive schedule, batch by batch, from the verdicts so far."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

import numpy as np
from msgspec import Struct, field

from arena.config.judging import PairwiseSection
from arena.data.dataset import Dataset
from arena.ratings.adaptive import AdaptiveSettings, Fixtures, Meeting, decision, next_games, outcomes_of
from arena.ratings.games import Games, GameVerdict, reconcile, tabulate
from arena.stages.base import answering
from arena.store import Wanted
from judges.types import conversations


class AdaptiveState(Struct, frozen=True):
    """Progress of an adaptive schedule.

    Attributes:
        decide: what the schedule is to decide: the ``order`` of the agents, or the ``top`` agent.
        confidence: probability that all decisions are right, however often the verdicts were examined.
        games: number of judged games, counting each pair of agents on each query once.
        possible: number of possible games: all pairs of agents on all queries that both answered.
        ended: whether no further game will be chosen, even if nothing is decided.
    """

    decide: str
    confidence: float
    decided: bool
    places: tuple[str, ...]
    games: int
    possible: int
    ended: bool


class AdaptiveGames(Struct, dict=True):
    """Chooses the games of an adaptive schedule.

    Each run starts from the stored verdicts and so repeats the choices of earlier runs.

    Attributes:
        data: the tournament's dataset; its answers determine which agents can play on a query.
        asked: all games chosen so far, each between two agents on a query.
    """

    section: PairwiseSection
    data: Dataset
    asked: list[Meeting] = field(default_factory=list)
    _verdicts: list[GameVerdict] = field(default_factory=list)

    @cached_property
    def settings(self) -> AdaptiveSettings:
        return adaptive_settings(self.section)

    @cached_property
    def _clusters(self) -> dict[str, str]:
        return conversations(self.data.queries.values())

    @cached_property
    def _fixtures(self) -> Fixtures:
        return Fixtures(answering(self.data), self.settings.seed, self._clusters)

    def learn(self, verdicts: Iterable[GameVerdict]) -> None:
        self._verdicts.extend(verdicts)

    def choose(self) -> list[Wanted]:
        """The next batch of games, with answers in the configured orders; empty if no further game is needed."""
        batch = next_games(self._fixtures, self.asked, self._outcomes(), self.settings)
        self.asked += batch
        return [game for meeting in batch for game in self._orders(meeting)]

    def at_most(self) -> list[Wanted]:
        """As many games as the schedule may choose at most, spread evenly over all pairs; for plans."""
        available = self._fixtures.available
        turns = range(int(available.max(initial=0)))
        every = ((pair, nth) for nth in turns for pair in np.flatnonzero(available > nth).tolist())
        meetings = (meeting for pair, nth in every for meeting in self._fixtures.meetings(pair, nth))
        return [game for meeting in islice(meetings, self.settings.max_games) for game in self._orders(meeting)]

    def state(self) -> AdaptiveState:
        outcomes = self._outcomes()
        current = decision(outcomes, self.settings)
        more = next_games(self._fixtures, self.asked, outcomes, self.settings)
        return AdaptiveState(
            self.settings.decide,
            self.settings.confidence,
            current.decided,
            current.places,
            len(self._outcomes({})) if self._clusters else len(outcomes),
            len(self._fixtures),
            ended=not more,
        )

    def _outcomes(self, clusters: Mapping[str, str] | None = None) -> Games:
        agents = self._fixtures.agents
        if not self._verdicts:
            return Games(agents, np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0), soft=True)
        verdicts = tabulate(self._verdicts).clustered(self._clusters if clusters is None else clusters)
        return outcomes_of(reconcile(verdicts, win_and_tie=self.section.win_and_tie), agents)

    def _orders(self, meeting: Meeting) -> Iterator[Wanted]:
        orders: Sequence[bool] = (False, True)
        if not self.section.both_orders:
            seed = "\x00".join([str(self.settings.seed), *meeting])
            orders = [random.Random(seed).random() < 0.5]  # noqa: S311 - reproducible, not secret
        return (Wanted.game(judge, *meeting, swapped=swapped) for swapped in orders for judge in self.section.judges)


def adaptive_settings(section: PairwiseSection) -> AdaptiveSettings:
    schedule = section.schedule
    options = {
        "decide": schedule.decide,
        "confidence": schedule.confidence,
        "batch": schedule.batch,
        "max_games": schedule.max_games,
    }
    return AdaptiveSettings(**{key: value for key, value in options.items() if value is not None}, seed=schedule.seed)  # type: ignore[arg-type]
