"""Plots of calibration: agents by every two ways of scoring, and how far judges lie from people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from arena.calibration.bland_altman import BlandAltman
from arena.calibration.comparison import Comparison
from arena.calibration.methods import MethodComparison, MethodPair
from arena.report.blocks import Level, Plot, Plots, Point, Scale
from arena.report.figures import Axis, number

_SMALLEST, _LARGEST = 2.5, 9.0
"""Radius of a mark for one thing, and for as many as lie anywhere."""
_NUMBERED = 8.0
"""Radius of a mark with a number in it."""
_TICKS = 5


def method_plots(found: MethodComparison, ranked: Sequence[str], titles: Mapping[str, str]) -> Plots:
    """A plot of agents for every two methods.

    Args:
        found: at least one pair of methods.
        ranked: agents in the order of their numbers.
        titles: of methods.
    """
    scores = {own.method: own.scores for own in found.methods}
    numbers = {agent: str(at) for at, agent in enumerate(ranked, start=1)}
    plots = [_of_methods(pair, scores[pair.first], scores[pair.second], numbers, titles) for pair in found.pairs]
    named = ", ".join(f"{at} {agent}" for agent, at in numbers.items())
    notes = [
        "A mark for each agent; two ways of scoring that agree put the marks on a line that rises to the right.",
        f"Agents by number: {named}.",
    ]
    return Plots("Agents by every two ways of scoring", plots, notes)


def difference_plots(comparisons: Sequence[Comparison]) -> Iterator[Plots]:
    """Bland and Altman's plot of every judge and level with values that have a distance; verdicts have none."""
    plots = [
        _of_differences(f"{judge}, {one.people.level}", report.against.differences)
        for one in comparisons
        for judge, report in one.judges.items()
        if report.against.differences is not None and report.against.differences.points
    ]
    if plots:
        notes = [
            "Bland and Altman's plots: above 0 the judge gives more than people. The line is the bias, between the "
            "dashed ones lie about 95% of all differences; the larger a mark, the more things lie there. Marks that "
            "fall or rise from left to right: the judge uses less, or more, of the scale than people do."
        ]
        yield Plots("How far judges lie from people", plots, notes)


def _of_methods(
    pair: MethodPair,
    first: Mapping[str, float],
    second: Mapping[str, float],
    numbers: Mapping[str, str],
    titles: Mapping[str, str],
) -> Plot:
    both = [agent for agent in first if agent in second]
    across, up = Axis([first[agent] for agent in both]), Axis([second[agent] for agent in both])
    return Plot(
        [
            Point(numbers[agent], across.place(first[agent]), up.place(second[agent]), radius=_NUMBERED)
            for agent in both
        ],
        Scale(titles.get(pair.first, pair.first), across.ticks(_TICKS)),
        Scale(titles.get(pair.second, pair.second), up.ticks(_TICKS)),
        f"Kendall's tau {number(pair.kendall.value, 2)}",
        small=True,
    )


def _of_differences(name: str, own: BlandAltman) -> Plot:
    levels = {"bias": own.bias.value, "upper limit": own.upper.value, "lower limit": own.lower.value}
    known = {what: level for what, level in levels.items() if level is not None}
    across = Axis([one.mean for one in own.points])
    up = Axis([0.0, *(one.difference for one in own.points), *known.values()])
    most = max(one.times for one in own.points)
    return Plot(
        [
            Point("", across.place(one.mean), up.place(one.difference), radius=_radius(one.times / most))
            for one in own.points
        ],
        Scale("Mean of judge and people", across.ticks(_TICKS)),
        Scale("Judge less people", up.ticks(_TICKS)),
        f"{name}: {', '.join(f'{what} {level:+.2f}' for what, level in known.items())}; {own.n:,} things",
        [Level(f"{level:+.2f}", up.place(level), what != "bias") for what, level in known.items()],
        small=True,
    )


def _radius(share: float) -> float:
    """So that areas are as numbers of things."""
    return round(max(_SMALLEST, _LARGEST * math.sqrt(share)), 1)
