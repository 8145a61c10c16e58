"""Commands to see results in a browser: ``ui`` serves web pages, ``report`` and ``publish`` write HTML files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer

from arena.boards.report import publish as publish_pages
from arena.boards.report import write_report
from arena.cli.console import INCOMPLETE, errors, say
from arena.cli.options import BelowCoverage, By, OfGroup, Source, Tournament
from arena.cli.sources import open_tournament, read_source
from arena.store import Store, missing, sqlite_path


def report(
    source: Source,
    out: Annotated[Path, typer.Option(metavar="FILE", help="HTML file to write")] = Path("report.html"),
    tournament: Tournament = None,
    by: By = "",
    group: OfGroup = "",
    below_coverage: BelowCoverage = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite FILE even if it is not a report")] = False,
) -> None:
    """Write the report on a tournament as one HTML file.

    It begins with a memo of at most two printed pages; the rest is a folded appendix, printed only if it is open. The
    file needs no network and runs no script. An existing report is overwritten; any other file only with --force.
    Exit status 3: there are too few judgments for ratings; the report says which are missing.
    """
    with open_tournament(source, tournament, group) as (store, name):
        report, written = write_report(
            store, name, out, _public_source(source), by=by, below_coverage=below_coverage, force=force
        )
    say(report.shown.conclusion.line)
    say(f"wrote {out} ({written / 1000:,.0f} kB)", errors)
    if report.shown.board.withheld:
        raise typer.Exit(INCOMPLETE)


def publish(
    source: Source,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder to write the pages into")],
    tournament: Tournament = None,
    by: By = "",
    group: OfGroup = "",
    below_coverage: BelowCoverage = False,
) -> None:
    """Write the results of a tournament as a static web site.

    The site has the report, a page for each query and a page for each agent. Any web server can serve it; the pages run
    no script and request nothing from other hosts. They contain the texts of queries, answers and documents: check them
    before you make them public. After new results, run the command again; other files in the folder are kept.
    """
    with open_tournament(source, tournament, group) as (store, name):
        report, pages, written = publish_pages(
            store, name, folder, _public_source(source), by=by, below_coverage=below_coverage
        )
    say(report.shown.conclusion.line)
    say(f"wrote {pages:,} pages to {folder} ({written / 1e6:,.1f} MB); begin at index.html", errors)
    if report.shown.board.withheld:
        raise typer.Exit(INCOMPLETE)


def _public_source(source: str) -> str:
    """Name of the store in the commands that the report suggests: the file name, or ``STORE`` for a database."""
    path = sqlite_path(source)
    return "STORE" if path is None else path.name


def ui(
    source: Source,
    port: Annotated[int, typer.Option(min=0, max=65535, help="port to listen on; 0 picks a free one")] = 8501,
    address: Annotated[
        str, typer.Option(help="address to listen on; by default only this machine reaches it")
    ] = "127.0.0.1",
    host: Annotated[
        list[str] | None, typer.Option(help="host name under which browsers reach the server; may be repeated")
    ] = None,
    roles: Annotated[Path | None, typer.Option(help="YAML file with the role of each person who may sign in")] = None,
    without_sign_in: Annotated[
        Literal["viewer", "voter", "editor"] | None,
        typer.Option(help="give this role to everyone who can reach the pages, without sign-in"),
    ] = None,
) -> None:
    """Open the web leaderboard of a store.

    The pages are for users of this machine or, with sign-in, for a team. If you name a configuration file instead of a
    store, its runs can be started and stopped on the pages, and the files that it uses from its folder can be edited.
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
