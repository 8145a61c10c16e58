"""Tables and charts about nuggets: six scores of each run or agent, a comparison of two sets, and people's edits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec import field
from msgspec.structs import asdict, replace

from arena.boards.metrics import COEFFICIENTS, HEAD_WEIGHTED, confusion
from arena.boards.quantities import NUGGETS
from arena.boards.retrieval import citations, citations_table
from arena.boards.scores import ScoreBoard
from arena.data.kinds import SUPPORT, SUPPORT_WORDS
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import (
    COUNT,
    FIGURE,
    MISSING,
    P_VALUE,
    PERCENT,
    POINTS,
    WORDS,
    counted,
    listed,
    with_interval,
)
from arena.present.table import INTERVAL, ORDERS, Column, Exact, Table, TableRow, fields, flat
from arena.ratings.results import UNITS
from retrieval_eval.nuggets.scores import NUGGETIZER, NuggetBoard, ScoreTable
from retrieval_eval.nuggets.types import Change, EditKind, NuggetBank, Support, changes, is_reordered
from retrieval_eval.stats.estimate import Coefficient
from retrieval_eval.stats.scores import Scores

if TYPE_CHECKING:
    from arena.present.picture import Chart, Look
    from arena.results.nugget_comparison import ConditionsCompared, NuggetAgreement, Point
    from retrieval_eval.scores.citations import CitationScores
    from retrieval_eval.stats.agreement import LabelAgreement

_DIGITS = 8
"""Significant digits of the floats in JSON; fixed decimals would write a small p-value as 0."""
MOST_NAMED: Final = 5


class Nuggets(Board, frozen=True):
    """Nugget scores of a tournament's agents; the agents in ``order`` come first, then the others by score."""

    scores: NuggetBoard
    order: Sequence[str] = ()

    def sections(self) -> list[Section]:
        lead = "Which of the facts (nuggets) that make a good answer does each agent state?"
        blocks: list[Block] = []
        spread: list[Block] = []
        for name, title, table in self._scored():
            blocks.append(scores_table(title, table, self.order, name=f"{name}_scores"))
            spread.append(_intervals_table(name, title, table, self.order))
        reasons = Counter(self.scores.without.values())
        if left_out := [f"{counted(number, 'query', 'queries')} left out: {why}." for why, number in reasons.items()]:
            blocks.append(Remarks(left_out))
        asked = "How far would each score move, had other queries been asked?"
        return [
            Section("nuggets", "Nugget scores", lead, blocks),
            Section("nugget-intervals", "Intervals of the nugget scores", asked, spread),
        ]

    def _scored(self) -> Iterator[tuple[str, str, ScoreTable]]:
        board = self.scores
        if board.answers.runs:
            yield "nuggets", "Nuggets of answers", board.answers
        if board.documents.runs:
            yield "nuggets_documents", f"Nuggets of the first {board.depth} documents", board.documents

    def json(self) -> TableRow:
        answers, documents = self.scores.answers, self.scores.documents
        shape = _scores_json(answers, "agents") | {"queries": len(answers.topics), "without": dict(self.scores.without)}
        if documents.runs:
            shape["documents"] = {"depth": self.scores.depth, **_scores_json(documents, "agents")}
        return shape

    def scored(self) -> list[str]:
        return list(dict.fromkeys(agent for board in self._boards() for agent in board.scored()))

    def columns(self, agent: str) -> TableRow:
        return {name: value for board in self._boards() for name, value in board.columns(agent).items()}

    def _boards(self) -> list[ScoreBoard]:
        return [ScoreBoard(name, (table.score("v_strict"), table.score("a"))) for name, _, table in self._scored()]


