"""What a gate finds on two agents by one score, on all queries or on a group, and the sentences on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from arena.boards.compare import score_of
from arena.boards.left_out_judges import ADD_JUDGES, FIXED, judges_decide, parts_words
from arena.boards.quantities import WON, quantity
from arena.boards.repeats import noise_words
from arena.config.stages import listed_stages
from arena.present.blocks import judge_first
from arena.present.numbers import COUNT, Number, counted
from arena.ratings.games import Unit
from arena.ratings.results import UNITS
from retrieval_eval.stats.components import ROUGH
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.paired import MOST, GateVerdict, Paired
from retrieval_eval.stats.repeats import Noise

PAIRWISE: Final = "pairwise"
MARGIN: Final = 0.05
LEVEL: Final = 0.95
_AGAIN: Final = "Run again to judge what is missing; 'ragleague failures' says what helps where that failed."
FORM: Final = Number(3)
SIGNED: Final = Number(3, signed=True)


def score_sections() -> dict[str, str]:
    """Name of the configuration's section by score, for the scores of further stages."""
    return {score: stage.key for stage in listed_stages() for score in stage.scores}


def section_of(on: str, criteria: Collection[str]) -> str:
    """Name of the configuration's section whose judgments make a score; ``criteria`` are the names of all criteria."""
    if on in ("exam", "nuggets", PAIRWISE, "criteria") or on in score_sections().values():
        return on
    return "criteria" if on in criteria else score_sections().get(on, "retrieval")


JudgesAs: TypeAlias = Literal["fixed", "random"]
"""Whether a verdict is for these judges, or for other judges of this kind."""


class OfJudges(Struct, frozen=True):
    """What a comparison by games owes to its judges.

    Attributes:
        names: judges with a game between the two agents.
        others: the difference with its interval for other queries and other judges.
        one: prediction interval of the difference by another single judge.
        parts: shares of the variance, see ``OtherJudges``.
        without: the verdict without each judge that changes it.
    """

    names: tuple[str, ...]
    others: Estimate = Estimate(None)
    one: Estimate = Estimate(None)
    parts: Mapping[str, Estimate] = {}
    without: Mapping[str, GateVerdict] = {}

    def sentences(self) -> Iterator[str]:
        number = len(self.names)
        if number < 2:
            yield f"{FIXED[0].lower()}{FIXED[1:]}"
            yield from [f"{parts_words(self.parts)}."] if self.parts else []
            return
        changed = [f"without {judge}, {verdict}" for judge, verdict in self.without.items()]
        if changed:
            yield f"the verdict is another without 1 of {number} judges: {'; '.join(changed)}."
        else:
            yield f"the verdict is the same without any 1 of {number} judges."
        others, one = self.others, self.one
        if others.low is None or one.low is None:
            yield f"no interval for other judges: {number} judges do not show how judges differ."
            yield from [f"{parts_words(self.parts)}."] if self.parts else []
            return
        rough = f", rough with {number} judges" if number < ROUGH else ""
        shares = [FORM.between(*(end + 0.5 for end in ends)) for ends in _ends(others, one)]
        yield (
            f"for other judges of this kind the interval is {shares[0]}{rough}; one more judge alone would say "
            f"{shares[1]} with a probability of 95%."
        )
        if self.parts:
            yield f"{parts_words(self.parts)}{f': {ADD_JUDGES}' if judges_decide(self.parts) else ''}."


def _ends(*estimates: Estimate) -> Iterator[tuple[float, float]]:
    for estimate in estimates:
        yield max(-0.5, estimate.low or 0.0), min(0.5, estimate.high or 0.0)


