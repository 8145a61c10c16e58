"""Pictures of a report that are still drawn by hand, and tables whose cells are texts already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined

from arena.present.numbers import Words
from arena.present.table import Column, Table
from arena.present.texts import printable


def text_table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
    words: frozenset[str] = frozenset(),
) -> Table:
    """A table of cells as they are shown; ``words`` are columns besides the first that hold no figures."""
    forms = [Words(numeric=bool(at) and name not in words) for at, name in enumerate(columns)]
    return Table(
        caption,
        caption,
        [Column(str(at), name, form) for at, (name, form) in enumerate(zip(columns, forms, strict=True))],
        [{str(at): cell for at, cell in enumerate(row)} for row in rows],
        notes,
    )


Block: TypeAlias = Any
"""A block of ``arena.present.blocks``, or one of the pictures below."""


class _Drawn:
    """A picture that a macro draws."""

    kind: ClassVar[str]

    def __html__(self) -> str:
        return str(getattr(_macros().get_template("blocks.html").module, self.kind)(self))


@cache
def _macros() -> Environment:
    loader = PackageLoader("arena.report", "")
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value,
    )


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


@dataclass(frozen=True)
class Whiskers(_Drawn):
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


@dataclass(frozen=True)
class Matrix(_Drawn):
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


@dataclass(frozen=True)
class Plot(_Drawn):
    """Points by name, and what ``caption`` says of them; a small one stands beside others."""

    kind: ClassVar[str] = "plot"
    points: Sequence[Point]
    across: Scale
    up: Scale
    caption: str
    levels: Sequence[Level] = ()
    small: bool = False


@dataclass(frozen=True)
class Plots(_Drawn):
    """Small plots side by side, below their heading, with how to read them."""

    kind: ClassVar[str] = "plots"
    heading: str
    items: Sequence[Plot]
    notes: Sequence[str]