class NuggetScores(Board, frozen=True):
    """Nugget scores of runs that were read from files; ``cited`` has the citation scores by run, if known."""

    scores: ScoreTable
    cited: Mapping[str, CitationScores] = field(default_factory=dict)

    def sections(self) -> list[Section]:
        cited = citations(self.cited)
        more = {run: {f"citation_{key}": value for key, value in row.items()} for run, row in cited.items()}
        table = scores_table("", self.scores, who="Run", more=more)
        blocks: list[Block] = [replace(table, rows=[exact(row) for row in table.rows])]
        if cited:
            blocks.append(citations_table("citations", "Citations", self.cited, self.scores.best_first()))
        return [Section("nuggets", "Nuggets", "", blocks)]

    def json(self) -> Any:
        shape = _scores_json(self.scores, "runs")
        if self.cited:
            cited = citations(self.cited)
            shape["runs"] = {run: {**row, "citations": cited.get(run)} for run, row in shape["runs"].items()}
        return exact(shape)

    def metrics(self) -> Iterator[TableRow]:
        """Rows of a metrics file in nuggetizer's format: a run's row per query, then its means as query ``all``."""
        table = self.scores
        for run in table.best_first():
            row = table.runs.index(run)
            for column, topic in enumerate(table.topics):
                values = {NUGGETIZER[scores.name]: float(scores.values[row, column]) for scores in table.scores}
                words, answered = int(table.words[row, column]), bool(table.answered[row, column])
                yield exact({"run_id": run, "qid": topic, **values, "response_length": words, "answered": answered})
            means = {NUGGETIZER[scores.name]: scores.means[run].value for scores in table.scores}
            yield exact({"run_id": run, "qid": "all", **means, "response_length": table.coverage(run)["length"]})


def scores_table(
    title: str,
    table: ScoreTable,
    order: Sequence[str] = (),
    *,
    name: str = "nuggets_scores",
    who: str = "Agent",
    more: Mapping[str, TableRow] = MappingProxyType({}),
) -> Table:
    """Table of the six nugget scores, a row per run. The runs in ``order`` come first.

    ``more`` has, by run, further columns that only CSV and JSON show.
    """
    none = dict.fromkeys(key for row in more.values() for key in row)
    rows = [_score_row(table, run) | more.get(run, none) for run in _ordered(table, order)]
    if all(row["v_strict_topics"] == len(table.topics) for row in rows):
        rows = [row | {"queries": None} for row in rows]  # the note states the number
    scores = [
        replace(own.column(name, interval=name == "v_strict", short=True), programs=False)
        for name, own in NUGGETS.items()
    ]
    people = [
        Column("run", who, programs=False),
        *scores,
        Column("length", "Words", POINTS, "Mean length of the answers; missing answers do not count.", programs=False),
        Column("queries", "Queries", COUNT, "In the mean of V strict.", programs=False),
        Column("unanswered", "No answer", COUNT, "Queries without one, each counted 0.", programs=False),
        Column("coverage", "Assigned", PERCENT, "Share of the labels that did not fail.", programs=False),
    ]
    programs = [Column(key, "") for key in rows[0] if key not in ("queries", "unanswered")] if rows else []
    notes = [
        f"Means over {counted(len(table.topics), 'query', 'queries')}, from 0 to 1. V counts vital nuggets, W okay "
        "ones by half, All every one; strict scores give nothing for partial support, the others half.",
        *score_notes(table),
    ]
    return Table(name, title, [*people, *programs], rows, notes)


def _intervals_table(name: str, title: str, table: ScoreTable, order: Sequence[str]) -> Table:
    columns = [replace(own.column(name, short=True), form=WORDS) for name, own in NUGGETS.items()]
    by_score = {scores.name: scores.means for scores in table.scores}
    rows = [
        {"run": run, **{key: FIGURE.between(means[run].low, means[run].high) for key, means in by_score.items()}}
        for run in _ordered(table, order)
    ]
    return Table(f"{name}_intervals", f"{title}: 95% intervals", [Column("run", "Agent"), *columns], rows)


def _ordered(table: ScoreTable, order: Sequence[str]) -> list[str]:
    place = {agent: position for position, agent in enumerate(order)}
    return sorted(table.best_first(), key=lambda run: place.get(run, len(place)))


def _score_row(table: ScoreTable, run: str) -> TableRow:
    row: TableRow = {"run": run, **{scores.name: scores.means[run].value for scores in table.scores}}
    row |= table.coverage(run)
    for scores in table.scores:
        column, mean = scores.name, scores.means[run]
        row |= {f"{column}_topics": scores.count(run), f"{column}_low": mean.low, f"{column}_high": mean.high}
        row |= zip((f"{column}_lowest", f"{column}_highest"), _bounds(scores, run), strict=True)
    return row | {"queries": row["v_strict_topics"], "unanswered": row["missing"] or None}


def _bounds(scores: Scores, run: str) -> list[float | None]:
    """Lowest and highest mean score of the run that the missing labels could lead to; ``None`` if unknown."""
    return [None if math.isnan(bound) else bound for bound in scores.mean_bounds(run)]


