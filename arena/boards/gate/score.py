"""One score of a new agent against an old one: better, not worse, worse or undecided, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from arena.boards.calibration.methods import way_of
from arena.boards.compare import OF_STAGE
from arena.present.advice import judge_first
from arena.present.numbers import COUNT, Number, Percent, counted
from arena.ratings.games import Unit
from arena.ratings.results import UNITS
from retrieval_eval.stats.paired import MOST, GateVerdict, Paired

PAIRWISE: Final = "pairwise"
MARGIN: Final = 0.05
LEVEL: Final = 0.95
PASSED, FAILED_GATE, UNDECIDED = 0, 1, 3
"""What a gate's exit status is."""
_AGAIN: Final = "Run again to judge what is missing; 'ragleague failures' says what helps where that failed."
SHARE: Final = Percent(1)
"""Of points: it is held against a bar, which may have a decimal."""
FORM: Final = Number(3)
SIGNED: Final = Number(3, signed=True)


class Compared(Struct, frozen=True):
    """The new agent compared with the old one by one score.

    Attributes:
        on: the score, as it is asked for.
        new, old: means over the queries that both have; of games the share of points, a tie half.
        result: of the differences; of games new's share less one half.
        level: of the interval.
        doubts: why nothing may be concluded whatever the interval says, sentences.
        notes: what else to know, sentences.
        unit: what is one figure: a query, or a conversation with all of its turns.
        judgments: of new and of old, how many that the score rests on are missing, and of how many.
        left_out: further queries of the files, which the tournament was not asked.
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
        """What may be said."""
        return "undecided" if self.doubts else self.result.verdict

    @property
    def title(self) -> str:
        """The score for people."""
        return "Games won" if self.on == PAIRWISE else way_of(OF_STAGE.get(self.on, self.on))[0]

    def finding(self, new: str, old: str) -> str:
        """What was found, in a sentence."""
        own, margin = self.result.difference, self.result.margin
        if own.value is None:
            return f"{self.title}: no {UNITS[self.unit][0]} has a figure of both."
        queries = counted(own.n or 0, *UNITS[self.unit])
        if self.on != PAIRWISE:
            ends = "" if own.low is None else f", {in_percent(self.level)} interval {SIGNED.between(own.low, own.high)}"
            return (
                f"{self.title}: {new} scores {FORM.write(self.new)} and {old} {FORM.write(self.old)} on {queries}; "
                f"difference {SIGNED.write(own.value)}{ends}, margin {margin:g}."
            )
        share = [None if end is None else end + 0.5 for end in (own.low, own.high)]
        ends = "" if own.low is None else f" ({in_percent(self.level)} interval {SHARE.between(*share)})"
        return (
            f"{self.title}: {new} won {SHARE.write(own.value + 0.5)} of the points against {old} on "
            f"{queries}{ends}, a tie counting half. Above {SHARE.write(0.5 - margin)} it is not worse, above 50% "
            "better."
        )

    def remarks(self) -> Iterator[str]:
        """Why it decides nothing, if it does not, what would, and what else to know."""
        lacking = [self._lacking()] if self.verdict == "undecided" and not self.doubts else []
        yield from (f"{self.title}: {said}" for said in (*self.doubts, *lacking, *self.notes))

    def _lacking(self) -> str:
        own, (one, many) = self.result, UNITS[self.unit]
        if own.unsure:
            ends = "" if own.ends is None else f" (the difference may lie from {SIGNED.between(*own.ends)})"
            return f"undecided, since what is missing alone could turn the verdict round{ends}. {_AGAIN}"
        if own.difference.value is None:
            return f"undecided, since nothing is known of it. {_AGAIN}"
        if (own.difference.n or 0) < 2:
            return f"undecided, since one {one} does not show how much {many} differ."
        if own.more is None:
            return f"undecided, and {COUNT.write(MOST)} {many} like these would not decide it. Choose another margin."
        more = counted(_rounded(own.more), f"more {one}", f"more {many}")
        first = " ".join(filter(None, ("undecided.", judge_first(own.missing + self.left_out))))
        return f"{first} About {more} like these would decide it with a probability of 80%."


def in_percent(level: float) -> str:
    """A level; those of early looks are close to 100 %."""
    return f"{100 * level:.5g}%"


def _rounded(count: int) -> int:
    """To two digits, upwards: it is no more than an estimate."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // step) * step
