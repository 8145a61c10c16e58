"""Commands ``bank``, to show or compare test banks, and ``convert``, to write banks and grades in other formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.boards.bank import BankBoard, BankEditBoard
from arena.cli.console import output
from arena.cli.options import Form, GradesFile, K, Llm, MinGrade, PromptName, Runs
from arena.cli.show import show
from arena.present.numbers import counted
from arena.results.exam import load_study
from arena.run.exam import export_workbench, import_workbench
from judges.errors import InputError
from retrieval_eval.exam.bank_files import read_bank, write_bank
from retrieval_eval.exam.oversight import edit_effect

BankFile = Annotated[
    Path,
    typer.Argument(
        metavar="BANK",
        help="file of a test bank: .jsonl.gz of the Rubric-Grading Workbench, .yaml, a table (qid, question), "
        "or nuggets",
    ),
]
Secret = Annotated[bool, typer.Option("--secret", help="also write secret items of the test bank and their grades")]


def bank_show(
    file: BankFile,
    query: Annotated[str | None, typer.Option(help="show only the items of this query")] = None,
    secret: Annotated[bool, typer.Option("--secret", help="also show secret items and their texts")] = False,
    form: Form = "table",
) -> None:
    """Show the items of a test bank, or nuggets."""
    test_bank = read_bank(file)
    if query is not None and query not in test_bank.query_ids:
        raise InputError(f"{file}: this test bank has no query {query!r}")
    items = [item for item in test_bank.items if query in (None, item.query_id)]
    show(BankBoard(test_bank.version, items, secret), form)


def bank_diff(
    before: BankFile,
    after: Annotated[Path, typer.Argument(metavar="NEXT", help="file of the new version of BANK")],
    grades: Annotated[
        Path | None, typer.Option(help="file of grades made with BANK; shows also which labels and rankings change")
    ] = None,
    run: Runs = None,
    min_grade: MinGrade = None,
    k: K = 20,
    llm: Llm = None,
    prompt: PromptName = None,
    secret: Annotated[bool, typer.Option("--secret", help="also show secret items and their texts")] = False,
    form: Form = "table",
) -> None:
    """Show what changed between two versions of a bank.

    With --grades it also shows which labels and rankings change, before you grade by the new version.
    """
    old, new = read_bank(before), read_bank(after)
    effect = None
    if grades is not None:
        study = load_study(grades, bank=before, runs=run or (), llm=llm, prompt=prompt)
        level = min_grade or study.usual_level
        effect = edit_effect(old, new, study.grades, study.rankings, level=level, k=k)
    show(BankEditBoard(old, new, effect, secret), form)


def convert_bank(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="BANK", help="file of a test bank: the Rubric-Grading Workbench's .jsonl.gz, .yaml, or a table"
        ),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="output file: .jsonl.gz (for the Rubric-Grading Workbench), .yaml, .csv, .tsv, .jsonl or .parquet",
        ),
    ],
    secret: Secret = False,
) -> None:
    """Write a test bank in another format.

    Secret items are left out without --secret.
    """
    _require_other(file, out)
    test_bank = read_bank(file)
    left_out = write_bank(out, test_bank, secret=secret)
    output.print(f"{counted(len(test_bank.items) - left_out, 'item')} written to {out}")
    if left_out:
        output.print(f"{left_out} secret items left out; --secret writes them")


def convert_tables(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="GRADED", help="file of graded passages, as the Rubric-Grading Workbench writes it: .jsonl.gz"
        ),
    ],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="new folder to write the tables into")],
    bank: Annotated[
        Path | None, typer.Option(help="file of the test bank, which marks secret items; writes queries and items too")
    ] = None,
    secret: Secret = False,
) -> None:
    """Write a graded file of the Rubric-Grading Workbench as tables.

    The tables are documents, grades and labels; with --bank also queries and items. Secret items are left out without
    --secret.
    """
    for table in import_workbench(file, folder, bank, secret=secret):
        output.print(f"{table.rows:>7}  {table.path}")
        if table.left_out:
            output.print(f"         {table.left_out} rows of secret items left out; --secret writes them")


def convert_workbench(
    file: GradesFile,
    out: Annotated[Path, typer.Argument(metavar="OUT", help=".jsonl.gz file to write")],
    bank: Annotated[Path | None, typer.Option(help="file of the test bank, which marks secret items")] = None,
    secret: Secret = False,
    onto: Annotated[
        Path | None, typer.Option(help="file of the Rubric-Grading Workbench to copy into OUT, with the grades added")
    ] = None,
    documents: Annotated[
        Path | None, typer.Option(help="table with the passages' texts: qid, did, document, agent, rank")
    ] = None,
    min_grade: MinGrade = None,
) -> None:
    """Write grades as a file of the Rubric-Grading Workbench.

    If GRADES is a table, the texts of the passages come from --documents or --onto. Grades of secret items are left out
    without --secret.
    """
    _require_other(file, out)
    if ".jsonl" not in out.suffixes:
        raise InputError(f"{out}: name a .jsonl.gz file; the Rubric-Grading Workbench reads no other")
    count, left_out = export_workbench(
        file, out, bank=bank, secret=secret, onto=onto, documents=documents, min_grade=min_grade
    )
    output.print(f"{counted(count, 'query', 'queries')} written to {out}")
    if left_out:
        output.print(f"{left_out} grades of secret items left out")


def _require_other(file: Path, out: Path) -> None:
    if out.exists() and out.samefile(file):
        raise InputError(f"{out}: is the input file; name another")
