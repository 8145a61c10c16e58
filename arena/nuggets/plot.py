"""Scatter plots of two conditions.

Left the two conditions' scores, runs in front and single answers behind; right the first condition's score against
length with the Pareto front (Pradeep et al. 2024, Figures 6 and 7).
"""

from __future__ import annotations

from pathlib import Path

from arena.nuggets.comparison import Comparison
from arena.scatter import Panel, Point, write_panels


def write_plot(path: Path, comparison: Comparison, names: tuple[str, str], column: str) -> None:
    """Write the plots to a ``.svg`` or ``.html`` file.

    Raises:
        DataError: the name ends otherwise, or the file cannot be written.
    """
    panels = [_both_scores(comparison, names, column)]
    if any(own.length is not None for own in comparison.runs):
        panels.append(_score_by_length(comparison, names, column))
    write_panels(path, panels, f"{column}: {names[0]} and {names[1]}")


def _both_scores(comparison: Comparison, names: tuple[str, str], column: str) -> Panel:
    of = comparison.correlation
    taus = {"runs": of.kendall.value, "all pairs": of.pairs_kendall.value, "by topic": of.topics_kendall.value}
    return Panel(
        (f"{column}, {names[0]}", f"{column}, {names[1]}"),
        "Kendall's tau: " + ", ".join(f"{name} {tau:.3f}" for name, tau in taus.items() if tau is not None),
        [Point(own.a, own.b, f"{own.run}: {own.a:.4f}, {own.b:.4f}") for own in comparison.runs],
        [Point(own.a, own.b, f"{own.run}, {own.topic}: {own.a:.4f}, {own.b:.4f}") for own in comparison.pairs],
    )


def _score_by_length(comparison: Comparison, names: tuple[str, str], column: str) -> Panel:
    runs = [(own, own.length) for own in comparison.runs if own.length is not None]
    pairs = [(own, own.length) for own in comparison.pairs if own.length is not None]
    front = [Point(length, own.a, "") for own, length in runs if own.front]
    return Panel(
        ("length in words", f"{column}, {names[0]}"),
        "line: no run is both shorter and better",
        [Point(length, own.a, f"{own.run}: {length:.0f} words, {own.a:.4f}") for own, length in runs],
        [Point(length, own.a, f"{own.run}, {own.topic}: {length:.0f} words, {own.a:.4f}") for own, length in pairs],
        [sorted(front, key=lambda point: point.x)],
    )
