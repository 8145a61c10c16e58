"""Where a judge and people differ: by how much, and on what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from arena.boards.calibration.people import judges_of, slug
from arena.calibration.comparison import Comparison
from arena.calibration.judge_people import Disagreement, JudgeAgainstPeople
from arena.calibration.opinions import Level
from arena.people.files import SUPPORT
from arena.present.numbers import SIGNED_2, counted
from arena.present.picture import Chart, Dot
from arena.present.picture import Level as Line

_SUPPORT: Final = {value: label.value.replace("_", " ") for label, value in SUPPORT.items()}


def difference_charts(comparisons: Sequence[Comparison]) -> list[Chart]:
    """Bland and Altman's plot of every judge and level with values that have a distance; verdicts have none."""
    charts = map(difference_chart, judges_of(comparisons))
    return [chart for chart in charts if chart is not None]


def difference_chart(judge: JudgeAgainstPeople) -> Chart | None:
    """Bland and Altman's plot of one judge; ``None`` where values have no distance."""
    found = judge.differences
    if found is None or not found.points:
        return None
    ends = {"bias": found.bias.value, "upper limit": found.upper.value, "lower limit": found.lower.value}
    levels = {f"{what} {SIGNED_2.write(at)}": at for what, at in ends.items() if at is not None}
    told, most = ", ".join(levels), max(point.times for point in found.points)
    dots = [
        Dot(
            point.mean,
            point.difference,
            told=f"{point.difference:+g} at {point.mean:g}, {counted(point.times, 'thing')}",
            size=point.times / most,
        )
        for point in found.points
    ]
    return Chart(
        slug("differences", judge.named),
        f"{judge.named}: {told}; {counted(found.n, 'thing')}",
        f"Bland and Altman's plot of {judge.named}: {told}.",
        "Above 0 the judge gives more than people. The line is the bias; between the dashed ones lie about 95% of all "
        "differences; the larger a mark, the more things lie there. Marks that fall or rise from left to right: the "
        "judge uses less, or more, of the scale than people do.",
        "Mean of judge and people",
        "Judge minus people",
        dots,
        levels=[Line(at, name, not name.startswith("bias")) for name, at in levels.items()],
    )


def disagreements(comparisons: Sequence[Comparison], texts: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """What judges and people see differently, with the texts that are known."""
    for judge in judges_of(comparisons):
        for found in judge.disagreements:
            of_judge, of_people, votes = said_of(judge.level, found)
            yield f"{found.query_id}: {' / '.join(found.item)}"
            yield f"  {judge.named}: {of_judge}; people: {of_people} ({votes})"
            for part in ("", *found.item):
                if (found.query_id, part) in texts:
                    yield f"  {part or 'query'}: {texts[found.query_id, part]}"


def said_of(level: Level, found: Disagreement) -> tuple[str, str, str]:
    """What the judge, the people and each of them said, in words."""

    def worded(value: float) -> str:
        if level == "verdicts":
            return "a tie" if not value else f"{found.item[-2 if value > 0 else -1]} wins"
        return _SUPPORT.get(value, f"{value:g}") if level == "nuggets" else f"{value:g}"

    votes = ", ".join(f"{rater}: {worded(vote)}" for rater, vote in sorted(found.votes.items()))
    return worded(found.judge), worded(found.people), votes
