"""``ui``: the web leaderboard."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer

from arena.cli.options import Source


def ui(
    source: Source,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one")] = 8501,
    address: Annotated[str, typer.Option(help="to listen on; by default only this machine reaches it")] = "127.0.0.1",
    host: Annotated[list[str] | None, typer.Option(help="a name by which browsers call the server; repeatable")] = None,
    roles: Annotated[Path | None, typer.Option(help="who may do what, of people who sign in")] = None,
    without_sign_in: Annotated[
        Literal["viewer", "voter", "editor"] | None,
        typer.Option(help="the role of whoever reaches it"),
    ] = None,
) -> None:
    """Open the web leaderboard of a store.

    On this machine, or with a sign-in for a team. With CONFIG its pages can also start and stop its runs, and
    edit the files that it names in its own folder, such as the test bank.
    """
    from arena.cli.sources import location_and_name
    from arena.store import Store, missing

    location, named = location_and_name(source)
    (Store.create if named is not None and missing(location) else Store.open)(location).close()
    options: dict[str, object] = {
        "--port": port,
        "--address": address,
        "--config": source if named is not None else None,
        "--roles": roles,
        "--without-sign-in": without_sign_in,
    }
    given = [str(part) for name, value in options.items() if value is not None for part in (name, value)]
    given += [part for name in host or () for part in ("--host", name)]
    # By name, since the page imports the arena, never the other way round; in this process, so that it ends with it.
    raise typer.Exit(import_module("ui.serve").main([location, *given]))
