"""Blocks that compare judges with people: checks, agreement, coefficients, difference plots and disagreements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from arena.boards.conclusion import BY_PEOPLE, Conclusion, Finding, findings, is_full
from arena.boards.metrics import COEFFICIENTS, HEAD_WEIGHTED, confusion, correlation_columns
from arena.boards.quantities import ORDERS_AGREE
from arena.boards.trust import ALPHA, PEOPLE, VOTES, no_people
from arena.calibration.comparison import PANEL, Comparison, Disagreement, JudgeAgainstPeople, PanelGain
from arena.calibration.methods import PeopleScores, contradictions
from arena.calibration.votes import Level
from arena.data.kinds import kind_of
from arena.present.blocks import Block, Check, Checks, Remarks, Status, passed, settled
from arena.present.numbers import (
    ALIGNED,
    COUNT,
    FIGURE,
    P_VALUE,
    PERCENT,
    POINTS,
    SIGNED_2,
    capital,
    clipped,
    counted,
    listed,
    with_interval,
)
from arena.present.picture import Chart, Dot, Look, Whiskers, of_table
from arena.present.picture import LevelLine as Line
from arena.present.table import INTERVAL, ORDERS, Column, Table, fields, flat
from arena.ratings.games import Unit
from arena.ratings.results import UNITS, Ratings
from judges.types import GameOutcome
from retrieval_eval.stats.alternative import FEWEST, AlternativeTest
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.paired import holm

_MOST_NAMED: Final = 8
_LEVEL: Final = 0.05
_LABELS: Final[Mapping[str, str]] = {"verdicts": "People's votes", "criteria": "People's grades"}
_WHO: Final = (Column("judge", "Judge", programs=False), Column("what", "Judged", programs=False))
_AMONG: Final = (
    Column("what", "Judged", meaning="Kind of the judged items, and their group if there is one."),
    Column("people", "People", COUNT),
    Column("votes", "Votes", COUNT),
    Column("things", "Things", COUNT),
    Column("repeated", "By several", COUNT, "Things that two people or more judged."),
    Column("same", "Two people agree", PERCENT, "How often two people say the same of one thing.", INTERVAL),
    Column("same_decided", "Without ties", PERCENT, "How often two people agree on what neither calls a tie."),
    Column("alpha", "Alpha", FIGURE, interval=INTERVAL),
    Column("alpha_ordinal", "Alpha, ordinal", FIGURE),
    Column("suspects", "Not above chance", COUNT, "People not shown to agree with the others more than by chance."),
)
_N: Final = Column("n", "Things", COUNT, "Judged by this judge and by people.")
_VOTES: Final = Column("vote_agreement", "Agrees with a vote", PERCENT, interval=INTERVAL)
_GAP: Final = Column(
    "less_people",
    "Judge minus two people",
    SIGNED_2,
    "Agreement with a vote minus agreement of two people, on the same things.",
    INTERVAL,
)
_SAME: Final = Column("same", "Two people agree", PERCENT, "How often two people say the same of one thing.")
_BIAS: Final = Column("bias", "Bias", SIGNED_2, "Mean of judge minus people; verdicts have none.", INTERVAL)
_FEWEST_THINGS, _FEWEST_QUERIES = 10, 3
_TOO_FEW: Final = Column(
    "too_few",
    "Too few to tell",
    meaning=f"Fewer than {_FEWEST_THINGS} things, or {_FEWEST_QUERIES} queries, show no agreement.",
)
_SHOWN: Final = "shown_"
"""Prefix of the keys of columns for people, which leave out what too few things are behind."""
_AGAINST: Final = (
    *_WHO,
    _N,
    Column("coverage", "Coverage", PERCENT, "Share of the things judged by people that the judge judged too."),
    _VOTES,
    Column("decided_vote_agreement", "Without ties", PERCENT, "Agreement with a vote where neither side calls a tie."),
    _SAME,
    _GAP,
    Column("kappa", "Kappa", FIGURE, interval=INTERVAL),
    _BIAS,
)
_IN_SHORT: Final = (*_WHO, _N, _VOTES, _SAME, Column("kappa", "Kappa", FIGURE), _TOO_FEW)
_DISAGREEMENTS: Final = (
    Column("query", "Query", link="link"),
    Column("item", "What"),
    Column("judge", "Judge"),
    Column("people", "People"),
    Column("agreed", "People who say so", ALIGNED),
)
_REPLACED: Final = (
    Column("rater", "Person left out"),
    Column("items", "Things", COUNT, "Judged by this person, by another person and by the judge."),
    Column("clusters", "Queries", COUNT),
    Column("advantage", "Judge as good", PERCENT, "Share on which the judge agrees with the others at least as well."),
    Column(
        "difference", "Person better", SIGNED_2, "Share that the person wins minus share that the judge wins.", INTERVAL
    ),
    Column(
        "p_value", "p, published", P_VALUE, "Tests whether the judge is worse by epsilon or more; things independent."
    ),
    Column("p_clustered", "p, by query", P_VALUE, "Like p, published, but things of one query depend on each other."),
)
_CORRELATIONS: Final = {"pearson": "Pearson", "spearman": "Spearman's rho", "kendall": "Kendall's tau-b"}
_LIMITS: Final = "About 95% of all differences lie between the limits of agreement."
_SAME_THINGS: Final = (
    "Both orders are of the things that both judged, a tie half a win. Kendall's tau of two ways of scoring is another "
    "figure: of all games and all votes."
)
_TABLES: Final[Mapping[str, tuple[str, Sequence[Column]]]] = {
    "agreement": ("Agreement with {whom}", COEFFICIENTS),
    "correlation": ("Correlation with {whom}", [*correlation_columns(_CORRELATIONS)]),
    "limits": (
        "Judge minus people",
        (_BIAS, Column("lower", "Lower limit", SIGNED_2, _LIMITS), Column("upper", "Upper limit", SIGNED_2, _LIMITS)),
    ),
    "leaderboards": (
        "Orders of the agents by judge and by people, on the things that both judged",
        (
            Column("leaderboard_agents", "Agents", COUNT),
            *correlation_columns({"leaderboard_kendall": "Tau of these", "leaderboard_spearman": "Rho of these"}),
            *(Column(f"leaderboard_{key}", name, FIGURE) for key, name in HEAD_WEIGHTED.items()),
        ),
    ),
    "places": (
        "Places",
        (
            Column("verdicts", "Verdicts", COUNT),
            Column("tie_rate", "Ties", PERCENT),
            Column("both_orders", "Both orders", COUNT, "Games judged in both orders."),
            ORDERS_AGREE,
            Column("first_share", "First shown wins", PERCENT, "Of verdicts with a winner.", INTERVAL),
        ),
    ),
}

OUTCOME_WORDS: Final = {GameOutcome.FIRST: "first wins", GameOutcome.TIE: "tie", GameOutcome.SECOND: "second wins"}
"""Words for the outcome of a game; its first agent is the agent whose name comes first in alphabetical order."""
_LOOKS: Final[Mapping[Look, str]] = {"blue": "vote_agreement", "orange": "same"}
_ALIKE: Final = "How often a judge says what a person says, beside how often two people agree."
_MEASURED: Final = "Compare each judge with the agreement of people. Whiskers: 95% intervals over queries."


def judges_of(comparisons: Sequence[Comparison]) -> list[JudgeAgainstPeople]:
    return [judge for comparison in comparisons for judge in comparison.judges.values()]


def slug(*words: str) -> str:
    return re.sub(r"\W+", "-", "-".join(words).lower())


def people_blocks(comparisons: Sequence[Comparison]) -> list[Block]:
    if not comparisons:
        return []
    grouped = any(comparison.group for comparison in comparisons)  # checks of many groups would fill pages
    remarks = remarks_of(comparisons)
    return [
        *([] if grouped else [Checks(people_checks(comparisons))]),
        *votes_picture(comparisons),
        against_people(comparisons),
        among_table(comparisons),
        *([Remarks(remarks)] if remarks else []),
    ]


def votes_picture(comparisons: Sequence[Comparison]) -> list[Whiskers]:
    caption = " ".join([_ALIKE, _MEASURED, *_not_drawn(comparisons)])
    return of_table(in_short(comparisons), _LOOKS, "votes alike", _ALIKE, caption=caption, names=len(_WHO))


def too_few(judge: JudgeAgainstPeople) -> str:
    """Say that the agreement is on too few things, with their number; empty if they are enough."""
    if judge.n >= _FEWEST_THINGS and judge.queries >= _FEWEST_QUERIES:
        return ""
    return f"too few: {counted(judge.n, 'thing')} of {counted(judge.queries, *UNITS[judge.unit])}"


def _not_drawn(comparisons: Sequence[Comparison]) -> list[str]:
    named = [f"{judge.named} ({words})" for judge in judges_of(comparisons) if (words := too_few(judge))]
    return [f"Not drawn: {listed(named, _MOST_NAMED)}."] if named else []


def among_table(comparisons: Sequence[Comparison]) -> Table:
    rows = [flat(among_people(comparison)) | {"what": comparison.what} for comparison in comparisons]
    return Table("people", "People among themselves", _AMONG, rows)


def remarks_of(comparisons: Sequence[Comparison]) -> list[str]:
    return list(chain.from_iterable(map(_remarks, comparisons)))


def people_checks(comparisons: Sequence[Comparison], apart: Sequence[Level] = ()) -> Sequence[Check]:
    """Check whether each judge agrees with people as often as people agree with each other.

    If nothing can be compared, the one check is unknown; it names the levels in ``apart``, such as labels, which
    judges and people both judged, but on different items.
    """
    known = [finding for comparison in comparisons for finding in findings(comparison) if finding.trust != "unknown"]
    checks = [Check(f"{PEOPLE} {finding.judge} on {finding.level}", *_agreement(finding)) for finding in known]
    return checks or [no_people(apart)]


def _agreement(finding: Finding) -> tuple[Status, str, str]:
    """Status, finding and remedy of the check that compares one judge with people.

    If several people judged the same items, the judge must agree with them as often as two of them agree. Otherwise it
    must agree well beyond chance: kappa is compared with a threshold.
    """
    kappa, sentence = finding.kappa, finding.sentence
    if finding.trust == "other scale":
        return "unknown", sentence, "Write the judge's grades on people's scale, such as 4 * x + 1 from 0..1 to 1..5."
    if kappa.value is not None:
        sentence += f" Kappa is {with_interval(kappa)}"
        sentence += f"; the bar is {ALPHA}." if finding.trust in ("above chance", "chance") else "."
    if finding.trust == "few":
        return "unknown", sentence, "Let people judge a random sample on more queries, on the pages."
    if finding.trust == "beside people" or (finding.trust == "above chance" and kappa.value is None):
        more = "more of " if finding.trust == "beside people" else ""
        remedy = f"Let several people judge {more}the same things, so that the judge can be held against them."
        return "unknown", sentence, remedy
    status: Status = "passed" if is_full(kappa) else settled(kappa, ALPHA)
    if finding.trust in ("as people", "below people"):
        status = "passed" if finding.trust == "as people" else "failed"
    read = "Read where they differ ('ragleague calibrate --disagreements 20')"
    remedy = f"{read}; decide by the figures that people correct (--estimates), or change the prompt or the judge."
    return status, sentence, remedy


def evidence_checks(
    ratings: Ratings | None,
    conclusion: Conclusion,
    comparisons: Sequence[Comparison],
    scores: Sequence[PeopleScores],
) -> Sequence[Check]:
    """Check that people's labels do not contradict the leaderboard; no check if people labelled too little to tell.

    They contradict it if they reverse an order that it states, or if the judge's figures, corrected by them, lie
    elsewhere than the judge says.
    """
    reversed_orders, tested = ([], 0) if ratings is None else _reversed(ratings, conclusion, scores)
    off, corrected = _off(comparisons)
    if not tested and not corrected:
        return []
    held = "No order that the leaderboard states is reversed by people's labels" if tested else ""
    right = "no figure of the judge is off by more than chance" if corrected else ""
    sentences = [*reversed_orders, *off] or [capital(f"{', and '.join(filter(None, (held, right)))}.")]
    remedy = (
        "Read where judge and people differ ('ragleague calibrate --disagreements 20'), and decide by the figures that "
        "people correct ('ragleague calibrate --estimates')."
    )
    return [Check(BY_PEOPLE, passed(not reversed_orders and not off), " ".join(sentences), remedy)]


def _reversed(ratings: Ratings, conclusion: Conclusion, scores: Sequence[PeopleScores]) -> tuple[list[str], int]:
    """Sentences on orders that people's labels reverse, and the number of agents with enough labels.

    The orders are first those of the leaders and the agents behind them, then all others that the ratings are sure of.
    """
    points = {row.agent: row.bt for row in ratings.agents}
    sure = [(pair.better, pair.worse) for pair in ratings.pairs if pair.separable] if conclusion.ordered else []
    leading = [
        (first, other)
        for first in conclusion.top
        for other in points
        if other not in conclusion.top and points[first] > points[other]
    ]
    sentences, named = list[str](), set[str]()
    for stated in (leading, [pair for pair in sure if pair not in set(leading)]):
        found = contradictions(scores, stated)
        for own in scores:
            reversals = [contradiction for contradiction in found if contradiction.level == own.level]
            if reversals and own.level not in named:  # what is said of the leaders is enough
                named.add(own.level)
                sentences.append(_said_otherwise(ratings, own, stated, len(reversals)))
    return sentences, sum(min(own.seen.values(), default=0) >= FEW_QUERIES for own in scores)


def _said_otherwise(ratings: Ratings, scores: PeopleScores, stated: Sequence[tuple[str, str]], reversals: int) -> str:
    """Sentence on the order of highest place that people reverse, by the agent that they rank highest if possible."""
    points = {row.agent: row.bt for row in ratings.agents}
    by_people = dict(zip(scores.drawn.agents, scores.drawn.points.tolist(), strict=True))
    known = [(better, worse) for better, worse in stated if {better, worse} <= by_people.keys()]
    differences = {(better, worse): scores.above(worse, better)[0] for better, worse in known}
    sure = [pair for pair, difference in differences.items() if difference.low is not None and difference.low > 0]
    better, worse = max(sure, key=lambda pair: (points[pair[0]], by_people[pair[1]]))
    first = "first, " if by_people[worse] == max(by_people.values()) else ""
    form, unit = (POINTS, " points") if scores.level == "verdicts" else (FIGURE, "")
    sentence = (
        f"{_LABELS.get(scores.level, f'People on {scores.level}')} rank {worse} {first}"
        f"{with_interval(differences[better, worse], form)}{unit} above {better}; the games say the reverse, by "
        f"{POINTS.write(points[better] - points[worse])} points."
    )
    return sentence + (f" They reverse {counted(reversals, 'such order')} in all." if reversals > 1 else "")


def _off(comparisons: Sequence[Comparison]) -> tuple[list[str], int]:
    """Sentences on figures of the judge that people's labels correct by more than chance; the number corrected.

    The panel decides where there are several judges. The test is of the judge's bias, with Holm's correction over
    all figures; the sentences count the figures outside the corrected 95 % interval, as the board of corrections does.
    """
    figures = [
        (comparison.people.level, judge.judge, name, figure)
        for comparison in comparisons
        for judge in ([comparison.judges[PANEL]] if PANEL in comparison.judges else comparison.judges.values())
        if judge.estimates is not None and not judge.other_scale
        for name, figure in judge.estimates.figures.items()
        if figure.corrected.low is not None and figure.queries >= FEW_QUERIES
    ]
    if not figures:
        return [], 0
    rejected = holm(np.array([figure.p_bias for *_, figure in figures])) <= _LEVEL
    sentences = []
    for level, judge in dict.fromkeys((level, judge) for level, judge, *_ in figures):
        own = [place for place, (*key, _, _) in enumerate(figures) if key == [level, judge]]
        if not rejected[own].any():
            continue
        things, form = ("win rates", PERCENT) if level == "verdicts" else (f"means of {kind_of(level).things}", FIGURE)
        outside = [place for place in own if figures[place][-1].correction > 1]
        outside = outside or [place for place in own if rejected[place]]
        *_, name, worst = figures[max(outside, key=lambda place: figures[place][-1].correction)]
        sentences.append(
            f"Corrected by people's labels, {len(outside)} of {len(own)} {things} lie elsewhere than "
            f"{judge} says: {name} at {with_interval(worst.corrected.within(*worst.ends), form)}, not "
            f"{form.write(worst.judge.value)}."
        )
    return sentences, len(figures)


def against_people(comparisons: Sequence[Comparison]) -> Table:
    keys = dict.fromkeys(chain.from_iterable(map(judge_figures, judges_of(comparisons))))
    against = [*_AGAINST, *([_TOO_FEW] if any(map(too_few, judges_of(comparisons))) else [])]
    shown = [replace(column, key=f"{_SHOWN}{column.key}", programs=False) for column in against]
    rows = [
        {**row, **{f"{_SHOWN}{key}": value for key, value in own.items()}}
        for row, own in zip(_rows(comparisons), _enough(comparisons), strict=True)
    ]
    columns = [*shown, *(Column(key, "") for key in keys)]
    return Table("judges-against-people", "Judges against people", columns, rows)


def in_short(comparisons: Sequence[Comparison]) -> Table:
    several = (own.people.repeated for own in comparisons for _ in own.judges)
    rows = [
        row if repeated >= FEW_QUERIES else {**row, "same": None, "same_low": None, "same_high": None}
        for row, repeated in zip(_enough(comparisons), several, strict=True)
    ]
    return Table("judges-in-short", "Judges against people", _IN_SHORT, rows)


def coefficient_tables(comparisons: Sequence[Comparison], whom: str) -> list[Table]:
    """Tables that compare judges with people: coefficients, the alternative annotator test, and confusion matrices."""
    people = [
        {"judge": "people", "what": comparison.what, **flat(comparison.orders or {})} for comparison in comparisons
    ]
    order = [comparison.what for comparison in comparisons]
    rows = sorted([*people, *_rows(comparisons)], key=lambda row: order.index(row["what"]))
    tables = []
    for name, (title, columns) in _TABLES.items():
        known = [row for row in rows if any(column.value(row) is not None for column in columns)]
        if known:
            notes = [_SAME_THINGS, ORDERS] if name == "leaderboards" else []
            tables.append(Table(name, title.format(whom=whom), (*_WHO, *columns), known, notes))
    return [*tables, *alternative_table(judges_of(comparisons)), *confusions(comparisons)]


def alternative_table(judges: Sequence[JudgeAgainstPeople], name: str = "alternative-test") -> list[Table]:
    """Table of the alternative annotator test, a row for each judge and each person that it is compared with.

    The list is empty if no judge could be tested.
    """
    rows: list[dict[str, Any]] = []
    notes = []
    for judge in judges:
        test = judge.alternative
        if judge.judge == PANEL or not test.raters:
            continue
        rows += [{"judge": judge.named, **flat(rater)} for rater in test.raters]
        notes.append(f"{judge.named}: {in_words(test, judge.unit)}")
    columns = [Column("judge", "Judge"), *(_by_unit(column, judges) for column in _REPLACED)]
    return [Table(name, "May the judge take a person's place?", columns, rows, notes)] if rows else []


def _by_unit(column: Column, judges: Sequence[JudgeAgainstPeople]) -> Column:
    """Replace "query" by "conversation" in a column's heading and meaning if a judge's statistics use conversations."""
    if all(judge.unit == "query" for judge in judges):
        return column
    heading = {"clusters": "Conversations", "p_clustered": "p, by conversation"}.get(column.key, column.heading)
    return replace(column, heading=heading, meaning=column.meaning.replace("one query", "one conversation"))


def in_words(test: AlternativeTest, unit: Unit = "query") -> str:
    few = (
        f" {counted(len(test.few), 'person', 'people')} left out, with fewer than {FEWEST} things." if test.few else ""
    )
    if test.winning_rate is None or test.winning_rate_clustered is None:
        return f"nobody judged {FEWEST} things together with another person and the judge.{few}"
    replaced = [round(share * len(test.raters)) for share in (test.winning_rate_clustered, test.winning_rate)]
    outcome = (
        f"it replaces {replaced[0]} of {counted(len(test.raters), 'person', 'people')} with epsilon "
        f"{test.epsilon:g}, tests by {UNITS[unit][0]}; {replaced[1]} if things of one {UNITS[unit][0]} were "
        "independent; the bar is half."
    )
    better = f"It agrees with the others at least as well as a person on {PERCENT.write(test.advantage)} of things."
    return f"{outcome} {better}{few}"


def alternative_json(test: AlternativeTest) -> dict[str, Any]:
    verdicts = {"passed": test.passed, "passed_clustered": test.passed_clustered}
    return flat(test) | verdicts | {"raters": [flat(rater) for rater in test.raters]}


def confusions(comparisons: Sequence[Comparison]) -> list[Table]:
    tables = []
    for judge in judges_of(comparisons):
        if judge.labels is not None and judge.labels.scale and not judge.group:
            outcomes = judge.labels.scale if judge.level == "verdicts" else ()
            names = [OUTCOME_WORDS[GameOutcome(int(outcome))] for outcome in outcomes]
            title, name = f"What is taken for what: {judge.named}", slug("confusion", judge.named)
            tables.append(confusion(judge.labels, title, "People", "judge", names, name=name))
    return tables


def among_people(comparison: Comparison) -> dict[str, Any]:
    people, consensus = comparison.people, comparison.people.consensus
    row: dict[str, Any] = {
        "people": len(people.annotators),
        "votes": len(people.opinions),
        **fields(people, "things", "repeated"),
        "suspects": sum(person.above_chance is False for person in people.annotators),
        "pairs": people.within.pairs,
        "same": people.within.share,
    }
    if people.within_decided is not None:
        row |= {"decided_pairs": people.within_decided.pairs, "same_decided": people.within_decided.share}
    row |= fields(people.alpha, "alpha", "alpha_ordinal") | {"consensus": consensus.method}
    return flat(row | fields(consensus, "contested", "iterations", "converged")) | flat(comparison.orders or {})


def judge_figures(judge: JudgeAgainstPeople) -> dict[str, Any]:
    row: dict[str, Any] = {
        "group": judge.group or None,
        **fields(judge, "level", "judge", "n", "queries", "judge_only", "people_only"),
        "vote_pairs": judge.votes.pairs,
        "vote_agreement": judge.votes.share,
        "less_people": judge.less_people,
    }
    if (decided := judge.votes_decided) is not None:
        row |= {"decided_vote_pairs": decided.pairs, "decided_vote_agreement": decided.share}
    row |= fields(judge.labels, *(column.key for column in COEFFICIENTS))
    row |= fields(judge.correlations, *_CORRELATIONS) | fields(judge.differences, "bias", "lower", "upper")
    boards = fields(judge.boards, "agents", "kendall", "spearman")
    boards |= fields(judge.boards.head if judge.boards is not None else None, *HEAD_WEIGHTED)
    row |= {f"leaderboard_{name}": value for name, value in boards.items()}
    return flat(row) | flat(judge.orders or {})


def _enough(comparisons: Sequence[Comparison]) -> Iterator[dict[str, Any]]:
    """The rows of ``_rows`` without the figures that too few things are behind; they say so instead."""
    for judge, row in zip(judges_of(comparisons), _rows(comparisons), strict=True):
        words = too_few(judge)
        known = {key: row.get(key) for key in ("judge", "what", "n", "coverage")} if words else row
        yield known | {"too_few": words or None}


def _rows(comparisons: Sequence[Comparison]) -> Iterator[dict[str, Any]]:
    for comparison in comparisons:
        for judge in comparison.judges.values():
            context = {"what": comparison.what, "same": comparison.people.within.share, "coverage": judge.coverage}
            yield judge_figures(judge) | context


def _remarks(comparison: Comparison) -> Iterator[str]:
    people, consensus = comparison.people, comparison.people.consensus
    label = f"{comparison.group}: " if comparison.group else ""
    if consensus.converged is False:
        yield f"{label}Dawid and Skene's model has not converged after {consensus.iterations} steps"
    if consensus.contested and consensus.method == "majority":
        contested = f"{consensus.contested:,} of {people.things:,} {kind_of(people.level).things}"
        yield f"{label}consensus: majority of people; no value leads on {contested}"
    suspects = [
        f"{annotator.rater} {FIGURE.write(annotator.kappa.value)}"
        for annotator in people.annotators
        if annotator.above_chance is False
    ]
    if suspects and not comparison.group:
        yield f"{label}not shown to agree with the others more than by chance (kappa): {listed(suspects, _MOST_NAMED)}"
    if (gain := comparison.gain) is not None:
        best = f"its best member {gain.best} {PERCENT.write(gain.best_agreement)}"
        bounds = "" if gain.gain.low is None else f" (difference {with_interval(gain.gain, SIGNED_2)})"
        yield f"{label}panel: {PERCENT.write(gain.agreement)} like people, {best}{bounds}"
        yield from (f"{label}panel: {sentence}" for sentence in _of_panel(gain, len(comparison.judges) - 1))
    if ties := gain_from_ties(comparison):
        yield f"{label}panel: {ties}"
    for name, judge in comparison.judges.items():
        if outside := outside_scale(judge):
            yield f"{label}{name}: {outside}"
        if too_few(judge):
            yield f"{label}{name}: {too_few(judge)}: no agreement can be told from these"
        elif judge.queries < FEW_QUERIES:
            yield f"{label}{name}: {counted(judge.queries, *UNITS[judge.unit])} in common: intervals are rough"


def _of_panel(gain: PanelGain, judges: int) -> Iterator[str]:
    """What a panel is worth, and that its majority is worse than its best judge."""
    if gain.votes.value is not None and judges > 1:
        yield f"{judges} judges are worth {with_interval(gain.votes, VOTES)} independent votes: they err together"
    points = gain.points
    if points is not None and points.majority < points.best_points:
        chance = ", more than chance explains" if points.worse else ""
        yield (
            f"its majority is right in {PERCENT.write(points.majority)}, {points.best} alone in "
            f"{PERCENT.write(points.best_points)}, a tie half{chance}"
        )


def gain_from_ties(comparison: Comparison) -> str:
    """Say how much of the panel's gain over its best judge comes from games on which people tie; empty if none does."""
    gain = comparison.gain
    if gain is None or not gain.gain_on_ties or gain.gain_on_ties < 0 or gain.agreement <= gain.best_agreement:
        return ""
    other_gain = gain.agreement - gain.best_agreement - gain.gain_on_ties
    return (
        f"of the difference {SIGNED_2.write(gain.gain_on_ties)} comes from the {gain.gold_ties:,} games on which "
        f"people tie, {SIGNED_2.write(other_gain)} from the others: a panel ties wherever no verdict leads"
    )