def _scores_json(table: ScoreTable, key: str) -> TableRow:
    hidden = {"run", "queries", "unanswered"}
    rows = {run: {k: v for k, v in _score_row(table, run).items() if k not in hidden} for run in table.best_first()}
    return {key: rows, "notes": score_notes(table)}


def score_notes(table: ScoreTable) -> list[str]:
    runs = {run: table.coverage(run) for run in table.best_first()}
    vital = table.score("v_strict")

    def counts(key: str) -> list[str]:
        return [f"{run} {row[key]}" for run, row in runs.items() if row[key]]

    lists = {
        "topics a run did not answer, each counted 0": counts("missing"),
        "answers without a single nugget, left out of the means": counts("empty"),
        "V is not defined without vital nuggets; topics in its mean": [
            f"{run} {vital.count(run)}"
            for run, row in runs.items()
            if vital.count(run) < row["topics"] - row["failed"] - row["empty"]
        ],
        "topics without an assignment of any run, counted 0 for all": table.unjudged_topics,
        "topics where runs were graded by different nuggets": table.differing_topics,
    }
    notes = [f"{words}: {listed(names, MOST_NAMED)}" for words, names in lists.items() if names]
    notes += [
        f"{run}: {row['labels'] - row['assigned']} of {row['labels']} labels failed; topics left out of its means for "
        f"that: {row['failed']}; with every label V strict would lie in {FIGURE.between(*_bounds(vital, run))}"
        for run, row in runs.items()
        if row["failed"]
    ]
    if table.left_out:
        notes.append(f"{table.left_out} assignments are on queries outside the topic set and left out")
    if not table.partial:
        notes.append("no label is partial_support, so strict scores are the same as the others")
    return notes


def exact(value: Any) -> Any:
    """Round all floats in a JSON value to significant digits; NaN becomes ``None``."""
    if isinstance(value, float):
        return None if math.isnan(value) else Exact(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: exact(inner) for key, inner in value.items()}
    return [exact(inner) for inner in value] if isinstance(value, list | tuple) else value


_EDITS: Final = (
    Column("kind", "Change"),
    Column("query", "Query"),
    Column("when", "When"),
    Column("who", "Who"),
    Column("before", "Before"),
    Column("after", "After"),
    Column("importance", "Importance"),
)


def support_words(label: Support | None) -> str:
    return "not known" if label is None else SUPPORT_WORDS[SUPPORT[label]]


class NuggetEdits(Board, frozen=True):
    """Changes that a person made to a file of nuggets, by query.

    Attributes:
        file: name of the file that was written.
        not_in_edited_file: ids of the queries that the edited file lacks; their nuggets are unchanged.
    """

    file: str
    changes: Mapping[str, Sequence[Change]]
    not_in_edited_file: Sequence[str]

    def sections(self) -> list[Section]:
        rows = [
            {"query": query_id, **row}
            for query_id, query_changes in self.changes.items()
            for row in _edits(query_changes)
        ]
        counts = Counter(change.kind for query_changes in self.changes.values() for change in query_changes)
        summary = ", ".join(f"{number} {kind.value}" for kind in EditKind if (number := counts[kind]))
        sentences = [f"wrote {self.file}: {summary or 'no nuggets'}"]
        if self.not_in_edited_file:
            sentences.append(f"- not in the edited file, kept as they were: {', '.join(self.not_in_edited_file)}")
        return [Section("edits", "Edits", "", [Table("edits", "", _EDITS, rows), Remarks(sentences)])]


def edits_table(before: NuggetBank, after: NuggetBank) -> Table:
    notes = ["The nuggets stand in another order."] if is_reordered(before, after) else []
    return Table("your-changes", "Your changes", _EDITS, list(_edits(changes(before, after))), notes)


