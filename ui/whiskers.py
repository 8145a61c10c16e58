"""Ratings with their intervals, drawn as wide as the page: names left, a line and a dot for each agent, best first."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from arena.plain_text import printable
from arena.ratings.results import AgentRating
from arena.report.figures import Axis
from ui import text
from ui.pictures import picture

_FEW: Final = 20
"""With more agents the rows are nearer to each other."""
_NAME: Final = 40
"""Characters of a name; a narrow screen shows fewer."""
_WORDS: Final = "Ratings with intervals. The table above has the figures."


def whiskers_html(rows: Sequence[AgentRating]) -> str:
    """The drawing. An agent without an interval has no line; those tied for first are blue.

    Places across are percentages, so that a narrow screen shows the same with texts as large.

    Args:
        rows: best first, at least one.
    """
    axis = Axis([end for row in rows for end in (row.bt, row.bt_low, row.bt_high) if end is not None])
    step = 34 if len(rows) <= _FEW else 22
    height = step * len(rows)
    names = "".join(
        f'<text x="0" y="{step * at + step // 2 + 4}">{escape(printable(text.clipped(row.agent, _NAME)))}</text>'
        for at, row in enumerate(rows)
    )
    ticks = "".join(
        f'<line class="grid" x1="{place}%" x2="{place}%" y1="0" y2="{height}"/>'
        f'<text x="{place}%" y="{height + 18}" text-anchor="middle">{label}</text>'
        for place, label in axis.ticks()
    )
    leading = rows[0].group.split("-")[0]
    marks = "".join(
        _mark(row, axis, step * at + step // 2, leads=row.group.split("-")[0] == leading) for at, row in enumerate(rows)
    )
    return picture(
        f'<svg width="24%" height="{height}">{names}</svg>'
        f'<svg x="25%" width="69%" height="{height + 24}" overflow="visible">{ticks}{marks}</svg>'
        f'<text x="59%" y="{height + 40}" text-anchor="middle">Bradley-Terry rating, points</text>',
        _WORDS,
        box=f'width="100%" height="{height + 48}"',
        style=_STYLE,
        css=f"width:100%;height:{height + 48}px",
    )


def _mark(row: AgentRating, axis: Axis, y: int, *, leads: bool) -> str:
    """The line, the dot and the letters of the agent's group beside them."""
    point, end, line = axis.place(row.bt), row.bt, ""
    if row.bt_low is not None and row.bt_high is not None:
        end = row.bt_high
        line = f'<line class="whisker" x1="{axis.place(row.bt_low)}%" x2="{axis.place(end)}%" y1="{y}" y2="{y}"/>'
    dot = f'<circle class="{"leads" if leads else "dot"}" cx="{point}%" cy="{y}" r="6"/>'
    return f'{line}{dot}<text x="{axis.place(end)}%" y="{y + 4}" dx="10">{escape(row.group)}</text>'


_STYLE: Final = """
text { font: 12px sans-serif; fill: #6f7682; }
.grid { stroke: #8a8f98; stroke-opacity: 0.25; }
.whisker { stroke: #8a8f98; stroke-width: 3; }
.dot { fill: #6f7682; }
.leads { fill: #0072b2; }
"""
"""Greys that can be read on light and on dark ground, and blue of the palette by Okabe and Ito."""
