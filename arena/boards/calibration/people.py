"""Judges held against people: whether they may be trusted, every coefficient, and where they differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from arena.boards.agreement import COEFFICIENTS, WIDE, confusion, correlation_columns
from arena.boards.judge_sentences import OUTCOMES, THINGS, Finding, findings, gain_from_ties, is_full, outside_scale
from arena.boards.trust import ALPHA, PEOPLE, no_people
from arena.calibration.comparison import PANEL, Comparison, Disagreement, JudgeAgainstPeople
from arena.calibration.votes import Level
from arena.present.blocks import Block, Check, Checks, Remarks, Status, settled
from arena.present.numbers import (
    ALIGNED,
    COUNT,
    FIGURE,
    P_VALUE,
    PERCENT,
    SIGNED_2,
    clipped,
    counted,
    listed,
    with_interval,
)
from arena.present.picture import Chart, Dot, Look, Whiskers, of_table
from arena.present.picture import LevelLine as Line
from arena.present.table import ORDERS, Column, Table, flat
from arena.ratings.games import Unit
from arena.ratings.results import UNITS
from arena.results.opinion_tables import SUPPORT
from retrieval_eval.stats.alternative import FEWEST, AlternativeTest
from retrieval_eval.stats.bootstrap import FEW_QUERIES

_MOST_NAMED: Final = 8
_WHO: Final = (Column("judge", "Judge", programs=False), Column("what", "Judged", programs=False))
_AMONG: Final = (
    Column("what", "Judged", meaning="What people and judges said something of."),
    Column("people", "People", COUNT),
    Column("votes", "Votes", COUNT),
    Column("things", "Things", COUNT),
    Column("repeated", "By several", COUNT, "Things that two people or more judged."),
    Column("same", "Two people agree", PERCENT, "How often two people say the same of one thing.", WIDE),
    Column("same_decided", "Without ties", PERCENT, "The same of votes that are no tie."),
    Column("alpha", "Alpha", FIGURE, interval=WIDE),
    Column("alpha_ordinal", "Alpha, ordinal", FIGURE),
    Column("suspects", "Not above chance", COUNT, "People not shown to agree with the others more than by chance."),
)
_N: Final = Column("n", "Things", COUNT, "Judged by this judge and by people.")
_VOTES: Final = Column("vote_agreement", "Agrees with a vote", PERCENT, interval=WIDE)
_GAP: Final = Column(
    "less_people",
    "Judge minus two people",
    SIGNED_2,
    "Agrees with a vote less two people agree, on the same things.",
    WIDE,
)
_SAME: Final = Column("same", "Two people agree", PERCENT, "How often two people say the same of one thing.")
_BIAS: Final = Column("bias", "Bias", SIGNED_2, "Mean of judge minus people; verdicts have none.", WIDE)
_AGAINST: Final = (
    *_WHO,
    _N,
    Column("coverage", "Coverage", PERCENT, "Of what people judged, how much the judge judged too."),
    _VOTES,
    Column("decided_vote_agreement", "Without ties", PERCENT, "The same where neither side calls a tie."),
    _SAME,
    _GAP,
    Column("kappa", "Kappa", FIGURE, interval=WIDE),
    _BIAS,
)
_IN_SHORT: Final = (*_WHO, _N, _VOTES, _SAME, Column("kappa", "Kappa", FIGURE))
_DISAGREEMENTS: Final = (
    Column("query", "Query", link="link"),
    Column("item", "What"),
    Column("judge", "Judge"),
    Column("people", "People"),
    Column("agreed", "People who say so", ALIGNED),
)
_REPLACED: Final = (
    Column("rater", "Person left out"),
    Column("items", "Things", COUNT, "That this person, another one and the judge have judged."),
    Column("clusters", "Queries", COUNT),
    Column("advantage", "Judge as good", PERCENT, "Share on which the judge agrees with the others at least as well."),
    Column("difference", "Person better", SIGNED_2, "Share that the person wins less share that the judge wins.", WIDE),
    Column("p_value", "p, published", P_VALUE, "That the judge is worse by epsilon or more, things independent."),
    Column("p_clustered", "p, by query", P_VALUE, "The same where things of one query depend on each other."),
)
_CORRELATIONS: Final = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall's tau-b"}
_LIMITS: Final = "About 95% of all differences lie between the limits of agreement."
_TABLES: Final[Mapping[str, tuple[str, Sequence[Column]]]] = {
    "agreement": ("Agreement with {whom}", COEFFICIENTS),
    "correlation": ("Correlation with {whom}", [*correlation_columns(_CORRELATIONS)]),
    "limits": (
        "Judge minus people",
        (_BIAS, Column("lower", "Lower limit", SIGNED_2, _LIMITS), Column("upper", "Upper limit", SIGNED_2, _LIMITS)),
    ),
    "leaderboards": (
        "Leaderboards of judge and people",
        (
            Column("leaderboard_agents", "Agents", COUNT),
            *correlation_columns({"leaderboard_kendall": "Kendall's tau-b", "leaderboard_spearman": "Spearman"}),
        ),
    ),
    "places": (
        "Places",
        (
            Column("verdicts", "Verdicts", COUNT),
            Column("tie_rate", "Ties", PERCENT),
            Column("both_orders", "Both orders", COUNT, "Games judged in both orders."),
            Column("order_agreement", "Same in both", PERCENT, "One outcome, whichever answer is first.", WIDE),
            Column("first_share", "First shown wins", PERCENT, "Of verdicts with a winner.", WIDE),
        ),
    ),
}
"""Titles of tables of coefficients, and the figures in them."""


_LOOKS: Final[Mapping[Look, str]] = {"blue": "vote_agreement", "orange": "same"}
_ALIKE: Final = "How often a judge says what a person says, beside how often two people agree."
_MEASURED: Final = "That is what to measure a judge by. Whiskers: 95% intervals, had other queries been asked."


def judges_of(comparisons: Sequence[Comparison]) -> list[JudgeAgainstPeople]:
    """Every judge on every level."""
    return [judge for one in comparisons for judge in one.judges.values()]


def slug(*words: str) -> str:
    """Words as the name of a table or picture."""
    return re.sub(r"\W+", "-", "-".join(words).lower())


def people_blocks(comparisons: Sequence[Comparison]) -> list[Block]:
    """Whether the judges may be trusted, and what people say among themselves; nothing without people."""
    if not comparisons:
        return []
    grouped = any(one.group for one in comparisons)  # checks of many groups would fill pages
    remarks = remarks_of(comparisons)
    return [
        *([] if grouped else [Checks(people_checks(comparisons))]),
        *votes_picture(comparisons),
        against_people(comparisons),
        among_table(comparisons),
        *([Remarks(remarks)] if remarks else []),
    ]


def votes_picture(comparisons: Sequence[Comparison]) -> list[Whiskers]:
    """How often each judge says what a person says, beside how often two people agree."""
    return of_table(
        in_short(comparisons), _LOOKS, "votes alike", _ALIKE, caption=f"{_ALIKE} {_MEASURED}", names=len(_WHO)
    )


def among_table(comparisons: Sequence[Comparison]) -> Table:
    """What people say among themselves."""
    rows = [flat(among_people(one)) | {"what": one.what} for one in comparisons]
    return Table("people", "People among themselves", _AMONG, rows)


def remarks_of(comparisons: Sequence[Comparison]) -> list[str]:
    """What to know of each comparison, a sentence each."""
    return list(chain.from_iterable(map(_remarks, comparisons)))


def people_checks(comparisons: Sequence[Comparison], apart: Sequence[Level] = ()) -> Sequence[Check]:
    """Whether each judge agrees with people as they do among themselves, on each kind of things that both judged."""
    known = [finding for one in comparisons for finding in findings(one) if finding.trust != "unknown"]
    checks = [Check(f"{PEOPLE} {found.judge} on {found.level}", *_agreement(found)) for found in known]
    return checks or [no_people(apart)]


def _agreement(finding: Finding) -> tuple[Status, str, str]:
    """Status, finding and remedy.

    Where people repeat each other, the judge must agree with them as often as two of them do, on the same things; with
    nobody to hold it against, well beyond chance. One that agrees no more than by chance fails where kappa lies below
    that too.
    """
    kappa, said = finding.kappa, finding.sentence
    if finding.trust == "other scale":
        return "unknown", said, "Write the judge's grades on people's scale, such as 4 * x + 1 from 0..1 to 1..5."
    if kappa.value is not None:
        said += f" Kappa is {with_interval(kappa)}"
        said += f"; the bar is {ALPHA}." if finding.trust in ("above chance", "chance") else "."
    if finding.trust == "few":
        return "unknown", said, "Let people judge a random sample on more queries, on the pages."
    if finding.trust == "above chance" and kappa.value is None:
        return "unknown", said, "Let several people judge the same things, so that the judge can be held against them."
    if finding.trust == "beside people":
        return (
            "unknown",
            said,
            "Let several people judge more of the same things, so that the judge can be held against them.",
        )
    status: Status = "passed" if is_full(kappa) else settled(kappa, ALPHA)
    if finding.trust in ("as people", "below people"):
        status = "passed" if finding.trust == "as people" else "failed"
    read = "Read where they differ ('ragleague calibrate --disagreements 20')"
    remedy = f"{read}; decide by the figures that people correct (--estimates), or change the prompt or the judge."
    return status, said, remedy


def against_people(comparisons: Sequence[Comparison]) -> Table:
    """A line for each judge and level; programs get every coefficient."""
    keys = dict.fromkeys(chain.from_iterable(map(judge_figures, judges_of(comparisons))))
    columns = [*(replace(column, programs=False) for column in _AGAINST), *(Column(key, "") for key in keys)]
    return Table("judges-against-people", "Judges against people", columns, [*_rows(comparisons)])


def in_short(comparisons: Sequence[Comparison]) -> Table:
    """The same on few columns, with the decimals that the intervals deserve."""
    return replace(against_people(comparisons), name="judges-in-short", columns=_IN_SHORT)


def coefficient_tables(comparisons: Sequence[Comparison], whom: str) -> list[Table]:
    """Every coefficient of those judges that have it, and what is taken for what; ``whom`` they are held against."""
    people = [{"judge": "people", "what": one.what, **flat(one.orders or {})} for one in comparisons]
    rows = sorted([*people, *_rows(comparisons)], key=lambda row: [one.what for one in comparisons].index(row["what"]))
    tables = []
    for name, (title, columns) in _TABLES.items():
        known = [row for row in rows if any(column.value(row) is not None for column in columns)]
        if known:
            notes = [ORDERS] if name == "leaderboards" else []
            tables.append(Table(name, title.format(whom=whom), (*_WHO, *columns), known, notes))
    return [*tables, *alternative_table(judges_of(comparisons)), *confusions(comparisons)]


def alternative_table(judges: Sequence[JudgeAgainstPeople], name: str = "alternative-test") -> list[Table]:
    """The alternative annotator test, a line for each person left out; nothing where nobody can be."""
    rows: list[dict[str, Any]] = []
    notes = []
    for judge in judges:
        found = judge.alternative
        if judge.judge == PANEL or not found.raters:
            continue
        rows += [{"judge": judge.named, **flat(own)} for own in found.raters]
        notes.append(f"{judge.named}: {in_words(found, judge.unit)}")
    columns = [Column("judge", "Judge"), *(_by_unit(column, judges) for column in _REPLACED)]
    return [Table(name, "May the judge take a person's place?", columns, rows, notes)] if rows else []


def _by_unit(column: Column, judges: Sequence[JudgeAgainstPeople]) -> Column:
    """A column of what is by query, headed by what it is by."""
    if all(judge.unit == "query" for judge in judges):
        return column
    heading = {"clusters": "Conversations", "p_clustered": "p, by conversation"}.get(column.key, column.heading)
    return replace(column, heading=heading, meaning=column.meaning.replace("one query", "one conversation"))


def in_words(found: AlternativeTest, unit: Unit = "query") -> str:
    """What the test says, in a sentence."""
    few = (
        f" {counted(len(found.few), 'person', 'people')} left out, with fewer than {FEWEST} things."
        if found.few
        else ""
    )
    if found.winning_rate is None or found.winning_rate_clustered is None:
        return f"nobody judged {FEWEST} things together with another person and the judge.{few}"
    replaced = [round(share * len(found.raters)) for share in (found.winning_rate_clustered, found.winning_rate)]
    said = (
        f"it replaces {replaced[0]} of {counted(len(found.raters), 'person', 'people')} with epsilon "
        f"{found.epsilon:g}, tests by {UNITS[unit][0]}; {replaced[1]} if things of one {UNITS[unit][0]} were "
        "independent; the bar is half."
    )
    better = f"It agrees with the others at least as well as a person on {PERCENT.write(found.advantage)} of things."
    return f"{said} {better}{few}"


def alternative_json(found: AlternativeTest) -> dict[str, Any]:
    """All of it for programs."""
    verdicts = {"passed": found.passed, "passed_clustered": found.passed_clustered}
    return flat(found) | verdicts | {"raters": [flat(own) for own in found.raters]}


def confusions(comparisons: Sequence[Comparison]) -> list[Table]:
    """What people say against what the judge says, for each judge; of many groups they would fill pages."""
    tables = []
    for judge in judges_of(comparisons):
        if judge.labels is not None and judge.labels.scale and not judge.group:
            names = [OUTCOMES[label] for label in judge.labels.scale] if judge.level == "verdicts" else []
            title, name = f"What is taken for what: {judge.named}", slug("confusion", judge.named)
            tables.append(confusion(judge.labels, title, "People", "judge", names, name=name))
    return tables


def among_people(one: Comparison) -> dict[str, Any]:
    """What people say among themselves, for programs."""
    people, consensus = one.people, one.people.consensus
    row: dict[str, Any] = {
        "people": len(people.annotators),
        "votes": len(people.opinions),
        **_of(people, "things", "repeated"),
        "suspects": sum(person.above_chance is False for person in people.annotators),
        "pairs": people.within.pairs,
        "same": people.within.share,
    }
    if people.within_decided is not None:
        row |= {"decided_pairs": people.within_decided.pairs, "same_decided": people.within_decided.share}
    row |= _of(people.alpha, "alpha", "alpha_ordinal") | {"consensus": consensus.method}
    return flat(row | _of(consensus, "contested", "iterations", "converged")) | flat(one.orders or {})


def judge_figures(judge: JudgeAgainstPeople) -> dict[str, Any]:
    """A judge against people, for programs."""
    row: dict[str, Any] = {
        "group": judge.group or None,
        **_of(judge, "level", "judge", "n", "queries", "judge_only", "people_only"),
        "vote_pairs": judge.votes.pairs,
        "vote_agreement": judge.votes.share,
        "less_people": judge.less_people,
    }
    if (decided := judge.votes_decided) is not None:
        row |= {"decided_vote_pairs": decided.pairs, "decided_vote_agreement": decided.share}
    row |= _of(judge.labels, *(column.key for column in COEFFICIENTS))
    row |= _of(judge.correlations, *_CORRELATIONS) | _of(judge.differences, "bias", "lower", "upper")
    boards = _of(judge.boards, "agents", "kendall", "spearman")
    row |= {f"leaderboard_{name}": value for name, value in boards.items()}
    return flat(row) | flat(judge.orders or {})


def _rows(comparisons: Sequence[Comparison]) -> Iterator[dict[str, Any]]:
    for one in comparisons:
        for judge in one.judges.values():
            besides = {"what": one.what, "same": one.people.within.share, "coverage": judge.coverage}
            yield judge_figures(judge) | besides


def _of(record: Any, *names: str) -> dict[str, Any]:
    """Some fields of a record; nothing of ``None``."""
    return {} if record is None else {name: getattr(record, name) for name in names}


def _remarks(one: Comparison) -> Iterator[str]:
    label, people, consensus = (f"{one.group}: " if one.group else ""), one.people, one.people.consensus
    if consensus.converged is False:
        yield f"{label}Dawid and Skene's model has not converged after {consensus.iterations} steps"
    if consensus.contested and consensus.method == "majority":
        of_all = f"{consensus.contested:,} of {people.things:,} {THINGS[people.level]}"
        yield f"{label}consensus: majority of people; no value leads on {of_all}"
    suspects = [
        f"{who.rater} {FIGURE.write(who.kappa.value)}" for who in people.annotators if who.above_chance is False
    ]
    if suspects and not one.group:
        yield f"{label}not shown to agree with the others more than by chance (kappa): {listed(suspects, _MOST_NAMED)}"
    if (gain := one.gain) is not None:
        of_best = f"its best member {gain.best} {PERCENT.write(gain.best_agreement)}"
        bounds = "" if gain.gain.low is None else f" (difference {with_interval(gain.gain, SIGNED_2)})"
        yield f"{label}panel: {PERCENT.write(gain.agreement)} like people, {of_best}{bounds}"
    if ties := gain_from_ties(one):
        yield f"{label}panel: {ties}"
    for name, judge in one.judges.items():
        if beyond := outside_scale(judge):
            yield f"{label}{name}: {beyond}"
        if judge.queries < FEW_QUERIES:
            yield f"{label}{name}: {counted(judge.queries, *UNITS[judge.unit])} in common: intervals are rough"


_SUPPORT: Final = {value: label.value.replace("_", " ") for label, value in SUPPORT.items()}


def difference_charts(comparisons: Sequence[Comparison]) -> list[Chart]:
    """Bland and Altman's plot of every judge and level with values that have a distance; verdicts have none."""
    charts = map(difference_chart, judges_of(comparisons))
    return [chart for chart in charts if chart is not None]


