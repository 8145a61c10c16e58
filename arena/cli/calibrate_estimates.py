"""A judge's figures corrected by people's labels, as text and plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arena.calibration.comparison import Comparison
from arena.calibration.estimates import Estimates, Figure
from arena.cli.agreement_shapes import flattened
from arena.cli.calibrate_output import Titles
from arena.cli.calibrate_shapes import estimate_row
from arena.cli.console import output
from arena.cli.figures import interval, say
from arena.cli.tables import print_table
from retrieval_eval.stats.estimate import Estimate


def estimates_json(own: Estimates) -> dict[str, Any]:
    """Corrected figures, flat rows."""
    shape: dict[str, Any] = {
        "figures": [_figure_row(one) for one in own.figures],
        "next": [{"qid": query_id, "item": list(item)} for query_id, item in own.next],
    }
    if own.ratings is not None:
        found = own.ratings
        people = found.people or [Estimate(None)] * len(found.agents)
        shape["ratings"] = {
            "agents": [
                {
                    "agent": agent,
                    **estimate_row("corrected", corrected),
                    **estimate_row("people", alone),
                    **estimate_row("judge", judged),
                }
                for agent, corrected, alone, judged in zip(
                    found.agents, found.corrected, people, found.judge, strict=True
                )
            ],
            **{name: getattr(found, name) for name in ("weight", "games", "labelled", "queries", "converged")},
        }
    elif own.no_ratings:
        shape["no_ratings"] = own.no_ratings
    return shape


def print_estimates(comparisons: Sequence[Comparison]) -> None:
    """Write every judge's corrected figures, ratings, and what to label next."""
    titles = Titles(comparisons)
    for one in comparisons:
        for name, report in one.judges.items():
            own = report.estimates
            if own is not None:
                title = ", ".join([*titles.cells(one), name])
                _print_figures(title, own, rates=one.people.level == "verdicts")
                _print_ratings(title, own)
                if own.next:
                    say(f"\n{title}, label next (a random sample, queries in turn):")
                    for query_id, item in own.next:
                        say(f"  {query_id}: {' / '.join(item)}")


def _print_figures(title: str, own: Estimates, *, rates: bool) -> None:
    say(f"\n{title}, {'win rates' if rates else 'means'} corrected by people's labels")
    widths = any(one.needed is not None for one in own.figures)
    rows = []
    for one in own.figures:
        found = one.corrected
        cells = [f"{found.n:,}", f"{found.labelled:,}", _value(found.corrected), interval(found.corrected, 3)]
        cells += [_value(found.people), interval(found.people, 3), _value(found.judge), f"{found.weight:.2f}"]
        if one.needed is not None:
            cells += [_count(one.needed.corrected), _count(one.needed.people)]
        rows.append([one.name, *cells])
    headings = ["things", "labelled", "corrected", "95 %\ninterval", "people\nalone", "95 %\ninterval", "judge\nalone"]
    headings += ["weight", *(["labels\nneeded", "without\njudge"] if widths else [])]
    print_table(["figure"], headings, rows)


def _print_ratings(title: str, own: Estimates) -> None:
    if own.ratings is None:
        if own.no_ratings:
            say(f"{title}: no ratings: {own.no_ratings}")
        return
    found = own.ratings
    people = found.people or [Estimate(None)] * len(found.agents)
    rows = sorted(
        zip(found.agents, found.corrected, people, found.judge, strict=True), key=lambda row: -(row[1].value or 0)
    )
    say(f"\n{title}, Bradley-Terry ratings (ties half) corrected by people's labels")
    cells = [
        [agent, _points(one), interval(one, 0), _points(alone), interval(alone, 0), _points(judge)]
        for agent, one, alone, judge in rows
    ]
    headings = ["corrected", "95 %\ninterval", "people\nalone", "95 %\ninterval", "judge\nalone"]
    print_table(["agent"], headings, cells)
    output.print(
        f"{found.labelled:,} of {found.games:,} games labelled, on {found.queries} queries; weight {found.weight:.2f}"
    )
    if not found.converged:
        output.print("the fit has not converged")


def _figure_row(one: Figure) -> dict[str, Any]:
    row = {"name": one.name, **flattened(one.corrected)}
    if one.needed is not None:
        row |= {"width": one.needed.width, "labels_needed": one.needed.corrected, "labels_alone": one.needed.people}
    return row


def _value(own: Estimate) -> str:
    return "-" if own.value is None else f"{own.value:.3f}"


def _points(own: Estimate) -> str:
    return "-" if own.value is None else f"{own.value:.0f}"


def _count(labels: int | None) -> str:
    return "more than all" if labels is None else f"{labels:,}"
