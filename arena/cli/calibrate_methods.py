"""Methods against each other and judges for their money, as text, plain values and plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from arena.calibration.methods import MethodComparison
from arena.calibration.orders import OrderHealth
from arena.cli.agreement_shapes import flattened
from arena.cli.calibrate_shapes import coefficient_row
from arena.cli.console import output
from arena.cli.figures import interval, say, value
from arena.cli.tables import print_table
from arena.opinions.stored import Spending
from arena.opinions.tournament import TournamentCalibration
from arena.present.numbers import MONEY
from arena.scatter import Panel, Point, write_panels
from judges.errors import InputError
from retrieval_eval.stats.estimate import Coefficient

_MOST_GAPS = 5


def methods_json(found: MethodComparison) -> dict[str, Any]:
    """Scores, places and correlations of all methods."""
    return {
        "methods": {own.method: {"scores": dict(own.scores), "ranks": dict(own.ranks)} for own in found.methods},
        "pairs": pair_rows(found),
        "places": [flattened(gap) for gap in found.places],
        "queries": found.queries,
    }


def pair_rows(found: MethodComparison) -> list[dict[str, Any]]:
    """One flat row for every two methods."""
    return [
        {
            "first": pair.first,
            "second": pair.second,
            "agents": pair.agents,
            **coefficient_row("kendall", pair.kendall),
            **coefficient_row("spearman", pair.spearman),
        }
        for pair in found.pairs
    ]


def judges_json(found: TournamentCalibration) -> dict[str, Any]:
    """Order and cost of every answer judge."""
    return {
        judge: {
            **flattened(own),
            "cost_per_1000_games": own.per_thousand,
            **(flattened(found.orders[judge]) if judge in found.orders else {}),
        }
        for judge, own in found.spent.items()
    }


def print_methods(found: MethodComparison) -> None:
    """Write scores by agent, the matrix of rank correlations, and whose place differs most."""
    _print_scores(found)
    if not found.pairs:
        output.print("\nno two methods score three agents or more: there is no order to compare")
        return
    names = [own.method for own in found.methods]
    tables: list[tuple[str, dict[tuple[str, str], Coefficient]]] = [
        ("Kendall's tau-b", {(pair.first, pair.second): pair.kendall for pair in found.pairs}),
        ("Spearman's rho", {(pair.first, pair.second): pair.spearman for pair in found.pairs}),
    ]
    for title, cells in tables:
        output.print(f"\n{title} between methods, with its 95 % interval over queries")
        rows = [[row, *(_cell(cells, row, column) for column in names)] for row in names]
        print_table([""], names, rows)
    if gaps := [gap for gap in found.places if gap.worst > gap.best][:_MOST_GAPS]:
        output.print("\nplaces that differ most")
        for gap in gaps:
            say(f"  {gap.agent}: {gap.best} by {', '.join(gap.best_by)}; {gap.worst} by {', '.join(gap.worst_by)}")


def print_judges(found: TournamentCalibration) -> None:
    """Write what each answer judge costs beside how far it can be trusted."""
    if not found.spent:
        return
    verdicts = next((one for one in found.comparisons if one.people.level == "verdicts"), None)
    rows = []
    for judge, own in found.spent.items():
        report = verdicts.judges.get(judge) if verdicts is not None else None
        labels = report.against.labels if report is not None else None
        agreement = (
            ["-"] * 3 if labels is None else [value(labels.agreement), value(labels.kappa), interval(labels.kappa)]
        )
        orders = _orders(found.orders.get(judge))
        rows.append([judge, f"{own.games:,}", *agreement, *orders, f"{own.failed:,} of {own.wanted:,}", _cost(own)])
    output.print("\njudges of answers")
    headings = ["games", "same as\npeople", "kappa", "95 %\ninterval", "same in\nboth orders", "95 %\ninterval"]
    print_table(["judge"], [*headings, "failed", "cost of\n1000 games"], rows)


def print_styles(found: TournamentCalibration) -> None:
    """Write what each answer judge makes of style, and of its kin."""
    if not found.styles:
        return
    output.print("\nwhat is worth points besides strength (a standard deviation more; being of the judge's family)")
    rows = []
    for own in found.styles:
        points = "-" if own.points.value is None else f"{own.points.value:+.0f}"
        rows.append([own.judge, own.name, f"{own.games:,}", points, interval(own.points, 0)])
    print_table(["judge", "quality"], ["verdicts", "points", "95 %\ninterval"], rows)
    for own in found.styles:
        if own.why_not:
            say(f"{own.judge}, {own.name}: {own.why_not}")


def write_scatter(path: Path, found: MethodComparison) -> None:
    """Plot agents by every two methods.

    Raises:
        InputError: no two methods score three agents, or the file cannot be written.
    """
    scores = {own.method: own.scores for own in found.methods}
    panels = []
    for pair in found.pairs:
        x, y = scores[pair.first], scores[pair.second]
        points = [Point(x[agent], y[agent], f"{agent}: {x[agent]:.4g}, {y[agent]:.4g}") for agent in x if agent in y]
        panels.append(
            Panel((pair.first, pair.second), f"Kendall's tau {_number(pair.kendall.value)}", points, from_zero=False)
        )
    if not panels:
        raise InputError("--plot: no two methods score three agents or more")
    write_panels(path, panels, "methods against each other")


def _print_scores(found: MethodComparison) -> None:
    agents = sorted(
        {agent for own in found.methods for agent in own.scores},
        key=lambda agent: ([own.ranks.get(agent, 10**6) for own in found.methods], agent),
    )
    rows = [
        [
            agent,
            *(f"{own.scores[agent]:.5g} ({own.ranks[agent]})" if agent in own.scores else "-" for own in found.methods),
        ]
        for agent in agents
    ]
    if rows:
        output.print("scores, and places in brackets")
        print_table(["agent"], [own.method for own in found.methods], rows)


def _cell(cells: dict[tuple[str, str], Coefficient], row: str, column: str) -> str:
    found = cells.get((row, column)) or cells.get((column, row))
    if found is None:
        return "" if row == column else "-"
    bounds = "" if found.low is None or found.high is None else f" ({found.low:.2f} .. {found.high:.2f})"
    return _number(found.value) + bounds


def _orders(own: OrderHealth | None) -> list[str]:
    return ["-", "-"] if own is None else [value(own.order_agreement), interval(own.order_agreement)]


def _number(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


def _cost(own: Spending) -> str:
    return "unknown" if own.per_thousand is None else MONEY.write(own.per_thousand)
