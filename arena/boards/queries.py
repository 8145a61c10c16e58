"""The queries of a tournament: which separate the agents, and where each agent fails. For page and command alike."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any, Final

import numpy as np
from msgspec import field
from msgspec.structs import asdict, replace

from arena.boards.nuggets import support_words
from arena.data.dataset import groupings
from arena.present.blocks import Board, Figure, Figures, Remarks, Section
from arena.present.numbers import ALIGNED, COUNT, FIGURE, PERCENT, POINTS, Number, clipped, counted, listed
from arena.present.picture import Matrix, MatrixCell, nowhere
from arena.present.table import Column, Table, plain
from arena.ratings.results import Ratings
from arena.ratings.separation import GamesOfAgent, QueryFigures, Standings, Unlike, divided, separations, standings
from arena.results import samples
from arena.results.cache import Cache, cached_games
from arena.results.documents import QueryLabels, query_labels
from arena.results.exam import stored_scores
from arena.results.exam_evaluation import Study
from arena.results.nuggets import nugget_results
from arena.results.ratings import grades
from arena.store import Store
from judges.types import Judgment, Query, Task
from retrieval_eval.nuggets.scores import query_scores
from retrieval_eval.nuggets.types import Assignment, Support
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.estimate import Estimate

_LONGEST = 80
"""Characters of a query in a cell."""
_QUERY = (Column("query_id", "Query", link="to"), Column("text", "Text", link="to"))
_SHARE = Column("share", "Share of points", PERCENT, "A win counts 1, a tie half.")
_SEPARATION = (
    "Separation: spread of the agents' shares of points on the query, times their correlation with the shares on all "
    "others. Between queries that are alike it differs too, and is below 0 on some: only those marked as beyond chance "
    "differ by more than that. One that is reversed may be unclear or badly judged: read some of its games."
)

_NAMED: Final = 5
"""Queries named in a sentence; the others are counted."""
_STANDING_OUT: Final[Mapping[Unlike, tuple[str, str]]] = {
    "more": ("separates the agents more than the others do,", "separate the agents more than the others do,"),
    "reversed": ("turns the order of the others round,", "turn the order of the others round,"),
}
"""How an unusual query is described: for one query, and for several."""
GAMES, EXAM, NUGGETS, GRADE = "games", "EXAM", "vital nuggets", "mean grade"
"""What agents are compared by on a query: their share of points, the share of the exam's items that an answer covers,
the share of vital nuggets that it states whole, and the mean of its grades over the criteria."""
_WHOLE: Final = Number(0, factor=100)
_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    GAMES: ("Share of points", "A win counts 1, a tie half."),
    EXAM: ("EXAM", "Share of the exam's items that the answer covers."),
    NUGGETS: ("Vital nuggets", "Share of the vital nuggets that the answer states whole."),
    GRADE: ("Mean grade", "Mean over the criteria."),
}
_STATED: Final[Mapping[Support | None, MatrixCell]] = {
    Support.FULL: MatrixCell("●", 1),
    Support.PARTIAL: MatrixCell("◐", 0.4),
    Support.NONE: MatrixCell("○"),
    None: MatrixCell("?", -0.4),
}
Link = Callable[[str, str], str]
"""The address of a query, of an agent, or of an agent on a query; the other name is empty."""


class QueryBoard(Board, frozen=True, eq=False):
    """What the queries of a tournament show.

    Attributes:
        queries: by id, as in the data.
        verdicts: how many are there and were wanted, by query; each order of a game is one.
        standings: games of every agent on every query.
        silent: queries and agents without an answer.
        scores: by kind, what answers were given, by query and agent.
        labels: of the queries' documents, by query.
    """

    queries: Mapping[str, Query]
    verdicts: Mapping[str, tuple[int, int]]
    standings: Standings
    silent: frozenset[tuple[str, str]]
    scores: Mapping[str, Mapping[tuple[str, str], float]]
    labels: Mapping[str, QueryLabels] = field(default_factory=dict)

    @property
    def by_separation(self) -> list[QueryFigures]:
        """Every query by separation, the largest first; those of which nothing is known last."""
        return sorted(
            self.standings.figures, key=lambda one: (one.separation is None, -(one.separation or 0), -(one.spread or 0))
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the queries' table that put them into groups."""
        return tuple(groupings(self.queries.values()))

    @property
    def all_columns(self) -> tuple[str, ...]:
        """The same, and those with so many values that nobody is shown their groups unasked."""
        return tuple(dict.fromkeys(name for query in self.queries.values() for name in query.metadata))

    @property
    def kinds(self) -> tuple[str, ...]:
        """What agents can be compared by: games, where there are any, and the other scores."""
        return (*([GAMES] if any(one.games for one in self.standings.figures) else []), *self.scores)

    def of_group(self, column: str, value: str) -> QueryBoard:
        """The same, with one group of queries."""
        places = [at for at, query in enumerate(self.queries.values()) if query.metadata.get(column) == value]
        ids = list(self.queries)
        chosen = {ids[at]: self.queries[ids[at]] for at in places}
        verdicts = {query_id: own for query_id, own in self.verdicts.items() if query_id in chosen}
        return replace(self, queries=chosen, verdicts=verdicts, standings=self.standings.of(places))

    def measured(self, kind: str) -> tuple[Floats, Floats]:
        """Points of each agent on each query and what they are divided by, shape (queries, agents) each."""
        own = self.standings
        if kind == GAMES:
            return own.won + own.tied / 2, own.won + own.tied + own.lost
        given = self.scores[kind]
        values = np.array(
            [[given.get((query_id, agent), np.nan) for agent in own.agents] for query_id in own.queries], np.float64
        ).reshape(len(own.queries), len(own.agents))
        known = np.isfinite(values)
        return np.where(known, values, 0), known.astype(np.float64)

    def separating(self, kind: str) -> list[str]:
        """Ids of the queries by separation in a kind of score, the largest first; unknown ones last.

        An order for reading: only of games is it known which queries stand out by more than chance.
        """
        spread, agreement = separations(*self.measured(kind))
        separation = np.where(spread == 0, 0, spread * agreement)
        return [self.standings.queries[at] for at in np.lexsort((-np.nan_to_num(spread), -separation))]

    def heat_map(self, kind: str, agents: Sequence[str], query_ids: Sequence[str], link: Link = nowhere) -> Matrix:
        """Queries by agents: each agent's score, coloured by how far it lies from the mean of the query's agents.

        Above the rows stands the mean over all queries; ``link`` says where names and cells lead.
        """
        points, played = self.measured(kind)
        values, together = divided(points, played), divided(points.sum(axis=0), played.sum(axis=0))
        span = max(1.0, float(np.ptp(values[np.isfinite(values)]))) if np.isfinite(values).any() else 1.0
        form = FIGURE if kind == GRADE else _WHOLE
        column = {agent: at for at, agent in enumerate(self.standings.agents)}
        row = {query_id: at for at, query_id in enumerate(self.standings.queries)}
        labels = {query_id: self.label(query_id) for query_id in query_ids}
        cells = {}
        for query_id, name in {"": (total := f"All {counted(len(row), 'query', 'queries')}"), **labels}.items():
            own = values[row[query_id]] if query_id else together
            known = own[np.isfinite(own)]
            for agent in agents:
                if np.isfinite(value := own[column[agent]]):
                    strength = float(np.clip(2 * (value - known.mean()) / span, -1, 1))
                    told = f"{agent}, {query_id or total}: {form.write(value)}"
                    if kind == GAMES:
                        counts = played[row[query_id]] if query_id else played.sum(axis=0)
                        told += f"% of the points of {counted(counts[column[agent]], 'game')}"
                    cells[name, agent] = MatrixCell(
                        form.write(value), strength, tooltip=told, bold=not query_id, link=link(query_id, agent)
                    )
        heading, meaning = _NAMES[kind]
        caption = (
            f"{heading}{', in percent' * (form is _WHOLE)}. {meaning} Blue: above the mean of the query's agents; "
            "orange: below. Queries stand by separation, the largest first; their order may be chance."
        )
        links = {name: link(query_id, "") for query_id, name in labels.items()}
        links |= {agent: link("", agent) for agent in agents}
        rows = [total, *labels.values()]
        return Matrix("queries", "", f"{heading}, queries by agents", caption, rows, agents, cells, "Query", links)

    def agents(self, ratings: Ratings | None) -> list[str]:
        """Every agent, those with a rating first, in its order."""
        rated = [row.agent for row in ratings.agents] if ratings else []
        return [*rated, *(agent for agent in self.standings.agents if agent not in rated)]

    def scores_of(self, agent: str, ratings: Ratings | None = None) -> Figures:
        """One agent by its rating, if it has one, and by every kind of score, over all queries."""
        at, found = self.standings.agents.index(agent), list[Figure]()
        for row in ratings.agents if ratings else ():
            if row.agent == agent:
                place = f"Rank {row.rank} of {len(ratings.agents)}." if ratings and row.rank else ""
                found.append(Figure("Rating", row.bt, POINTS, place, row.bt_low, row.bt_high))
        for kind in self.kinds:
            points, played = self.measured(kind)
            means = divided(points.sum(axis=0), played.sum(axis=0))
            if np.isfinite(means[at]):
                better = int((means > means[at]).sum())
                scored, on = int(np.isfinite(means).sum()), int((played[:, at] > 0).sum())
                of = f"Place {1 + better} of {scored}, on {on:,} queries."
                name, form = _NAMES[kind][0], FIGURE if kind == GRADE else PERCENT
                own = points[:, at], played[:, at]
                ends = None if kind == GRADE else self.standings.interval(*own, means=kind != GAMES)
                found.append(Figure(name, float(means[at]), form, of, *(ends or (None, None))))
        return Figures(found)

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
                "answered": (query_id, agent) not in self.silent,
                "elsewhere": GamesOfAgent(won - record.won, tied - record.tied, lost - record.lost).share,
                "scores": {
                    name: each[query_id, agent] for name, each in self.scores.items() if (query_id, agent) in each
                },
            }
            for query_id, record in zip(self.standings.queries, records, strict=True)
        ]
        return sorted(found, key=_badness)

    def by_group(self, column: str) -> list[dict[str, Any]]:
        """The groups of one of ``all_columns``: value, number of queries, mean separation, and each agent's games."""
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
        lead = "How far each query tells the agents apart, and which stand out by more than chance."
        return [Section("queries", "Queries by separation", lead, [self.by_separation_table(), self.in_short()])]

    def in_short(self) -> Remarks:
        """What the table of separation comes to, and what is missing from it."""
        return Remarks([said for said in (self.finding, self.missing) if said])

    @property
    def finding(self) -> str:
        """Which queries stand out by more than chance, and how many say nothing; empty where nothing is known."""
        known = [one for one in self.by_separation if one.separation is not None]
        if not known:
            return ""
        sentences = []
        for kind, verbs in _STANDING_OUT.items():
            names = [one.query_id for one in known if one.beyond_chance == kind]
            if names:
                sentences.append(f"{listed(names, _NAMED)} {verbs[len(names) > 1]} by more than chance.")
        if not sentences:
            sentences = [f"None of {counted(len(known), 'query', 'queries')} stands out by more than chance."]
        if flat := sum(one.spread == 0 for one in known):
            sentences.append(f"On {flat:,} of {len(known):,} all agents score the same.")
        return " ".join(sentences)

    @property
    def missing(self) -> str:
        """How many verdicts are missing; empty where none is."""
        missing = {query_id: wanted - judged for query_id, (judged, wanted) in self.verdicts.items()}
        lacking = [query_id for query_id, number in missing.items() if number]
        if not lacking:
            return ""
        return (
            f"{counted(sum(missing.values()), 'verdict')} on {counted(len(lacking), 'query', 'queries')} are "
            "missing; figures use what is there."
        )

    def by_separation_table(self) -> Table:
        """A row per query by separation, the largest first."""
        rows = [
            {**row, "text": self._text(row["query_id"]), "verdicts": f"{row['verdicts']} of {row['wanted']}"}
            for row in self._figures()
        ]
        columns = (
            *_QUERY,
            Column("separation", "Separation", FIGURE),
            Column("spread", "Spread", FIGURE),
            Column("agreement", "Agreement", FIGURE, "Correlation of the agents' shares here with those elsewhere."),
            Column("beyond_chance", "Beyond chance"),
            Column("games", "Games", COUNT),
            Column("decided", "Decided", PERCENT),
            Column("orders_differ", "Orders differ", PERCENT),
            Column("judges_differ", "Judges differ", PERCENT),
            Column("verdicts", "Verdicts", ALIGNED, "Verdicts that are there, of those wanted."),
        )
        return Table("queries-by-separation", "", columns, rows, [_SEPARATION])

    def failures_table(self, agent: str, link: Link = nowhere) -> Table:
        """A row per query, those first on which the agent does worst; ``link`` as for ``heat_map``."""
        rows = [
            {**row, **row["scores"], "text": self._text(row["query_id"]), "lost": f"{row['lost']} of {row['games']}"}
            | {"answer": None if row["answered"] else "none"}
            | {"to": link(row["query_id"], ""), "to_games": link(row["query_id"], agent)}
            for row in self.failures(agent)
        ]
        columns = (
            *_QUERY,
            _SHARE,
            Column("elsewhere", "Elsewhere", PERCENT, "The agent's share of points on all other queries."),
            Column("lost", "Lost", ALIGNED, "Games lost, of those played on the query.", link="to_games"),
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
            Column("mean", "Mean label", FIGURE),
            *(Column(name, name, FIGURE) for name in parts),
            Column("judged", "Documents judged", ALIGNED),
        )
        notes = ["Means over the documents that have a label; one whose judgment failed is in none of them."]
        return Table("labels-by-query", "", columns, rows, notes)

    def query_table(self, query_id: str, agents: Sequence[str], link: Link = nowhere) -> Table:
        """A row per agent: how it did on one query, the best first; ``link`` as for ``heat_map``."""
        at = self.standings.queries.index(query_id)
        found = {agent: self.standings.on(at, agent) for agent in agents}
        rows = [
            {"agent": agent, **record.counts(), "to": link("", agent), "to_games": link(query_id, agent)}
            | {name: each.get((query_id, agent)) for name, each in self.scores.items()}
            for agent, record in sorted(found.items(), key=lambda entry: -(entry[1].share or -1))
        ]
        columns = (
            Column("agent", "Agent", link="to"),
            _SHARE,
            Column("games", "Games", COUNT, link="to_games"),
            *self._scores(),
        )
        return Table("agents-on-query", "", columns, rows)

    def said_of(self, query_id: str, agent: str) -> str:
        """Every score of one agent on one query, in a line."""
        at = self.standings.queries.index(query_id), self.standings.agents.index(agent)
        won, tied, lost = (float(cells[at]) for cells in (self.standings.won, self.standings.tied, self.standings.lost))
        played = won + tied + lost
        known = {GAMES: (won + tied / 2) / played if played else None}
        known |= {kind: own.get((query_id, agent)) for kind, own in self.scores.items()}
        return " · ".join(
            f"{_NAMES[kind][0]} {(FIGURE if kind == GRADE else PERCENT).write(value)}"
            for kind in self.kinds
            if (value := known[kind]) is not None
        )

    def label(self, query_id: str) -> str:
        """A query in one line, told from all others."""
        return label_of_query(query_id, self.queries[query_id])

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
        return (
            Column(name, *_NAMES[name][:1], FIGURE if name == GRADE else PERCENT, _NAMES[name][1])
            for name in self.scores
        )


