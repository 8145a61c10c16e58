"""Scatter plots of two conditions as SVG, alone or in an HTML page: they need no script and nothing from outside.

Left the two conditions' scores, runs in front and single answers behind; right the first condition's score against
length with the Pareto front (Pradeep et al. 2024, Figures 6 and 7).
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arena.nuggets.comparison import Comparison
from judges.errors import DataError
from judges.files import open_replacing

_SIZE, _MARGIN, _TOP = 400, 60, 40
_RUN = 'r="4.5" fill="#0072B2" fill-opacity="0.9"'
_PAIR = 'r="2" fill="#999999" fill-opacity="0.45"'
_FRONT = 'fill="none" stroke="#D55E00" stroke-width="1.5"'
_TICKS = 5


@dataclass(frozen=True, slots=True)
class _Point:
    x: float
    y: float
    title: str


def write_plot(path: Path, comparison: Comparison, names: tuple[str, str], column: str) -> None:
    """Write the plots to a ``.svg`` or ``.html`` file.

    Raises:
        DataError: the name ends otherwise, or the file cannot be written.
    """
    if path.suffix.lower() not in {".svg", ".html"}:
        raise DataError(path, "a plot is written as .svg or .html")
    drawing = plot_svg(comparison, names, column)
    if path.suffix.lower() == ".html":
        title = html.escape(f"{column}: {names[0]} and {names[1]}")
        head = f'<meta charset="utf-8"><title>{title}</title>'
        drawing = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{drawing}</body></html>\n'
    with open_replacing(path) as raw:
        raw.write(drawing.encode())


def plot_svg(comparison: Comparison, names: tuple[str, str], column: str) -> str:
    """The plots as one SVG drawing; hovering over a mark shows what it is."""
    panels = [_both_scores(comparison, names, column)]
    if any(own.length is not None for own in comparison.runs):
        panels.append(_score_by_length(comparison, names, column))
    width, height = len(panels) * (_SIZE + 2 * _MARGIN), _SIZE + _TOP + _MARGIN
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    drawn = "".join(_drawn(panel, at * (_SIZE + 2 * _MARGIN)) for at, panel in enumerate(panels))
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">\n'
    return opening + ground + drawn + "</svg>\n"


@dataclass(frozen=True, slots=True)
class _Panel:
    axes: tuple[str, str]
    heading: str
    runs: Sequence[_Point]
    pairs: Sequence[_Point]
    front: Sequence[_Point] = ()


def _both_scores(comparison: Comparison, names: tuple[str, str], column: str) -> _Panel:
    of = comparison.correlation
    taus = {"runs": of.kendall.value, "all pairs": of.pairs_kendall.value, "by topic": of.topics_kendall.value}
    return _Panel(
        (f"{column}, {names[0]}", f"{column}, {names[1]}"),
        "Kendall's tau: " + ", ".join(f"{name} {tau:.3f}" for name, tau in taus.items() if tau is not None),
        [_Point(own.a, own.b, f"{own.run}: {own.a:.4f}, {own.b:.4f}") for own in comparison.runs],
        [_Point(own.a, own.b, f"{own.run}, {own.topic}: {own.a:.4f}, {own.b:.4f}") for own in comparison.pairs],
    )


def _score_by_length(comparison: Comparison, names: tuple[str, str], column: str) -> _Panel:
    runs = [(own, own.length) for own in comparison.runs if own.length is not None]
    pairs = [(own, own.length) for own in comparison.pairs if own.length is not None]
    front = [_Point(length, own.a, "") for own, length in runs if own.front]
    return _Panel(
        ("length in words", f"{column}, {names[0]}"),
        "line: no run is both shorter and better",
        [_Point(length, own.a, f"{own.run}: {length:.0f} words, {own.a:.4f}") for own, length in runs],
        [_Point(length, own.a, f"{own.run}, {own.topic}: {length:.0f} words, {own.a:.4f}") for own, length in pairs],
        sorted(front, key=lambda point: point.x),
    )


def _drawn(panel: _Panel, left: int) -> str:
    start = left + _MARGIN
    everything = (*panel.runs, *panel.pairs)
    across = _Axis.of([point.x for point in everything], start, start + _SIZE)
    up = _Axis.of([point.y for point in everything], _TOP + _SIZE, _TOP)
    line = " ".join(f"{across.at(point.x):.1f},{up.at(point.y):.1f}" for point in panel.front)
    return "".join(
        [
            _text(start, _TOP - 14, panel.heading, "start"),
            _text(start + _SIZE / 2, _TOP + _SIZE + 44, panel.axes[0], "middle"),
            _text(left + 14, _TOP + _SIZE / 2, panel.axes[1], "middle", turned=True),
            *(_tick_across(across, value) for value in across.ticks),
            *(_tick_up(up, value, start) for value in up.ticks),
            *(_mark(across, up, point, _PAIR) for point in panel.pairs),
            f'<polyline points="{line}" {_FRONT}/>\n' if line else "",
            *(_mark(across, up, point, _RUN) for point in panel.runs),
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
        low, high = min(0.0, *values), max(values)
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
    rule = f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_TOP + _SIZE}" stroke="#e5e5e5"/>\n'
    return rule + _text(x, _TOP + _SIZE + 18, f"{value:.6g}", "middle")


def _tick_up(axis: _Axis, value: float, left: float) -> str:
    y = axis.at(value)
    rule = f'<line x1="{left}" y1="{y:.1f}" x2="{left + _SIZE}" y2="{y:.1f}" stroke="#e5e5e5"/>\n'
    return rule + _text(left - 8, y + 4, f"{value:.6g}", "end")


def _mark(across: _Axis, up: _Axis, point: _Point, style: str) -> str:
    title = html.escape(_visible(point.title))
    place = f'cx="{across.at(point.x):.1f}" cy="{up.at(point.y):.1f}"'
    return f"<circle {place} {style}><title>{title}</title></circle>\n"


def _text(x: float, y: float, text: str, anchor: str, *, turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="#1a1a1a"{turn}>{html.escape(_visible(text))}</text>\n'


def _visible(text: str) -> str:
    """Names come from outside: what XML cannot hold is shown as an escape."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