def preview_table(before: ScoreTable, after: ScoreTable) -> Table:
    """Table of each agent's scores "V strict" and "All" before and after an edit of the nuggets.

    A score is shown as a range if some answers have no label for a nugget yet.
    """
    shown = {key: NUGGETS[key].title for key in ("v_strict", "a")}
    columns = [
        Column("agent", "Agent"),
        *(Column(f"{key}_{when}", f"{head} {when}") for key, head in shown.items() for when in ("before", "after")),
        Column("open", "To be assigned", COUNT, "Labels that the next run asks a judge for."),
    ]
    rows = [
        {
            "agent": run,
            **{
                f"{key}_{when}": _mean_words(table, run, key)
                for key in shown
                for when, table in (("before", before), ("after", after))
            },
            "open": after.score("v_strict").missing(run)[0],
        }
        for run in before.best_first()
    ]
    note = (
        "Scores over all queries as of the last run, and with these nuggets. Labels of nuggets whose text stays are "
        "known. Where others are still to be assigned, the ends of what they may come to are shown."
    )
    return Table("scores-before-and-after", "Scores before and after", columns, rows, [note])


def _edits(query_changes: Sequence[Change]) -> Iterator[TableRow]:
    for change in query_changes:
        if change.kind is not EditKind.KEPT:
            old, new = change.importance_before, change.importance
            same = old is None or new is None or old == new
            yield {
                "kind": change.kind.value,
                "before": " + ".join(change.before),
                "after": change.after or "",
                "importance": str(new or old or "not known") if same else f"{old} to {new}",
            }


def _mean_words(table: ScoreTable, run: str, key: str) -> str:
    scores = table.score(key)
    if not scores.missing(run)[0]:
        return FIGURE.write(scores.means[run].value)
    lowest, highest = _bounds(scores, run)
    return MISSING if lowest is None else FIGURE.between(lowest, highest)


_ORDERS: Final = (
    Column("measure", "Correlation"),
    Column("n", "n", COUNT, "Runs, pairs of a run and a query, or queries."),
    Column("value", "Value", FIGURE, "1 is the same order, 0 unrelated, -1 the reverse.", interval=INTERVAL),
    Column("p", "p", P_VALUE, "How likely so clear a correlation would be between unrelated orders."),
)
_LABELS_OF_NUGGETS: Final = (Column("labels", "Labels"), Column("n", "Labels in both", COUNT), *COEFFICIENTS[:2])


class NuggetComparison(Board, frozen=True):
    """Comparison of how two conditions, such as manual and automatic nuggets, rank the same runs.

    Attributes:
        column: name of the score that ranks the runs.
        names: names of the two conditions.
    """

    comparison: ConditionsCompared
    column: str
    names: tuple[str, str]

    def sections(self) -> list[Section]:
        comparison, correlation = self.comparison, self.comparison.correlation
        orders = [
            ("Kendall's tau, runs", correlation.runs, correlation.kendall),
            ("Spearman's rho, runs", correlation.runs, correlation.spearman),
        ]
        if comparison.topics:
            orders.append(("Kendall's tau, all (run, query) pairs", correlation.pairs, correlation.pairs_kendall))
            orders.append(("Kendall's tau by query, mean", correlation.topics, correlation.topics_kendall))
        rows: list[TableRow] = [{"measure": name, "n": n, "value": tau, "p": tau.p_value} for name, n, tau in orders]
        rows[2:2] = [
            {"measure": f"{HEAD_WEIGHTED[key]}, runs", "n": correlation.runs, "value": tau}
            for key, tau in fields(correlation.head, *HEAD_WEIGHTED).items()
        ]
        unit = UNITS[comparison.unit][1] if correlation.resampled == "topic" else "runs, since no queries are known"
        title = f"{self.column} of {self.names[0]} against {self.names[1]}"
        order_notes = [ORDERS] if correlation.resampled == "topic" else []
        notes = [f"Intervals: bootstrap over {unit}.", *order_notes, *self._left_out()]
        blocks: list[Block] = [Table("orders", title, _ORDERS, rows, notes), *self._charts()]
        sections = [Section("orders", "Order of the runs", "", blocks)]
        if comparison.nuggets is not None:
            sections.append(Section("labels", "Labels of nuggets", "", list(_label_tables(comparison.nuggets))))
        front = [f"{run.run} ({run.length:.0f} words, {run.a:.3f})" for run in comparison.runs if run.front]
        if front:
            remark = f"No run is both shorter and better than {listed(front)}."
            sections.append(Section("front", "Front", "", [Remarks([remark])]))
        return sections

    def _charts(self) -> Iterator[Chart]:
        """Two scatter plots: the score in both conditions, and the score in the first against the answers' length.

        In the second, a line joins the runs that no other run beats in both length and score (Pradeep et al. 2024,
        Figures 6 and 7).
        """
        from arena.present.picture import Chart, Dot  # late: a leaderboard of nuggets has no picture

        comparison = self.comparison
        points = [*comparison.runs, *comparison.pairs]
        first, second = (f"{self.column}, {name}" for name in self.names)
        tau = with_interval(comparison.correlation.kendall, FIGURE)
        caption = f"Kendall's tau of the runs: {tau}. Runs by name; the small points behind them are single answers."
        dots = [Dot(point.a, point.b, *_name(point)) for point in points]
        yield Chart("scores", f"{first} and {second}", "Two scores of each run", caption, first, second, dots)
        with_length = [(point, point.length) for point in points if point.length is not None]
        if with_length:
            dots = [Dot(length, point.a, *_name(point)) for point, length in with_length]
            path = sorted((run.length, run.a) for run in comparison.runs if run.front and run.length is not None)
            words = "The score of each run by its length"
            front_caption = "Line: no run is both shorter and better."
            yield Chart("length", "Score by length", words, front_caption, "Length in words", first, dots, path)

    def _left_out(self) -> list[str]:
        name = dict(zip("ab", self.names, strict=True))
        nouns = {"runs": "runs", "topics": "queries"}
        return [
            f"Left out, {nouns[key[:-2]]} in {name[key[-1]]} alone: {listed(names, MOST_NAMED)}."
            for key, names in self.comparison.left_out.items()
            if names
        ]

    def json(self) -> Any:
        comparison, correlation = self.comparison, self.comparison.correlation
        shape: TableRow = {
            "column": self.column,
            "a": self.names[0],
            "b": self.names[1],
            "resampled": correlation.resampled,
            **_kendall(correlation.runs, correlation.kendall),
            **flat({"spearman": correlation.spearman}),
            **fields(correlation.head, *HEAD_WEIGHTED),
            "pairs": _kendall(correlation.pairs, correlation.pairs_kendall),
            "per_topic": _kendall(correlation.topics, correlation.topics_kendall)
            | {"topics": dict(zip(comparison.topics, correlation.by_topic, strict=True))},
            "nuggets": None if comparison.nuggets is None else _nuggets_json(comparison.nuggets),
            "points": {
                "runs": [_without(run, "topic") for run in comparison.runs],
                "topics": [_without(pair, "front") for pair in comparison.pairs],
            },
            "left_out": comparison.left_out,
        }
        return exact(shape)


