"""Records that describe pictures; ``markup`` draws pictures as HTML, and ``charts`` as SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from arena.present.numbers import COUNT, FIGURE, Number, capital
from arena.present.table import Table
from retrieval_eval.stats.estimate import Estimate

Look: TypeAlias = Literal["blue", "orange", "grey", "quiet", "open", "band"]
"""Look of a mark: a blue disc, an orange square, a grey triangle, a pale grey disc, a grey ring or a pale bar behind
marks. In a chart grey is a ring."""
SIGNS: Final[Mapping[Look, str]] = {"blue": "✓", "orange": "≠"}
"""Signs in the panels of ``Aligned``, so that looks differ in words too."""
_SAFE: Final = re.compile(r"https?://|[^:]*$|[^:/?#]*[/?#]")
"""Matches addresses that cannot run a script: http, https, or relative."""


class _Figure(Struct, frozen=True):
    """Base of all pictures: the name and the texts of a picture.

    Attributes:
        name: file name without ending, unique among the pictures on a page.
        words: description for screen readers.
        caption: how to read the picture.
    """

    name: str
    title: str
    words: str
    caption: str


class Mark(Struct, frozen=True):
    """A value drawn in a picture, with its interval if it has one.

    Attributes:
        band: interval of the same quantity by a reference, drawn behind the value.
    """

    value: float
    low: float | None = None
    high: float | None = None
    look: Look = "blue"
    beside: str = ""
    tooltip: str = ""
    band: tuple[float, float] | None = None
    link: str = ""


class Line(Struct, frozen=True):
    """A row of ``Whiskers``: a name and its values.

    Attributes:
        tag: text in a box after the name.
    """

    name: str
    marks: Sequence[Mark]
    rank: str = ""
    tag: str = ""


class Whiskers(_Figure, frozen=True):
    """A picture of values with their intervals on one axis, one row per name.

    Attributes:
        legend: what the marks of each look show, if several looks are used.
    """

    lines: Sequence[Line]
    axis: str
    form: Number = FIGURE
    headings: tuple[str, str, str] | None = None
    legend: Mapping[Look, str] = field(default_factory=dict)
    zero: bool = False


class MatrixCell(Struct, frozen=True):
    """A cell of a matrix.

    Attributes:
        strength: strength of the colour, from -1 (orange) to 1 (blue); ``None`` for no colour.
    """

    figure: str
    strength: float | None = None
    below: str = ""
    tooltip: str = ""
    bold: bool = False
    link: str = ""


class Matrix(_Figure, frozen=True):
    """A matrix of cells; ``corner`` says what its rows and columns are, ``links`` has addresses by their names."""

    rows: Sequence[str]
    columns: Sequence[str]
    cells: Mapping[tuple[str, str], MatrixCell]
    corner: str = ""
    links: Mapping[str, str] = field(default_factory=dict)


class Dot(Struct, frozen=True):
    """A point of a chart.

    Attributes:
        name: label beside the dot, shown if there is room and the look is not ``quiet``.
        short: label where there is no room for the name.
        size: area of the dot, relative to other dots.
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
    short: str = ""


class LevelLine(Struct, frozen=True):
    at: float
    name: str
    dashed: bool = False


class Chart(_Figure, frozen=True):
    """A scatter chart.

    Attributes:
        dots: the dots; if there is no room for all labels, the first dots are labelled.
        stepped: whether the line along ``path`` has steps, as for a Pareto front.
    """

    across: str
    up: str
    dots: Sequence[Dot]
    path: Sequence[tuple[float, float]] = ()
    stepped: bool = False
    levels: Sequence[LevelLine] = ()
    zero: bool = False


class Share(Struct, frozen=True):
    """A part of a bar above a ``Strip``; ``faint`` parts are pale."""

    look: Look
    count: int
    name: str
    faint: bool = False


class Strip(Struct, frozen=True):
    """A panel of ``Aligned`` that shows the rank of each row and its interval, on one axis.

    Attributes:
        verdict: what the panel says as a whole: the look of its marks, and a word.
        shares: parts of the bar above the panel.
        notes: lines above the panel.
        meaning: tooltip of the title.
        ranks: the last rank of the axis.
    """

    title: str
    marks: Mapping[str, Mark]
    ranks: int
    verdict: tuple[Look, str] | None = None
    shares: Sequence[Share] = ()
    notes: Sequence[str] = ()
    meaning: str = ""


def rank_words(mark: Mark) -> str:
    """A rank's interval as text, or the rank where it has none."""
    return COUNT.write(mark.value) if mark.low is None else COUNT.between(mark.low, mark.high)


