"""``ui``: the web leaderboard."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer

from arena.cli.options import Source


def ui(
    source: Source,
    port: Annotated[int, typer.Option(min=0, max=65535, help="port to listen on; 0 picks a free one")] = 8501,
    address: Annotated[
        str, typer.Option(help="address to listen on; by default only this machine reaches it")
    ] = "127.0.0.1",
    host: Annotated[list[str] | None, typer.Option(help="a name by which browsers call the server; repeatable")] = None,
    roles: Annotated[Path | None, typer.Option(help="file with the roles of people who sign in")] = None,
    without_sign_in: Annotated[
        Literal["viewer", "voter", "editor"] | None,
        typer.Option(help="the role of everyone who can reach the pages"),
    ] = None,
) -> None:
    """Open the web leaderboard of a store.

    The pages serve this machine or, with a sign-in, a team. If you name CONFIG, they can also start and stop its runs
    and edit the files that it names in its folder, such as the test bank.
    """
    from arena.cli.sources import location_and_name
    from arena.store import Store, missing

    location, tournament_name = location_and_name(source)
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