def outside_scale(judge: JudgeAgainstPeople) -> str:
    """Say which of the judge's values lie outside the range of people's values, and how often; empty if none does."""
    if not judge.outside or judge.people_range is None:
        return ""
    values = ", ".join(f"{value:g} ({count:,})" for value, count in judge.outside)
    low, high = judge.people_range
    return f"values {values} lie outside the {low:g} to {high:g} of people: kappa counts each as a label of its own"


def difference_charts(comparisons: Sequence[Comparison]) -> list[Chart]:
    charts = map(difference_chart, judges_of(comparisons))
    return [chart for chart in charts if chart is not None]


def difference_chart(judge: JudgeAgainstPeople) -> Chart | None:
    """Bland-Altman plot of one judge's values against people's; ``None`` for verdicts, or if no item has both."""
    differences = judge.differences
    if differences is None or not differences.points:
        return None
    limits = {"bias": differences.bias, "upper limit": differences.upper, "lower limit": differences.lower}
    known = {name: limit.value for name, limit in limits.items() if limit.value is not None}
    levels = {f"{name} {SIGNED_2.write(limit)}": limit for name, limit in known.items()}
    summary, most = ", ".join(levels), max(point.times for point in differences.points)
    dots = [
        Dot(
            point.mean,
            point.difference,
            tooltip=f"{point.difference:+g} at {point.mean:g}, {counted(point.times, 'thing')}",
            size=point.times / most,
        )
        for point in differences.points
    ]
    return Chart(
        slug("differences", judge.named),
        f"{judge.named}: {summary}; {counted(differences.n, 'thing')}",
        f"Bland and Altman's plot of {judge.named}: {summary}.",
        "Above 0 the judge gives more than people. The line is the bias; between the dashed ones lie about 95% of all "
        "differences; the larger a mark, the more things lie there. Marks that fall or rise from left to right: the "
        "judge uses less, or more, of the scale than people do.",
        "Mean of judge and people",
        "Judge minus people",
        dots,
        levels=[Line(limit, name, not name.startswith("bias")) for name, limit in levels.items()],
    )