class CellPanel(Struct, frozen=True):
    """A panel of ``Aligned`` with a square matrix of cells: the picture's rows are also its columns, by number."""

    title: str
    cells: Mapping[tuple[str, str], MatrixCell]


_MOST_STRIPS: Final = 6


class Aligned(_Figure, frozen=True):
    """A picture of panels side by side that share the same numbered rows.

    Attributes:
        numbers: the rows' numbers; 1, 2, 3 and so on if empty.
        legend: what the marks of each look show.
    """

    rows: Sequence[str]
    panels: Sequence[Strip | CellPanel]
    corner: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    numbers: Sequence[int] = ()
    legend: Mapping[Look, str] = field(default_factory=dict)

    @property
    def numbered(self) -> list[tuple[int, str]]:
        return list(zip(self.numbers or range(1, len(self.rows) + 1), self.rows, strict=True))

    @property
    def blocks(self) -> list[list[Strip] | CellPanel]:
        """The panels in parts that fit a page: at most six strips, in parts of equal size, or a matrix."""
        strips = [panel for panel in self.panels if isinstance(panel, Strip)]
        parts = max(1, math.ceil(len(strips) / _MOST_STRIPS))
        size = math.ceil(len(strips) / parts)
        return [
            *(strips[start : start + size] for start in range(0, len(strips), size or 1)),
            *(panel for panel in self.panels if isinstance(panel, CellPanel)),
        ]


Picture: TypeAlias = Whiskers | Matrix | Chart | Aligned


def nowhere(*_: object, **__: object) -> str:
    """An empty address, whatever the arguments: the ``link`` function where there are no pages to link to."""
    return ""


def safe(link: str) -> bool:
    """Whether the address is not empty and cannot run a script."""
    return bool(link and _SAFE.match(link))


def ends_of(marks: Iterable[Mark]) -> list[float]:
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
    """Picture of some columns of a table on one axis, a line per row; the first ``names`` columns name the row.

    ``looks`` gives the key of the column that each look shows.
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
    drawn = {mark.look for line in lines for mark in line.marks}
    legend = {look: column.heading for look, column in columns.items() if look in drawn} if len(columns) > 1 else {}
    form = next(iter(columns.values())).form
    assert isinstance(form, Number)
    name, title = f"{table.name}-drawn", capital(axis)
    picture = Whiskers(name, title, words, caption, lines, axis, form, legend=legend, zero=zero)
    return [picture] if lines else []


_KEPT, _FURTHER = 2 / 3, 1.6


def contended(figures: Sequence[Estimate]) -> list[float]:
    """Ends of the intervals that an axis around 0 shows whole, so that no outlier squeezes the other figures.

    These are the two thirds nearest to 0, and further ones as long as each reaches at most 1.6 times as far as the one
    before it.
    """
    ends = [[end for end in (own.value, own.low, own.high) if end is not None] for own in figures]
    nearest = sorted((own for own in ends if own), key=lambda own: max(map(abs, own)))
    kept = nearest[: math.ceil(_KEPT * len(nearest))]
    for own in nearest[len(kept) :]:
        if max(map(abs, own)) > _FURTHER * max(map(abs, kept[-1])):
            break
        kept.append(own)
    return [0.0, *(end for own in kept for end in own)]


_MOST_STEPS: Final = 5.0
"""Maximum number of steps between the ticks of an axis, from its smallest to its largest value."""


class Scale:
    """An axis that covers all values and has round numbers at both ends."""

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
        return 100 * (self._form.factor * value - self._low) / self._span

    def clipped(self, value: float) -> tuple[float, bool]:
        """The place of a value, or the nearest end of the axis; and whether the value lies on the axis."""
        place = self.place(value)
        return min(max(place, 0.0), 100.0), 0 <= place <= 100


class RankScale(Scale):
    """An axis from rank 1 to the last rank or a little further, with at most ``most`` equal steps between its ticks."""

    def __init__(self, last: int, most: int = 3) -> None:
        span = max(last - 1, 1)
        parts = next((parts for parts in range(most, 1, -1) if span % parts == 0), min(most, span))
        step = math.ceil(span / parts)
        self._form, self._low, self._span = COUNT, 1, step * parts
        self.ticks = [f"{1 + step * part}" for part in range(parts + 1)]


def _steps(span: float) -> Iterator[float]:
    power = 10.0 ** (math.floor(math.log10(span)) - 1) if span > 0 else 1.0
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10
