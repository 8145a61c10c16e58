"""What tables or a tournament show of judges: the board, and figures that people correct."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from arena.boards.agreement import WIDE
from arena.boards.calibration.methods import (
    cost_table,
    judges_json,
    method_blocks,
    method_pairs,
    methods_json,
    style_blocks,
)
from arena.boards.calibration.people import (
    against_people,
    alternative_json,
    among_people,
    coefficient_tables,
    difference_charts,
    disagreements,
    judge_figures,
    judges_of,
    people_blocks,
    slug,
)
from arena.boards.judge_sentences import THINGS
from arena.calibration.comparison import Comparison, JudgeAgainstPeople
from arena.calibration.corrected_ratings import CorrectedRatings, Estimates
from arena.calibration.people_tests import GradeTest
from arena.calibration.prediction_powered import labels_needed
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, FIGURE, P_VALUE, PERCENT, POINTS, Number, counted
from arena.present.picture import Look, of_table
from arena.present.table import Column, Table, flat, plain
from arena.results.calibration import Calibration
from retrieval_eval.stats.estimate import Estimate

_LABELS: Final = (
    Column("weight", "Weight", FIGURE, "How far the judge is listened to: 0 is not at all."),
    Column("n", "Things", COUNT),
    Column("labelled", "Labelled", COUNT, "Things that people labelled, of those that the judge judged."),
    Column("labels_needed", "Labels needed", COUNT, "For an interval as narrow as was asked for."),
    Column("labels_alone", "Without judge", COUNT, "Labels for the same width, were there no judge."),
)
_LOOKS: Final[Mapping[Look, str]] = {"blue": "corrected", "orange": "people", "grey": "judge"}
_THREE: Final = "Corrected, by people alone and by the judge alone."


def corrected_figures(judge: JudgeAgainstPeople, width: float | None = None) -> Iterator[Block]:
    """All of a judge's figures, if they were asked for; ``width`` of an interval, to say how many labels it needs."""
    found, name, rates = judge.estimates, judge.named, judge.level == "verdicts"
    if found is None:
        return
    kind, form = (("win rate", "win rates"), PERCENT) if rates else (("mean", "means"), FIGURE)
    refused = list(_refused(found, kind))
    yield Remarks([_furthest_off(found, judge.judge, kind, form), *refused, *_readings(found.ratings)])
    if rows := figure_rows(found, width):
        title = "Win rates, a tie being half a win" if rates else f"Means of {THINGS[judge.level]}"
        wide = "" if width is None else f"{form.factor * width:g}{form.unit}"
        needed = f"Labels needed: for an interval {wide} wide; where none are named, not even all labels would do."
        notes = [needed] if wide else []
        columns = (Column("name", "Figure"), *_three_ways(form), *_LABELS)
        table = Table(slug("corrected", name), f"{title}, corrected by people: {name}", columns, rows, notes)
        yield from of_table(table, _LOOKS, kind[0], _THREE)
        yield table
    if found.ratings is not None:
        yield from _ratings(name, found.ratings)
    elif found.no_ratings:
        yield Remarks([f"No corrected ratings of judge {judge.judge}: {found.no_ratings}."])
    if found.next:
        drawn = [f"  {query_id}: {' / '.join(item)}" for query_id, item in found.next]
        yield Remarks([f"{name}, label next (a random sample, queries in turn):", *drawn])


def estimates_json(found: Estimates, width: float | None) -> dict[str, Any]:
    """The same for programs."""
    shape: dict[str, Any] = {
        "figures": figure_rows(found, width),
        "next": [{"qid": query_id, "item": item} for query_id, item in found.next],
    }
    if found.ratings is not None:
        names = ("weight", "games", "labelled", "queries", "converged")
        agents = [flat(row) for row in _by_agent(found.ratings)]
        shape["ratings"] = {"agents": agents, **{name: getattr(found.ratings, name) for name in names}}
    elif found.no_ratings:
        shape["no_ratings"] = found.no_ratings
    if found.refused:
        shape["refused"] = found.refused
    return shape


def figure_rows(found: Estimates, width: float | None) -> list[dict[str, Any]]:
    """Every figure three ways, and how many labels an interval of a width needs."""
    rows = []
    for name, figure in found.figures.items():
        ways = {way: getattr(figure, way).within(*figure.ends) for way in _LOOKS.values()}
        row = {"name": name, **flat(replace(figure, **ways))}
        if width is not None:
            needed = labels_needed(figure, width)
            row |= {"width": width, "labels_needed": needed.corrected, "labels_alone": needed.people}
        rows.append(row)
    return rows


def _three_ways(form: Number) -> tuple[Column, ...]:
    return (
        Column("corrected", "Corrected", form, "Judge and people together.", WIDE),
        Column("people", "People alone", form, "The labels without the judge.", WIDE),
        Column("judge", "Judge alone", form, "Its interval knows nothing of its bias.", WIDE),
    )


