"""A judge's figures corrected by people: in words, as tables and pictures, and what to label next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from arena.boards.agreement import WIDE
from arena.boards.calibration.people import slug
from arena.calibration.corrected_ratings import CorrectedRatings
from arena.calibration.estimates import Estimates
from arena.calibration.judge_people import JudgeAgainstPeople
from arena.calibration.prediction_powered import labels_needed
from arena.calibration.words import THINGS
from arena.present.blocks import Block, Remarks
from arena.present.numbers import COUNT, FIGURE, POINTS, SCORE, Number, counted
from arena.present.picture import Look, of_table
from arena.present.plain import flat
from arena.present.table import Column, Table
from retrieval_eval.stats.estimate import Estimate

_THREE_WAYS: Final = (
    Column("corrected", "Corrected", SCORE, "Judge and people together.", WIDE),
    Column("people", "People alone", SCORE, "The labels without the judge.", WIDE),
    Column("judge", "Judge alone", SCORE, "Its interval knows nothing of its bias.", WIDE),
)
_FIGURES: Final = (
    Column("name", "Figure"),
    *_THREE_WAYS,
    Column("weight", "Weight", FIGURE, "How far the judge is listened to: 0 is not at all."),
    Column("n", "Things", COUNT),
    Column("labelled", "Labelled", COUNT, "Things that people labelled, of those that the judge judged."),
    Column("labels_needed", "Labels needed", COUNT, "For an interval as narrow as was asked for."),
    Column("labels_alone", "Without judge", COUNT, "Labels for the same width, were there no judge."),
)
_DIFFERENCE: Final = Number(3, signed=True)
_LOOKS: Final[Mapping[Look, str]] = {"blue": "corrected", "orange": "people", "grey": "judge"}
_WORDS: Final = "Corrected, by people alone and by the judge alone."


def corrected_figures(judge: JudgeAgainstPeople, width: float | None = None) -> Iterator[Block]:
    """All of a judge's figures, if they were asked for; ``width`` of an interval, to say how many labels it needs."""
    found, name, rates = judge.estimates, judge.named, judge.level == "verdicts"
    if found is None:
        return
    yield Remarks([_furthest_off(found, judge.judge)])
    if rows := figure_rows(found, width):
        title = "Win rates, a tie being half a win" if rates else f"Means of {THINGS[judge.level]}"
        needed = f"Labels needed: for an interval {width} wide; where none are named, not even all labels would do."
        notes = [] if width is None else [needed]
        table = Table(slug("corrected", name), f"{title}, corrected by people: {name}", _FIGURES, rows, notes)
        yield from of_table(table, _LOOKS, "win rate" if rates else "mean", _WORDS)
        yield table
    if found.ratings is not None:
        yield from _ratings(name, found.ratings)
    elif found.no_ratings:
        yield Remarks([f"No corrected ratings of judge {judge.judge}: {found.no_ratings}."])
    if found.next:
        drawn = [f"  {query_id}: {' / '.join(item)}" for query_id, item in found.next]
        yield Remarks([f"{name}, label next (a random sample, queries in turn):", *drawn])


def estimates_json(found: Estimates, width: float | None) -> dict[str, Any]:
    """The same for programs."""
    shape: dict[str, Any] = {
        "figures": figure_rows(found, width),
        "next": [{"qid": query_id, "item": item} for query_id, item in found.next],
    }
    if found.ratings is not None:
        names = ("weight", "games", "labelled", "queries", "converged")
        agents = [flat(row) for row in _by_agent(found.ratings)]
        shape["ratings"] = {"agents": agents, **{name: getattr(found.ratings, name) for name in names}}
    elif found.no_ratings:
        shape["no_ratings"] = found.no_ratings
    return shape


def figure_rows(found: Estimates, width: float | None) -> list[dict[str, Any]]:
    """Every figure three ways, and how many labels an interval of a width needs."""
    rows = []
    for name, figure in found.figures.items():
        row = {"name": name, **flat(figure)}
        if width is not None:
            needed = labels_needed(figure, width)
            row |= {"width": width, "labels_needed": needed.corrected, "labels_alone": needed.people}
        rows.append(row)
    return rows


def _ratings(name: str, found: CorrectedRatings) -> Iterator[Block]:
    notes = [
        f"{found.labelled:,} of {found.games:,} games labelled, on {counted(found.queries, 'query', 'queries')}; "
        f"weight {FIGURE.write(found.weight)}. Ties count a half."
        + ("" if found.converged else " The fit has not converged: do not use these.")
    ]
    columns = (Column("agent", "Agent"), *(replace(column, form=POINTS) for column in _THREE_WAYS))
    best_first = sorted(_by_agent(found), key=lambda row: -(row["corrected"].value or 0))
    title = f"Bradley-Terry ratings corrected by people: {name}"
    table = Table(slug("corrected-ratings", name), title, columns, best_first, notes)
    yield from of_table(table, _LOOKS, "Bradley-Terry rating, points", _WORDS)
    yield table


def _by_agent(found: CorrectedRatings) -> list[dict[str, Any]]:
    people = found.people or [Estimate(None)] * len(found.agents)
    ways = zip(found.agents, found.corrected, people, found.judge, strict=True)
    return [dict(zip(("agent", "corrected", "people", "judge"), row, strict=True)) for row in ways]


def _furthest_off(found: Estimates, judge: str) -> str:
    """Which figure the judge gets most wrong."""
    gaps, outside = {}, 0
    for name, figure in found.figures.items():
        alone, corrected = figure.judge.value, figure.corrected
        if alone is not None and corrected.value is not None:
            gaps[name] = alone - corrected.value
            if corrected.low is not None and corrected.high is not None:
                outside += not corrected.low <= alone <= corrected.high
    if not gaps:
        return "No figure can be corrected yet."
    worst = max(gaps, key=lambda name: abs(gaps[name]))
    said = f"{judge} is furthest off for {worst}: {_DIFFERENCE.write(gaps[worst])} against the corrected figure."
    if not outside:
        return f"{said} No figure of the judge lies outside the corrected interval."
    return f"{said} {outside:,} of {len(found.figures):,} figures of the judge lie outside the corrected interval."
