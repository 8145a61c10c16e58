"""Bland-Altman plots of judges against people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from arena.calibration.bland_altman import BlandAltman
from arena.calibration.comparison import Comparison
from arena.scatter import Panel, Point, write_panels
from judges.errors import InputError


def write_bland_altman(path: Path, comparisons: Sequence[Comparison]) -> None:
    """Write a plot per judge: judge less people against the mean of both, with bias and limits of agreement.

    Raises:
        InputError: there are verdicts only, whose sides are arbitrary, or the file cannot be written.
    """
    panels = [
        _panel(f"{one.group}, {name}" if one.group else name, report.against.differences)
        for one in comparisons
        for name, report in one.judges.items()
        if report.against.differences is not None and report.against.differences.points
    ]
    if not panels:
        raise InputError("--plot: verdicts have no differences to plot, labels and grades have")
    write_panels(path, panels, "judges less people")


def _panel(name: str, own: BlandAltman) -> Panel:
    left, right = min(point.mean for point in own.points), max(point.mean for point in own.points)
    levels = {"bias": own.bias.value, "lower": own.lower.value, "upper": own.upper.value}
    lines = [[Point(left, level), Point(right, level)] for level in levels.values() if level is not None]
    told = ", ".join(f"{what} {level:+.2f}" for what, level in levels.items() if level is not None)
    points = [
        Point(one.mean, one.difference, f"{one.difference:+g} at {one.mean:g}, {one.times}x") for one in own.points
    ]
    return Panel(("mean of judge and people", "judge less people"), f"{name}: {told}", points, lines=lines)
