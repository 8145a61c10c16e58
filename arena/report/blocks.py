"""What a report is made of. All texts are plain: the page shows them as they are and never as markup."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

Status: TypeAlias = Literal["passed", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column names its rows.

    Attributes:
        caption: what it is, above it.
        columns: headings.
        rows: cells as they are shown, as many as columns.
        notes: how to read it, below it.
        words: columns besides the first that hold words, not figures.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure that stands for itself, with its interval and meaning."""

    name: str
    value: str
    meaning: str
    interval: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures side by side."""

    kind: ClassVar[str] = "figures"
    items: Sequence[Figure]


@dataclass(frozen=True, slots=True)
class Check:
    """Something that must hold for the conclusion to be believed.

    Attributes:
        finding: what was found, and what the bar is.
        remedy: what to do where it did not pass.
    """

    name: str
    status: Status
    finding: str
    remedy: str


def passed(held: bool) -> Status:
    """The status of a check that could be made."""
    return "passed" if held else "failed"


def settled(low: float | None, high: float | None, least: float, most: float = math.inf) -> Status:
    """The status of a figure by its interval: inside what is tolerated, outside, or nobody knows as it allows both."""
    if low is None or high is None:
        return "unknown"
    if least <= low and high <= most:
        return "passed"
    return "failed" if high < least or low > most else "unknown"


@dataclass(frozen=True, slots=True)
class Checks:
    """Checks, one below the other."""

    kind: ClassVar[str] = "checks"
    items: Sequence[Check]


@dataclass(frozen=True, slots=True)
class Whisker:
    """One row of ``Whiskers``; places are percent of the width, ``low`` and ``high`` ``None`` without an interval."""

    rank: str
    name: str
    note: str
    value: str
    interval: str
    point: float
    low: float | None
    high: float | None
    leads: bool


@dataclass(frozen=True, slots=True)
class Whiskers:
    """Ratings with their intervals as whiskers, best first; ``ticks`` are places in percent and their labels."""

    kind: ClassVar[str] = "whiskers"
    rows: Sequence[Whisker]
    ticks: Sequence[tuple[float, str]]
    axis: str
    caption: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a matrix; ``shade`` is 0 (all lost) to 10 (all won), ``None`` for a pair that never met."""

    value: str
    below: str
    shade: int | None


@dataclass(frozen=True, slots=True)
class Matrix:
    """A square heat map; ``names`` are those of rows and columns."""

    kind: ClassVar[str] = "matrix"
    names: Sequence[str]
    cells: Sequence[Sequence[Cell]]
    caption: str
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a plot; ``x`` and ``y`` are percent of the plot, from its lower left; an open one is not filled.

    The name stands beside it; in a small plot, where it must be short, inside.
    """

    name: str
    x: float
    y: float
    open: bool = False
    radius: float = 6.0


@dataclass(frozen=True, slots=True)
class Scale:
    """One axis of a plot: its name, and places in percent with their labels."""

    name: str
    ticks: Sequence[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Level:
    """A line across a plot, at so many percent of its height."""

    name: str
    y: float
    dashed: bool


@dataclass(frozen=True, slots=True)
class Plot:
    """Points by name, and what ``caption`` says of them; a small one stands beside others."""

    kind: ClassVar[str] = "plot"
    points: Sequence[Point]
    across: Scale
    up: Scale
    caption: str
    levels: Sequence[Level] = ()
    small: bool = False


@dataclass(frozen=True, slots=True)
class Plots:
    """Small plots side by side, below their heading, with how to read them."""

    kind: ClassVar[str] = "plots"
    heading: str
    items: Sequence[Plot]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Remarks:
    """Sentences, each for itself."""

    kind: ClassVar[str] = "remarks"
    items: Sequence[str]


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines for a terminal."""

    kind: ClassVar[str] = "commands"
    lines: Sequence[str]


Block: TypeAlias = Table | Figures | Checks | Whiskers | Matrix | Plot | Plots | Remarks | Commands


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report; ``ident`` is its anchor, ``lead`` says what it answers."""

    ident: str
    title: str
    lead: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Report:
    """The whole page.

    Attributes:
        tournament: its name.
        subtitle: what it compares, in numbers.
        kind: of conclusion, see ``arena.conclusion``.
        headline, sentence: the conclusion.
        meaning: what it comes to, a sentence each.
        trust: how many checks passed, and the names of those that did not.
        doubted: whether any check failed.
        sections: in order.
        made: when and by what.
    """

    tournament: str
    subtitle: str
    kind: str
    headline: str
    sentence: str
    meaning: Sequence[str]
    trust: str
    doubted: bool
    sections: Sequence[Section]
    made: str
