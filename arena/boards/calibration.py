"""Calibration as it is shown: judges against people, figures that people correct, ways of scoring, what style does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, Final

from arena.boards.trust import PEOPLE, no_people
from arena.calibration import opinions
from arena.calibration.calibrated import Calibrated
from arena.calibration.comparison import Comparison, JudgeReport
from arena.calibration.estimates import Estimates
from arena.calibration.judge_people import Disagreement
from arena.calibration.methods import MethodComparison, MethodPair
from arena.calibration.prediction_powered import labels_needed
from arena.calibration.style import StyleEffect
from arena.calibration.words import (
    FEW_QUERIES,
    OUTCOMES,
    THINGS,
    Finding,
    findings,
    gain_from_ties,
    least_and_most_alike,
    outside_scale,
)
from arena.present.blocks import Block, Board, Check, Checks, Remarks, Section, Status, settled
from arena.present.numbers import (
    COUNT,
    FIGURE,
    MONEY,
    P_VALUE,
    PERCENT_1,
    POINTS,
    POINTS_1,
    SCORE,
    SCORE_4,
    SIGNED,
    SIGNED_2,
    WORDS,
    Number,
    counted,
    listed,
    with_interval,
)
from arena.present.picture import Cell, Chart, Dot, Level, Look, Matrix, Picture, Whiskers, lines
from arena.present.plain import flat, plain
from arena.present.table import Column, Table
from retrieval_eval.stats.estimate import Estimate

WIDE: Final = "95% interval"
SIGNED_3: Final = Number(3, signed=True)
_ALPHA: Final = 0.4
"""Moderate agreement by the usual reading of kappa (Landis and Koch 1977)."""
_MOST_NAMED: Final = 8
_SUPPORT: Final = {2.0: "support", 1.0: "partial support", 0.0: "no support"}
_NOT_COMPARED: Final = {"scale", "confusion", "binarised", "n", "queries", "first_only", "second_only"}
"""Fields of an agreement that are no coefficients."""

_METHODS: Final[Mapping[str, tuple[str, Number]]] = {
    "elo": ("Elo", POINTS_1),
    "bradley_terry": ("Bradley-Terry", POINTS_1),
    "cover": ("EXAM-Cover", SCORE_4),
    "v_strict": ("Vital strict", SCORE_4),
    "people": ("People's votes", POINTS_1),
    "criteria": ("Criteria", SCORE),
    "criteria, people": ("People's grades", SCORE),
}
"""Headings, and how scores are written; those of retrieval are named by their measure."""

_WHO: Final = (Column("judge", "Judge", programs=False), Column("what", "Judged", programs=False))
_AMONG: Final = (
    Column("what", "Judged", meaning="What people and judges said something of."),
    Column("people", "People", COUNT),
    Column("votes", "Votes", COUNT),
    Column("things", "Things", COUNT),
    Column("repeated", "By several", COUNT, "Things that two people or more judged."),
    Column("same", "Two people agree", PERCENT_1, "How often two people say the same of one thing.", WIDE),
    Column("same_decided", "Without ties", PERCENT_1, "The same of votes that are no tie."),
    Column("alpha", "Alpha", FIGURE, interval=WIDE),
    Column("alpha_ordinal", "Alpha, ordinal", FIGURE),
    Column("suspects", "Not above chance", COUNT, "People who agree with the others no more than chance would."),
)
_AGAINST: Final = (
    Column("n", "Things", COUNT, "Judged by this judge and by people."),
    Column("coverage", "Coverage", PERCENT_1, "Of what people judged, how much the judge judged too."),
    Column("vote_agreement", "Agrees with a vote", PERCENT_1, interval=WIDE),
    Column("decided_vote_agreement", "Without ties", PERCENT_1, "The same where neither side calls a tie."),
    Column("same", "Two people agree", PERCENT_1, "How often two people say the same of one thing."),
    Column("kappa", "Kappa", FIGURE, interval=WIDE),
    Column("bias", "Bias", SIGNED_2, "Mean of judge minus people; verdicts have none.", WIDE),
)
_COEFFICIENTS: Final = (
    Column("agreement", "Same label", PERCENT_1, "How often the judge says what people say.", WIDE),
    Column("kappa_linear", "Kappa, linear", FIGURE, interval=WIDE),
    Column("kappa_quadratic", "Kappa, quadratic", FIGURE, interval=WIDE),
    Column("alpha", "Alpha", FIGURE, interval=WIDE),
    Column("alpha_ordinal", "Alpha, ordinal", FIGURE, interval=WIDE),
)
_CORRELATIONS: Final = tuple(
    chain.from_iterable(
        (Column(key, heading, FIGURE, interval=WIDE), Column(f"{key}_p", "p", P_VALUE, "Of no correlation, two-sided."))
        for key, heading in (("pearson", "Pearson"), ("spearman", "Spearman"), ("kendall", "Kendall's tau-b"))
    )
)
_BOARDS: Final = (
    Column("leaderboard_agents", "Agents", COUNT),
    Column("leaderboard_kendall", "Kendall's tau-b", FIGURE, interval=WIDE),
    Column("leaderboard_spearman", "Spearman", FIGURE, interval=WIDE),
)
_LIMITS: Final = (
    Column("bias", "Bias", SIGNED_2, "Mean of judge minus people.", WIDE),
    Column("lower", "Lower limit", SIGNED_2, "About 95% of all differences lie between the limits of agreement."),
    Column("upper", "Upper limit", SIGNED_2, "About 95% of all differences lie between the limits of agreement."),
)
_PLACES: Final = (
    Column("verdicts", "Verdicts", COUNT),
    Column("tie_rate", "Ties", PERCENT_1),
    Column("both_orders", "Both orders", COUNT, "Games judged in both orders."),
    Column("order_agreement", "Same in both", PERCENT_1, "One outcome, whichever answer is first.", WIDE),
    Column("first_share", "First shown wins", PERCENT_1, "Of verdicts with a winner.", WIDE),
)
_PAIRS: Final = (
    Column("first_name", "Way of scoring", programs=False),
    Column("second_name", "Other way", programs=False),
    Column("first", ""),
    Column("second", ""),
    Column("agents", "Agents", COUNT, "That both score."),
    Column("kendall", "Kendall's tau-b", FIGURE, interval=WIDE),
    Column("kendall_p", "p", P_VALUE, "Of no correlation, two-sided."),
    Column("spearman", "Spearman's rho", FIGURE, interval=WIDE),
    Column("spearman_p", "p", P_VALUE, "Of no correlation, two-sided."),
)
_PLACE_GAPS: Final = (
    Column("agent", "Agent"),
    Column("best", "Best place", COUNT),
    Column("best_by", "by"),
    Column("worst", "Worst place", COUNT),
    Column("worst_by", "by"),
)
_THREE_WAYS: Final = (
    Column("corrected", "Corrected", SCORE, "Judge and people together.", WIDE),
    Column("people", "People alone", SCORE, "The labels without the judge.", WIDE),
    Column("judge", "Judge alone", SCORE, "Its interval knows nothing of its bias.", WIDE),
)
_FIGURES: Final = (
    Column("name", "Figure"),
    *_THREE_WAYS,
    Column("weight", "Weight", FIGURE, "How far the judge is listened to: 0 is not at all."),
    Column("n", "Things", COUNT),
    Column("labelled", "Labelled", COUNT, "Things that people labelled, of those that the judge judged."),
    Column("needed", "Labels needed", WORDS, "For an interval as narrow as was asked for."),
    Column("needed_alone", "Without judge", WORDS, "Labels for the same width, were there no judge."),
)
_JUDGES: Final = (
    Column("judge", "Judge"),
    Column("games", "Games", COUNT),
    Column("agreement", "Same as people", PERCENT_1, interval=WIDE),
    Column("kappa", "Kappa", FIGURE, interval=WIDE),
    Column("order_agreement", "Same in both orders", PERCENT_1, "One outcome, whichever answer is first.", WIDE),
    Column("failures", "Failed"),
    Column("cost_per_1000_games", "Cost of 1000 games", MONEY, "None where a price is not known."),
)
_STYLES: Final = (
    Column("judge", "Judge"),
    Column("quality", "Quality"),
    Column("games", "Verdicts", COUNT),
    Column("points", "Points", SIGNED, interval=WIDE),
    Column("why_not", "Why not known"),
)


@dataclass(frozen=True, slots=True)
class Calibration(Board):
    """What tables or a tournament show of judges.

    Attributes:
        found: the figures.
        width: of an interval, to say how many labels it needs.
    """

    found: Calibrated
    width: float | None = None

    def sections(self) -> Sequence[Section]:  # noqa: D102
        own = self.found
        corrected = [
            block
            for one, report in reports(self.found.comparisons)
            if report.estimates is not None
            for block in corrected_figures(one, report.estimates, report.against.judge, self.width)
        ]
        listed = [line for one, report in reports(self.found.comparisons) for line in self._differences(one, report)]
        parts = [
            Section("people", "People and the judge", "Does the judge see what people see?", self._people()),
            Section("coefficients", "All coefficients", "", self._coefficients()),
            Section("corrected", "The answer if the judge is biased", _CORRECTED, corrected),
            Section("methods", "Do the ways of scoring agree?", _METHODS_LEAD, self._methods()),
            Section("money", "Which judge for the money", _MONEY, self._judges()),
            Section("style", "Style and kin", _STYLE, style_blocks(own.styles)),
            Section("differences", "Judge minus people", "", difference_charts(own.comparisons)),
            Section("disagreements", "Where they disagree most", _DISAGREEMENTS, [Remarks(listed)] if listed else []),
            Section("notes", "Left out", "", [Remarks(own.notes)] if own.notes else []),
        ]
        return [part for part in parts if part.blocks]

    def tables(self) -> list[Table]:
        """All tables, first the one that is written as CSV: a line for every two methods, of tables for every judge."""
        own = self.found
        first = against_people(own.comparisons) if own.methods is None else method_pairs(own.methods)
        return [first, *(table for table in Board.tables(self) if table.name != first.name)]

    def json(self) -> Any:  # noqa: D102
        own, how = self.found, self.found.settings
        shape: dict[str, Any] = {
            "comparisons": [_comparison_json(one, self.width) for one in own.comparisons],
            "settings": {
                "consensus": how.method,
                "samples": how.samples,
                "seed": how.seed,
                "against": how.against,
                "games": how.games,
            },
            "notes": own.notes,
        }
        if own.methods is not None:
            shape |= {
                "tournament": own.tournament,
                "style": [flat(one) for one in own.styles],
                "methods": {
                    "methods": {one.method: {"scores": one.scores, "ranks": one.ranks} for one in own.methods.methods},
                    "pairs": [flat(pair) for pair in own.methods.pairs],
                    "places": own.methods.places,
                    "queries": own.methods.queries,
                },
                "judges": {
                    judge: {
                        **flat(spent),
                        "cost_per_1000_games": spent.per_thousand,
                        **(flat(own.orders[judge]) if judge in own.orders else {}),
                    }
                    for judge, spent in own.spent.items()
                },
            }
        return plain(shape)

    def _people(self) -> list[Block]:
        found = self.found.comparisons
        if not found:
            return []
        grouped = any(one.group for one in found)  # checks of many groups would fill pages
        blocks: list[Block] = [] if grouped else [Checks(people_checks(found))]
        blocks += [*_votes(found), against_people(found), _among_people(found)]
        said = [line for one in found for line in _remarks(one)]
        return [*blocks, Remarks(said)] if said else blocks

    def _coefficients(self) -> list[Block]:
        rows = [_judge_row(one, report) for one, report in reports(self.found.comparisons)]
        whom = "the consensus" if self.found.settings.against == "consensus" else "each vote"
        tables = [
            _known("agreement", f"Agreement with {whom}", (*_WHO, *_COEFFICIENTS), rows),
            _known("correlation", f"Correlation with {whom}", (*_WHO, *_CORRELATIONS), rows),
            _known("limits", "Judge minus people", (*_WHO, *_LIMITS), rows),
            _known("leaderboards", "Leaderboards of judge and people", (*_WHO, *_BOARDS), rows),
            _known("places", "Places", (*_WHO, *_PLACES), [*_places(self.found.comparisons)]),
        ]
        return [*(table for table in tables if table.rows), *self.confusions()]

    def confusions(self) -> list[Table]:
        """What people say against what the judge says, for each judge; of many groups they would fill pages."""
        return [
            _confusion(one, report)
            for one, report in reports(self.found.comparisons)
            if report.against.labels is not None and report.against.labels.scale and not one.group
        ]

    def _methods(self) -> list[Block]:
        own = self.found.methods
        if own is None or not own.methods:
            return []
        blocks: list[Block] = [_scores(own)]
        if not own.pairs:
            return [*blocks, Remarks(["No two ways of scoring score three agents or more: no order to compare."])]
        rows = [flat(gap) | {"best_by": _named(gap.best_by), "worst_by": _named(gap.worst_by)} for gap in own.places]
        gaps = [row for row in rows if row["worst"] > row["best"]]
        blocks += [Remarks([_alike(own)]), _matrix(own), method_pairs(own)]
        if gaps:
            blocks.append(Table("places-that-differ", "Places that differ most", _PLACE_GAPS, gaps))
        alike = dict.fromkeys((pair.first, pair.second) for pair in least_and_most_alike(own) or ())
        return [*blocks, *(method_chart(own, *names) for names in alike)]

    def _judges(self) -> list[Block]:
        own = self.found
        verdicts = next((one for one in own.comparisons if one.people.level == "verdicts"), None)
        rows = []
        for judge, spent in own.spent.items():
            report = verdicts.judges.get(judge) if verdicts is not None else None
            labels = report.against.labels if report is not None else None
            orders = own.orders.get(judge)
            rows.append(
                {
                    "judge": judge,
                    "games": spent.games,
                    "agreement": None if labels is None else labels.agreement,
                    "kappa": None if labels is None else labels.kappa,
                    "order_agreement": None if orders is None else orders.order_agreement,
                    "failures": f"{spent.failed:,} of {spent.wanted:,}",
                    "cost_per_1000_games": spent.per_thousand,
                }
            )
        return [Table("judges-of-answers", "Judges of answers", _JUDGES, rows)] if rows else []

    def _differences(self, one: Comparison, report: JudgeReport) -> Iterator[str]:
        for found in report.disagreements:
            judge, people, votes = said_of(one.people.level, found)
            yield f"{found.query_id}: {' / '.join(found.item)}"
            yield f"  {', '.join([report.against.judge, what_of(one)])}: {judge}; people: {people} ({votes})"
            for part in ("", *found.item):
                if (found.query_id, part) in self.found.texts:
                    yield f"  {part or 'query'}: {self.found.texts[found.query_id, part]}"


_CORRECTED: Final = (
    "The judge's figures over all things, moved by its error on those that people labelled. Right whatever the judge "
    "is like, if what people labelled is a random sample ('ragarena calibrate --next' draws one)."
)
_METHODS_LEAD: Final = "An order that several ways of looking share is more than one judge's habit."
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


def reports(comparisons: Sequence[Comparison]) -> list[tuple[Comparison, JudgeReport]]:
    """Every judge on every level."""
    return [(one, report) for one in comparisons for report in one.judges.values()]


def what_of(one: Comparison) -> str:
    """What was compared: a level, and the group of a table that holds several."""
    return ", ".join(filter(None, (one.group, one.people.level)))


def _slug(*words: str) -> str:
    """Words as the name of a table or picture."""
    return re.sub(r"\W+", "-", "-".join(words).lower())


def said_of(level: opinions.Level, found: Disagreement) -> tuple[str, str, str]:
    """What the judge, the people and each of them said, in words."""

    def worded(value: float) -> str:
        if level == "verdicts":
            return "a tie" if not value else f"{found.item[-2 if value > 0 else -1]} wins"
        return _SUPPORT.get(value, f"{value:g}") if level == "nuggets" else f"{value:g}"

    votes = ", ".join(f"{rater}: {worded(vote)}" for rater, vote in sorted(found.votes.items()))
    return worded(found.judge), worded(found.people), votes


def against_people(comparisons: Sequence[Comparison]) -> Table:
    """A line for each judge and level; programs get every coefficient."""
    rows = [_judge_row(one, report) for one, report in reports(comparisons)]
    known = [flat(_judge_fields(one, report)) for one, report in reports(comparisons)]
    shown = [replace(column, programs=False) for column in (*_WHO, *_AGAINST)]
    columns = (*shown, *(Column(key, "") for key in dict.fromkeys(key for row in known for key in row)))
    return Table("judges-against-people", "Judges against people", columns, rows)


def method_pairs(found: MethodComparison) -> Table:
    """A line for every two ways of scoring."""
    rows = [{**flat(pair), **_fields(pair)} for pair in found.pairs]
    named = [row | {"first_name": method_name(row["first"]), "second_name": method_name(row["second"])} for row in rows]
    agents = max((pair.agents for pair in found.pairs), default=0)
    notes = [
        "1 is the same order of agents, 0 none in common, -1 the reverse; intervals by scoring every way anew on the "
        f"same draws of the queries. {agents} agents make {agents * (agents - 1) // 2} pairs: with few, even 1 may be "
        "chance."
    ]
    return Table("correlations", "Rank correlation of every two ways of scoring", _PAIRS, named, notes if rows else ())


def corrected_figures(one: Comparison, own: Estimates, judge: str, width: float | None = None) -> Iterator[Block]:
    """A judge's figures corrected by people: in words, as tables, and what to label next."""
    rates, name = one.people.level == "verdicts", f"{judge}, {what_of(one)}"
    rows = []
    for figure, found in own.figures.items():
        row = {"name": figure, **_fields(found)}
        if width is not None:
            needed = labels_needed(found, width)
            row |= {"needed": _labels(needed.corrected), "needed_alone": _labels(needed.people)}
        rows.append(row)
    what = "Win rates, a tie being half a win" if rates else f"Means of {THINGS[one.people.level]}"
    yield Remarks([_furthest_off(own, judge)])
    yield from _three_ways(name, "win rate" if rates else "mean", rows, "name", SCORE)
    if rows:
        yield Table(_slug("corrected", name), f"{what}, corrected by people: {name}", _FIGURES, rows)
    if own.ratings is not None:
        rated = own.ratings
        notes = [
            f"{rated.labelled:,} of {rated.games:,} games labelled, on {counted(rated.queries, 'query', 'queries')}; "
            f"weight {FIGURE.write(rated.weight)}. Ties count a half."
            + ("" if rated.converged else " The fit has not converged: do not use these.")
        ]
        columns = (Column("agent", "Agent"), *(replace(column, form=POINTS) for column in _THREE_WAYS))
        best_first = sorted(_rated(own), key=lambda row: -(row["corrected"].value or 0))
        title = f"Bradley-Terry ratings corrected by people: {name}"
        yield from _three_ways(name, "Bradley-Terry rating, points", best_first, "agent", POINTS)
        yield Table(_slug("corrected-ratings", name), title, columns, best_first, notes)
    elif own.no_ratings:
        yield Remarks([f"No corrected ratings of judge {judge}: {own.no_ratings}."])
    if own.next:
        drawn = [f"  {query_id}: {' / '.join(item)}" for query_id, item in own.next]
        yield Remarks([f"{name}, label next (a random sample, queries in turn):", *drawn])