def _readings(found: CorrectedRatings | None) -> Iterator[str]:
    """What to know before corrected ratings are held against others."""
    if found is None:
        return
    yield "These ratings count a tie as half a win: a leaderboard that models ties rates otherwise."
    if not found.weight:
        yield "The judge has no weight in them: it adds nothing to what people said."


def _ratings(name: str, found: CorrectedRatings) -> Iterator[Block]:
    notes = [
        f"{found.labelled:,} of {found.games:,} games labelled, on {counted(found.queries, 'query', 'queries')}; "
        f"weight {FIGURE.write(found.weight)}."
        + ("" if found.converged else " The fit has not converged: do not use these.")
    ]
    columns = (Column("agent", "Agent"), *_three_ways(POINTS))
    best_first = sorted(_by_agent(found), key=lambda row: -(row["corrected"].value or 0))
    title = f"Bradley-Terry ratings corrected by people: {name}"
    table = Table(slug("corrected-ratings", name), title, columns, best_first, notes)
    yield from of_table(table, _LOOKS, "Bradley-Terry rating, points", _THREE)
    yield table


def _by_agent(found: CorrectedRatings) -> list[dict[str, Any]]:
    people = found.people or [Estimate(None)] * len(found.agents)
    ways = zip(found.agents, found.corrected, people, found.judge, strict=True)
    return [dict(zip(("agent", "corrected", "people", "judge"), row, strict=True)) for row in ways]


def _refused(found: Estimates, kind: tuple[str, str]) -> Iterator[str]:
    """Figures whose labels are no random sample, a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for name, reason in found.refused.items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        what = f"the {kind[0]} of {names[0]}" if len(names) == 1 else f"the {kind[1]} of {', '.join(names)}"
        yield f"Not corrected: {what}. What people labelled is no random sample: {reason}. {_INSTEAD}"


def _furthest_off(found: Estimates, judge: str, kind: tuple[str, str], form: Number) -> str:
    gaps: dict[str, tuple[float, float]] = {}
    outside = 0
    for name, figure in found.figures.items():
        alone, corrected = figure.judge.value, figure.corrected.within(*figure.ends)
        if alone is not None and corrected.value is not None:
            gaps[name] = alone, corrected.value
            if corrected.low is not None and corrected.high is not None:
                outside += not corrected.low <= alone <= corrected.high
    if not gaps:
        return "No figure can be corrected." if found.refused else "No figure can be corrected yet."
    worst, (alone, right) = max(gaps.items(), key=lambda own: abs(own[1][0] - own[1][1]))
    said = f"{judge} is furthest off for the {kind[0]} of {worst}: {form.write(alone)}, corrected {form.write(right)}."
    return f"{said} Outside the corrected interval: {outside or 'none'} of {len(gaps):,} {kind[1]}."


_INSTEAD: Final = (
    "Label what 'ragleague calibrate --next N' draws, or give the chance with which each label was drawn in a column "
    "'probability'."
)
_CORRECTED: Final = (
    "The judge's figures over all things, moved by its error on those that people labelled. Right whatever the judge "
    "is like, if what people labelled is a random sample ('ragleague calibrate --next' draws one)."
)
_METHODS: Final = "An order that several ways of looking share is more than one judge's habit."
_MONEY: Final = (
    "Take the cheapest judge whose agreement with people is no lower than that of a dearer one by more than the "
    "intervals allow, that seldom fails, and that does not change its mind with the order of the answers."
)
_STYLE: Final = (
    "What goes along with winning besides an agent's strength, in rating points: one standard deviation more words (on "
    "a log scale), list items, citations or confident words; own family: what a judge gives to its kin more than other "
    "raters do. It says what verdicts go along with, not why: a longer answer may be a better one."
)
_DISAGREEMENTS: Final = (
    "The furthest apart, most agreed upon by people first. Read them before you blame the judge: some will be people's "
    "errors. They are no random sample: do not label by this list."
)


_GRADES: Final = (
    Column("group", "Of"),
    Column("criterion", "Criterion"),
    Column("first", "Agent"),
    Column("second", "Against"),
    Column("queries", "Queries", COUNT, "On which people graded both."),
    Column("n", "Units", COUNT, "Conversations, where queries are turns of some; else the queries."),
    Column("difference", "Difference", Number(2, signed=True), "Mean of people's grades, agent less the other.", WIDE),
    Column("p_t", "p", P_VALUE, "Paired t test, two-sided."),
    Column("p_t_holm", "p, corrected", P_VALUE, "The same, corrected for all tests of this table (Holm)."),
)


_MOST_TESTS: Final = 10
"""Tests that are listed beside what judges say."""


def grades_table(tests: Sequence[GradeTest], *, most: int | None = None) -> list[Table]:
    """Every two agents by people's grades of each criterion; the ``most`` with the smallest p where there are more."""
    if not tests:
        return []
    shown = {"group": any(test.group for test in tests), "n": any(t.queries != t.found.difference.n for t in tests)}
    columns = [column if shown.get(column.key, True) else replace(column, heading="") for column in _GRADES]
    rows, notes = [_grade_row(test) for test in tests], list[str]()
    if most is not None and len(rows) > most:
        rows = sorted(rows, key=lambda row: 1.0 if row["p_t"] is None else row["p_t"])[:most]
        notes = [f"The {most} with the smallest p, of {len(tests)}; '--format json' has all."]
    return [Table("people-grades", "Agents by people's grades", columns, rows, notes)]


