"""``export``: write a tournament's verdicts, relevance labels, grades and data as tables for other tools."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from arena.boards import exports
from arena.cli.console import INCOMPLETE, output, say
from arena.cli.options import Force, OutTable, Source, Tournament, require_free
from arena.cli.sources import open_tournament
from arena.present.numbers import counted
from arena.store import Store

_DATA: Final = ("queries.csv", "documents.csv", "answers.csv")


def export_verdicts(
    source: Source,
    out: OutTable,
    tournament: Tournament = None,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, help="for millions: write this many Parquet files, split by query, into the folder OUT"
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write the verdicts as a table."""
    if parts is None:
        require_free(out, force)
    write = exports.export_verdicts if parts is None else partial(exports.export_verdict_parts, parts=parts)
    _export(write, source, tournament, out)


def export_labels(source: Source, out: OutTable, tournament: Tournament = None, force: Force = False) -> None:
    """Write the relevance labels as a table."""
    require_free(out, force)
    _export(exports.export_labels, source, tournament, out)


def export_query_labels(source: Source, out: OutTable, tournament: Tournament = None, force: Force = False) -> None:
    """Write the mean relevance label of each query."""
    require_free(out, force)
    _export(exports.export_query_labels, source, tournament, out)


def export_criteria(source: Source, out: OutTable, tournament: Tournament = None, force: Force = False) -> None:
    """Write the grades by criterion."""
    require_free(out, force)
    _export(exports.export_criteria, source, tournament, out)


def export_data(
    source: Source,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="the folder to write into")],
    tournament: Tournament = None,
    force: Force = False,
) -> None:
    """Write queries, documents and answers into a folder."""
    for name in _DATA:
        require_free(folder / name, force)
    _export(exports.export_data, source, tournament, folder)


def export_qrels(
    source: Source,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="the qrels")],
    judge: Annotated[str | None, typer.Option(help="this judge's labels; default: all judges combined")] = None,
    tournament: Tournament = None,
    force: Force = False,
) -> None:
    """Write the relevance labels as qrels.

    Failed judgments are left out and their number is reported; the exit status is then 3.
    """
    require_free(out, force)
    with open_tournament(source, tournament) as (store, name):
        exported = exports.export_qrels(store, name, out, judge)
    say(f"{counted(exported.written, 'label')} written to {out}")
    for cause, count in exported.failed.items():
        output.print(f"{count:,} failed: {cause} ('ragleague failures' lists them)")
    if exported.left:
        output.print(f"{exported.left:,} not judged yet ('ragleague run' goes on)")
    if exported.failed or exported.left:
        raise typer.Exit(INCOMPLETE)


def _export(write: Callable[[Store, str, Path], int], source: str, tournament: str | None, out: Path) -> None:
    with open_tournament(source, tournament) as (store, name):
        output.print(f"{counted(write(store, name, out), 'row')} written to {out}")
