"""Judges compared with people, in words: a finding for each judge, and sentences on scales and panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from arena.data.kinds import kind_of
from arena.present.numbers import PERCENT, SIGNED_2, counted, with_interval
from arena.ratings.results import UNITS
from judges.types import GameOutcome
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.calibration.comparison import Comparison, JudgeAgainstPeople
    from arena.calibration.methods import MethodComparison, MethodPair
    from arena.calibration.votes import Level

Trust: TypeAlias = Literal[
    "unknown", "other scale", "few", "chance", "below people", "beside people", "as people", "above chance"
]

MARGIN: Final = 0.05
"""Margin of equivalence: a judge may agree with people by up to this much less than people do with each other."""
_BESIDE: Final[dict[Trust, str]] = {
    "below people": "It agrees with people less than they do among themselves.",
    "as people": f"It agrees with people as they do among themselves, or less by {MARGIN:g} at most.",
    "beside people": f"These votes do not show whether it agrees less than people do, by more than {MARGIN:g}.",
}

OUTCOME_WORDS: Final = {GameOutcome.FIRST: "first wins", GameOutcome.TIE: "tie", GameOutcome.SECOND: "second wins"}
"""Names of a verdict's values; the first agent is the agent whose name sorts first."""


class Finding(Struct, frozen=True):
    """Whether a judge can be trusted on one level.

    Attributes:
        level: what was judged.
        judge: the judge's name, which is untrusted text.
        trust: ``unknown``: people and judge have no item in common; ``other scale``: their values cannot be compared;
            ``few``: too few queries; ``chance``: agreement not shown to exceed chance; ``below people``: the judge
            agrees with people less than people do among themselves; ``as people``: no less, up to ``MARGIN``;
            ``beside people``: undecided between these two; ``above chance``: above chance, and no two people judged
            the same things.
        sentence: the finding in words, with figures.
        kappa: Cohen's kappa against the consensus of people; no value if the values are not labels.
    """

    level: Level
    judge: str
    trust: Trust
    sentence: str
    kappa: Estimate


def findings(comparison: Comparison) -> tuple[Finding, ...]:
    """A finding for each judge."""
    return tuple(_finding(comparison, judge) for judge in comparison.judges.values())


def gain_from_ties(comparison: Comparison) -> str:
    """Phrase on the part of a panel's gain over its best member that comes from games people tied; may be empty."""
    gain = comparison.gain
    if gain is None or not gain.gain_on_ties or gain.gain_on_ties < 0 or gain.agreement <= gain.best_agreement:
        return ""
    other_gain = gain.agreement - gain.best_agreement - gain.gain_on_ties
    return (
        f"of the difference {SIGNED_2.write(gain.gain_on_ties)} comes from the {gain.gold_ties:,} games on which "
        f"people tie, {SIGNED_2.write(other_gain)} from the others: a panel ties wherever no verdict leads"
    )


def outside_scale(judge: JudgeAgainstPeople) -> str:
    """Phrase with counts of the judge's values outside the range of people's values; may be empty."""
    if not judge.outside or judge.people_range is None:
        return ""
    values = ", ".join(f"{value:g} ({count:,})" for value, count in judge.outside)
    low, high = judge.people_range
    return f"values {values} lie outside the {low:g} to {high:g} of people: kappa counts each as a label of its own"


def least_and_most_alike(comparison: MethodComparison) -> tuple[MethodPair, MethodPair] | None:
    """The two methods whose rankings of agents differ most, and the two most alike, by Kendall's tau."""
    pairs = [pair for pair in comparison.pairs if pair.kendall.value is not None]
    if not pairs:
        return None
    return min(pairs, key=_tau), max(pairs, key=_tau)


def _tau(pair: MethodPair) -> float:
    return pair.kendall.value or 0.0


def _finding(comparison: Comparison, judge: JudgeAgainstPeople) -> Finding:
    trust = _trust(comparison, judge)
    kappa = Estimate(None) if judge.labels is None else judge.labels.kappa
    return Finding(judge.level, judge.judge, trust, _sentence(comparison, judge, trust), kappa)


def _sentence(comparison: Comparison, judge: JudgeAgainstPeople, trust: Trust) -> str:
    things, within, share = kind_of(judge.level).things, comparison.people.within.share, judge.votes.share
    if trust == "unknown":
        return f"{judge.judge} and people judged none of the same {things}."
    if trust == "other scale" and judge.judge_range and judge.people_range:
        ranges = [f"{low:g} to {high:g}" for low, high in (judge.judge_range, judge.people_range)]
        return (
            f"The scales differ: {judge.judge} gave {ranges[0]}, and people {ranges[1]}, on "
            f"{counted(judge.n, things[:-1], things)}. Agreement, kappa and bias mean nothing before both are on one "
            f"scale; rank correlation does: Spearman's is {with_interval(judge.correlations.spearman)}."
        )
    sentence = f"{judge.judge} says what a person says in {with_interval(share, PERCENT)} of cases"
    sentence += f", on {counted(judge.n, things[:-1], things)} of {counted(judge.queries, *UNITS[judge.unit])}"
    if trust == "few":
        return f"{sentence}. That is too little to trust or distrust it."
    if trust == "chance":
        return f"{sentence}. It is not shown to agree with people more than chance would."
    if trust == "above chance":
        more = "That is more than chance. How often two people agree is not known: let several judge the same things."
        return f"{sentence}. {more}"
    among = f"two people agree in {with_interval(within, PERCENT)}"
    gap = judge.less_people
    difference = "nobody repeated a vote on what it judged"
    if gap.value is not None:
        difference = f"on {things} with votes of two people the difference is {with_interval(gap, SIGNED_2)}"
    return f"{sentence}; {among}; {difference}. {_BESIDE[trust]}"


def is_full(agreement: Estimate) -> bool:
    """Whether agreement is 100 %; all resamples are then the same, so there is no interval."""
    return agreement.value == 1 and agreement.low is None


def _trust(comparison: Comparison, judge: JudgeAgainstPeople) -> Trust:
    within, share = comparison.people.within.share, judge.votes.share
    if not judge.n or share.value is None:
        return "unknown"
    if judge.other_scale:
        return "other scale"
    if judge.queries < FEW_QUERIES:
        return "few"
    agreement = judge.labels.kappa if judge.labels is not None else judge.correlations.spearman
    if not is_full(agreement) and (agreement.low is None or agreement.low <= 0):
        return "chance"
    if within.value is None:
        return "above chance"
    return _beside(judge.less_people)


def _beside(gap: Estimate) -> Trust:
    """Trust that follows from the judge's agreement with people minus people's agreement among themselves."""
    if gap.value is None or (gap.n or 0) < FEW_QUERIES:
        return "beside people"
    if gap.low is None or gap.high is None:  # all queries have the same value, so the uncertainty is unknown
        return "beside people"
    if gap.high < 0:
        return "below people"
    return "as people" if gap.low > -MARGIN else "beside people"
