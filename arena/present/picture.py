"""Pictures, defined once and drawn everywhere: values here, HTML in ``markup``, files and Altair in ``charts``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from arena.present.numbers import FIGURE, Number
from arena.present.table import Table

Look: TypeAlias = Literal["blue", "orange", "grey", "quiet"]
"""Of a mark: a blue disc, an orange square, a grey triangle, a grey disc. In a chart grey is a ring."""


FLAG: Final = "≠"
"""Beside a figure that needs attention."""
_SAFE: Final = re.compile(r"https?://|[^:]*$|[^:/?#]*[/?#]")
"""Addresses that run nothing."""


class Mark(Struct, frozen=True):
    """A figure with its interval where it has one.

    Attributes:
        beside: words that stand beside it.
        told: where the pointer rests on it.
        flag: why it needs attention; empty where it does not.
        link: address that it leads to.
    """

    value: float
    low: float | None = None
    high: float | None = None
    look: Look = "blue"
    beside: str = ""
    told: str = ""
    flag: str = ""
    link: str = ""


class Line(Struct, frozen=True):
    """A name and its figures.

    Attributes:
        name: from outside, perhaps, as all texts of a picture may be.
        marks: one or more.
        rank: before the name.
        tag: in a box behind the name.
        link: address that the name and its field lead to.
    """

    name: str
    marks: Sequence[Mark]
    rank: str = ""
    tag: str = ""
    link: str = ""


class Whiskers(Struct, frozen=True):
    """Figures with their intervals, one line or more for each name.

    Attributes:
        name: of its file, unique among the pictures shown together.
        title: for people; may be empty.
        words: what it shows, for those who do not see it.
        caption: how to read it.
        lines: from top to bottom; without any, nothing is drawn.
        axis: what the figures are.
        form: how they are written.
        headings: of ranks, names and figures; may be empty.
        legend: what looks mean, where there are several.
        zero: whether 0 is in the picture, as a line.
    """

    name: str
    title: str
    words: str
    caption: str
    lines: Sequence[Line]
    axis: str
    form: Number = FIGURE
    headings: tuple[str, str, str] | None = None
    legend: Mapping[Look, str] = field(default_factory=dict)
    zero: bool = False


class MatrixCell(Struct, frozen=True):
    """A cell of a matrix.

    Attributes:
        figure: in it.
        strength: of its colour, from -1 (orange) to 1 (blue); ``None`` for none.
        below: in small type below the figure.
        told: where the pointer rests on it.
        bold: the figure.
        link: address that the cell leads to.
    """

    figure: str
    strength: float | None = None
    below: str = ""
    told: str = ""
    bold: bool = False
    link: str = ""


class Matrix(Struct, frozen=True):
    """Names by names.

    Attributes:
        name, title, words, caption: as of ``Whiskers``.
        rows, columns: names, from top to bottom and from left to right; unique in each.
        cells: by the names of row and column; there may be gaps.
        corner: what rows and columns are.
        links: addresses that names of rows and columns lead to.
    """

    name: str
    title: str
    words: str
    caption: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Mapping[tuple[str, str], MatrixCell]
    corner: str = ""
    links: Mapping[str, str] = field(default_factory=dict)


class Dot(Struct, frozen=True):
    """A point of a chart.

    Attributes:
        x, y: its place.
        name: beside it where there is room, unless it is quiet: a small one behind the others.
        told: where the pointer rests on it; empty: name and place.
        size: its area, relative to those of the others.
        x_ends, y_ends: its intervals.
        link: address that it leads to.
    """

    x: float
    y: float
    name: str = ""
    look: Look = "blue"
    told: str = ""
    size: float = 1
    x_ends: tuple[float, float] | None = None
    y_ends: tuple[float, float] | None = None
    link: str = ""


class LevelLine(Struct, frozen=True):
    """A line across a chart."""

    at: float
    name: str
    dashed: bool = False


class Chart(Struct, frozen=True):
    """Points by two figures.

    Attributes:
        name, title, words, caption: as of ``Whiskers``.
        across, up: what the figures are.
        dots: those whose names matter most first.
        path: points that are joined.
        stepped: joined by steps, as a front is.
        levels: lines across.
        zero: whether the horizontal axis begins at 0.
    """

    name: str
    title: str
    words: str
    caption: str
    across: str
    up: str
    dots: Sequence[Dot]
    path: Sequence[tuple[float, float]] = ()
    stepped: bool = False
    levels: Sequence[LevelLine] = ()
    zero: bool = False


class Strip(Struct, frozen=True):
    """A panel of figures with their intervals on one axis.

    Attributes:
        title: what the figures are.
        marks: by the names of rows; there may be gaps.
        form: how they are written.
        note: in small type below the title.
    """

    title: str
    marks: Mapping[str, Mark]
    form: Number = FIGURE
    note: str = ""


class CellPanel(Struct, frozen=True):
    """A panel of cells, a column for each row of the picture, headed by its number.

    Attributes:
        title: what the cells are.
        cells: by the names of row and column; there may be gaps.
    """

    title: str
    cells: Mapping[tuple[str, str], MatrixCell]


class Aligned(Struct, frozen=True):
    """Panels side by side on the same numbered rows.

    Attributes:
        name, title, words, caption: as of ``Whiskers``.
        rows: names, from top to bottom; unique.
        panels: from left to right.
        corner: what rows are.
        links: addresses that names lead to.
    """

    name: str
    title: str
    words: str
    caption: str
    rows: Sequence[str]
    panels: Sequence[Strip | CellPanel]
    corner: str = ""
    links: Mapping[str, str] = field(default_factory=dict)


Picture: TypeAlias = Whiskers | Matrix | Chart | Aligned


def nowhere(*_: object, **__: object) -> str:
    """In place of a function that gives addresses: nothing leads anywhere."""
    return ""


def safe(link: str) -> bool:
    """Whether this is an address, and one that runs nothing."""
    return bool(link and _SAFE.match(link))


def ends_of(marks: Iterable[Mark]) -> list[float]:
    """All figures of marks and the ends of their intervals."""
    return [end for mark in marks for end in (mark.value, mark.low, mark.high) if end is not None]


def of_table(
    table: Table,
    looks: Mapping[Look, str],
    axis: str,
    words: str,
    *,
    caption: str = "",
    names: int = 1,
    zero: bool = False,
) -> list[Whiskers]:
    """Figures of a table with their intervals, a line for each row; nothing where none is known.

    Args:
        table: with numbers of one form.
        looks: keys of the columns that are drawn.
        axis: what the figures are.
        words: what is drawn, for those who do not see it.
        caption: how to read it.
        names: how many columns name a row.
        zero: as of ``Whiskers``.
    """
    columns = {look: next(column for column in table.columns if column.key == key) for look, key in looks.items()}
    lines = []
    for row in table.rows:
        marks = [
            Mark(column.value(row), *column.ends(row), look)
            for look, column in columns.items()
            if column.value(row) is not None
        ]
        if marks:
            lines.append(Line(", ".join(str(column.value(row)) for column in table.columns[:names]), marks))
    legend = {look: column.heading for look, column in columns.items()} if len(columns) > 1 else {}
    form = next(iter(columns.values())).form
    assert isinstance(form, Number)
    name, title = f"{table.name}-drawn", axis[:1].upper() + axis[1:]
    drawn = Whiskers(name, title, words, caption, lines, axis, form, legend=legend, zero=zero)
    return [drawn] if lines else []
