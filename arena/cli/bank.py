"""``bank``: look at a test bank, convert it, and see what an edit changes before anything is graded anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.exam import K, Llm, MinGrade, PromptName, Runs
from arena.cli.options import Form

bank = typer.Typer(no_args_is_help=True, help="Test banks: questions and nuggets, their versions and edits.")

BankPath = Annotated[
    Path, typer.Argument(metavar="BANK", help="the workbench's bank .jsonl.gz, .yaml, or a table qid, question")
]
Secret = Annotated[bool, typer.Option("--secret", help="also secret items, with their texts")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(bank, name="bank")


@bank.command("show")
def show(
    file: BankPath,
    query: Annotated[str | None, typer.Option(help="only this query")] = None,
    secret: Secret = False,
    form: Form = "table",
) -> None:
    """The items of a bank and its version."""
    from arena.boards.bank import BankBoard
    from arena.cli.show import show as show_board
    from judges.errors import InputError
    from retrieval_eval.exam.bank_files import read_bank

    found = read_bank(file)
    if query is not None and query not in found.query_ids:
        raise InputError(f"{file}: no query {query!r}")
    items = [item for item in found.items if query in (None, item.query_id)]
    show_board(BankBoard(found.version, items, secret), form)


@bank.command("diff")
def diff(
    before: Annotated[Path, typer.Argument(metavar="OLD", help="a bank")],
    after: Annotated[Path, typer.Argument(metavar="NEW", help="its next version")],
    grades: Annotated[
        Path | None, typer.Option(help="grades of the old version: also shows the labels and places that change")
    ] = None,
    run: Runs = None,
    min_grade: MinGrade = None,
    k: K = 20,
    llm: Llm = None,
    prompt: PromptName = None,
    secret: Secret = False,
    form: Form = "table",
) -> None:
    """What changed between two versions of a bank; with grades also what that changes, before it is graded anew."""
    from arena.boards.bank import BankEditBoard
    from arena.cli.show import show as show_board
    from arena.stages.exam.study import load_study
    from retrieval_eval.exam.bank_files import read_bank
    from retrieval_eval.exam.oversight import edit_effect

    old, new = read_bank(before), read_bank(after)
    effect = None
    if grades is not None:
        study = load_study(grades, bank=before, runs=run or (), llm=llm, prompt=prompt)
        level = min_grade or study.usual_level
        effect = edit_effect(old, new, study.grades, study.rankings, level=level, k=k)
    show_board(BankEditBoard(old, new, effect, secret), form)


@bank.command("convert")
def convert(
    file: BankPath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help=".jsonl.gz for the workbench, .yaml, .csv, .parquet ...")],
    secret: Secret = False,
) -> None:
    """Write a bank in another form. Secret items stay out unless asked for."""
    from arena.cli.console import output
    from retrieval_eval.exam.bank_files import read_bank, write_bank

    found = read_bank(file)
    left_out = write_bank(out, found, secret=secret)
    output.print(f"{len(found.items) - left_out} items written to {out}")
    if left_out:
        output.print(f"{left_out} secret items left out; --secret writes them")