def _grade_row(test: GradeTest) -> dict[str, Any]:
    found = test.found
    return {
        "group": test.group or None,
        "criterion": test.criterion,
        "first": found.first,
        "second": found.second,
        "queries": test.queries,
        "n": found.difference.n,
        "difference": found.difference,
        "p_t": found.p_t,
        "p_t_holm": found.p_t_holm,
    }


class CalibrationBoard(Board, frozen=True):
    """What tables or a tournament show of judges.

    Attributes:
        found: the figures.
        width: of an interval, to say how many labels it needs.
    """

    found: Calibration
    width: float | None = None

    def sections(self) -> Sequence[Section]:
        comparisons, judges = self.found.comparisons, judges_json(self.found.spent, self.found.orders)
        whom = "the consensus" if self.found.settings.against == "consensus" else "each vote"
        corrected = [block for judge in judges_of(comparisons) for block in corrected_figures(judge, self.width)]
        listed = list(disagreements(comparisons, self.found.texts))
        shown = _MOST_TESTS if comparisons or self.found.methods is not None else None
        sections = [
            Section(
                "people", "People and the judge", "Does the judge see what people see?", people_blocks(comparisons)
            ),
            Section("coefficients", "All coefficients", "", coefficient_tables(comparisons, whom)),
            Section("grades", "Agents by people's grades", "", grades_table(self.found.grade_tests, most=shown)),
            Section("corrected", "The answer if the judge is biased", _CORRECTED, corrected),
            Section("methods", "Do the ways of scoring agree?", _METHODS, method_blocks(self.found.methods)),
            Section("money", "Which judge for the money", _MONEY, cost_table(judges, comparisons)),
            Section("style", "Style and kin", _STYLE, style_blocks(self.found.styles)),
            Section("differences", "Judge minus people", "", difference_charts(comparisons)),
            Section("disagreements", "Where they disagree most", _DISAGREEMENTS, [Remarks(listed)] if listed else []),
            Section("notes", "Left out", "", [Remarks(self.found.notes)] if self.found.notes else []),
        ]
        return [section for section in sections if section.blocks]

    def tables(self) -> list[Table]:
        """All tables, first the one that is written as CSV: a line for every two methods, of tables for every judge."""
        found = self.found
        first = against_people(found.comparisons) if found.methods is None else method_pairs(found.methods)
        if not found.comparisons and found.methods is None:
            (first,) = grades_table(found.grade_tests)
        return [first, *(table for table in Board.tables(self) if table.name != first.name)]

    def json(self) -> Any:
        shape: dict[str, Any] = {
            "comparisons": [self._comparison_json(one) for one in self.found.comparisons],
            "settings": self.found.settings,
            "notes": self.found.notes,
            "people_grades": [_grade_row(test) for test in self.found.grade_tests],
        }
        if self.found.methods is not None:
            shape |= {
                "tournament": self.found.tournament,
                "style": [flat(effect) for effect in self.found.styles],
                "methods": methods_json(self.found.methods),
                "judges": judges_json(self.found.spent, self.found.orders),
            }
        return plain(shape)

    def _comparison_json(self, one: Comparison) -> dict[str, Any]:
        accuracy = {rater.rater: rater.accuracy for rater in one.people.consensus.raters}
        annotators = [{**flat(person), "accuracy": accuracy.get(person.rater)} for person in one.people.annotators]
        return {
            "group": one.group or None,
            "level": one.people.level,
            "people": {**among_people(one), "annotators": annotators},
            "judges": {name: self._judge_json(judge) for name, judge in one.judges.items()},
            "panel": one.gain and flat(one.gain),
        }

    def _judge_json(self, judge: JudgeAgainstPeople) -> dict[str, Any]:
        row = {key: value for key, value in judge_figures(judge).items() if key not in ("group", "level")}
        if judge.labels is not None:
            row |= {"scale": judge.labels.scale, "confusion": judge.labels.confusion}
        row["alternative_test"] = alternative_json(judge.alternative)
        row["other_scale"] = judge.other_scale
        row["outside_scale"] = [{"value": value, "n": count} for value, count in judge.outside]
        row["disagreements"] = judge.disagreements
        if judge.differences is not None:
            row["points"] = judge.differences.points
        if judge.estimates is not None:
            row["estimates"] = estimates_json(judge.estimates, self.width)
        return row
