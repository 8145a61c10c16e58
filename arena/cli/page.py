"""``ui`` and ``doctor``: the web leaderboard, and what is installed and set."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer

from arena.cli.options import Told


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("ui")(ui)
    app.command("doctor")(doctor)


def ui(
    source: Annotated[str, typer.Argument(metavar="CONFIG|STORE", help="a tournament's YAML file or its store")],
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


def doctor(
    config: Annotated[str | None, typer.Argument(metavar="[CONFIG]", help="also check this tournament")] = None,
    form: Told = "table",
) -> None:
    """Check what is installed and set.

    With a configuration also what that still lacks. Never shows a key.
    """
    from arena.cli.console import output, print_json, printable
    from arena.cli.doctor import examine

    findings = examine(config)
    if form == "json":
        print_json([{"check": check, "ok": ok, "detail": detail} for check, ok, detail in findings])
    else:
        for check, ok, detail in findings:
            unfit = "wrong" if check.startswith("config") else "missing"
            output.print(printable(f"{'ok' if ok else unfit:<7}  {check}: {detail}"))
    if config is not None and not all(ok for check, ok, _ in findings if check.startswith("config")):
        raise typer.Exit(2)