def _kendall(n: int, tau: Coefficient) -> TableRow:
    figures = flat({"kendall": tau})
    return {"n": n, "kendall_tau": figures.pop("kendall"), **figures}


def _nuggets_json(agreement: NuggetAgreement) -> TableRow:
    from arena.results.nugget_comparison import SCALES  # late: a leaderboard compares nothing

    shape = fields(agreement, "shared", "only_a", "only_b")
    for name, labels in SCALES.items():
        of_labels: LabelAgreement = getattr(agreement, name)
        shape[name] = fields(of_labels, "n", "confusion") | fields(of_labels.kappa, "low", "high")
        shape[name] |= {"labels": labels, "share": of_labels.agreement.value, "kappa": of_labels.kappa.value}
    return shape


def _label_tables(agreement: NuggetAgreement) -> Iterator[Table]:
    from arena.results.nugget_comparison import SCALES  # late: a leaderboard compares nothing

    agreements = {name.replace("_", " "): getattr(agreement, name) for name in SCALES}
    rows = [{"labels": name, **flat(own)} for name, own in agreements.items() if own.n]
    alone = f"in the first alone {agreement.only_a}, in the second alone {agreement.only_b}"
    yield Table(
        "labels",
        "Labels of the same nuggets",
        _LABELS_OF_NUGGETS,
        rows,
        [f"Nuggets in both: {agreement.shared}; {alone}."],
    )
    if agreement.assignment.n:
        yield confusion(agreement.assignment, "Assignments", "First", "second", SCALES["assignment"])


def _without(point: Point, name: str) -> TableRow:
    return {key: value for key, value in asdict(point).items() if key != name}


def _name(point: Point) -> tuple[str, Look, str]:
    figures = f"{FIGURE.write(point.a)}, {FIGURE.write(point.b)}"
    if point.topic:
        return "", "quiet", f"{point.run}, {point.topic}: {figures}"
    return point.run, "blue", f"{point.run}: {figures}"
