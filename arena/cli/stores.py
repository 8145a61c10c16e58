"""``store``: copy a store to another place, and check it for damage."""

from __future__ import annotations

from typing import Annotated

import typer

from arena.cli.options import JsonForm
from arena.present.numbers import counted

group = typer.Typer(help="Stores: checking one, and moving it from SQLite to PostgreSQL or back.", no_args_is_help=True)


@group.command("copy")
def copy_store(
    source: Annotated[str, typer.Argument(metavar="FROM", help="a store, or the YAML file of one of its tournaments")],
    target: Annotated[str, typer.Argument(metavar="TO", help="a path, or the address of an empty database")],
    form: JsonForm = "table",
) -> None:
    """Copy a store to another place, of the same or the other kind of database.

    It copies everything or nothing: before it commits, it reads the copy again and compares it. A run on the copy
    repeats no judgment.
    """
    from arena.cli.console import tell
    from arena.cli.sources import location_and_name
    from arena.store import shown
    from arena.store.copying import copy

    location, _ = location_and_name(source)
    copied = copy(location, target)
    record = {name: {"rows": table.rows, "digest": table.digest} for name, table in copied.items()}
    rows = counted(sum(table.rows for table in copied.values()), "row")
    counts = f"{counted(copied['judgment'].rows, 'judgment')}, {rows} in all"
    tell(record, [f"{shown(location)} copied to {shown(target)}: {counts}, each the same there"], form)


@group.command("check")
def check_store(
    source: Annotated[str, typer.Argument(metavar="STORE", help="a store, or the YAML file of one of its tournaments")],
    discard: Annotated[
        bool, typer.Option("--discard", help="remove damaged rows, so that the next run requests them again")
    ] = False,
    add: Annotated[
        bool,
        typer.Option(
            "--add", help="add checksums to rows of an earlier version; their present content then counts as correct"
        ),
    ] = False,
    form: JsonForm = "table",
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
        report = checks.check(store)
    after_discard = report
    if discard and report.problems:
        with closing(Store.create(location)) as store:
            checks.discard(store, report)
            after_discard = checks.check(store)
    if add and not report.problems:
        with closing(Store.create(location)) as store:
            checks.add(store)
            report = checks.check(store)
    verdict = counted(len(report.problems), "problem") if report.problems else "nothing is wrong"
    lines = [*report.problems, f"{shown(location)}: {counted(report.judgments, 'judgment')}, {verdict}"]
    if report.uncovered:
        lines.append(f"{report.uncovered} rows of an earlier version have no checksum; --add gives them one")
    record = {"judgments": report.judgments, "problems": list(report.problems), "uncovered": report.uncovered}
    if discard and report.problems:
        if len(after_discard.lasting) < len(after_discard.problems) or len(after_discard.problems) < len(
            report.problems
        ):
            lines.append("the damaged parts are taken out; run the configuration again to ask for them")
        lines += [f"cannot be taken out: {problem}; restore a backup of the store" for problem in after_discard.lasting]
        record["lasting"] = list(after_discard.lasting)
    tell(record, lines, form)
    if report.problems:
        raise typer.Exit(1)