def disagreements(comparisons: Sequence[Comparison], texts: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Lines of text about each item on which a judge and people differ.

    ``texts`` has the texts of queries, answers and documents by query id and name; the name of a query's own text is
    empty.
    """
    for judge in judges_of(comparisons):
        for disagreement in judge.disagreements:
            query_id = disagreement.query_id
            judge_words, people_words, votes = value_words(judge.level, disagreement)
            yield f"{query_id}: {' / '.join(disagreement.item)}"
            yield f"  {judge.named}: {judge_words}; people: {people_words} ({votes})"
            for part in ("", *disagreement.item):
                if (query_id, part) in texts:
                    yield f"  {part or 'query'}: {texts[query_id, part]}"


def disagreement_table(
    judge: JudgeAgainstPeople, items: Sequence[Disagreement], queries: Mapping[str, str], links: Sequence[str]
) -> Table:
    rows = []
    for disagreement, link in zip(items, links, strict=True):
        judge_words, people_words, _ = value_words(judge.level, disagreement)
        query, votes = queries.get(disagreement.query_id) or disagreement.query_id, disagreement.votes
        row = {"query": clipped(query, 90), "link": link, "judge": judge_words}
        agreed = f"{sum(vote == disagreement.people for vote in votes.values())} of {len(votes)}"
        rows.append(row | {"item": " / ".join(disagreement.item), "people": people_words, "agreed": agreed})
    return Table("disagreements", "", _DISAGREEMENTS, rows)


def value_words(level: Level, disagreement: Disagreement) -> tuple[str, str, str]:
    """Words for the judge's value of an item, for people's consensus and for each person's vote."""
    words = kind_of(level).words

    def worded(value: float) -> str:
        if level == "verdicts":
            return "a tie" if not value else f"{disagreement.item[-2 if value > 0 else -1]} wins"
        return words.get(value, f"{value:g}")

    votes = ", ".join(f"{rater}: {worded(vote)}" for rater, vote in sorted(disagreement.votes.items()))
    return worded(disagreement.judge), worded(disagreement.people), votes
