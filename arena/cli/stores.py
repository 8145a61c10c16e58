"""The commands ``store copy`` and ``store check``: copy a store to another place, and check it for damage."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from arena.cli.console import tell
from arena.cli.options import JsonForm
from arena.cli.sources import read_source
from arena.present.numbers import counted
from arena.store import Store, shown
from arena.store import check as checks
from arena.store.copying import copy


def store_copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="store, or the YAML file of one of its tournaments")],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="path of a new store, or the address of an empty database")
    ],
    form: JsonForm = "table",
) -> None:
    """Copy a store to a new SQLite file or to an empty PostgreSQL database.

    Either store may be of either kind. The copy is committed only after it has been read back and compared with the
    original; otherwise, nothing is copied. A run on the copy repeats no judgment.
    """
    location, *_ = read_source(source)
    copied = copy(location, target)
    record = {name: {"rows": table.rows, "digest": table.digest} for name, table in copied.items()}
    rows = counted(sum(table.rows for table in copied.values()), "row")
    counts = f"{counted(copied['judgment'].rows, 'judgment')}, {rows} in all"
    tell(record, [f"{shown(location)} copied to {shown(target)}: {counts}, each the same there"], form)


def store_check(
    source: Annotated[str, typer.Argument(metavar="STORE", help="store, or the YAML file of one of its tournaments")],
    discard: Annotated[
        bool, typer.Option("--discard", help="remove damaged rows; the next run then makes their judgments again")
    ] = False,
    form: JsonForm = "table",
) -> None:
    """Check a store for damage.

    A row is damaged if it does not match its checksum or refers to a missing row. Exit status 1: the store is damaged.
    """
    location, *_ = read_source(source)
    with closing(Store.open(location)) as store:
        report = checks.check(store)
    verdict = counted(len(report.problems), "problem") if report.problems else "nothing is wrong"
    lines = [*report.problems, f"{shown(location)}: {counted(report.judgments, 'judgment')}, {verdict}"]
    record: dict[str, object] = {"judgments": report.judgments, "problems": list(report.problems)}
    if discard and report.problems:
        with closing(Store.create(location)) as store:
            checks.discard(store, report)
            left = checks.check(store)
        if len(left.lasting) < max(len(left.problems), len(report.problems)):
            lines.append("the damaged parts are taken out; run the configuration again to ask for them")
        lines += [f"cannot be taken out: {problem}; restore a backup of the store" for problem in left.lasting]
        record["lasting"] = list(left.lasting)
    tell(record, lines, form)
    if report.problems:
        raise typer.Exit(1)
