"""Which agents meet on which query, chosen batch by batch from the verdicts so far."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice

import numpy as np
from msgspec import Struct, field

from arena.config.judging import PairwiseSection
from arena.data.dataset import Dataset
from arena.ratings.adaptive import Fixtures, Meeting, next_games
from arena.ratings.evidence import AdaptiveSettings, decision, outcomes_of
from arena.ratings.games import Games, GameVerdict, reconcile, tabulate
from arena.stages.schedule import Game, answering
from judges.types import conversations


class AdaptiveState(Struct, frozen=True):
    """How far an adaptive schedule has come.

    Attributes:
        decide: ``order`` or ``top``.
        confidence: that nothing claimed is wrong, at all looks together.
        decided: whether what was asked for is decided.
        places: agents whose place is decided, from the first place down.
        games: pairs of agents judged on a query.
        possible: all pairs on all queries that both answered.
        ended: whether no more games are to come, decided or not.
    """

    decide: str
    confidence: float
    decided: bool
    places: tuple[str, ...]
    games: int
    possible: int
    ended: bool


class AdaptiveGames(Struct, dict=True):
    """The games of one tournament with an adaptive schedule, chosen batch by batch.

    A run begins with none and chooses again from the verdicts in the store, which takes it along the same way.

    Attributes:
        section: the configuration's answer judges and schedule.
        data: answers tell which agents can meet on a query.
        asked: all meetings chosen so far.
    """

    section: PairwiseSection
    data: Dataset
    asked: list[Meeting] = field(default_factory=list)
    _verdicts: list[GameVerdict] = field(default_factory=list)

    @cached_property
    def settings(self) -> AdaptiveSettings:
        """How the games are chosen, and when enough is known."""
        return adaptive_settings(self.section)

    @cached_property
    def _clusters(self) -> dict[str, str]:
        return conversations(self.data.queries.values())

    @cached_property
    def _fixtures(self) -> Fixtures:
        return Fixtures(answering(self.data), self.settings.seed, self._clusters)

    def learn(self, verdicts: Iterable[GameVerdict]) -> None:
        """Take note of further verdicts."""
        self._verdicts.extend(verdicts)

    def choose(self) -> list[Game]:
        """The next batch, each meeting in the orders that the configuration asks for; empty at the end."""
        batch = next_games(self._fixtures, self.asked, self._outcomes(), self.settings)
        self.asked += batch
        return [game for meeting in batch for game in self._orders(meeting)]

    def at_most(self) -> list[Game]:
        """As many games as there may be, in turn for all pairs: an estimate of what a run may take."""
        available = self._fixtures.available
        turns = range(int(available.max(initial=0)))
        every = ((pair, nth) for nth in turns for pair in np.flatnonzero(available > nth).tolist())
        meetings = (meeting for pair, nth in every for meeting in self._fixtures.meetings(pair, nth))
        return [game for meeting in islice(meetings, self.settings.max_games) for game in self._orders(meeting)]

    def state(self) -> AdaptiveState:
        """What the verdicts decide."""
        outcomes = self._outcomes()
        found = decision(outcomes, self.settings)
        more = next_games(self._fixtures, self.asked, outcomes, self.settings)
        return AdaptiveState(
            self.settings.decide,
            self.settings.confidence,
            found.decided,
            found.places,
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

    def _orders(self, meeting: Meeting) -> Sequence[Game]:
        if self.section.both_orders:
            return [Game(*meeting, swapped) for swapped in (False, True)]
        rng = random.Random("\x00".join([str(self.settings.seed), *meeting]))  # noqa: S311 - reproducible, not secret
        return [Game(*meeting, rng.random() < 0.5)]


def adaptive_settings(section: PairwiseSection) -> AdaptiveSettings:
    """The settings of an adaptive schedule; what the configuration leaves out has its default here."""
    plan = section.schedule
    given = {"decide": plan.decide, "confidence": plan.confidence, "batch": plan.batch, "max_games": plan.max_games}
    return AdaptiveSettings(**{key: value for key, value in given.items() if value is not None}, seed=plan.seed)  # type: ignore[arg-type]
