"""``import`` and ``export``: judgments and data as tables of other tools."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from arena.cli.options import Source, Tournament
from judges.errors import InputError

What = Literal["verdicts", "labels", "query-labels", "criteria", "data"]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("import")(import_verdicts)
    app.command("export")(export)


def import_verdicts(
    file: Annotated[Path, typer.Argument(metavar="VERDICTS", help="qid, agent_a, agent_b, verdict [, judge, order]")],
    store: Annotated[str, typer.Option(help="the store to put them in; made if it is not there")],
    name: Annotated[str | None, typer.Option(help="the tournament's name; the file's name when absent")] = None,
    queries: Annotated[Path | None, typer.Option(help="the queries' texts")] = None,
    documents: Annotated[Path | None, typer.Option(help="the retrieved documents")] = None,
    answers: Annotated[Path | None, typer.Option(help="the answers' texts")] = None,
) -> None:
    """Put recorded verdicts into a store.

    They may come from people or from a judge elsewhere; leaderboard and web page then show them like any others.
    """
    from arena.cli.console import output
    from arena.store.imports import import_table

    tournament = name or file.name.split(".")[0]
    imported = import_table(file, store, tournament, queries=queries, documents=documents, answers=answers)
    again = f", {imported.repeated} repeated rows left out" if imported.repeated else ""
    output.print(f"{imported.verdicts} verdicts imported as {tournament!r}{again}")
    output.print(f"next:  ragleague leaderboard {shlex.quote(store)} --tournament {shlex.quote(tournament)}")


def export(
    source: Source,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="a .csv, .tsv, .jsonl, .parquet (or .gz) file; a folder for data")
    ],
    what: Annotated[What, typer.Option(help="what to write")] = "verdicts",
    tournament: Tournament = None,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, help="verdicts by the million: OUT is a folder of so many Parquet parts by query"
        ),
    ] = None,
) -> None:
    """Write what a tournament holds as tables.

    Verdicts, relevance labels, the mean label of each query, or criteria grades as one file; or the queries, documents
    and answers as a folder.
    """
    from arena.boards import exports
    from arena.cli.console import output
    from arena.cli.sources import open_tournament

    if parts is not None and what != "verdicts":
        raise InputError(f"--parts: only verdicts are written in parts, not {what}")
    write = {
        "verdicts": exports.export_verdicts if parts is None else partial(exports.export_verdict_parts, parts=parts),
        "labels": exports.export_labels,
        "query-labels": exports.export_query_labels,
        "criteria": exports.export_criteria,
        "data": exports.export_data,
    }[what]
    with open_tournament(source, tournament) as (store, name):
        store.verify(name)
        count = write(store, name, out)
    output.print(f"{count} rows written to {out}")