def heading_of(kind: str) -> str:
    """What people call a kind of score."""
    return _NAMES[kind][0]


def label_of_query(query_id: str, query: Query) -> str:
    """A query in one line, told from all others."""
    return f"{query_id}: {clipped(query.text, 60)}"


def queries_meant(words: str, queries: Mapping[str, Query]) -> list[str] | None:
    """Ids of the queries that a reader asks for; ``None`` for any.

    Args:
        words: an id, a query's label, or words that a query holds, in any order and case.
        queries: all by id.
    """
    asked = words.strip()
    if not asked:
        return None
    for query_id, query in queries.items():
        if asked in (query_id, label_of_query(query_id, query)):
            return [query_id]
    parts = asked.casefold().split()
    held = {query_id: f"{query_id} {query.text}".casefold() for query_id, query in queries.items()}
    return [query_id for query_id, own in held.items() if all(part in own for part in parts)]


def query_board(store: Store, tournament: str) -> QueryBoard:
    """Read a tournament; what is computed is kept in the store until something is judged or begun anew.

    Raises:
        InputError: no such tournament.
    """
    return Cache(store, tournament).made("queries", lambda: _made(store, tournament))


def _made(store: Store, tournament: str) -> QueryBoard:
    settings, queries, games = store.settings(tournament), store.queries(tournament), cached_games(store, tournament)
    answered, agents = store.answered(tournament)
    verdicts = games.verdicts() if games.judged.any() else None
    found = standings(verdicts, list(queries), sorted({*agents, *games.agents}), settings.win_and_tie)
    silent = frozenset(key for key in product(found.queries, found.agents) if key not in answered)
    graded = {
        (want.query_id, want.item): fmean(given)
        for want, result in samples.outcomes(store, tournament, Task.CRITERIA)
        if isinstance(result, Judgment) and (given := list(grades(want, result, settings).values()))
    }
    scores = {EXAM: _covers(store, tournament), NUGGETS: _nuggets(store, tournament), GRADE: graded}
    return QueryBoard(
        queries,
        games.coverage_by_query(),
        found,
        silent,
        {name: own for name, own in scores.items() if own},
        query_labels(store, tournament),
    )


