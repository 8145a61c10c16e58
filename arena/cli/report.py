"""``report``: a tournament as one HTML file that a team attaches to a decision."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import INCOMPLETE, errors, output, printable
from judges.errors import InputError


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

    It needs no network and runs no script.     A report that is there is replaced; any other file only with --force.
    Exit status 3: too little is judged to rate on, and the report says what is missing.
    """
    from datetime import UTC, datetime

    from arena.boards.report import tournament_report
    from arena.cli.sources import open_tournament
    from arena.present.report import render
    from arena.store import sqlite_path
    from retrieval_eval.data.files import open_replacing

    if not force:
        _refuse_to_replace(out)
    path = sqlite_path(source)
    with open_tournament(source, tournament) as (store, name):
        report = tournament_report(store, name, "STORE" if path is None else path.name, below_coverage=below_coverage)
    made = report.page(datetime.now(UTC))
    page = render(made)
    with open_replacing(out) as file:
        file.write(page.encode())
    output.print(printable(report.shown.conclusion.line))
    errors.print(printable(f"wrote {out} ({len(page.encode()) / 1000:,.0f} kB)"))
    if report.shown.board.withheld:
        raise typer.Exit(INCOMPLETE)


def _refuse_to_replace(out: Path) -> None:
    """Raise an error where a file stands that no report was written to, such as a store named by mistake."""
    from arena.present.report import MARK
    from retrieval_eval.data.files import open_binary

    if out.suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"--out {out}: a name that ends in .html, or --force")
    if not out.exists():
        return
    with open_binary(out) as there:
        if there.read(len(MARK)) != MARK.encode():
            raise InputError(f"--out {out}: a file that is no report stands there; another name, or --force")
