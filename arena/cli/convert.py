"""``convert``: convert test banks and grades between file formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.options import MinGrade, given_options
from judges.errors import InputError


def convert(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a test bank, or grades: a table or the workbench's")],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help=".jsonl.gz for the workbench, .yaml, .csv ...; for the workbench's graded file a new folder of tables",
        ),
    ],
    bank: Annotated[Path | None, typer.Option(help="for grades: their test bank, which marks secret items")] = None,
    secret: Annotated[bool, typer.Option("--secret", help="also write secret items and their grades")] = False,
    onto: Annotated[
        Path | None, typer.Option(help="add the grades to this workbench file, and change nothing else in it")
    ] = None,
    documents: Annotated[Path | None, typer.Option(help="the passages' texts: qid, did, document, agent, rank")] = None,
    min_grade: MinGrade = None,
) -> None:
    """Write a bank or grades in another form.

    A bank may be the workbench's .jsonl.gz, YAML or a table; you can convert each into the others. A table of grades
    becomes a workbench file, with passages from --documents or from --onto. The workbench's graded file becomes a
    folder of tables: documents, grades, labels; with its bank also queries and items. Secret items are left out
    without --secret.
    """
    from retrieval_eval.data.rows import known_format
    from retrieval_eval.data.tables import read_columns
    from retrieval_eval.exam.grade_files import GRADES, is_workbench

    if out.exists() and out.samefile(file):
        raise InputError(f"{out}: is the file that is read; name another")
    options = given_options(ctx) - {"--secret"}
    if is_workbench(file) and not (options & {"--onto", "--documents"} or out.name.endswith(".jsonl.gz")):
        _to_tables(file, out, bank, secret)
    elif is_workbench(file) or (known_format(file) and "grade" in GRADES.named(read_columns(file)).values()):
        if ".jsonl" not in out.suffixes:
            raise InputError(
                f"{out}: name a .jsonl.gz file; {file} holds grades, which are written in the workbench's format"
            )
        _to_workbench(file, out, bank, secret, onto, documents, min_grade)
    elif options:
        raise InputError(f"{', '.join(sorted(options))}: goes with grades, and {file} has none")
    else:
        _bank(file, out, secret)


def _bank(file: Path, out: Path, secret: bool) -> None:
    from arena.cli.console import output
    from arena.present.numbers import counted
    from retrieval_eval.exam.bank_files import read_bank, write_bank

    test_bank = read_bank(file)
    left_out = write_bank(out, test_bank, secret=secret)
    output.print(f"{counted(len(test_bank.items) - left_out, 'item')} written to {out}")
    if left_out:
        output.print(f"{left_out} secret items left out; --secret writes them")


def _to_tables(file: Path, folder: Path, bank: Path | None, secret: bool) -> None:
    from arena.cli.console import output
    from arena.run.exam import import_workbench

    for table in import_workbench(file, folder, bank, secret=secret):
        output.print(f"{table.rows:>7}  {table.path}")
        if table.left_out:
            output.print(f"         {table.left_out} rows of secret items left out; --secret writes them")


def _to_workbench(
    file: Path,
    out: Path,
    bank: Path | None,
    secret: bool,
    onto: Path | None,
    documents: Path | None,
    min_grade: int | None,
) -> None:
    from arena.cli.console import output
    from arena.present.numbers import counted
    from arena.run.exam import export_workbench

    count, left_out = export_workbench(
        file, out, bank=bank, secret=secret, onto=onto, documents=documents, min_grade=min_grade
    )
    output.print(f"{counted(count, 'query', 'queries')} written to {out}")
    if left_out:
        output.print(f"{left_out} grades of secret items left out")
