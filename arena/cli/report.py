"""``report`` writes a tournament as one HTML file to attach to a decision; ``publish`` writes a static web site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.boards.report import publish as publish_pages
from arena.boards.report import write_report
from arena.cli.console import INCOMPLETE, errors, say
from arena.cli.options import BelowCoverage, Source, Tournament
from arena.cli.sources import open_tournament
from arena.store import sqlite_path


def report(
    source: Source,
    out: Annotated[Path, typer.Option(metavar="FILE", help="the HTML file to write")] = Path("report.html"),
    tournament: Tournament = None,
    below_coverage: BelowCoverage = False,
    force: Annotated[bool, typer.Option("--force", help="replace FILE even if it is not a report")] = False,
) -> None:
    """Write a report as one HTML file.

    The file needs no network and runs no script. An existing report is replaced; any other file only with --force.
    Exit status 3: too little is judged for ratings; the report says what is missing.
    """
    with open_tournament(source, tournament) as (store, name):
        report, written = write_report(
            store, name, out, _public_source(source), below_coverage=below_coverage, force=force
        )
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

    The pages are the report, one page per query and one per agent. They need no program on the server, run no script
    and request nothing from other hosts. They contain the texts of queries, answers and documents: check them before
    you make them public. Run the command again after new results; other files in the folder stay.
    """
    with open_tournament(source, tournament) as (store, name):
        report, pages, written = publish_pages(
            store, name, folder, _public_source(source), below_coverage=below_coverage
        )
    say(report.shown.conclusion.line)
    say(f"wrote {pages:,} pages to {folder} ({written / 1e6:,.1f} MB); begin at index.html", errors)
    if report.shown.board.withheld:
        raise typer.Exit(INCOMPLETE)


def _public_source(source: str) -> str:
    """The name of the store in the report's command lines; it reveals no database address and no folder."""
    path = sqlite_path(source)
    return "STORE" if path is None else path.name