class Compared(Struct, frozen=True):
    """Comparison of the new agent with the old one by one score.

    Attributes:
        new, old: means over the queries on which both have a score; for games the share of points, a tie counting half.
        doubts: sentences on why the score allows no conclusion, whatever the interval.
        judgments: for the new and the old agent, numbers of missing and of planned judgments behind the score.
        differences: as in ``result``, by query or conversation; for games, the share of points minus one half.
        lower: whether lower is better; the difference is then old minus new.
        noise: how much the score changes when a system is asked again; ``None`` without repeated answers.
        itself: whether one agent is compared with itself, by its repeats.
    """

    on: str
    new: float | None
    old: float | None
    result: Paired
    level: float
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unit: Unit = "query"
    judgments: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    left_out: int = 0
    of_judges: OfJudges | None = None
    judges: JudgesAs = "fixed"
    differences: tuple[float, ...] = ()
    lower: bool = False
    noise: Noise | None = None
    itself: bool = False

    @property
    def verdict(self) -> GateVerdict:
        return "undecided" if self.doubts else self.result.verdict

    @property
    def from_half(self) -> bool:
        """Whether the difference is the share of points minus one half, and not new minus old."""
        return self.on == PAIRWISE and not self.itself

    @property
    def title(self) -> str:
        return quantity(WON if self.on == PAIRWISE else score_of(self.on)).title

    def finding(self, new: str, old: str, where: str = "") -> str:
        """The sentence on the difference; ``where`` names the group of queries."""
        title = f"{self.title} where {where}" if where else self.title
        difference, margin = self.result.difference, self.result.margin
        low, high = difference.low, difference.high
        if difference.value is None:
            return f"{title}: no {UNITS[self.unit][0]} has a figure of both."
        queries = counted(difference.n or 0, *UNITS[self.unit])
        if not self.from_half:
            interval = "" if low is None else f", {in_percent(self.level)} interval {SIGNED.between(low, high)}"
            return (
                f"{title}: {new} scores {FORM.write(self.new)} and {old} {FORM.write(self.old)} on {queries}; "
                f"{'lower is better, old less new' if self.lower else 'difference'} {SIGNED.write(difference.value)}"
                f"{interval}, margin {margin:g}."
            )
        share = [None if end is None else end + 0.5 for end in (low, high)]
        interval = "" if low is None else f" ({in_percent(self.level)} interval {FORM.between(*share)})"
        return (
            f"{title}: {new} won {FORM.write(difference.value + 0.5)} of the points against {old} on "
            f"{queries}{interval}, a tie counting half. Above {0.5 - margin:g} it is not worse, above 0.5 better."
        )

    def remarks(self) -> Iterator[str]:
        yield from (f"{self.title}: {sentence}" for sentence in self.sentences())

    def sentences(self) -> Iterator[str]:
        """What allows no conclusion, what would help, and what else matters to the verdict."""
        undecided = [self._undecided()] if self.verdict == "undecided" and not self.doubts else []
        of_judges = self.of_judges.sentences() if self.of_judges is not None else ()
        floor = [noise_words(self.noise)] if self.noise is not None else []
        yield from (*self.doubts, *undecided, *of_judges, *self.notes, *floor)

    def _undecided(self) -> str:
        result, (singular, plural) = self.result, UNITS[self.unit]
        if result.unsure:
            ends = "" if result.ends is None else f" (the difference may lie from {SIGNED.between(*result.ends)})"
            return f"undecided, since what is missing alone could turn the verdict round{ends}. {_AGAIN}"
        if result.difference.value is None:
            return f"undecided, since nothing is known of it. {_AGAIN}"
        if (result.difference.n or 0) < 2:
            return f"undecided, since one {singular} does not show how much {plural} differ."
        return self._what_helps()

    def _what_helps(self) -> str:
        """The sentence on a difference whose interval alone leaves it undecided."""
        result, (singular, plural) = self.result, UNITS[self.unit]
        by_judges = self.of_judges is not None and judges_decide(self.of_judges.parts)
        if self.judges == "random" and not by_judges:
            return "undecided for other judges of this kind: add judges, or queries."
        if by_judges:
            return f"undecided: {ADD_JUDGES}."
        if result.more is None:
            return f"undecided, and {COUNT.write(MOST)} {plural} like these would not decide it. Choose another margin."
        more = counted(_rounded(result.more), f"more {singular}", f"more {plural}")
        first = " ".join(filter(None, ("undecided.", judge_first(result.missing + self.left_out))))
        return f"{first} About {more} like these would decide it with a probability of 80%."


class GroupCompared(Struct, frozen=True):
    """Comparison of the new agent with the old one on one group of queries, by one score.

    Attributes:
        column, value: the group has the queries with this value in this column.
        shrunk: the difference shrunk towards that of all queries; ``None`` without a difference.
        few: whether the group has too few queries to be tested.
        interaction: p-value of the hypothesis that the difference is the same in all groups of the column.
    """

    column: str
    value: str
    compared: Compared
    shrunk: float | None
    few: bool
    interaction: float | None

    @property
    def name(self) -> str:
        return f"{self.column}={self.value}"

    @property
    def verdict(self) -> str:
        return "too few to tell" if self.few else self.compared.verdict


def in_percent(level: float) -> str:
    """A confidence level in percent, as text with up to five digits: levels of early looks are close to 100 %."""
    return f"{100 * level:.5g}%"


def _rounded(count: int) -> int:
    step: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // step) * step