def style_blocks(styles: Sequence[StyleEffect]) -> list[Block]:
    """What answer judges like besides strength; nothing without games."""
    rows = [_fields(own) | {"quality": own.name.replace("_", " ")} for own in styles]
    if not rows:
        return []
    drawn = lines({f"{row['judge']}, {row['quality']}": {"blue": row["points"]} for row in rows})
    table = Table("style", "What judges like besides strength", _STYLES, rows)
    words, caption = "What each quality is worth to each judge.", "An interval on one side of 0 is an effect."
    picture = Whiskers(
        "style-effects", "Style and kin in rating points", words, caption, drawn, "rating points", SIGNED, zero=True
    )
    return [picture, table] if drawn else [table]


def method_charts(found: MethodComparison) -> list[Chart]:
    """Agents by every two ways of scoring."""
    return [method_chart(found, pair.first, pair.second) for pair in found.pairs]


def method_chart(found: MethodComparison, across: str, up: str) -> Chart:
    """Agents by two ways of scoring; those whose places differ most are named first."""
    ways = {own.method: own for own in found.methods}
    x, y = ways[across], ways[up]
    both = sorted(
        (agent for agent in x.scores if agent in y.scores), key=lambda agent: -abs(x.ranks[agent] - y.ranks[agent])
    )
    tau = next((pair.kendall.value for pair in found.pairs if {pair.first, pair.second} == {across, up}), None)
    return Chart(
        _slug(across, up),
        f"{method_name(across)} and {method_name(up)}: Kendall's tau {FIGURE.write(tau)}",
        f"Agents by {method_name(across)} and {method_name(up)}.",
        "A mark for each agent: two ways of scoring that agree put them on a line that rises to the right.",
        method_name(across),
        method_name(up),
        [Dot(x.scores[agent], y.scores[agent], agent) for agent in both],
    )