def difference_chart(judge: JudgeAgainstPeople) -> Chart | None:
    """Bland and Altman's plot of one judge; ``None`` where values have no distance."""
    found = judge.differences
    if found is None or not found.points:
        return None
    ends = {"bias": found.bias.value, "upper limit": found.upper.value, "lower limit": found.lower.value}
    levels = {f"{what} {SIGNED_2.write(at)}": at for what, at in ends.items() if at is not None}
    told, most = ", ".join(levels), max(point.times for point in found.points)
    dots = [
        Dot(
            point.mean,
            point.difference,
            tooltip=f"{point.difference:+g} at {point.mean:g}, {counted(point.times, 'thing')}",
            size=point.times / most,
        )
        for point in found.points
    ]
    return Chart(
        slug("differences", judge.named),
        f"{judge.named}: {told}; {counted(found.n, 'thing')}",
        f"Bland and Altman's plot of {judge.named}: {told}.",
        "Above 0 the judge gives more than people. The line is the bias; between the dashed ones lie about 95% of all "
        "differences; the larger a mark, the more things lie there. Marks that fall or rise from left to right: the "
        "judge uses less, or more, of the scale than people do.",
        "Mean of judge and people",
        "Judge minus people",
        dots,
        levels=[Line(at, name, not name.startswith("bias")) for name, at in levels.items()],
    )


