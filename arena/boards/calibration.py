"""The calibration board, which compares judges with people, and tables of estimates corrected by people's labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from arena.boards.methods import (
    cost_table,
    judges_json,
    method_blocks,
    method_pairs,
    methods_json,
    style_blocks,
)
from arena.boards.people import (
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
from arena.boards.two_judges import pair_row, too_many, two_judges
from arena.calibration.comparison import Comparison, JudgeAgainstPeople
from arena.calibration.corrected_ratings import CorrectedRatings, Estimates
from arena.calibration.prediction_powered import labels_needed
from arena.calibration.votes import GradeTest
from arena.data.kinds import kind_of
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, FIGURE, P_VALUE, PERCENT, POINTS, Number, counted
from arena.present.picture import Look, Whiskers, of_table
from arena.present.table import INTERVAL, Column, Table, fields, flat, plain
from arena.results.table_agreement import Calibration
from retrieval_eval.stats.estimate import Estimate

_LABELS: Final = (
    Column("weight", "Weight", FIGURE, "Weight of the judge; 0 ignores it."),
    Column("n", "Things", COUNT),
    Column("labelled", "Labelled", COUNT, "Things that both people and the judge labelled."),
    Column("labels_needed", "Labels needed", COUNT, "Labels needed for an interval of the requested width."),
    Column("labels_alone", "Without judge", COUNT, "Labels needed for the same width without the judge."),
)
_LOOKS: Final[Mapping[Look, str]] = {"blue": "corrected", "orange": "people", "grey": "judge"}
_THREE: Final = "Corrected, by people alone and by the judge alone."


def corrected_figures(judge: JudgeAgainstPeople, width: float | None = None) -> Iterator[Block]:
    """A judge's estimates corrected by people's labels; ``width`` adds how many labels intervals of this width need."""
    estimates, name, rates = judge.estimates, judge.named, judge.level == "verdicts"
    if estimates is None:
        return
    kind, form = (("win rate", "win rates"), PERCENT) if rates else (("mean", "means"), FIGURE)
    refused = list(_refused(estimates, kind))
    yield Remarks([_furthest_off(estimates, judge.judge, kind, form), *refused, *_rating_notes(estimates.ratings)])
    if rows := figure_rows(estimates, width):
        title = "Win rates, a tie being half a win" if rates else f"Means of {kind_of(judge.level).things}"
        width_text = "" if width is None else f"{form.factor * width:g}{form.unit}"
        needed = (
            f"Labels needed: for an interval {width_text} wide; where none are named, not even all labels would do."
        )
        notes = [needed] if width_text else []
        columns = (Column("name", "Figure"), *_three_ways(form), *_LABELS)
        table = Table(slug("corrected", name), f"{title}, corrected by people: {name}", columns, rows, notes)
        yield from _picture(table, [row["weight"] for row in rows], kind[0])
        yield table
    if estimates.ratings is not None:
        yield from _ratings(name, estimates.ratings)
    elif estimates.no_ratings:
        yield Remarks([f"No corrected ratings of judge {judge.judge}: {estimates.no_ratings}."])
    if estimates.next:
        lines = [f"  {query_id}: {' / '.join(item)}" for query_id, item in estimates.next]
        yield Remarks([f"{name}, label next (a random sample, queries in turn):", *lines])


def estimates_json(estimates: Estimates, width: float | None) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "figures": figure_rows(estimates, width),
        "next": [{"qid": query_id, "item": item} for query_id, item in estimates.next],
    }
    if (ratings := estimates.ratings) is not None:
        figures = fields(ratings, "weight", "games", "labelled", "queries", "converged")
        shape["ratings"] = {"agents": [flat(row) for row in _by_agent(ratings)], **figures}
    elif estimates.no_ratings:
        shape["no_ratings"] = estimates.no_ratings
    return shape | ({"refused": estimates.refused} if estimates.refused else {})


def figure_rows(estimates: Estimates, width: float | None) -> list[dict[str, Any]]:
    """Table rows of a judge's corrected means; ``width`` adds how many labels an interval of this width needs."""
    rows = []
    for name, figure in estimates.figures.items():
        three_ways = {way: getattr(figure, way).within(*figure.ends) for way in _LOOKS.values()}
        row = {"name": name, **flat(replace(figure, **three_ways))}
        if width is not None:
            needed = labels_needed(figure, width)
            row |= {"width": width, "labels_needed": needed.corrected, "labels_alone": needed.people}
        rows.append(row)
    return rows


def _three_ways(form: Number) -> tuple[Column, ...]:
    return (
        Column("corrected", "Corrected", form, "Judge and people together.", INTERVAL),
        Column("people", "People alone", form, "The labels without the judge.", INTERVAL),
        Column("judge", "Judge alone", form, "Its interval ignores the judge's bias.", INTERVAL),
    )