def difference_charts(comparisons: Sequence[Comparison]) -> list[Chart]:
    """Bland and Altman's plot of every judge and level with values that have a distance; verdicts have none."""
    found = [difference_chart(one, report) for one, report in reports(comparisons)]
    return [chart for chart in found if chart is not None]


def difference_chart(one: Comparison, report: JudgeReport) -> Chart | None:
    """Bland and Altman's plot of one judge; ``None`` where values have no distance."""
    own, name = report.against.differences, f"{report.against.judge}, {what_of(one)}"
    if own is None or not own.points:
        return None
    levels = {"bias": own.bias.value, "upper limit": own.upper.value, "lower limit": own.lower.value}
    known = {what: level for what, level in levels.items() if level is not None}
    told = ", ".join(f"{what} {SIGNED_2.write(level)}" for what, level in known.items())
    most = max(point.times for point in own.points)
    return Chart(
        _slug("differences", name),
        f"{name}: {told}; {counted(own.n, 'thing')}",
        f"Bland and Altman's plot of {name}: {told}.",
        "Above 0 the judge gives more than people. The line is the bias; between the dashed ones lie about 95% of all "
        "differences; the larger a mark, the more things lie there. Marks that fall or rise from left to right: the "
        "judge uses less, or more, of the scale than people do.",
        "Mean of judge and people",
        "Judge minus people",
        [
            Dot(
                point.mean,
                point.difference,
                told=f"{point.difference:+g} at {point.mean:g}, {counted(point.times, 'thing')}",
                size=point.times / most,
            )
            for point in own.points
        ],
        levels=[Level(level, f"{what} {SIGNED_2.write(level)}", what != "bias") for what, level in known.items()],
    )


