"""Gate result by one score: better, not worse, worse or undecided, and its sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from msgspec import Struct

from arena.boards.calibration.methods import way_of
from arena.boards.compare import OF_STAGE
from arena.config.stages import listed_stages
from arena.present.advice import judge_first
from arena.present.numbers import COUNT, Number, Percent, counted
from arena.ratings.games import Unit
from arena.ratings.results import UNITS
from retrieval_eval.stats.paired import MOST, GateVerdict, Paired

PAIRWISE: Final = "pairwise"
MARGIN: Final = 0.05
LEVEL: Final = 0.95
PASSED, FAILED_GATE, UNDECIDED = 0, 1, 3
"""Exit statuses of the gate command."""
_AGAIN: Final = "Run again to judge what is missing; 'ragleague failures' says what helps where that failed."
SHARE: Final = Percent(1)
"""Format of a share of points; it has a decimal because the margin may have one."""
FORM: Final = Number(3)
SIGNED: Final = Number(3, signed=True)


def score_sections() -> dict[str, str]:
    """The section for each score that a further stage defines, by the name of the score."""
    return {score: stage.key for stage in listed_stages() for score in stage.scores}


def section_of(on: str, criteria: Collection[str]) -> str:
    """The configuration's section for the judgments of a score; ``criteria`` are the names of all criteria."""
    if on in ("exam", "nuggets", PAIRWISE, "criteria"):
        return on
    return "criteria" if on in criteria else score_sections().get(on, "retrieval")


class Compared(Struct, frozen=True):
    """Comparison of the new agent with the old one by one score.

    Attributes:
        on: name of the score, as for the option ``--on``.
        new, old: means over the queries on which both have a score; for games the share of points, a tie counting half.
        result: test of the differences; for games, of the new agent's share less one half.
        level: confidence level of the interval.
        doubts: sentences on why the score allows no conclusion, whatever the interval.
        notes: further remarks, as sentences.
        unit: what counts as one value: a query, or a conversation with all of its turns.
        judgments: for the new and the old agent, numbers of missing and of planned judgments behind the score.
        left_out: number of queries in the files that the tournament left out.
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

    @property
    def verdict(self) -> GateVerdict:
        """The verdict of ``result``; undecided if there are doubts."""
        return "undecided" if self.doubts else self.result.verdict

    @property
    def title(self) -> str:
        return "Games won" if self.on == PAIRWISE else way_of(OF_STAGE.get(self.on, self.on))[0]

    def finding(self, new: str, old: str) -> str:
        """The scores of both agents and their difference, in a sentence."""
        difference, margin = self.result.difference, self.result.margin
        low, high = difference.low, difference.high
        if difference.value is None:
            return f"{self.title}: no {UNITS[self.unit][0]} has a figure of both."
        queries = counted(difference.n or 0, *UNITS[self.unit])
        if self.on != PAIRWISE:
            interval = "" if low is None else f", {in_percent(self.level)} interval {SIGNED.between(low, high)}"
            return (
                f"{self.title}: {new} scores {FORM.write(self.new)} and {old} {FORM.write(self.old)} on {queries}; "
                f"difference {SIGNED.write(difference.value)}{interval}, margin {margin:g}."
            )
        share = [None if end is None else end + 0.5 for end in (low, high)]
        interval = "" if low is None else f" ({in_percent(self.level)} interval {SHARE.between(*share)})"
        return (
            f"{self.title}: {new} won {SHARE.write(difference.value + 0.5)} of the points against {old} on "
            f"{queries}{interval}, a tie counting half. Above {SHARE.write(0.5 - margin)} it is not worse, above 50% "
            "better."
        )

    def remarks(self) -> Iterator[str]:
        """Doubts; the reason for an undecided verdict, and how to reach a decision; then notes."""
        undecided = [self._undecided()] if self.verdict == "undecided" and not self.doubts else []
        yield from (f"{self.title}: {sentence}" for sentence in (*self.doubts, *undecided, *self.notes))

    def _undecided(self) -> str:
        result, (singular, plural) = self.result, UNITS[self.unit]
        if result.unsure:
            ends = "" if result.ends is None else f" (the difference may lie from {SIGNED.between(*result.ends)})"
            return f"undecided, since what is missing alone could turn the verdict round{ends}. {_AGAIN}"
        if result.difference.value is None:
            return f"undecided, since nothing is known of it. {_AGAIN}"
        if (result.difference.n or 0) < 2:
            return f"undecided, since one {singular} does not show how much {plural} differ."
        if result.more is None:
            return f"undecided, and {COUNT.write(MOST)} {plural} like these would not decide it. Choose another margin."
        more = counted(_rounded(result.more), f"more {singular}", f"more {plural}")
        first = " ".join(filter(None, ("undecided.", judge_first(result.missing + self.left_out))))
        return f"{first} About {more} like these would decide it with a probability of 80%."


def in_percent(level: float) -> str:
    """A confidence level as text, with up to five digits: levels of early looks are close to 100 %."""
    return f"{100 * level:.5g}%"


def _rounded(count: int) -> int:
    """Round up to two significant digits."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // step) * step
