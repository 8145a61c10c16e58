"""Judges held against people, in words: what may be said of each, with its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from arena.present.numbers import PERCENT, SIGNED_2, counted, with_interval
from arena.ratings.results import UNITS
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.calibration.comparison import Comparison, JudgeAgainstPeople
    from arena.calibration.methods import MethodComparison, MethodPair
    from arena.calibration.votes import Level

Trust: TypeAlias = Literal[
    "unknown", "other scale", "few", "chance", "below people", "beside people", "as people", "above chance"
]

THINGS: Final[dict[Level, str]] = {
    "verdicts": "games",
    "labels": "documents",
    "criteria": "grades",
    "nuggets": "nuggets",
    "support": "citations",
}
"""What is judged on each level, many of them."""

MARGIN: Final = 0.05
"""By how much less than people a judge may agree with them and still do as they do; as much as a gate allows."""
_BESIDE: Final[dict[Trust, str]] = {
    "below people": "It agrees with people less than they do among themselves.",
    "as people": f"It agrees with people as they do among themselves, or less by {MARGIN:g} at most.",
    "beside people": f"These votes do not show whether it agrees less than people do, by more than {MARGIN:g}.",
}

OUTCOMES: Final = {1: "first wins", 0: "tie", -1: "second wins"}
"""Values of a verdict; the first of two agents is the one whose name comes first."""


class Finding(Struct, frozen=True):
    """Whether a judge can be trusted on one level.

    Attributes:
        level: what was judged.
        judge: its name, which comes from outside.
        trust: ``unknown``: nothing both judged; ``other scale``: their values cannot be compared; ``few``: on too few
            queries; ``chance``: not shown to agree more than chance would; ``below people``: it agrees with a vote less
            than two people do; ``as people``: it does not, or by less than ``MARGIN``; ``beside people``: the votes do
            not show which; ``above chance``: there are no two people to hold against.
        sentence: the same in words, with the figures.
        kappa: Cohen's, against the consensus of people; without a value where values are no labels.
    """

    level: Level
    judge: str
    trust: Trust
    sentence: str
    kappa: Estimate


def findings(comparison: Comparison) -> tuple[Finding, ...]:
    """One for each judge."""
    return tuple(_finding(comparison, judge) for judge in comparison.judges.values())


def gain_from_ties(comparison: Comparison) -> str:
    """How much of a panel's gain over its best member comes from people's ties; empty where none does."""
    own = comparison.gain
    if own is None or not own.gain_on_ties or own.gain_on_ties < 0 or own.agreement <= own.best_agreement:
        return ""
    elsewhere = own.agreement - own.best_agreement - own.gain_on_ties
    return (
        f"of the difference {SIGNED_2.write(own.gain_on_ties)} comes from the {own.gold_ties:,} games on which people "
        f"tie, {SIGNED_2.write(elsewhere)} from the others: a panel ties wherever no verdict leads"
    )


def outside_scale(judge: JudgeAgainstPeople) -> str:
    """Which values of a judge lie beyond those of people, with how many things have it; empty where none does."""
    if not judge.outside or judge.people_range is None:
        return ""
    values = ", ".join(f"{value:g} ({count:,})" for value, count in judge.outside)
    low, high = judge.people_range
    return f"values {values} lie outside the {low:g} to {high:g} of people: kappa counts each as a label of its own"


def least_and_most_alike(found: MethodComparison) -> tuple[MethodPair, MethodPair] | None:
    """The two methods whose orders of agents differ most, and those that are most alike, by Kendall's tau."""
    known = [pair for pair in found.pairs if pair.kendall.value is not None]
    if not known:
        return None
    return min(known, key=_tau), max(known, key=_tau)


def _tau(pair: MethodPair) -> float:
    return pair.kendall.value or 0.0


def _finding(comparison: Comparison, judge: JudgeAgainstPeople) -> Finding:
    trust = _trust(comparison, judge)
    kappa = Estimate(None) if judge.labels is None else judge.labels.kappa
    return Finding(judge.level, judge.judge, trust, _sentence(comparison, judge, trust), kappa)


def _sentence(comparison: Comparison, judge: JudgeAgainstPeople, trust: Trust) -> str:
    what, within, share = THINGS[judge.level], comparison.people.within.share, judge.votes.share
    if trust == "unknown":
        return f"{judge.judge} and people judged none of the same {what}."
    if trust == "other scale" and judge.judge_range and judge.people_range:
        ranges = [f"{low:g} to {high:g}" for low, high in (judge.judge_range, judge.people_range)]
        return (
            f"The scales differ: {judge.judge} gave {ranges[0]}, and people {ranges[1]}, on "
            f"{counted(judge.n, what[:-1], what)}. Agreement, kappa and bias mean nothing before both are on one "
            f"scale; rank correlation does: Spearman's is {with_interval(judge.correlations.spearman)}."
        )
    said = f"{judge.judge} says what a person says in {with_interval(share, PERCENT)} of cases"
    said += f", on {counted(judge.n, what[:-1], what)} of {counted(judge.queries, *UNITS[judge.unit])}"
    if trust == "few":
        return f"{said}. That is too little to trust or distrust it."
    if trust == "chance":
        return f"{said}. It is not shown to agree with people more than chance would."
    if trust == "above chance":
        more = "That is more than chance. How often two people agree is not known: let several judge the same things."
        return f"{said}. {more}"
    among = f"two people agree in {with_interval(within, PERCENT)}"
    gap = judge.less_people
    on_same = "nobody repeated a vote on what it judged"
    if gap.value is not None:
        on_same = f"on {what} with votes of two people the difference is {with_interval(gap, SIGNED_2)}"
    return f"{said}; {among}; {on_same}. {_BESIDE[trust]}"


def is_full(found: Estimate) -> bool:
    """Whether all agree: no resample differs then, and there is no interval."""
    return found.value == 1 and found.low is None


def _trust(comparison: Comparison, judge: JudgeAgainstPeople) -> Trust:
    within, share = comparison.people.within.share, judge.votes.share
    if not judge.n or share.value is None:
        return "unknown"
    if judge.other_scale:
        return "other scale"
    if judge.queries < FEW_QUERIES:
        return "few"
    beyond = judge.labels.kappa if judge.labels is not None else judge.correlations.spearman
    if not is_full(beyond) and (beyond.low is None or beyond.low <= 0):
        return "chance"
    if within.value is None:
        return "above chance"
    return _beside(judge.less_people)


def _beside(gap: Estimate) -> Trust:
    """What the difference from people allows to be said."""
    if gap.value is None or (gap.n or 0) < FEW_QUERIES:
        return "beside people"
    if gap.low is None or gap.high is None:  # no query differs from another, so nothing shows how others may
        return "beside people"
    if gap.high < 0:
        return "below people"
    return "as people" if gap.low > -MARGIN else "beside people"
