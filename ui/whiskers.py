"""Figures with their intervals, drawn as wide as the page: names left, and for each a line and a mark or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from arena.present.texts import printable
from arena.report.figures import Axis
from retrieval_eval.stats.estimate import Estimate
from ui import text
from ui.pictures import picture

Look: TypeAlias = Literal["blue", "orange", "grey", "quiet"]

_FEW: Final = 20
"""With more rows they are nearer to each other."""
_TOP: Final = 26
"""Pixels for what marks mean."""
_NAME: Final = 40
"""Characters of a name; a narrow screen shows fewer."""
_SHORT_NAME: Final = 12
_SHORT, _LONG = 24, 36
"""Percent of the width that names get if they are all short, else; a telephone shows 22 characters then."""
BELOW: Final = "Figures with intervals. The table below has them."
_NO_MEANING: Final[Mapping[Look, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Mark:
    """A figure, its interval where there is one, its look, and what stands beside it."""

    value: float
    low: float | None
    high: float | None
    look: Look = "blue"
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Whiskers:
    """A name and its figures."""

    name: str
    marks: Sequence[Mark]


def whiskers_of(estimates: Mapping[str, Mapping[Look, Estimate]], factor: float = 1) -> list[Whiskers]:
    """A line for each name of which a figure is known; figures times the factor."""

    def times(value: float | None) -> float | None:
        return None if value is None else factor * value

    found = {
        name: [
            Mark(factor * one.value, times(one.low), times(one.high), look)
            for look, one in own.items()
            if one.value is not None
        ]
        for name, own in estimates.items()
    }
    return [Whiskers(name, marks) for name, marks in found.items() if marks]


def whiskers_html(
    rows: Sequence[Whiskers],
    title: str,
    words: str,
    meaning: Mapping[Look, str] = _NO_MEANING,
    *,
    signed: bool = False,
) -> str:
    """The drawing. A figure without an interval has no line.

    Places across are percentages, so that a narrow screen shows the same with texts as large.

    Args:
        rows: from top to bottom, at least one, each with a mark or more.
        title: of the figures.
        words: in place of the drawing; our own.
        meaning: of looks, where there are several; our own words.
        signed: draw a line at 0.
    """
    marks = [mark for row in rows for mark in row.marks]
    ends = [end for mark in marks for end in (mark.value, mark.low, mark.high) if end is not None]
    axis, top = Axis([0.0, *ends] if signed else ends), _TOP if meaning else 0
    step, room = _distances(len(rows), len(marks))
    *tops, bottom = accumulate((step * len(row.marks) + room for row in rows), initial=top)
    names = "".join(
        f'<text x="0" y="{(start + end) // 2 + 4}">{escape(printable(text.clipped(row.name, _NAME)))}</text>'
        for row, start, end in zip(rows, tops, [*tops[1:], bottom], strict=True)
    )
    drawn = "".join(
        _mark(mark, axis, start + (room + step) // 2 + step * at)
        for row, start in zip(rows, tops, strict=True)
        for at, mark in enumerate(row.marks)
    )
    left = _SHORT if all(len(row.name) <= _SHORT_NAME for row in rows) else _LONG
    height = bottom + 48
    return picture(
        f"<defs>{_SHAPES}</defs>{''.join(_legend(meaning))}"
        f'<svg width="{left}%" height="{bottom}">{names}</svg>'
        f'<svg x="{left + 1}%" width="{93 - left}%" height="{height}" overflow="visible">'
        f"{''.join(_grid(axis, top, bottom, signed=signed))}{drawn}"
        f'<text x="50%" y="{bottom + 40}" text-anchor="middle">{escape(title)}</text></svg>',
        words,
        box=f'width="100%" height="{height}"',
        style=_STYLE,
        css=f"width:100%;height:{height}px",
    )


def _distances(rows: int, marks: int) -> tuple[int, int]:
    """Pixels from one mark of a row to the next, and from the last to the next row's."""
    if marks > rows:
        return 15, 10
    return (34 if rows <= _FEW else 22), 0


def _legend(meaning: Mapping[Look, str]) -> Iterator[str]:
    for at, (look, words) in enumerate(meaning.items()):
        yield f'<svg x="{33 * at}%" width="33%" height="{_TOP}" overflow="visible"><use href="#{look}" x="8" y="10"/>'
        yield f'<text x="20" y="14">{escape(words)}</text></svg>'


def _grid(axis: Axis, top: int, bottom: int, *, signed: bool) -> Iterator[str]:
    for place, label in axis.ticks():
        yield f'<line class="grid" x1="{place}%" x2="{place}%" y1="{top}" y2="{bottom}"/>'
        yield f'<text x="{place}%" y="{bottom + 18}" text-anchor="middle">{label}</text>'
    if signed:
        yield f'<line class="zero" x1="{axis.place(0)}%" x2="{axis.place(0)}%" y1="{top}" y2="{bottom}"/>'


def _mark(mark: Mark, axis: Axis, y: int) -> str:
    """The line, the mark and the words beside them."""
    end, line = mark.value, ""
    if mark.low is not None and mark.high is not None:
        end = mark.high
        line = f'<line class="whisker" x1="{axis.place(mark.low)}%" x2="{axis.place(end)}%" y1="{y}" y2="{y}"/>'
    beside = f'<text x="{axis.place(end)}%" y="{y + 4}" dx="10">{escape(mark.beside)}</text>' if mark.beside else ""
    return f'{line}<use href="#{mark.look}" x="{axis.place(mark.value)}%" y="{y}"/>{beside}'


_SHAPES: Final = (
    '<circle id="blue" r="6"/><path id="orange" d="M-5-5H5V5H-5z"/><path id="grey" d="M0-7 6 5H-6z"/>'
    '<circle id="quiet" r="6"/>'
)
_STYLE: Final = """
text { font: 12px sans-serif; fill: #6f7682; }
.grid { stroke: #8a8f98; stroke-opacity: 0.25; }
.zero { stroke: #8a8f98; stroke-dasharray: 4 4; }
.whisker { stroke: #8a8f98; stroke-width: 3; }
#blue { fill: #0072b2; }
#orange { fill: #d55e00; }
#grey, #quiet { fill: #6f7682; }
"""
"""Greys that can be read on light and on dark ground, blue and orange of the palette by Okabe and Ito; where several
figures stand on one line, shapes tell the same as colours."""
