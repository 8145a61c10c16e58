"""``qrels``: relevance labels of a judge held against people's, and a tournament's labels for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import INCOMPLETE, output, printable
from arena.cli.metrics import read_label_sets
from arena.cli.options import Form
from judges.errors import InputError

group = typer.Typer(
    name="qrels",
    help="Relevance labels: how a judge's agree with people's, and those of a tournament.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group)


@group.command("agreement")
def agreement(
    reference: Annotated[str, typer.Argument(metavar="HUMAN", help="the labels that others are held against")],
    others: Annotated[list[str], typer.Argument(metavar="LLM...", help="one or more other sets of labels")],
    samples: Annotated[int, typer.Option(min=0, help="bootstrap samples of the intervals")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of the samples")] = 0,
    form: Form = "table",
    as_json: Annotated[bool, typer.Option("--json", help="the same as --format json")] = False,
) -> None:
    """Say how far label sets agree with the first, on the pairs that both have.

    Kappa (plain, linear, quadratic), Krippendorff's alpha, confusion, and agreement at each threshold; intervals by
    bootstrap over queries. Faulty lines are left out and listed, and the exit status is then 3.
    """
    from arena.boards.agreement import QrelsAgreement
    from arena.cli.console import errors
    from arena.cli.show import show
    from arena.present import terminal
    from retrieval_eval.stats.agreement import label_agreement

    labels = read_label_sets([reference, *others], "skip")
    first, *rest = labels
    agreements = {}
    for name in rest:
        try:
            agreements[name] = label_agreement(labels[first].labels, labels[name].labels, samples=samples, seed=seed)
        except InputError as error:
            raise InputError(f"{first} and {name}: {error}") from error
    board = QrelsAgreement(agreements, labels, {"samples": samples, "seed": seed})
    show(board, "json" if as_json else form)
    if form == "csv":
        terminal.show(errors, [board.notes()])
    if any(one.faulty for one in labels.values()):
        raise typer.Exit(INCOMPLETE)


@group.command("export")
def export(
    source: Annotated[str, typer.Argument(metavar="CONFIG|STORE", help="a tournament's YAML file or its store")],
    out: Annotated[Path, typer.Option(help="the file to write, as trec_eval reads it; packed if it ends in .gz")],
    judge: Annotated[str | None, typer.Option(help="whose labels; of all judges together when left out")] = None,
    tournament: Annotated[str | None, typer.Option(help="its name, where the store holds several")] = None,
) -> None:
    """Write a tournament's relevance labels as qrels.

    A failed judgment is no label: it is left out and counted, and the exit status is then 3.
    """
    from arena.boards.exports import export_qrels
    from arena.cli.sources import open_tournament

    with open_tournament(source, tournament) as (store, name):
        exported = export_qrels(store, name, out, judge)
    output.print(printable(f"{exported.written:,} labels written to {out}"))
    for cause, count in exported.failed.items():
        output.print(f"{count:,} failed: {cause} ('ragleague failures' lists them)")
    if exported.left:
        output.print(f"{exported.left:,} not judged yet ('ragleague run' goes on)")
    if exported.failed or exported.left:
        raise typer.Exit(INCOMPLETE)