def _rating_notes(ratings: CorrectedRatings | None) -> Iterator[str]:
    if ratings is None:
        return
    yield "These ratings count a tie as half a win: a leaderboard that models ties rates otherwise."
    if not ratings.weight:
        yield "The judge has no weight in them: it adds nothing to what people said."


def _ratings(name: str, ratings: CorrectedRatings) -> Iterator[Block]:
    notes = [
        f"{ratings.labelled:,} of {ratings.games:,} games labelled, on {counted(ratings.queries, 'query', 'queries')}; "
        f"weight {FIGURE.write(ratings.weight)}."
        + ("" if ratings.converged else " The fit has not converged: do not use these.")
    ]
    columns = (Column("agent", "Agent"), *_three_ways(POINTS))
    best_first = sorted(_by_agent(ratings), key=lambda row: -(row["corrected"].value or 0))
    title = f"Bradley-Terry ratings corrected by people: {name}"
    table = Table(slug("corrected-ratings", name), title, columns, best_first, notes)
    yield from _picture(table, [ratings.weight] * len(best_first), "Rating, points")
    yield table


def _picture(table: Table, weights: Sequence[float], axis: str) -> Iterator[Whiskers]:
    """Picture of the figures in three ways; where the judge has weight 0, corrected and people's are one mark."""
    rows = [row if weight else {**row, "corrected": None} for row, weight in zip(table.rows, weights, strict=True)]
    alone = "" if all(weights) else " Where the judge has weight 0, the corrected figure is people's, drawn once."
    yield from of_table(replace(table, rows=rows), _LOOKS, axis, _THREE, caption=f"{_THREE}{alone}" if alone else "")


def _by_agent(ratings: CorrectedRatings) -> list[dict[str, Any]]:
    people = ratings.people or [Estimate(None)] * len(ratings.agents)
    rows = zip(ratings.agents, ratings.corrected, people, ratings.judge, strict=True)
    return [dict(zip(("agent", "corrected", "people", "judge"), row, strict=True)) for row in rows]


def _refused(estimates: Estimates, kind: tuple[str, str]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name, reason in estimates.refused.items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        what = f"the {kind[0]} of {names[0]}" if len(names) == 1 else f"the {kind[1]} of {', '.join(names)}"
        yield f"Not corrected: {what}. What people labelled is no random sample: {reason}. {_REMEDY}"


def _furthest_off(estimates: Estimates, judge: str, kind: tuple[str, str], form: Number) -> str:
    gaps: dict[str, tuple[float, float]] = {}
    outside = 0
    for name, figure in estimates.figures.items():
        judge_mean, corrected = figure.judge.value, figure.corrected.within(*figure.ends)
        if judge_mean is not None and corrected.value is not None:
            gaps[name] = judge_mean, corrected.value
            if corrected.low is not None and corrected.high is not None:
                outside += not corrected.low <= judge_mean <= corrected.high
    if not gaps:
        return "No figure can be corrected." if estimates.refused else "No figure can be corrected yet."
    worst, (judge_mean, value) = max(gaps.items(), key=lambda gap: abs(gap[1][0] - gap[1][1]))
    judged, corrected_value = form.write(judge_mean), form.write(value)
    sentence = f"{judge} is furthest off for the {kind[0]} of {worst}: {judged}, corrected {corrected_value}."
    return f"{sentence} Outside the corrected interval: {outside or 'none'} of {len(gaps):,} {kind[1]}."


_REMEDY: Final = (
    "Label what 'ragleague calibrate --next N' draws, or give the chance with which each label was drawn in a column "
    "'probability'."
)
_CORRECTED: Final = (
    "The judge's figures over all things, corrected by its error on those that people labelled. Unbiased for any judge "
    "if what people labelled is a random sample ('ragleague calibrate --next' draws one)."
)
_METHODS: Final = "If several ways of scoring give the same order of agents, it does not depend on one judge."
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
    Column("queries", "Queries", COUNT, "Queries on which people graded both agents."),
    Column("n", "Units", COUNT, "Conversations; without conversations, the queries."),
    Column(
        "difference", "Difference", Number(2, signed=True), "Mean of people's grades, agent less the other.", INTERVAL
    ),
    Column("p_t", "p", P_VALUE, "Paired t test, two-sided."),
    Column("p_t_holm", "p, corrected", P_VALUE, "p, corrected for all tests of this table (Holm)."),
)


_MOST_TESTS: Final = 10


