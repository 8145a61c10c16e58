"""``import verdicts``: import recorded verdicts, such as those of another tool, as a tournament."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from arena.boards.rated_tables import column_names
from arena.cli.console import output
from arena.cli.options import Columns, Values
from arena.data.verdict_words import meanings
from arena.present.numbers import counted
from arena.run.imports import import_table
from arena.store import shown


def import_verdicts(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="a table: qid, agent_a, agent_b, verdict [, judge, order]")
    ],
    store: Annotated[
        str, typer.Option(metavar="CONFIG|STORE", help="the store to import into; created if it does not exist")
    ],
    tournament: Annotated[str | None, typer.Option(help="the tournament's name; default: the file's name")] = None,
    column: Columns = None,
    value: Values = None,
    item: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="a further column that identifies an item of a query, such as the turn"),
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="the queries' texts")] = None,
    documents: Annotated[Path | None, typer.Option(help="the retrieved documents")] = None,
    answers: Annotated[Path | None, typer.Option(help="the answers' texts")] = None,
) -> None:
    """Import recorded verdicts as a tournament.

    They may come from another tool's judge; the leaderboard and the web pages then show them like any others. For
    people's labels of a tournament that is there, see 'import votes'.
    """
    name = tournament or file.name.split(".")[0]
    imported = import_table(
        file,
        store,
        name,
        columns=column_names(column or ()),
        values=meanings(value or ()),
        item=tuple(item or ()),
        queries=queries,
        documents=documents,
        answers=answers,
    )
    again = f", {counted(imported.repeated, 'repeated row')} left out" if imported.repeated else ""
    output.print(f"{counted(imported.verdicts, 'verdict')} imported as {name!r}{again}")
    if imported.replaced:
        replaced = f"{counted(imported.replaced, 'verdict')} of the earlier import as {name!r}"
        output.print(f"no longer shown: {replaced}; to keep both, name one of them otherwise with --tournament")
    output.print(f"next:  ragleague leaderboard {shlex.quote(shown(store))} --tournament {shlex.quote(name)}")
