"""The queries of a tournament: which separate the agents, and where each agent fails. For page and command alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from arena.boards.cache import cached_games
from arena.boards.documents import QueryLabels, query_labels
from arena.boards.results import grades
from arena.data.dataset import groupings
from arena.present.blocks import Board, Remarks, Section
from arena.present.numbers import ALIGNED, COUNT, FIGURE, PERCENT, SCORE, clipped, counted
from arena.present.plain import plain
from arena.present.table import Column, Table
from arena.ratings.separation import QueryFigures, Record, Standings, standings
from arena.stages import samples
from arena.stages.nuggets.results import nugget_results
from arena.store import Store
from judges.types import Judgment, Query, Task
from retrieval_eval.nuggets.scores import query_scores
from retrieval_eval.stats.estimate import Estimate

_LONGEST = 80
"""Characters of a query in a cell."""
_QUERY = (Column("query_id", "Query"), Column("text", "Text"))
_SHARE = Column("share", "Share of points", PERCENT, "A win counts 1, a tie half.")
_SEPARATION = (
    "Separation: spread of the agents' shares of points on the query, times their correlation with the shares on all "
    "others; below 0 the query turns the order round, so it may be unclear or badly judged: read some of its games."
)

GRADE, NUGGETS = "mean grade", "vital nuggets"
"""What answers are scored by besides games: the mean over the criteria, and the share of vital nuggets stated whole."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryBoard(Board):
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

    def failures(self, agent: str) -> list[dict[str, Any]]:
        """Every query, the agent's worst first: without an answer, then by share, then by more games lost.

        With the agent's games there, its share of points ``elsewhere``, whether it ``answered``, and the other
        ``scores`` of its answer.
        """
        records = self.standings.each(agent)
        won, tied, lost = (sum(getattr(record, name) for record in records) for name in ("won", "tied", "lost"))
        found = [
            record.counts()
            | {
                "query_id": query_id,
                "answered": (query_id, agent) in self.answered,
                "elsewhere": Record(won - record.won, tied - record.tied, lost - record.lost).share,
                "scores": {
                    name: each[query_id, agent] for name, each in self.scores.items() if (query_id, agent) in each
                },
            }
            for query_id, record in zip(self.standings.queries, records, strict=True)
        ]
        return sorted(found, key=_badness)

    def by_group(self, column: str) -> list[dict[str, Any]]:
        """The groups of one of ``columns``: value, number of queries, mean separation, and each agent's games."""
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for at, query in enumerate(self.queries.values()):
            rows[query.metadata.get(column, "")].append(at)
        return [
            {
                "value": value,
                "queries": len(places),
                "separation": _mean([self.standings.figures[at].separation for at in places]),
                "agents": {agent: self.standings.together(agent, places) for agent in self.standings.agents},
            }
            for value, places in sorted(rows.items())
        ]

    def sections(self) -> list[Section]:
        """Which queries separate the agents."""
        lead = "Which queries tell the agents apart, and which contradict the others."
        return [Section("queries", "Queries by separation", lead, [self.by_separation_table(), self.in_short()])]

    def in_short(self) -> Remarks:
        """What the table of separation comes to, and what is missing from it."""
        known = [one for one in self.by_separation if one.separation is not None]
        said = []
        if known:
            against = sum((one.separation or 0) < 0 for one in known)
            flat = sum(one.spread == 0 for one in known)
            said.append(
                f"{known[0].query_id} separates the agents most. Of {counted(len(known), 'query', 'queries')}, "
                f"{against:,} turn the order of the others round, and nobody can be told apart on {flat:,}."
            )
        missing = {query_id: wanted - judged for query_id, (judged, wanted) in self.verdicts.items()}
        if lacking := [query_id for query_id, number in missing.items() if number]:
            said.append(
                f"{counted(sum(missing.values()), 'verdict')} on {counted(len(lacking), 'query', 'queries')} are "
                "missing; figures use what is there."
            )
        return Remarks(said)

    def by_separation_table(self) -> Table:
        """A row per query, those first that separate the agents most."""
        rows = [
            {**row, "text": self._text(row["query_id"]), "verdicts": f"{row['verdicts']} of {row['wanted']}"}
            for row in self._figures()
        ]
        columns = (
            *_QUERY,
            Column("separation", "Separation", FIGURE),
            Column("spread", "Spread", FIGURE),
            Column("agreement", "Agreement", FIGURE, "Correlation of the agents' shares here with those elsewhere."),
            Column("games", "Games", COUNT),
            Column("decided", "Decided", PERCENT),
            Column("orders_differ", "Orders differ", PERCENT),
            Column("judges_differ", "Judges differ", PERCENT),
            Column("verdicts", "Verdicts", ALIGNED, "Verdicts that are there, of those wanted."),
        )
        return Table("queries-by-separation", "", columns, rows, [_SEPARATION])

    def failures_table(self, agent: str) -> Table:
        """A row per query, those first on which the agent does worst."""
        rows = [
            {**row, **row["scores"], "text": self._text(row["query_id"]), "lost": f"{row['lost']} of {row['games']}"}
            | {"answer": None if row["answered"] else "none"}
            for row in self.failures(agent)
        ]
        columns = (
            *_QUERY,
            _SHARE,
            Column("elsewhere", "Elsewhere", PERCENT, "The agent's share of points on all other queries."),
            Column("lost", "Lost", ALIGNED, "Games lost, of those played on the query."),
            Column("answer", "Answer"),
            *self._scores(),
        )
        return Table("queries-of-agent", "", columns, rows)

    def groups_table(self, column: str, agents: Sequence[str]) -> Table:
        """A row per group of queries and agent."""
        rows = [
            {**line, "group": clipped(line["value"], _LONGEST) or "(none)", "agent": agent}
            | _row(line["agents"][agent])
            for line in self.by_group(column)
            for agent in agents
        ]
        columns = (
            Column("group", column),
            Column("agent", "Agent"),
            Column("queries", "Queries", COUNT),
            Column("separation", "Separation", FIGURE, "Mean over the queries of the group."),
            Column("games", "Games", COUNT),
            replace(_SHARE, interval="95% interval"),
        )
        notes = ["With few queries in a group, its shares may be chance: see their intervals."]
        return Table("groups-of-queries", "", columns, rows, notes)

    def labels_table(self) -> Table:
        """A row per query with documents to label, those first whose documents are worth least."""
        worst = sorted(self.labels.items(), key=lambda entry: (entry[1].label.mean is None, entry[1].label.mean or 0.0))
        parts = dict.fromkeys(name for labels in self.labels.values() for name in labels.parts)
        rows = [
            {"query_id": query_id, "text": self._text(query_id), "mean": labels.label.mean, **labels.parts}
            | {"judged": f"{labels.label.judged} of {labels.label.of}"}
            for query_id, labels in worst
        ]
        columns = (
            *_QUERY,
            Column("mean", "Mean label", SCORE),
            *(Column(name, name, SCORE) for name in parts),
            Column("judged", "Documents judged", ALIGNED),
        )
        notes = ["Means over the documents that have a label; one whose judgment failed is in none of them."]
        return Table("labels-by-query", "", columns, rows, notes)

    def query_table(self, query_id: str, agents: Sequence[str]) -> Table:
        """A row per agent: how it did on one query, the best first."""
        at = self.standings.queries.index(query_id)
        found = {agent: self.standings.each(agent)[at] for agent in agents}
        rows = [
            {"agent": agent, **_row(record)} | {name: each.get((query_id, agent)) for name, each in self.scores.items()}
            for agent, record in sorted(found.items(), key=lambda entry: -(entry[1].share or -1))
        ]
        counts = (Column(name, name.capitalize(), COUNT) for name in ("games", "won", "tied", "lost"))
        return Table("agents-on-query", "", (Column("agent", "Agent"), _SHARE, *counts, *self._scores()), rows)

    def json(self) -> Any:
        """Every query, every agent on every query, every group."""
        shape = {
            "queries": [{**row, "labels": self._labels(row["query_id"])} for row in self._figures()],
            "agents": {agent: self.failures(agent) for agent in self.standings.agents},
            "groups": {
                column: [
                    {**line, "agents": {agent: asdict(one) | one.counts() for agent, one in line["agents"].items()}}
                    for line in self.by_group(column)
                ]
                for column in self.columns
            },
        }
        return plain(shape)

    def _figures(self) -> Iterator[dict[str, Any]]:
        for one in self.by_separation:
            judged, wanted = self.verdicts.get(one.query_id, (0, 0))
            yield asdict(one) | {"separation": one.separation, "verdicts": judged, "wanted": wanted}

    def _labels(self, query_id: str) -> dict[str, Any] | None:
        """The same names as of an agent's labels on a leaderboard."""
        found = self.labels.get(query_id)
        if found is None:
            return None
        return {**asdict(found.label), "coverage": found.label.coverage, "parts": found.parts}

    def _text(self, query_id: str) -> str:
        return clipped(self.queries[query_id].text, _LONGEST)

    def _scores(self) -> Iterator[Column]:
        return (Column(name, name.capitalize(), FIGURE) for name in self.scores)


def query_board(store: Store, tournament: str) -> QueryBoard:
    """Read a tournament.

    Raises:
        InputError: no such tournament.
    """
    settings, data, games = store.settings(tournament), store.dataset(tournament), cached_games(store, tournament)
    verdicts = games.verdicts() if games.judged.any() else None
    agents = sorted({*data.agents, *games.agents})
    found = standings(verdicts, list(data.queries), agents, settings.win_and_tie)
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


def _row(record: Record) -> dict[str, Any]:
    return record.counts() | {"share": Estimate(record.share, record.low, record.high)}


def _badness(row: Mapping[str, Any]) -> tuple[bool, bool, float, int]:
    return row["answered"], row["share"] is None, row["share"] or 0.0, -row["lost"]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
