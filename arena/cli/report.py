"""``report``: a tournament as one HTML file that a team attaches to a decision."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import INCOMPLETE, errors, output, printable


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("report")(report)


def report(
    source: Annotated[str, typer.Argument(metavar="CONFIG|STORE", help="a tournament's YAML file or its store")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="the HTML file to write")] = Path("report.html"),
    tournament: Annotated[str | None, typer.Option(help="its name, where the store holds several")] = None,
    below_coverage: Annotated[
        bool, typer.Option("--below-coverage", help="rate also where less is judged than ratings.min_coverage")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="replace FILE also where it is no report")] = False,
) -> None:
    """Write a report as one HTML file.

    It needs no network and runs no script. A report that is there is replaced; any other file only with --force.
    Exit status 3: too little is judged to rate on, and the report says what is missing.
    """
    from arena.boards.report import write_report
    from arena.cli.sources import open_tournament
    from arena.store import sqlite_path

    path = sqlite_path(source)
    with open_tournament(source, tournament) as (store, name):
        shown = "STORE" if path is None else path.name
        report, written = write_report(store, name, out, shown, below_coverage=below_coverage, force=force)
    output.print(printable(report.shown.conclusion.line))
    errors.print(printable(f"wrote {out} ({written / 1000:,.0f} kB)"))
    if report.shown.board.withheld:
        raise typer.Exit(INCOMPLETE)
