"""Results for a browser: ``ui`` serves the pages, ``report`` writes one HTML file, ``publish`` a static web site."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer

from arena.boards.report import publish as publish_pages
from arena.boards.report import write_report
from arena.cli.console import INCOMPLETE, errors, say
from arena.cli.options import BelowCoverage, Source, Tournament
from arena.cli.sources import open_tournament, read_source
from arena.store import Store, missing, sqlite_path


def report(
    source: Source,
    out: Annotated[Path, typer.Option(metavar="FILE", help="HTML file to write")] = Path("report.html"),
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
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder to write the pages into")],
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


def ui(
    source: Source,
    port: Annotated[int, typer.Option(min=0, max=65535, help="port to listen on; 0 picks a free one")] = 8501,
    address: Annotated[
        str, typer.Option(help="address to listen on; by default only this machine reaches it")
    ] = "127.0.0.1",
    host: Annotated[
        list[str] | None, typer.Option(help="name by which browsers call the server; may be repeated")
    ] = None,
    roles: Annotated[Path | None, typer.Option(help="YAML file with the roles of people who sign in")] = None,
    without_sign_in: Annotated[
        Literal["viewer", "voter", "editor"] | None,
        typer.Option(help="role of everyone who can reach the pages; no one signs in"),
    ] = None,
) -> None:
    """Open the web leaderboard of a store.

    The pages serve this machine or, with a sign-in, a team. If you name CONFIG, they can also start and stop its runs
    and edit the files that it names in its folder, such as the test bank.
    """
    location, tournament_name, _ = read_source(source)
    (Store.create if tournament_name is not None and missing(location) else Store.open)(location).close()
    options: dict[str, object] = {
        "--port": port,
        "--address": address,
        "--config": source if tournament_name is not None else None,
        "--roles": roles,
        "--without-sign-in": without_sign_in,
    }
    arguments = [str(part) for name, value in options.items() if value is not None for part in (name, value)]
    arguments += [part for name in host or () for part in ("--host", name)]
    # Imported by name: the pages import the arena, never the reverse. In this process, so that both end together.
    raise typer.Exit(import_module("ui.serve").main([location, *arguments]))
