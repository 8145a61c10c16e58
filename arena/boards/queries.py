"""The queries of a tournament: which of them separate the agents, and on which of them each agent fails."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any, Final

import numpy as np
from msgspec import field
from msgspec.structs import asdict, replace

from arena.boards.nuggets import support_words
from arena.boards.quantities import WON, quantity
from arena.data.dataset import group_values, groupings
from arena.present.blocks import Board, Figure, Figures, Remarks, Section, estimated
from arena.present.numbers import ALIGNED, COUNT, FIGURE, PERCENT, Number, clipped, counted, listed
from arena.present.picture import Matrix, MatrixCell, nowhere
from arena.present.table import Column, Table, TableRow, plain
from arena.ratings.results import Ratings
from arena.ratings.separation import GamesOfAgent, QueryFigures, Standings, Unlike, divided, separations, standings
from arena.results.cache import Cache, cached_games
from arena.results.documents import QueryLabels, query_labels
from arena.results.exam import Study
from arena.results.scores import answer_scores
from arena.store import Store
from judges.types import Query, repeat_of
from retrieval_eval.nuggets.types import Assignment, Support
from retrieval_eval.stats import Floats
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.scores import Scores

_LONGEST, _LONGEST_TEXT = 80, 200
_QUERY = (Column("query_id", "Query", link="to"), Column("text", "Text", link="to"))
_SEPARATION = (
    "Separation: spread of the agents' shares of points on the query, times their correlation with the shares on all "
    "others. Between queries that are alike it differs too, and is below 0 on some: only those marked as beyond chance "
    "differ by more than that. One that is reversed may be unclear or badly judged: read some of its games."
)

_NAMED: Final = 5
_STANDING_OUT: Final[Mapping[Unlike, tuple[str, str]]] = {
    "more": ("separates the agents more than the others do,", "separate the agents more than the others do,"),
    "reversed": ("turns the order of the others round,", "turn the order of the others round,"),
}
KINDS: Final = ("cover", "v_strict", "criteria")
"""Names of the scores besides the win rate that an agent has on a query."""
_WHOLE: Final = Number(0, factor=100)
_STATED: Final[Mapping[Support | None, MatrixCell]] = {
    Support.FULL: MatrixCell("●", 1),
    Support.PARTIAL: MatrixCell("◐", 0.4),
    Support.NONE: MatrixCell("○"),
    None: MatrixCell("?", -0.4),
}
Link = Callable[[str, str], str]
"""Function from a query id and an agent to the address of the page to link to.

