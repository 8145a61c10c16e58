"""The queries of a tournament: which separate the agents, and where each agent fails. For page and command alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from arena import samples
from arena.kept import kept_games
from arena.leaderboard import grades, win_and_tie
from arena.nuggets.results import nugget_results
from arena.queries.groups import groupings
from arena.queries.labels import QueryLabels, query_labels
from arena.queries.separation import QueryFigures, Record, Standings, standings
from arena.store import Store
from judges.types import Judgment, Query, Task
from retrieval_eval.nuggets.scores import query_scores

GRADE, NUGGETS = "mean grade", "vital nuggets"
"""What answers are scored by besides games: the mean over the criteria, and the share of vital nuggets stated whole."""


@dataclass(frozen=True, slots=True)
class AgentOnQuery:
    """How one agent did on one query.

    Attributes:
        elsewhere: its share of points on all other queries, ``None`` without games there.
        answered: whether it has an answer at all.
        scores: what else its answer was given, by ``GRADE`` or ``NUGGETS``, as far as it was.
    """

    query_id: str
    record: Record
    elsewhere: float | None
    answered: bool
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class GroupLine:
    """The queries that have one value in a column of their table.

    Attributes:
        separation: mean over its queries, as far as they have one.
        agents: each agent's games on them.
    """

    value: str
    queries: int
    separation: float | None
    agents: Mapping[str, Record]


@dataclass(frozen=True, slots=True, eq=False)
class QueryBoard:
    """What the queries of a tournament show.

    Attributes:
        queries: by id, as in the data.
        verdicts: how many are there and were wanted, by query; each order of a game is one.
        standings: games of every agent on every query.
        answered: queries and agents with an answer.
        scores: by kind, what answers were given, by query and agent.
        labels: of the queries' documents, by query.
    """

    queries: Mapping[str, Query]
    verdicts: Mapping[str, tuple[int, int]]
    standings: Standings
    answered: frozenset[tuple[str, str]]
    scores: Mapping[str, Mapping[tuple[str, str], float]]
    labels: Mapping[str, QueryLabels] = field(default_factory=dict)

    @property
    def by_separation(self) -> list[QueryFigures]:
        """Every query, those first that separate the agents most; those of which nothing is known last."""
        return sorted(
            self.standings.figures,
            key=lambda one: (one.separation is None, -(one.separation or 0), -(one.spread or 0)),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the queries' table that put them into groups."""
        return tuple(groupings(self.queries.values()))

    def failures(self, agent: str) -> list[AgentOnQuery]:
        """Every query, the agent's worst first: without an answer, then by share, then by more games lost."""
        records = self.standings.each(agent)
        won, tied, lost = (sum(getattr(one, name) for one in records) for name in ("won", "tied", "lost"))
        found = [
            AgentOnQuery(
                query_id,
                own,
                Record(won - own.won, tied - own.tied, lost - own.lost).share,
                (query_id, agent) in self.answered,
                {name: each[query_id, agent] for name, each in self.scores.items() if (query_id, agent) in each},
            )
            for query_id, own in zip(self.standings.queries, records, strict=True)
        ]
        return sorted(found, key=_badness)

    def by_group(self, column: str) -> list[GroupLine]:
        """The groups of one of ``columns``, by value."""
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for at, query in enumerate(self.queries.values()):
            rows[query.metadata.get(column, "")].append(at)
        return [
            GroupLine(
                value,
                len(own),
                _mean([self.standings.figures[at].separation for at in own]),
                {agent: self.standings.together(agent, own) for agent in self.standings.agents},
            )
            for value, own in sorted(rows.items())
        ]


def query_board(store: Store, tournament: str) -> QueryBoard:
    """Read a tournament.

    Raises:
        InputError: no such tournament.
    """
    settings, data, games = store.settings(tournament), store.dataset(tournament), kept_games(store, tournament)
    verdicts = games.verdicts() if games.judged.any() else None
    agents = sorted({*data.agents, *games.agents})
    found = standings(verdicts, list(data.queries), agents, win_and_tie(settings))
    graded = {
        (want.query_id, want.item): fmean(given)
        for want, result in samples.outcomes(store, tournament, Task.CRITERIA)
        if isinstance(result, Judgment) and (given := list(grades(result, settings).values()))
    }
    scores = {GRADE: graded, NUGGETS: _nuggets(store, tournament)}
    return QueryBoard(
        data.queries,
        games.coverage_by_query(),
        found,
        frozenset(data.answers),
        {name: own for name, own in scores.items() if own},
        query_labels(store, tournament),
    )


def _nuggets(store: Store, tournament: str) -> dict[tuple[str, str], float]:
    results = nugget_results(store, tournament)
    found = {}
    for own in results.assignments if results else ():
        score = query_scores([nugget.importance for nugget in own.nuggets], own.labels).v_strict
        if score is not None:
            found[own.query_id, own.run] = score
    return found


def _badness(own: AgentOnQuery) -> tuple[bool, bool, float, int]:
    share = own.record.share
    return own.answered, share is None, 0.0 if share is None else share, -own.record.lost


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
