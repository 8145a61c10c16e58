"""``store``: what is done with a store as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

group = typer.Typer(help="Stores: moving one from SQLite to PostgreSQL, or back.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="store")


@group.callback()
def _several() -> None:
    """Keep the command's name where a group has one command."""


@group.command("copy")
def copy_store(
    source: Annotated[str, typer.Argument(metavar="FROM", help="a store, or the YAML file of one of its tournaments")],
    target: Annotated[str, typer.Argument(metavar="TO", help="a path, or the address of an empty database")],
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable output")] = False,
) -> None:
    """Copy a store to another place, of the same or the other kind of database.

    All of it or nothing: what arrived is read again and compared before it is committed. A run on the copy asks for
    nothing that was judged before.
    """
    from arena.cli.console import output, print_json
    from arena.cli.sources import location_and_name
    from arena.store import shown
    from arena.store.moving import copy

    location, _ = location_and_name(source)
    copied = copy(location, target)
    if as_json:
        print_json({name: {"rows": each.rows, "digest": each.digest} for name, each in copied.items()})
        return
    rows = sum(each.rows for each in copied.values())
    output.print(
        f"{shown(location)} copied to {shown(target)}: {copied['judgment'].rows} judgments, {rows} rows in all, "
        "each the same there"
    )