def people_checks(comparisons: Sequence[Comparison], apart: Sequence[opinions.Level] = ()) -> Sequence[Check]:
    """Whether each judge agrees with people as they do among themselves, on each kind of things that both judged."""
    found = [(one, own) for one in comparisons for own in findings(one) if own.trust != "unknown"]
    checks = [Check(f"{PEOPLE} {own.judge} on {own.level}", *_agreement(one, own)) for one, own in found]
    return checks or [no_people(apart)]


def _agreement(one: Comparison, own: Finding) -> tuple[Status, str, str]:
    """Status, finding and remedy.

    Where people repeat each other, the judge must agree with them at least as often as two of them may; with nobody to
    hold it against, well beyond chance. One that agrees no more than by chance fails where kappa lies below that too.
    """
    beyond, said = own.kappa, own.sentence
    if beyond.value is not None:
        said += f" Kappa is {with_interval(beyond)}"
        said += f"; the bar is {_ALPHA}." if own.trust in ("above chance", "chance") else "."
    if own.trust == "few":
        return "unknown", said, "Let people judge a random sample on more queries, on the pages."
    if own.trust == "above chance" and beyond.value is None:
        return "unknown", said, "Let several people judge the same things, so that the judge can be held against them."
    status = settled(beyond.low, beyond.high, _ALPHA)
    within = one.people.within.share.low
    if own.trust in ("as people", "below people") and within is not None:
        share = one.judges[own.judge].against.votes.share
        status = settled(share.low, share.high, within)
    remedy = "Read where they differ ('ragarena calibrate --disagreements 20'), change the prompt or the judge."
    return status, said, remedy


