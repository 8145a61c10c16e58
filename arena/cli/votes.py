"""``votes``: what people said of a tournament's texts, in and out of its store."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

group = typer.Typer(help="What people say: listing, importing and exporting it.", no_args_is_help=True)

Source = Annotated[str, typer.Argument(metavar="CONFIG|STORE", help="a tournament's YAML file or its store")]
Tournament = Annotated[str | None, typer.Option(help="its name, where the store holds several")]
AsJson = Annotated[bool, typer.Option("--json", help="machine-readable output")]


class VoteKind(StrEnum):
    """What people say, as files hold it."""

    NUGGETS = "nuggets"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="votes")


@group.command("list")
def list_votes(source: Source, tournament: Tournament = None, as_json: AsJson = False) -> None:
    """Count what each person said, by kind; a later word on the same thing takes the place of the earlier one."""
    from arena.cli.vote_counts import print_counts

    print_counts(source, tournament, as_json=as_json)


@group.command("export")
def export_votes(
    source: Source,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="for nuggets a .jsonl file (or .gz) as nuggetizer's")],
    kind: Annotated[VoteKind, typer.Option(help="what they said")],
    annotator: Annotated[str | None, typer.Option(metavar="NAME", help="who, where there are several")] = None,
    tournament: Tournament = None,
    force: Annotated[bool, typer.Option("--force", help="write over a file that is there")] = False,
    as_json: AsJson = False,
) -> None:
    """Write what one person said, as 'nuggets score' and 'nuggets correlate' read it."""
    from arena.cli.nugget_votes import export_nuggets

    exports = {VoteKind.NUGGETS: export_nuggets}
    exports[kind](source, tournament, out, annotator, force=force, as_json=as_json)


@group.command("import")
def import_votes(
    source: Source,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="for nuggets a file of assignments")],
    kind: Annotated[VoteKind, typer.Option(help="what it holds")],
    annotator: Annotated[str, typer.Option(metavar="NAME", help="whose word it is")],
    tournament: Tournament = None,
    as_json: AsJson = False,
) -> None:
    """Take a file as what one person said. What they said before stays in the history."""
    from arena.cli.nugget_votes import import_nuggets

    imports = {VoteKind.NUGGETS: import_nuggets}
    imports[kind](source, tournament, file, annotator, as_json=as_json)
