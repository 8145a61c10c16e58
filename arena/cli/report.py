"""``report``: a tournament as one HTML file that a team attaches to a decision; ``publish``: as a site of pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import INCOMPLETE, errors, say
from arena.cli.options import BelowCoverage, Source, Tournament


def report(
    source: Source,
    out: Annotated[Path, typer.Option(metavar="FILE", help="the HTML file to write")] = Path("report.html"),
    tournament: Tournament = None,
    below_coverage: BelowCoverage = False,
    force: Annotated[bool, typer.Option("--force", help="replace FILE also where it is no report")] = False,
) -> None:
    """Write a report as one HTML file.

    It needs no network and runs no script. A report that is there is replaced; any other file only with --force.
    Exit status 3: too little is judged to rate on, and the report says what is missing.
    """
    from arena.boards.report import write_report
    from arena.cli.sources import open_tournament

    with open_tournament(source, tournament) as (store, name):
        report, written = write_report(store, name, out, _shown(source), below_coverage=below_coverage, force=force)
    say(report.shown.conclusion.line)
    say(f"wrote {out} ({written / 1000:,.0f} kB)", errors)
    if report.shown.board.withheld:
        raise typer.Exit(INCOMPLETE)


def publish(
    source: Source,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder to write the pages into")],
    tournament: Tournament = None,
    below_coverage: BelowCoverage = False,
) -> None:
    """Write a tournament as pages for any web server.

    They are the report, every query and every agent. They need no program on the server, run no script and ask nothing
    of other hosts. They hold the texts of queries, answers and documents: look at them before you make them public.
    Run it again after new results; other files stay.
    """
    from arena.boards.site import publish
    from arena.cli.sources import open_tournament

    with open_tournament(source, tournament) as (store, name):
        report, pages, written = publish(store, name, folder, _shown(source), below_coverage=below_coverage)
    say(report.shown.conclusion.line)
    say(f"wrote {pages:,} pages to {folder} ({written / 1e6:,.1f} MB); begin at index.html", errors)
    if report.shown.board.withheld:
        raise typer.Exit(INCOMPLETE)


def _shown(source: str) -> str:
    """A source as strangers may see it: not the address of a database, nor a folder's name."""
    from arena.store import sqlite_path

    path = sqlite_path(source)
    return "STORE" if path is None else path.name