def _among_people(comparisons: Sequence[Comparison]) -> Table:
    rows = [_people_fields(one) | {"what": what_of(one)} for one in comparisons]
    return Table("people", "People among themselves", _AMONG, rows)


def _people_fields(one: Comparison) -> dict[str, Any]:
    """What people say among themselves, for programs."""
    own = one.people
    row: dict[str, Any] = {
        "people": len(own.annotators),
        "votes": len(own.opinions),
        "things": own.things,
        "repeated": own.repeated,
        "suspects": sum(person.above_chance is False for person in own.annotators),
        "pairs": own.within.pairs,
        "same": own.within.share,
    }
    if own.within_decided is not None:
        row |= {"decided_pairs": own.within_decided.pairs, "same_decided": own.within_decided.share}
    if own.alpha is not None:
        row |= {"alpha": own.alpha.alpha, "alpha_ordinal": own.alpha.alpha_ordinal}
    row |= {
        "consensus": own.consensus.method,
        "contested": own.consensus.contested,
        "iterations": own.consensus.iterations,
        "converged": own.consensus.converged,
    }
    return row | _fields(one.orders)


def _judge_fields(one: Comparison, report: JudgeReport) -> dict[str, Any]:
    """A judge against people, for programs."""
    own = report.against
    row: dict[str, Any] = {
        "group": one.group or None,
        "level": one.people.level,
        "judge": own.judge,
        "n": own.n,
        "queries": own.queries,
        "judge_only": own.judge_only,
        "people_only": own.people_only,
        "vote_pairs": own.votes.pairs,
        "vote_agreement": own.votes.share,
    }
    if own.votes_decided is not None:
        row |= {"decided_vote_pairs": own.votes_decided.pairs, "decided_vote_agreement": own.votes_decided.share}
    row |= {name: value for name, value in _fields(own.labels).items() if name not in _NOT_COMPARED}
    row |= {name: getattr(own.correlations, name) for name in ("pearson", "spearman", "kendall")}
    row |= {name: getattr(own.differences, name) for name in ("bias", "lower", "upper") if own.differences is not None}
    if report.boards is not None:
        found = report.boards
        row |= {"leaderboard_agents": found.agents, "leaderboard_kendall": found.kendall}
        row["leaderboard_spearman"] = found.spearman
    return row | _fields(report.orders)


