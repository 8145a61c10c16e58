"""Pictures of calibration: how far judges lie from people, and ways of scoring against each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from arena.calibration.bland_altman import BlandAltman
from arena.calibration.comparison import Comparison
from arena.calibration.methods import MethodComparison
from arena.calibration.style import StyleEffect
from arena.present.numbers import COUNT, FIGURE, PERCENT, SIGNED, SIGNED_2, Number, with_interval
from arena.present.picture import Cell, Chart, Dot, Level, Look, Matrix, Whiskers, lines
from retrieval_eval.stats.estimate import Estimate

_WAYS: Final[Mapping[Look, str]] = {"blue": "corrected by people", "orange": "people alone", "grey": "judge alone"}


def differences(name: str, own: BlandAltman) -> Chart:
    """Bland and Altman's plot of a judge."""
    levels = {"bias": own.bias.value, "upper limit": own.upper.value, "lower limit": own.lower.value}
    said = {what: f"{what} {SIGNED_2.write(at)}" for what, at in levels.items() if at is not None}
    return Chart(
        f"differences, {name}",
        f"Judge minus people: {name}",
        f"Bland and Altman's plot of {name}: {', '.join(said.values())}; {own.n:,} things",
        "Above 0 the judge gives more than people. Line: bias; between the dashed ones lie about 95% of all "
        "differences; the larger a mark, the more things lie there. Marks that fall or rise from left to right: the "
        "judge uses less, or more, of the scale than people do.",
        "Mean of judge and people",
        "Judge minus people",
        [
            Dot(
                one.mean,
                one.difference,
                told=f"{SIGNED_2.write(one.difference)} at {one.mean:g}: {one.times:,} things",
                size=one.times,
            )
            for one in own.points
        ],
        levels=[Level(levels[what] or 0.0, words, what != "bias") for what, words in said.items()],
    )


def all_differences(comparisons: Sequence[Comparison]) -> list[Chart]:
    """The plot of each judge and level with values that have a distance; verdicts have none."""
    return [
        differences(", ".join(filter(None, (judge, one.group, one.people.level))), report.against.differences)
        for one in comparisons
        for judge, report in one.judges.items()
        if report.against.differences is not None and report.against.differences.points
    ]


def votes(comparisons: Sequence[Comparison]) -> Whiskers:
    """How often a judge and a person, and two people, say the same."""
    shares: dict[str, dict[Look, Estimate]] = {}
    for one in comparisons:
        what = ", ".join(filter(None, (one.group, one.people.level)))
        shares[f"two people, {what}"] = {"orange": one.people.within.share}
        for judge, report in one.judges.items():
            shares[f"{judge}, {what}"] = {"blue": report.against.votes.share}
    words = "How often a judge and a person, and two people, say the same"
    legend: Mapping[Look, str] = {"orange": "two people", "blue": "a judge and a person"}
    return Whiskers("votes-alike", "", words, "", lines(shares), "votes alike", PERCENT, legend=legend)


def three_ways(
    name: str, what: str, figures: Iterable[tuple[str, Estimate, Estimate, Estimate]], form: Number = FIGURE
) -> Whiskers:
    """Figures by name: corrected, people's alone, the judge's alone."""
    estimates: dict[str, dict[Look, Estimate]] = {one: dict(zip(_WAYS, ways, strict=True)) for one, *ways in figures}
    words = f"{what}: by judge and people together, by people alone, by the judge alone"
    return Whiskers(name, "", words, "", lines(estimates), what, form, legend=_WAYS)


def effects(styles: Sequence[StyleEffect]) -> Whiskers:
    """What style is worth to each judge."""
    known = lines({f"{own.judge}, {own.name.replace('_', ' ')}": {"blue": own.points} for own in styles})
    return Whiskers("style", "", "What style is worth to each judge", "", known, "rating points", SIGNED, zero=True)


def correlations(found: MethodComparison, coefficient: str, names: Mapping[str, str]) -> Matrix:
    """Rank correlations of every two ways of scoring, ``kendall`` or ``spearman``; ``names`` of ways, for people."""
    cells: dict[tuple[str, str], Cell] = {}
    for pair in found.pairs:
        own: Estimate = getattr(pair, coefficient)
        if own.value is None:
            continue
        first, second = (names.get(name, name) for name in (pair.first, pair.second))
        told = f"{first} and {second}: {with_interval(own, FIGURE)}, {pair.agents:,} agents"
        below = "" if own.low is None or own.high is None else FIGURE.between(own.low, own.high)
        cells |= dict.fromkeys(
            [(first, second), (second, first)], Cell(FIGURE.write(own.value), own.value, below, told)
        )
    ways = [names.get(own.method, own.method) for own in found.methods]
    title = "Kendall's tau-b" if coefficient == "kendall" else "Spearman's rho"
    caption = "A gap is two ways that do not score three agents in common."
    return Matrix(
        f"{coefficient}-of-methods", title, f"{title} of ways of scoring", caption, ways, ways, cells, "Places by"
    )


def two_methods(found: MethodComparison, across: str, up: str, names: Mapping[str, str]) -> Chart:
    """Agents by two ways of scoring, named from those whose places differ most on."""
    scores = {own.method: own for own in found.methods}
    x, y = scores[across], scores[up]
    agents = sorted(
        (agent for agent in x.scores if agent in y.scores), key=lambda agent: -abs(x.ranks[agent] - y.ranks[agent])
    )
    first, second = (names.get(name, name) for name in (across, up))
    tau = next((pair.kendall for pair in found.pairs if {pair.first, pair.second} == {across, up}), Estimate(None))
    return Chart(
        f"{across} and {up}",
        f"{first} and {second}: tau {FIGURE.write(tau.value)}",
        f"Agents by {first} and {second}",
        "A mark for each agent. Two ways that agree put the marks on a line that rises to the right.",
        first,
        second,
        [Dot(x.scores[agent], y.scores[agent], agent) for agent in agents],
    )


def all_methods(found: MethodComparison, names: Mapping[str, str]) -> list[Chart]:
    """Agents by every two ways of scoring."""
    charts = [two_methods(found, pair.first, pair.second, names) for pair in found.pairs]
    return [*(replace(one, caption="") for one in charts[:-1]), *charts[-1:]]


def confusion(scale: Sequence[object], counts: Sequence[Sequence[float]], judge: str = "the judge") -> Matrix:
    """How often people's label was the row's where the judge's was the column's.

    Args:
        scale: labels, of people and judge alike.
        counts: by label of people, then of the judge.
        judge: its name.
    """
    labels = list(map(str, scale))
    cells = {}
    for people, row in zip(labels, counts, strict=True):
        for said, count in zip(labels, row, strict=True):
            share = count / (sum(row) or 1)
            told = f"People {people}, {judge} {said}: {COUNT.write(count)}, {PERCENT.write(share)} of the row"
            cells[people, said] = Cell(COUNT.write(count), share, told=told, bold=people == said)
    words = f"Labels of people by those of {judge}"
    caption = (
        f"Rows are people's labels, columns those of {judge}: on the diagonal (bold) both agree, to the right of it "
        f"{judge} is more generous than people. The stronger a colour, the larger the share of its row."
    )
    return Matrix("confusion", "", words, caption, labels, labels, cells, f"People against {judge}")