def grades_table(tests: Sequence[GradeTest], *, most: int | None = None) -> list[Table]:
    """Table of paired tests that compare every two agents by people's grades on each criterion.

    With ``most`` the table has only the tests with the smallest p-values.
    """
    if not tests:
        return []
    shown = {
        "group": any(test.group for test in tests),
        "n": any(test.queries != test.comparison.difference.n for test in tests),
    }
    columns = [column if shown.get(column.key, True) else replace(column, heading="") for column in _GRADES]
    rows, notes = [_grade_row(test) for test in tests], list[str]()
    if most is not None and len(rows) > most:
        rows = sorted(rows, key=lambda row: 1.0 if row["p_t"] is None else row["p_t"])[:most]
        notes = [f"The {most} with the smallest p, of {len(tests)}; '--format json' has all."]
    return [Table("people-grades", "Agents by people's grades", columns, rows, notes)]


def _grade_row(test: GradeTest) -> dict[str, Any]:
    row = fields(test, "criterion", "queries") | fields(
        test.comparison, "first", "second", "difference", "p_t", "p_t_holm"
    )
    return {"group": test.group or None, **row, "n": test.comparison.difference.n}


class CalibrationBoard(Board, frozen=True):
    """Comparison of judges with people, from tables or from a tournament; ``width`` as in ``corrected_figures``."""

    calibration: Calibration
    width: float | None = None

    def sections(self) -> Sequence[Section]:
        calibration = self.calibration
        comparisons, judges = calibration.comparisons, judges_json(calibration.spent, calibration.orders)
        whom = "the consensus" if calibration.settings.against == "consensus" else "each vote"
        corrected = [block for judge in judges_of(comparisons) for block in corrected_figures(judge, self.width)]
        remarks = [Remarks(lines)] if (lines := list(too_many(comparisons))) else []
        disagreement_lines = list(disagreements(comparisons, calibration.texts))
        most_tests = _MOST_TESTS if comparisons or calibration.methods is not None else None
        sections = [
            Section(
                "people", "People and the judge", "Does the judge see what people see?", people_blocks(comparisons)
            ),
            Section("two-judges", "Which judge?", "", [*two_judges(comparisons), *remarks]),
            Section("coefficients", "All coefficients", "", coefficient_tables(comparisons, whom)),
            Section("grades", "Agents by people's grades", "", grades_table(calibration.grade_tests, most=most_tests)),
            Section("corrected", "The answer if the judge is biased", _CORRECTED, corrected),
            Section("methods", "Do the ways of scoring agree?", _METHODS, method_blocks(calibration.methods)),
            Section("money", "Which judge for the money", _MONEY, cost_table(judges, comparisons)),
            Section("style", "Style and kin", _STYLE, style_blocks(calibration.styles)),
            Section("differences", "Judge minus people", "", difference_charts(comparisons)),
            Section(
                "disagreements",
                "Where they disagree most",
                _DISAGREEMENTS,
                [Remarks(disagreement_lines)] if disagreement_lines else [],
            ),
            Section("notes", "Left out", "", [Remarks(calibration.notes)] if calibration.notes else []),
        ]
        return [section for section in sections if section.blocks]

    def tables(self) -> list[Table]:
        """All tables of the board. CSV output has the first: a row per pair of methods, or per judge."""
        calibration = self.calibration
        if calibration.methods is None:
            first = against_people(calibration.comparisons)
        else:
            first = method_pairs(calibration.methods)
        if not calibration.comparisons and calibration.methods is None:
            (first,) = grades_table(calibration.grade_tests)
        return [first, *(table for table in Board.tables(self) if table.name != first.name)]

    def json(self) -> Any:
        calibration = self.calibration
        shape: dict[str, Any] = {
            "comparisons": [self._comparison_json(comparison) for comparison in calibration.comparisons],
            "settings": calibration.settings,
            "notes": calibration.notes,
            "people_grades": [_grade_row(test) for test in calibration.grade_tests],
        }
        if calibration.methods is not None:
            shape |= {
                "tournament": calibration.tournament,
                "style": [flat(effect) for effect in calibration.styles],
                "methods": methods_json(calibration.methods),
                "judges": judges_json(calibration.spent, calibration.orders),
            }
        return plain(shape)

    def _comparison_json(self, comparison: Comparison) -> dict[str, Any]:
        people = comparison.people
        accuracy = {rater.rater: rater.accuracy for rater in people.consensus.raters}
        annotators = [{**flat(person), "accuracy": accuracy.get(person.rater)} for person in people.annotators]
        return {
            "group": comparison.group or None,
            "level": people.level,
            "people": {**among_people(comparison), "annotators": annotators},
            "judges": {name: self._judge_json(judge) for name, judge in comparison.judges.items()},
            "panel": comparison.gain and flat(comparison.gain),
            "pairs": [pair_row(pair) for pair in comparison.pairs],
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
