"""Chooses the games of an adaptive schedule, batch by batch, from the verdicts so far."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.judging import PairwiseSection
from arena.data.dataset import Dataset
from arena.ratings.adaptive import AdaptiveSettings, Fixtures, Meeting, decision, next_games, outcomes_of
from arena.ratings.games import Games, GameVerdict, reconcile, tabulate
from arena.stages.base import answering
from arena.store import Wanted
from judges.types import conversations, repeat_name, repeat_of


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
        clusters = conversations(self.data.queries.values())
        of_repeats = {name: query for name, (query, repeat) in self._repeats.items() if repeat > 1}
        return clusters | {name: clusters.get(query, query) for name, query in of_repeats.items()}

    @cached_property
    def _repeats(self) -> dict[str, tuple[str, int]]:
        """Query and repeat by the name under which a repeat of a query is scheduled, as if it were a query."""
        keys = ((query_id, repeat_of(agent)[1]) for query_id, agent in self.data.answers)
        return {repeat_name(*key): key for key in keys}

    @cached_property
    def _fixtures(self) -> Fixtures:
        present: dict[str, list[str]] = {}
        for query_id, names in answering(self.data).items():
            present[query_id] = []
            for agent, repeat in map(repeat_of, names):
                present.setdefault(repeat_name(query_id, repeat), []).append(agent)
        return Fixtures(present, self.settings.seed, self._clusters)

    def learn(self, verdicts: Iterable[GameVerdict]) -> None:
        for verdict in verdicts:
            first, second = repeat_of(verdict.agent_a), repeat_of(verdict.agent_b)
            query_id = repeat_name(verdict.query_id or "", first[1])
            self._verdicts.append(replace(verdict, query_id=query_id, agent_a=first[0], agent_b=second[0]))

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
        query_id, repeat = self._repeats[meeting.query_id]
        agents = repeat_name(meeting.agent_a, repeat), repeat_name(meeting.agent_b, repeat)
        return (
            Wanted.game(judge, query_id, *agents, swapped=swapped)
            for swapped in orders
            for judge in self.section.judges
        )


def meeting_of(query_id: str, agent_a: str, agent_b: str) -> Meeting:
    """The meeting of two answers, from the names of their agents with the number of the repeat."""
    (first, repeat), (second, _) = repeat_of(agent_a), repeat_of(agent_b)
    return Meeting(repeat_name(query_id, repeat), first, second)


def adaptive_settings(section: PairwiseSection) -> AdaptiveSettings:
    schedule = section.schedule
    options = {
        "decide": schedule.decide,
        "confidence": schedule.confidence,
        "batch": schedule.batch,
        "max_games": schedule.max_games,
    }
    return AdaptiveSettings(**{key: value for key, value in options.items() if value is not None}, seed=schedule.seed)  # type: ignore[arg-type]