With an empty agent it is the query's page, and with an empty query id the agent's page."""


class QueryBoard(Board, frozen=True, eq=False):
    """Scores of agents on each query of a tournament.

    Attributes:
        verdicts: numbers of existing and of planned verdicts, by query id; each order of a game has one verdict.
        silent: pairs of a query and an agent that gave no answer to it.
        scores: scores of answers, by name of the score, then by query and agent.
        methods: these scores with their means over the queries, where an agent without an answer may score 0.
    """

    queries: Mapping[str, Query]
    verdicts: Mapping[str, tuple[int, int]]
    standings: Standings
    silent: frozenset[tuple[str, str]]
    scores: Mapping[str, Mapping[tuple[str, str], float]]
    labels: Mapping[str, QueryLabels] = field(default_factory=dict)
    methods: Mapping[str, Scores] = field(default_factory=dict)

    @property
    def by_separation(self) -> list[QueryFigures]:
        return sorted(
            self.standings.figures,
            key=lambda figures: (figures.separation is None, -(figures.separation or 0), -(figures.spread or 0)),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns in the table of queries that divide the queries into a few groups."""
        return tuple(groupings(self.queries.values()))

    @property
    def all_columns(self) -> tuple[str, ...]:
        """Names of all further columns in the table of queries, also of those with too many values for groups."""
        return tuple(dict.fromkeys(name for query in self.queries.values() for name in group_values(query)))

    @property
    def kinds(self) -> tuple[str, ...]:
        return (*([WON] if any(figures.games for figures in self.standings.figures) else []), *self.scores)

    def of_group(self, column: str, value: str) -> QueryBoard:
        places = [row for row, query in enumerate(self.queries.values()) if group_values(query).get(column) == value]
        ids = list(self.queries)
        chosen = {ids[row]: self.queries[ids[row]] for row in places}
        verdicts = {query_id: counts for query_id, counts in self.verdicts.items() if query_id in chosen}
        return replace(self, queries=chosen, verdicts=verdicts, standings=self.standings.of(places))

    def measured(self, kind: str) -> tuple[Floats, Floats]:
        """Sums and numbers of each agent's scores of one kind on each query; shape (queries, agents) each."""
        games = self.standings
        if kind == WON:
            return games.won + games.tied / 2, games.won + games.tied + games.lost
        scores = self.scores[kind]
        values = np.array(
            [[scores.get((query_id, agent), np.nan) for agent in games.agents] for query_id in games.queries],
            np.float64,
        ).reshape(len(games.queries), len(games.agents))
        scored = np.isfinite(values)
        return np.where(scored, values, 0), scored.astype(np.float64)

    def means(self, kind: str) -> Mapping[str, Estimate]:
        """Each agent's mean over these queries, as on the leaderboard; for the win rate, over all games on them."""
        if kind == WON:
            rows = range(len(self.standings.queries))
            return {agent: self.standings.together(agent, rows).estimate for agent in self.standings.agents}
        return self.methods[kind].among(self.standings.queries).means

    def separating(self, kind: str) -> list[str]:
        """Ids of the queries, first those that stand out (known for games alone), then by separation.

        The order by separation is no test; queries of unknown separation come last.
        """
        spread, agreement = separations(*self.measured(kind))
        separation = np.where(spread == 0, 0, spread * agreement)
        stands_out = [bool(kind == WON and figure.beyond_chance and figure.spread) for figure in self.standings.figures]
        common = ~np.array(stands_out, np.bool_)
        return [self.standings.queries[row] for row in np.lexsort((-np.nan_to_num(spread), -separation, common))]

    def heat_map(self, kind: str, agents: Sequence[str], query_ids: Sequence[str], link: Link = nowhere) -> Matrix:
        """Matrix of queries by agents: scores, coloured by the distance from the query's mean over agents.

        The first row is the mean over all queries. ``link`` gives the addresses that names and cells link to.
        """
        points, played = self.measured(kind)
        values, means = divided(points, played), self.means(kind)
        overall = np.array([means[agent].value if agent in means else None for agent in self.standings.agents], float)
        span = max(1.0, float(np.ptp(values[np.isfinite(values)]))) if np.isfinite(values).any() else 1.0
        form = _WHOLE if kind == WON else quantity(kind).form
        column = {agent: index for index, agent in enumerate(self.standings.agents)}
        row = {query_id: index for index, query_id in enumerate(self.standings.queries)}
        labels = {query_id: self.label(query_id) for query_id in query_ids}
        cells = {}
        for query_id, name in {"": (total := f"All {counted(len(row), 'query', 'queries')}"), **labels}.items():
            scores = values[row[query_id]] if query_id else overall
            scored = scores[np.isfinite(scores)]
            for agent in agents:
                if np.isfinite(value := scores[column[agent]]):
                    strength = float(np.clip(2 * (value - scored.mean()) / span, -1, 1))
                    description = f"{agent}, {query_id or total}: {form.write(value)}"
                    if kind == WON:
                        counts = played[row[query_id]] if query_id else played.sum(axis=0)
                        description += f"% of {counted(counts[column[agent]], 'game')}"
                    cells[name, agent] = MatrixCell(
                        form.write(value), strength, tooltip=description, bold=not query_id, link=link(query_id, agent)
                    )
        heading, meaning = quantity(kind).title, quantity(kind).meaning
        caption = (
            f"{meaning} Queries that stand out come first, then the others by separation, an order that may be chance. "
            f"{self._level(kind)}"
        ).strip()
        least, most = played[played > 0].min(initial=played.max()), played.max()
        games = counted(most, "game") if least == most else f"{least:.0f} to {most:.0f} games"
        of = f" in percent of {games}" if form is _WHOLE else ""
        title = f"{heading}{of}: blue above the mean of the query's agents, orange below"
        links = {name: link(query_id, "") for query_id, name in labels.items()}
        links |= {agent: link("", agent) for agent in agents}
        rows = [total, *labels.values()]
        return Matrix("queries", title, f"{heading}, queries by agents", caption, rows, agents, cells, "Query", links)

    def agents(self, ratings: Ratings | None) -> list[str]:
        rated = [row.agent for row in ratings.agents] if ratings else []
        return [*rated, *(agent for agent in self.standings.agents if agent not in rated)]

    def scores_of(self, agent: str, ratings: Ratings | None = None) -> Figures:
        figures, column = list[Figure](), self.standings.agents.index(agent)

        def played(kind: str) -> Floats:
            return self.measured(kind)[1][:, column]

        for row in ratings.agents if ratings else ():
            if row.agent == agent:
                place = f"Rank {row.rank} of {len(ratings.agents)}." if ratings and row.rank else ""
                rating = quantity("bradley_terry")
                figures.append(Figure(rating.title, row.bt, rating.form, place, row.bt_low, row.bt_high))
        for kind in self.kinds:
            means = {name: mean for name, mean in self.means(kind).items() if mean.value is not None}
            if agent in means:
                mean, values = means[agent], [other.value or 0.0 for other in means.values()]
                better, on = sum(value > (mean.value or 0.0) for value in values), int((played(kind) > 0).sum())
                of = f"Place {1 + better} of {len(values)}, on {counted(on, 'query', 'queries')}."
                figures.append(estimated(quantity(kind).title, mean, quantity(kind).form, of))
        return Figures(figures)

    def failures(self, agent: str) -> list[dict[str, Any]]:
        """A row for every query, those on which the agent did worst first.

        Unanswered queries come first, then those with the lowest share of points, then with most games lost. Each row
        has the agent's games on the query, its share of points on all other queries (``elsewhere``), whether it
        ``answered``, and the other ``scores`` of its answer.
        """
        records = self.standings.each(agent)
        won, tied, lost = (sum(getattr(record, name) for record in records) for name in ("won", "tied", "lost"))
        rows = [
            record.counts()
            | {
                "query_id": query_id,
                "answered": (query_id, agent) not in self.silent,
                "elsewhere": GamesOfAgent(won - record.won, tied - record.tied, lost - record.lost).share,
                "scores": {
                    name: by_answer[query_id, agent]
                    for name, by_answer in self.scores.items()
                    if (query_id, agent) in by_answer
                },
            }
            for query_id, record in zip(self.standings.queries, records, strict=True)
        ]
        return sorted(rows, key=lambda row: (row["answered"], row["share"] is None, row["share"] or 0.0, -row["lost"]))

    def by_group(self, column: str) -> list[dict[str, Any]]:
        """A row for each value in a column of the queries: number of queries, mean separation, each agent's games."""
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for row, query in enumerate(self.queries.values()):
            groups[group_values(query).get(column, "")].append(row)
        rows = []
        for value, places in sorted(groups.items()):
            known = [own for row in places if (own := self.standings.figures[row].separation) is not None]
            by_agent = {agent: self.standings.together(agent, places) for agent in self.standings.agents}
            separation = fmean(known) if known else None
            rows.append({"value": value, "queries": len(places), "separation": separation, "agents": by_agent})
        return rows

    def sections(self) -> list[Section]:
        lead = "How far each query tells the agents apart, and which stand out by more than chance."
        return [Section("queries", "Queries by separation", lead, [self.by_separation_table(), self.in_short()])]

    def in_short(self) -> Remarks:
        return Remarks([sentence for sentence in (self.finding, self.missing) if sentence])

    @property
    def finding(self) -> str:
        separated = [figures for figures in self.by_separation if figures.separation is not None]
        if not separated:
            return ""
        level = [figures for figures in separated if figures.spread == 0]
        if len(level) == len(separated):
            return self._level(WON)
        sentences = []
        for kind, verbs in _STANDING_OUT.items():
            names = [own.query_id for own in separated if own.beyond_chance == kind and own.spread]
            if names:
                sentences.append(f"{listed(names, _NAMED)} {verbs[len(names) > 1]} by more than chance.")
        if not sentences:
            sentences = [f"None of {counted(len(separated), 'query', 'queries')} stands out by more than chance."]
        return " ".join(filter(None, [*sentences, self._level(WON)]))

    def _level(self, kind: str) -> str:
        """Say on how many queries all agents have the same score of this kind; empty if on none."""
        spread, _ = separations(*self.measured(kind))
        level, known, title = int((spread == 0).sum()), int(np.isfinite(spread).sum()), quantity(kind).title
        if not level:
            return ""
        if level < known:
            return f"On {level:,} of {known:,} all agents have the same {title}."
        return f"On {known:,} of {known:,} all agents have the same {title}: none of these queries tells them apart."

    @property
    def missing(self) -> str:
        missing = {query_id: wanted - judged for query_id, (judged, wanted) in self.verdicts.items()}
        incomplete = [query_id for query_id, number in missing.items() if number]
        if not incomplete:
            return ""
        return (
            f"{counted(sum(missing.values()), 'verdict')} on {counted(len(incomplete), 'query', 'queries')} are "
            "missing; figures use what is there."
        )

    def by_separation_table(self) -> Table:
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
            Column("verdicts", "Verdicts", ALIGNED, "Verdicts so far, of those wanted."),
        )
        return Table("queries-by-separation", "", columns, rows, [_SEPARATION])

    def failures_table(self, agent: str, link: Link = nowhere) -> Table:
        rows = [
            {**row, **row["scores"], "text": self._text(row["query_id"]), "lost": f"{row['lost']} of {row['games']}"}
            | {"answer": None if row["answered"] else "none"}
            | {"to": link(row["query_id"], ""), "to_games": link(row["query_id"], agent)}
            for row in self.failures(agent)
        ]
        columns = (
            *_QUERY,
            quantity(WON).column(),
            Column("elsewhere", "Elsewhere", PERCENT, "The agent's win rate on all other queries."),
            Column("lost", "Lost", ALIGNED, "Games lost, of those played on the query.", link="to_games"),
            Column("answer", "Answer"),
            *self._scores(),
        )
        return Table("queries-of-agent", "", columns, rows)

    def groups_table(self, column: str, agents: Sequence[str]) -> Table:
        rows = [
            {**line, "group": clipped(line["value"], _LONGEST) or "(none)", "agent": agent, **record.counts()}
            | {"share": record.estimate}
            for line in self.by_group(column)
            for agent, record in ((agent, line["agents"][agent]) for agent in agents)
        ]
        columns = (
            Column("group", column),
            Column("agent", "Agent"),
            Column("queries", "Queries", COUNT),
            Column("separation", "Separation", FIGURE, "Mean over the queries of the group."),
            Column("games", "Games", COUNT),
            quantity(WON).column(interval=True),
        )
        notes = ["With few queries in a group, its shares may be chance: see their intervals."]
        return Table("groups-of-queries", "", columns, rows, notes)

    def labels_table(self) -> Table:
        worst = sorted(self.labels.items(), key=lambda entry: (entry[1].label.mean is None, entry[1].label.mean or 0.0))
        parts = dict.fromkeys(name for labels in self.labels.values() for name in labels.parts)
        rows = [
            {"query_id": query_id, "text": self._text(query_id), "mean": labels.label.mean, **labels.parts}
            | {"judged": f"{labels.label.judged} of {labels.label.wanted}"}
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
        row = self.standings.queries.index(query_id)
        records = {agent: self.standings.on(row, agent) for agent in agents}
        rows = [
            {"agent": agent, **record.counts(), "to": link("", agent), "to_games": link(query_id, agent)}
            | {name: by_answer.get((query_id, agent)) for name, by_answer in self.scores.items()}
            for agent, record in sorted(records.items(), key=lambda entry: -(entry[1].share or -1))
        ]
        columns = (
            Column("agent", "Agent", link="to"),
            quantity(WON).column(),
            Column("games", "Games", COUNT, link="to_games"),
            *self._scores(),
        )
        return Table("agents-on-query", "", columns, rows)

    def scores_line(self, query_id: str, agent: str) -> str:
        """The scores of an agent on a query; of a repeat, those of all its repeats."""
        agent, _ = repeat_of(agent)
        values = {WON: self.standings.on(self.standings.queries.index(query_id), agent).share}
        values |= {kind: by_answer.get((query_id, agent)) for kind, by_answer in self.scores.items()}
        known = ((kind, value) for kind in self.kinds if (value := values[kind]) is not None)
        return " · ".join(f"{quantity(kind).title} {quantity(kind).form.write(value)}" for kind, value in known)

    def label(self, query_id: str) -> str:
        return label_of_query(query_id, self.queries[query_id])

    def json(self) -> Any:
        def group(line: TableRow) -> TableRow:
            return line | {"agents": {agent: asdict(own) | own.counts() for agent, own in line["agents"].items()}}

        shape = {
            "queries": [{**row, "labels": self._labels(row["query_id"])} for row in self._figures()],
            "agents": {agent: self.failures(agent) for agent in self.standings.agents},
            "groups": {column: list(map(group, self.by_group(column))) for column in self.columns},
        }
        return plain(shape)

    def _figures(self) -> Iterator[dict[str, Any]]:
        for figures in self.by_separation:
            judged, wanted = self.verdicts.get(figures.query_id, (0, 0))
            yield asdict(figures) | {"separation": figures.separation, "verdicts": judged, "wanted": wanted}

    def _labels(self, query_id: str) -> dict[str, Any] | None:
        labels = self.labels.get(query_id)
        if labels is None:
            return None
        return {**labels.label.json(), "parts": labels.parts}

    def _text(self, query_id: str) -> str:
        return clipped(self.queries[query_id].text, _LONGEST_TEXT)

    def _scores(self) -> Iterator[Column]:
        return (quantity(name).column(name) for name in self.scores)


def label_of_query(query_id: str, query: Query, longest: int = _LONGEST_TEXT) -> str:
    """The id and the start of the text, or the id alone if the text is the id."""
    return query_id if query.text == query_id else f"{query_id}: {clipped(query.text, longest)}"


def queries_meant(words: str, queries: Mapping[str, Query]) -> list[str] | None:
    """Ids of the queries that a search finds; ``None`` for an empty search.

    A query whose id or label is exactly ``words`` is the only hit; otherwise a hit contains every word.
    """
    search = words.strip()
    if not search:
        return None
    for query_id, query in queries.items():
        if search in (query_id, label_of_query(query_id, query)):
            return [query_id]
    parts = search.casefold().split()
    texts = {query_id: f"{query_id} {query.text}".casefold() for query_id, query in queries.items()}
    return [query_id for query_id, text in texts.items() if all(part in text for part in parts)]


def query_board(store: Store, tournament: str) -> QueryBoard:
    """Read a tournament's scores by query from the store, which caches them until a new verdict or run arrives."""
    return Cache(store, tournament).made("queries", lambda: _computed(store, tournament))


def _computed(store: Store, tournament: str) -> QueryBoard:
    settings, queries, games = store.settings(tournament), store.queries(tournament), cached_games(store, tournament)
    answered, agents = store.answered(tournament)
    verdicts = games.verdicts() if games.judged.any() else None
    all_standings = standings(verdicts, list(queries), sorted({*agents, *games.agents}), settings.win_and_tie)
    silent = frozenset(key for key in product(all_standings.queries, all_standings.agents) if key not in answered)
    methods = {scores.name: scores for scores in answer_scores(store, tournament)}
    cells = {name: scores.cells() for name, scores in methods.items()}
    if "v_strict" in cells:  # a missing answer scores 0 there
        cells["v_strict"] = {key: score for key, score in cells["v_strict"].items() if key in answered}
    scores = {name: cells.get(name) for name in KINDS}
    return QueryBoard(
        queries,
        games.coverage_by_query(),
        all_standings,
        silent,
        {name: by_answer for name, by_answer in scores.items() if by_answer},
        query_labels(store, tournament),
        methods,
    )


def nugget_matrix(assignments: Iterable[Assignment], query_id: str, agents: Sequence[str]) -> Matrix | None:
    """Matrix of nuggets by agents: whether each agent's answer to the query states the nugget.

    Nuggets on which the answers differ come first. ``None`` if no answer to the query was checked.
    """
    by_agent = {assignment.run: assignment for assignment in assignments if assignment.query_id == query_id}
    columns = [agent for agent in agents if agent in by_agent]
    if not columns:
        return None
    rows = [
        (nugget, {agent: by_agent[agent].labels[index] for agent in columns})
        for index, nugget in enumerate(by_agent[columns[0]].nuggets)
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
    """Matrix of exam items by agents: the best grade of each agent's first ``depth`` passages for the query.

    ``None`` if the query has no grades.
    """
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