def disagreements(comparisons: Sequence[Comparison], texts: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """What judges and people see differently, with the texts that are known."""
    for judge in judges_of(comparisons):
        for found in judge.disagreements:
            of_judge, of_people, votes = said_of(judge.level, found)
            yield f"{found.query_id}: {' / '.join(found.item)}"
            yield f"  {judge.named}: {of_judge}; people: {of_people} ({votes})"
            for part in ("", *found.item):
                if (found.query_id, part) in texts:
                    yield f"  {part or 'query'}: {texts[found.query_id, part]}"


def disagreement_table(
    judge: JudgeAgainstPeople, found: Sequence[Disagreement], queries: Mapping[str, str], links: Sequence[str]
) -> Table:
    """What a judge and people see differently, with where each leads to; ``queries`` are texts by id."""
    rows = []
    for one, link in zip(found, links, strict=True):
        of_judge, of_people, _ = said_of(judge.level, one)
        row = {"query": clipped(queries.get(one.query_id) or one.query_id, 90), "link": link, "judge": of_judge}
        agreed = f"{sum(vote == one.people for vote in one.votes.values())} of {len(one.votes)}"
        rows.append(row | {"item": " / ".join(one.item), "people": of_people, "agreed": agreed})
    return Table("disagreements", "", _DISAGREEMENTS, rows)


def said_of(level: Level, found: Disagreement) -> tuple[str, str, str]:
    """What the judge, the people and each of them said, in words."""

    def worded(value: float) -> str:
        if level == "verdicts":
            return "a tie" if not value else f"{found.item[-2 if value > 0 else -1]} wins"
        return _SUPPORT.get(value, f"{value:g}") if level in ("nuggets", "support") else f"{value:g}"

    votes = ", ".join(f"{rater}: {worded(vote)}" for rater, vote in sorted(found.votes.items()))
    return worded(found.judge), worded(found.people), votes
