"""Scatter plots as SVG, alone or in an HTML page: they need no script and nothing from outside."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arena.present.texts import printable
from judges.errors import DataError
from judges.files import open_replacing

SIZE, MARGIN, TOP = 400, 60, 40
_FRONT = 'r="4.5" fill="#0072B2" fill-opacity="0.9"'
_BEHIND = 'r="2" fill="#999999" fill-opacity="0.45"'
_LINE = 'fill="none" stroke="#D55E00" stroke-width="1.5"'
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Point:
    """A mark; hovering over it shows its title."""

    x: float
    y: float
    title: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot.

    Attributes:
        axes: names of the horizontal and the vertical one.
        heading: above the plot.
        points: in front.
        behind: smaller ones behind.
        lines: each through its points.
        from_zero: whether the axes begin at 0 where nothing lies below.
    """

    axes: tuple[str, str]
    heading: str
    points: Sequence[Point]
    behind: Sequence[Point] = ()
    lines: Sequence[Sequence[Point]] = ()
    from_zero: bool = True


def write_panels(path: Path, panels: Sequence[Panel], title: str) -> None:
    """Write plots side by side to a ``.svg`` or ``.html`` file.

    Raises:
        DataError: the name ends otherwise, or the file cannot be written.
    """
    if path.suffix.lower() not in {".svg", ".html"}:
        raise DataError(path, "a plot is written as .svg or .html")
    drawing = panels_svg(panels)
    if path.suffix.lower() == ".html":
        head = f'<meta charset="utf-8"><title>{html.escape(title)}</title>'
        drawing = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{drawing}</body></html>\n'
    with open_replacing(path) as raw:
        raw.write(drawing.encode())


def panels_svg(panels: Sequence[Panel]) -> str:
    """The plots as one SVG drawing."""
    width, height = len(panels) * (SIZE + 2 * MARGIN), SIZE + TOP + MARGIN
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    drawn = "".join(_drawn(panel, at * (SIZE + 2 * MARGIN)) for at, panel in enumerate(panels))
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">\n'
    return opening + ground + drawn + "</svg>\n"


def _drawn(panel: Panel, left: int) -> str:
    start = left + MARGIN
    everything = (*panel.points, *panel.behind, *(point for line in panel.lines for point in line))
    origin = [0.0] if panel.from_zero else []
    across = _Axis.of([*origin, *(point.x for point in everything)], start, start + SIZE)
    up = _Axis.of([*origin, *(point.y for point in everything)], TOP + SIZE, TOP)
    return "".join(
        [
            _text(start, TOP - 14, panel.heading, "start"),
            _text(start + SIZE / 2, TOP + SIZE + 44, panel.axes[0], "middle"),
            _text(left + 14, TOP + SIZE / 2, panel.axes[1], "middle", turned=True),
            *(_tick_across(across, value) for value in across.ticks),
            *(_tick_up(up, value, start) for value in up.ticks),
            *(_mark(across, up, point, _BEHIND) for point in panel.behind),
            *(_polyline(across, up, line) for line in panel.lines if line),
            *(_mark(across, up, point, _FRONT) for point in panel.points),
        ]
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    """From values to pixels; the ticks are round numbers that enclose all values."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float) -> _Axis:
        low, high = min(values), max(values)
        step = _round_step((high - low) / _TICKS if high > low else 0.2)
        first, last = int(low // step), -int(-high // step)
        last = max(last, first + 1)
        return cls(first * step, last * step, start, end, tuple(place * step for place in range(first, last + 1)))

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def _round_step(least: float) -> float:
    power = 10.0**-20
    while power * 10 <= least:
        power *= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def _tick_across(axis: _Axis, value: float) -> str:
    x = axis.at(value)
    rule = f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + SIZE}" stroke="#e5e5e5"/>\n'
    return rule + _text(x, TOP + SIZE + 18, f"{value:.6g}", "middle")


def _tick_up(axis: _Axis, value: float, left: float) -> str:
    y = axis.at(value)
    rule = f'<line x1="{left}" y1="{y:.1f}" x2="{left + SIZE}" y2="{y:.1f}" stroke="#e5e5e5"/>\n'
    return rule + _text(left - 8, y + 4, f"{value:.6g}", "end")


def _polyline(across: _Axis, up: _Axis, line: Sequence[Point]) -> str:
    places = " ".join(f"{across.at(point.x):.1f},{up.at(point.y):.1f}" for point in line)
    return f'<polyline points="{places}" {_LINE}/>\n'


def _mark(across: _Axis, up: _Axis, point: Point, style: str) -> str:
    title = html.escape(printable(point.title))
    place = f'cx="{across.at(point.x):.1f}" cy="{up.at(point.y):.1f}"'
    return f"<circle {place} {style}><title>{title}</title></circle>\n"


def _text(x: float, y: float, text: str, anchor: str, *, turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="#1a1a1a"{turn}>{html.escape(printable(text))}</text>\n'