def _covers(store: Store, tournament: str) -> dict[tuple[str, str], float]:
    """Cover at the usual grade, by query and agent."""
    exam = stored_scores(store, tournament)
    if exam is None:
        return {}
    own, level = exam.cover, exam.cover.levels.index(exam.level)
    cells = own.cover[:, :, level].T.tolist()
    return {
        (query_id, agent): cover
        for query_id, row in zip(own.queries, cells, strict=True)
        for agent, cover in zip(own.agents, row, strict=True)
        if not math.isnan(cover)
    }


def _nuggets(store: Store, tournament: str) -> dict[tuple[str, str], float]:
    results = nugget_results(store, tournament)
    found = {}
    for own in results.assignments if results else ():
        score = query_scores([nugget.importance for nugget in own.nuggets], own.labels).v_strict
        if score is not None:
            found[own.query_id, own.run] = score
    return found


def _row(record: GamesOfAgent) -> dict[str, Any]:
    return record.counts() | {"share": Estimate(record.share, record.low, record.high)}


def _badness(row: Mapping[str, Any]) -> tuple[bool, bool, float, int]:
    return row["answered"], row["share"] is None, row["share"] or 0.0, -row["lost"]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def nugget_matrix(assignments: Iterable[Assignment], query_id: str, agents: Sequence[str]) -> Matrix | None:
    """Which answer to a query states which nugget; ``None`` where nothing is known.

    Nuggets that tell the answers apart stand first, vital ones before others.
    """
    found = {own.run: own for own in assignments if own.query_id == query_id}
    columns = [agent for agent in agents if agent in found]
    if not columns:
        return None
    rows = [
        (nugget, {agent: found[agent].labels[at] for agent in columns})
        for at, nugget in enumerate(found[columns[0]].nuggets)
    ]
    rows.sort(key=lambda row: (len(set(row[1].values())) == 1, row[0].importance != "vital"))
    cells = {}
    for number, (nugget, labels) in enumerate(rows, start=1):
        name = f"{number}. {nugget.text}" + " (vital)" * (nugget.importance == "vital")
        for agent, label in labels.items():
            cells[name, agent] = replace(_STATED[label], tooltip=f"{agent}: {support_words(label)}")
    caption = "● stated, ◐ in part, ○ not stated, ? not known. Nuggets that tell the answers apart stand first."
    names = list(dict.fromkeys(name for name, _ in cells))
    return Matrix("nuggets", "", "Nuggets by agents", caption, names, columns, cells, "Nugget")


def exam_matrix(study: Study, query_id: str, agents: Sequence[str], depth: int) -> Matrix | None:
    """The best grade that each answer to a query has on each item of the exam; ``None`` where nothing is graded."""
    grid = study.grids.grids.get(query_id)
    ranked = {agent: study.rankings[query_id, agent] for agent in agents if (query_id, agent) in study.rankings}
    if grid is None or not grid.items or not ranked:
        return None
    names = [f"{number}. {study.text_of(item_id)}" for number, item_id in enumerate(grid.items, start=1)]
    cells = {}
    for agent, passages in ranked.items():
        best = grid.grades[grid.rows(passages[:depth])].max(axis=0, initial=-1).tolist()
        for name, grade in zip(names, best, strict=True):
            if grade >= 0:
                cells[name, agent] = MatrixCell(
                    str(grade), grade / max(study.levels), tooltip=f"{agent}: grade {grade}"
                )
    caption = f"An item counts as covered from grade {study.usual_level} on."
    return Matrix("exam", "", "Best grades, items by agents", caption, names, list(ranked), cells, "Item")
