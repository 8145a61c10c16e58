"""``votes``: what people said of a tournament's texts, in and out of its store."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judges.errors import InputError

if TYPE_CHECKING:
    from arena.voting.tables import TableKind

group = typer.Typer(help="What people say: listing, importing and exporting it.", no_args_is_help=True)

Source = Annotated[str, typer.Argument(metavar="CONFIG|STORE", help="a tournament's YAML file or its store")]
Tournament = Annotated[str | None, typer.Option(help="its name, where the store holds several")]
AsJson = Annotated[bool, typer.Option("--json", help="machine-readable output")]


class VoteKind(StrEnum):
    """What people say, as files hold it."""

    VERDICT = "verdict"
    RELEVANCE = "relevance"
    CRITERIA = "criteria"
    NUGGETS = "nuggets"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="votes")


@group.command("list")
def list_votes(source: Source, tournament: Tournament = None, as_json: AsJson = False) -> None:
    """Count what each person said, by kind; a later word on the same thing takes the place of the earlier one."""
    from arena.boards.votes import vote_counts
    from arena.cli.show import show
    from arena.cli.sources import open_tournament

    with open_tournament(source, tournament) as (store, name):
        show(vote_counts(store, name), "json" if as_json else "table")


@group.command("export")
def export_votes(
    source: Source,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="a table, or for relevance .qrels; for nuggets a .jsonl file as nuggetizer's"
        ),
    ],
    kind: Annotated[VoteKind, typer.Option(help="what they said")],
    annotator: Annotated[
        str | None, typer.Option(metavar="NAME", help="who; nuggets and qrels are one person's, else all by default")
    ] = None,
    tournament: Tournament = None,
    force: Annotated[bool, typer.Option("--force", help="write over a file that is there")] = False,
    as_json: AsJson = False,
) -> None:
    """Write what people said of the texts as they are now.

    Verdicts, labels and grades are for 'calibrate --people', nuggets for 'nuggets score' and 'nuggets correlate'.
    """
    from arena.cli.nugget_votes import export_nuggets
    from arena.cli.table_votes import export_table

    if kind is VoteKind.NUGGETS:
        export_nuggets(source, tournament, out, annotator, force=force, as_json=as_json)
    else:
        export_table(source, tournament, out, _stored(kind), annotator, force=force, as_json=as_json)


@group.command("import")
def import_votes(
    source: Source,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="a table of verdicts, labels or grades, qrels, or assignments"),
    ],
    kind: Annotated[VoteKind, typer.Option(help="what it holds")],
    annotator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="whose word it is; without, a table names them, or else its own name does"),
    ] = None,
    tournament: Tournament = None,
    as_json: AsJson = False,
) -> None:
    """Take a file as what people said. What they said before stays in the history."""
    from arena.cli.nugget_votes import import_nuggets
    from arena.cli.table_votes import import_table

    if kind is not VoteKind.NUGGETS:
        import_table(source, tournament, file, _stored(kind), annotator, as_json=as_json)
    elif annotator is None:
        raise InputError("--annotator: name the one whose nuggets these are; the file does not")
    else:
        import_nuggets(source, tournament, file, annotator, as_json=as_json)


def _stored(kind: VoteKind) -> TableKind:
    from arena.store.annotations import Kind

    kinds: dict[VoteKind, TableKind] = {
        VoteKind.VERDICT: Kind.VERDICT,
        VoteKind.RELEVANCE: Kind.RELEVANCE,
        VoteKind.CRITERIA: Kind.CRITERIA,
    }
    return kinds[kind]
