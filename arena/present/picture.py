"""Records that describe pictures; ``markup`` draws pictures as HTML, and ``charts`` as SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from arena.present.numbers import FIGURE, Number
from arena.present.table import Table

Look: TypeAlias = Literal["blue", "orange", "grey", "quiet"]
"""Look of a mark: a blue disc, an orange square, a grey triangle or a pale grey disc. In a chart grey is a ring."""


FLAG: Final = "≠"
"""Sign beside a figure that needs attention."""
_SAFE: Final = re.compile(r"https?://|[^:]*$|[^:/?#]*[/?#]")
"""Matches addresses that cannot run a script: http, https, or relative."""


class Mark(Struct, frozen=True):
    """A figure drawn in a picture, with its interval if it has one.

    Attributes:
        beside: text beside the figure.
        tooltip: text shown when the pointer is on the figure.
        flag: why the figure needs attention; empty if it does not.
        link: address that the figure links to.
    """

    value: float
    low: float | None = None
    high: float | None = None
    look: Look = "blue"
    beside: str = ""
    tooltip: str = ""
    flag: str = ""
    link: str = ""


class Line(Struct, frozen=True):
    """A row of ``Whiskers``: a name and its figures.

    Attributes:
        name: name of the row; untrusted, like all texts of pictures.
        marks: the figures of the row, at least one.
        rank: text before the name.
        tag: text in a box after the name.
        link: address that the name and the drawing link to.
    """

    name: str
    marks: Sequence[Mark]
    rank: str = ""
    tag: str = ""
    link: str = ""


class Whiskers(Struct, frozen=True):
    """Figures with their intervals on one axis, one row per name.

    Attributes:
        name: file name without ending, unique among the pictures on a page.
        title: title of the picture; may be empty.
        words: description for screen readers.
        caption: how to read the picture.
        lines: the rows from top to bottom; nothing is drawn without rows.
        axis: title of the axis.
        form: number format of the figures.
        headings: headings of ranks, names and figures, or ``None``.
        legend: meaning of each look, if there are several.
        zero: whether the axis includes 0, marked by a line.
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
        figure: text of the cell.
        strength: strength of the colour, from -1 (orange) to 1 (blue); ``None`` for no colour.
        below: small text below the figure.
        tooltip: text shown when the pointer is on the cell.
        bold: whether the figure is bold.
        link: address that the cell links to.
    """

    figure: str
    strength: float | None = None
    below: str = ""
    tooltip: str = ""
    bold: bool = False
    link: str = ""


class Matrix(Struct, frozen=True):
    """A matrix of cells with named rows and columns.

    Attributes:
        name, title, words, caption: as in ``Whiskers``.
        rows: unique names of the rows, from top to bottom.
        columns: unique names of the columns, from left to right.
        cells: cells by the names of row and column; some may be missing.
        corner: text in the top left corner: what rows and columns are.
        links: addresses by name of row or column.
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
        x, y: position of the dot, in values of the axes.
        name: label beside the dot, shown if there is room and the look is not ``quiet``.
        tooltip: text shown when the pointer is on the dot; if empty, name and position.
        size: area of the dot, relative to other dots.
        x_ends, y_ends: intervals of x and y, or ``None``.
        link: address that the dot links to.
    """

    x: float
    y: float
    name: str = ""
    look: Look = "blue"
    tooltip: str = ""
    size: float = 1
    x_ends: tuple[float, float] | None = None
    y_ends: tuple[float, float] | None = None
    link: str = ""


class LevelLine(Struct, frozen=True):
    """A horizontal line across a chart, with a label."""

    at: float
    name: str
    dashed: bool = False


class Chart(Struct, frozen=True):
    """A scatter chart.

    Attributes:
        name, title, words, caption: as in ``Whiskers``.
        across: title of the horizontal axis.
        up: title of the vertical axis.
        dots: the dots; if there is no room for all labels, the first dots are labelled.
        path: points to join by a line.
        stepped: whether the line has steps, as for a Pareto front.
        levels: horizontal lines across the chart.
        zero: whether the horizontal axis starts at 0.
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
    """A panel of ``Aligned`` with figures and their intervals on one axis.

    Attributes:
        title: what the figures are.
        marks: figures by name of row; some may be missing.
        form: number format of the figures.
        note: small text below the title.
    """

    title: str
    marks: Mapping[str, Mark]
    form: Number = FIGURE
    note: str = ""


class CellPanel(Struct, frozen=True):
    """A panel of ``Aligned`` with a square matrix of cells: one numbered column per row of the picture.

    Attributes:
        title: what the cells are.
        cells: cells by the names of row and column; some may be missing.
    """

    title: str
    cells: Mapping[tuple[str, str], MatrixCell]


class Aligned(Struct, frozen=True):
    """Panels side by side that share the same numbered rows.

    Attributes:
        name, title, words, caption: as in ``Whiskers``.
        rows: unique names of the rows, from top to bottom.
        panels: the panels from left to right.
        corner: text in the top left corner: what the rows are.
        links: addresses by name of row.
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
    """Returns an empty address; passed as the function that makes links if there are no pages to link to."""
    return ""


def safe(link: str) -> bool:
    """Whether the address is not empty and cannot run a script."""
    return bool(link and _SAFE.match(link))


def ends_of(marks: Iterable[Mark]) -> list[float]:
    """The values of all marks and the ends of their intervals, in one list."""
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
    """Draw columns of a table as ``Whiskers`` with intervals, one line per row; without lines if there are no values.

    Args:
        table: a table whose drawn columns share one number format.
        looks: key of the column to draw with each look.
        axis: title of the axis.
        words: description for screen readers.
        caption: how to read the picture.
        names: number of columns that form the name of a row.
        zero: as in ``Whiskers``.
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
    picture = Whiskers(name, title, words, caption, lines, axis, form, legend=legend, zero=zero)
    return [picture] if lines else []


_MOST_STEPS: Final = 5.0
"""Largest number of steps of an axis between the smallest and the largest value."""


class Scale:
    """An axis from one round value to another that covers all values."""

    def __init__(self, values: Sequence[float], form: Number, most: float = _MOST_STEPS) -> None:
        self._form = form
        ends = [form.factor * value for value in values]
        low, high = min(ends), max(ends)
        step = next(step for step in _steps(high - low) if high / step - low / step <= most)
        first = math.floor(low / step)
        last = max(math.ceil(high / step), first + 1)
        self._low, self._span = first * step, (last - first) * step
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        self.ticks = [f"{step * at:,.{decimals}f}{form.unit}" for at in range(first, last + 1)]

    def place(self, value: float) -> float:
        """Position of the value in percent of the width."""
        return 100 * (self._form.factor * value - self._low) / self._span


def _steps(span: float) -> Iterator[float]:
    power = 10.0 ** (math.floor(math.log10(span)) - 1) if span > 0 else 1.0
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10