def _judge_row(one: Comparison, report: JudgeReport) -> dict[str, Any]:
    """The same with what tables for people show besides."""
    own, row = report.against, _judge_fields(one, report)
    shared = {"what": what_of(one), "same": one.people.within.share}
    return {**flat(row), **row, **shared, "coverage": own.n / (own.n + own.people_only or 1)}


def _known(name: str, title: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Table:
    """The lines of judges that have a figure."""
    figures = columns[len(_WHO) :]
    return Table(name, title, columns, [row for row in rows if any(own.value(row) is not None for own in figures)])


def _places(comparisons: Sequence[Comparison]) -> Iterator[dict[str, Any]]:
    for one in comparisons:
        for name, own in {"people": one.orders, **{name: own.orders for name, own in one.judges.items()}}.items():
            yield {"judge": name, "what": what_of(one), **_fields(own)}


def _confusion(one: Comparison, report: JudgeReport) -> Table:
    labels, verdicts, name = report.against.labels, one.people.level == "verdicts", report.against.judge
    assert labels is not None
    names = [OUTCOMES[label] if verdicts else str(label) for label in labels.scale]
    columns = [Column("people", "People"), *(Column(said, f"judge: {said}", COUNT) for said in names)]
    rows = [
        {"people": said, **dict(zip(names, counts, strict=True))}
        for said, counts in zip(names, labels.confusion, strict=True)
    ]
    return Table(
        _slug("confusion", name, what_of(one)), f"What is taken for what: {name}, {what_of(one)}", columns, rows
    )


def _remarks(one: Comparison) -> Iterator[str]:
    label, own = (f"{one.group}: " if one.group else ""), one.people
    if own.consensus.converged is False:
        yield f"{label}Dawid and Skene's model has not converged after {own.consensus.iterations} steps"
    if own.consensus.contested and own.consensus.method == "majority":
        of_all = f"{own.consensus.contested:,} of {own.things:,} {THINGS[own.level]}"
        yield f"{label}consensus: majority of people; no value leads on {of_all}"
    suspects = [f"{who.rater} {FIGURE.write(who.kappa.value)}" for who in own.annotators if who.above_chance is False]
    if suspects and not one.group:
        yield f"{label}agree with the others no better than chance (kappa): {listed(suspects, _MOST_NAMED)}"
    if (gain := one.gain) is not None:
        of_best = f"its best member {gain.best} {PERCENT_1.write(gain.best_agreement)}"
        bounds = "" if gain.gain.low is None else f" (difference {with_interval(gain.gain, SIGNED_2)})"
        yield f"{label}panel: {PERCENT_1.write(gain.agreement)} like people, {of_best}{bounds}"
    if ties := gain_from_ties(one):
        yield f"{label}panel: {ties}"
    for name, report in one.judges.items():
        if beyond := outside_scale(report):
            yield f"{label}{name}: {beyond}"
        if report.against.queries < FEW_QUERIES:
            yield f"{label}{name}: {counted(report.against.queries, 'query', 'queries')} in common: intervals are rough"


def _votes(comparisons: Sequence[Comparison]) -> list[Picture]:
    """How often a judge and a person, or two people, say the same."""
    shares: dict[str, dict[Look, Estimate]] = {}
    for one in comparisons:
        shares[f"two people, {what_of(one)}"] = {"orange": one.people.within.share}
        for name, report in one.judges.items():
            shares[f"{name}, {what_of(one)}"] = {"blue": report.against.votes.share}
    drawn = lines(shares)
    words = "How often a judge says what a person says, beside how often two people agree."
    caption = f"{words} That is what to measure a judge by. Whiskers: 95% intervals, had other queries been asked."
    legend: dict[Look, str] = {"orange": "two people", "blue": "a judge and a person"}
    whole = Whiskers("votes-alike", "Votes alike", words, caption, drawn, "votes alike", PERCENT_1, legend=legend)
    return [whole] if drawn else []


def _three_ways(name: str, axis: str, rows: Sequence[Mapping[str, Any]], key: str, form: Number) -> Iterator[Whiskers]:
    looks: dict[Look, str] = {"blue": "corrected", "orange": "people", "grey": "judge"}
    drawn = lines({row[key]: {look: row[way] for look, way in looks.items()} for row in rows})
    legend: dict[Look, str] = {"blue": "corrected", "orange": "people alone", "grey": "judge alone"}
    words = f"Each {axis} corrected, by people alone and by the judge alone."
    if drawn:
        yield Whiskers(_slug(axis, name), f"Three ways, {axis}: {name}", words, "", drawn, axis, form, legend=legend)


def _matrix(found: MethodComparison) -> Matrix:
    names = [method_name(own.method) for own in found.methods]
    cells: dict[tuple[str, str], Cell] = {}
    for pair in found.pairs:
        tau, first, second = pair.kendall, method_name(pair.first), method_name(pair.second)
        if tau.value is not None:
            below = FIGURE.between(tau.low, tau.high)
            told = f"{first} and {second}: tau {with_interval(tau)}, Spearman's rho {with_interval(pair.spearman)}"
            cell = Cell(FIGURE.write(tau.value), tau.value, "" if tau.low is None else below, told)
            cells |= {(first, second): cell, (second, first): cell}
    words = "Kendall's tau of the agents' places by every two ways of scoring, with its 95% interval."
    caption = f"{words} A gap is two ways that do not score three agents in common."
    title = "Kendall's tau between ways of scoring"
    return Matrix("places-by-two-methods", title, words, caption, names, names, cells, "Way of scoring")


def _scores(found: MethodComparison) -> Table:
    """Places and scores of all agents, by the first way of scoring first."""
    last = len({agent for own in found.methods for agent in own.scores})
    agents = sorted(
        {agent for own in found.methods for agent in own.scores},
        key=lambda agent: ([own.ranks.get(agent, last) for own in found.methods], agent),
    )
    rows = [
        {"agent": agent}
        | {
            own.method: f"{own.ranks[agent]} ({_form(own.method).write(own.scores[agent])})"
            for own in found.methods
            if agent in own.scores
        }
        for agent in agents
    ]
    columns = [Column("agent", "Agent"), *(Column(own.method, method_name(own.method)) for own in found.methods)]
    return Table("scores", "Places by each way of scoring, scores in brackets", columns, rows)


def method_name(method: str) -> str:
    """A way of scoring as people call it."""
    if method in _METHODS:
        return _METHODS[method][0]
    return f"{method.removesuffix(', people')} by people" if method.endswith(", people") else method


def _form(method: str) -> Number:
    return _METHODS[method][1] if method in _METHODS else SCORE_4


def _named(methods: Sequence[str]) -> str:
    return listed([method_name(method) for method in methods])


def _alike(found: MethodComparison) -> str:
    """Which two ways of scoring agree most, and which least, by Kendall's tau."""
    ends = least_and_most_alike(found)
    if ends is None:
        return "No two ways of scoring tell agents apart."
    least, most = ends
    said = f"Most alike are {_two(most)}"
    return f"{said}." if least is most else f"{said}, least {_two(least)}."


def _two(pair: MethodPair) -> str:
    return f"{method_name(pair.first)} and {method_name(pair.second)} (tau {FIGURE.write(pair.kendall.value)})"


def _furthest_off(own: Estimates, judge: str) -> str:
    """Which figure the judge gets most wrong."""
    known = {
        name: (found.judge.value, found.corrected)
        for name, found in own.figures.items()
        if found.judge.value is not None and found.corrected.value is not None
    }
    if not known:
        return "No figure can be corrected yet."
    gaps = {name: value - (corrected.value or 0) for name, (value, corrected) in known.items()}
    outside = sum(not _within(value, corrected) for value, corrected in known.values())
    worst = max(gaps, key=lambda name: abs(gaps[name]))
    said = f"{judge} is furthest off for {worst}: {SIGNED_3.write(gaps[worst])} against the corrected figure."
    if not outside:
        return f"{said} No figure of the judge lies outside the corrected interval."
    return f"{said} {outside:,} of {len(own.figures):,} figures of the judge lie outside the corrected interval."


def _within(value: float, corrected: Estimate) -> bool:
    return corrected.low is None or corrected.high is None or corrected.low <= value <= corrected.high


def _rated(own: Estimates) -> list[dict[str, Any]]:
    found = own.ratings
    assert found is not None
    people = found.people or [Estimate(None)] * len(found.agents)
    ways = zip(found.agents, found.corrected, people, found.judge, strict=True)
    return [dict(zip(("agent", "corrected", "people", "judge"), row, strict=True)) for row in ways]


def _labels(needed: int | None) -> str:
    return "more than all" if needed is None else COUNT.write(needed)


def _fields(record: Any) -> dict[str, Any]:
    """A record's fields as they are; nothing of ``None``."""
    return {} if record is None else {own.name: getattr(record, own.name) for own in fields(record)}


def _comparison_json(one: Comparison, width: float | None) -> dict[str, Any]:
    reliability = {rater.rater: rater.accuracy for rater in one.people.consensus.raters}
    annotators = [{**flat(own), "accuracy": reliability.get(own.rater)} for own in one.people.annotators]
    return {
        "group": one.group or None,
        "level": one.people.level,
        "people": {**flat(_people_fields(one)), "annotators": annotators},
        "judges": {name: _judge_json(one, report, width) for name, report in one.judges.items()},
        "panel": None if one.gain is None else flat(one.gain),
    }


def _judge_json(one: Comparison, report: JudgeReport, width: float | None) -> dict[str, Any]:
    own = report.against
    row = flat(_judge_fields(one, report))
    del row["group"], row["level"]
    if own.labels is not None:
        row |= {"scale": own.labels.scale, "confusion": own.labels.confusion}
    row["outside_scale"] = [{"value": value, "n": count} for value, count in own.outside]
    row["disagreements"] = report.disagreements
    if own.differences is not None:
        row["points"] = own.differences.points
    if report.estimates is not None:
        row["estimates"] = _estimates_json(report.estimates, width)
    return row


def _estimates_json(own: Estimates, width: float | None) -> dict[str, Any]:
    figures = []
    for name, found in own.figures.items():
        row = {"name": name, **flat(found)}
        if width is not None:
            needed = labels_needed(found, width)
            row |= {"width": width, "labels_needed": needed.corrected, "labels_alone": needed.people}
        figures.append(row)
    shape: dict[str, Any] = {"figures": figures, "next": [{"qid": query, "item": item} for query, item in own.next]}
    if own.ratings is not None:
        names = ("weight", "games", "labelled", "queries", "converged")
        rest = {name: getattr(own.ratings, name) for name in names}
        shape["ratings"] = {"agents": [flat(row) for row in _rated(own)], **rest}
    elif own.no_ratings:
        shape["no_ratings"] = own.no_ratings
    return shape
