"""``store``: what is done with a store as a whole: moved, and checked."""

from __future__ import annotations

from typing import Annotated

import typer

from arena.cli.options import Told
from arena.present.numbers import counted

group = typer.Typer(help="Stores: checking one, and moving it from SQLite to PostgreSQL or back.", no_args_is_help=True)


@group.command("copy")
def copy_store(
    source: Annotated[str, typer.Argument(metavar="FROM", help="a store, or the YAML file of one of its tournaments")],
    target: Annotated[str, typer.Argument(metavar="TO", help="a path, or the address of an empty database")],
    form: Told = "table",
) -> None:
    """Copy a store to another place, of the same or the other kind of database.

    All of it or nothing: what arrived is read again and compared before it is committed. A run on the copy asks for
    nothing that was judged before.
    """
    from arena.cli.console import tell
    from arena.cli.sources import location_and_name
    from arena.store import shown
    from arena.store.copying import copy

    location, _ = location_and_name(source)
    copied = copy(location, target)
    told = {name: {"rows": each.rows, "digest": each.digest} for name, each in copied.items()}
    rows = counted(sum(each.rows for each in copied.values()), "row")
    counts = f"{counted(copied['judgment'].rows, 'judgment')}, {rows} in all"
    tell(told, [f"{shown(location)} copied to {shown(target)}: {counts}, each the same there"], form)


@group.command("check")
def check_store(
    source: Annotated[str, typer.Argument(metavar="STORE", help="a store, or the YAML file of one of its tournaments")],
    discard: Annotated[
        bool, typer.Option("--discard", help="take out what is damaged, so that the next run asks for it again")
    ] = False,
    add: Annotated[
        bool,
        typer.Option(
            "--add", help="give checksums to the rows of an earlier version; as they are now, they count as right"
        ),
    ] = False,
    form: Told = "table",
) -> None:
    """Check a store for damage: rows that differ from their checksums, and references to rows that are gone.

    Exit status 1: something is wrong.
    """
    from contextlib import closing

    from arena.cli.console import tell
    from arena.cli.sources import location_and_name
    from arena.store import Store, shown
    from arena.store import check as checks

    location, _ = location_and_name(source)
    with closing(Store.open(location)) as store:
        found = checks.check(store)
    left = found
    if discard and found.problems:
        with closing(Store.create(location)) as store:
            checks.discard(store, found)
            left = checks.check(store)
    if add and not found.problems:
        with closing(Store.create(location)) as store:
            checks.add(store)
            found = checks.check(store)
    wrong = counted(len(found.problems), "problem") if found.problems else "nothing is wrong"
    lines = [*found.problems, f"{shown(location)}: {counted(found.judgments, 'judgment')}, {wrong}"]
    if found.uncovered:
        lines.append(f"{found.uncovered} rows of an earlier version have no checksum; --add gives them one")
    told = {"judgments": found.judgments, "problems": list(found.problems), "uncovered": found.uncovered}
    if discard and found.problems:
        if len(left.lasting) < len(left.problems) or len(left.problems) < len(found.problems):
            lines.append("the damaged parts are taken out; run the configuration again to ask for them")
        lines += [f"cannot be taken out: {problem}; restore a backup of the store" for problem in left.lasting]
        told["lasting"] = list(left.lasting)
    tell(told, lines, form)
    if found.problems:
        raise typer.Exit(1)
