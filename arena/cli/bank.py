"""``bank``: show a test bank, or what changed from one version to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.boards.bank import BankBoard, BankEditBoard
from arena.cli.options import Form, K, Llm, MinGrade, PromptName, Runs
from arena.cli.show import show
from arena.results.exam_evaluation import load_study
from judges.errors import InputError
from retrieval_eval.exam.bank_files import read_bank
from retrieval_eval.exam.oversight import edit_effect

BankFile = Annotated[
    Path,
    typer.Argument(metavar="BANK", help="the workbench's bank .jsonl.gz, .yaml, or a table qid, question; nuggets"),
]


def bank_show(
    file: BankFile,
    query: Annotated[str | None, typer.Option(help="only this query")] = None,
    secret: Annotated[bool, typer.Option("--secret", help="also show secret items and their texts")] = False,
    form: Form = "table",
) -> None:
    """Show a test bank, or nuggets."""
    test_bank = read_bank(file)
    if query is not None and query not in test_bank.query_ids:
        raise InputError(f"{file}: no query {query!r}")
    items = [item for item in test_bank.items if query in (None, item.query_id)]
    show(BankBoard(test_bank.version, items, secret), form)


def bank_diff(
    before: BankFile,
    after: Annotated[Path, typer.Argument(metavar="NEXT", help="the next version of BANK")],
    grades: Annotated[
        Path | None, typer.Option(help="grades by BANK: also show which labels and rankings change")
    ] = None,
    run: Runs = None,
    min_grade: MinGrade = None,
    k: K = 20,
    llm: Llm = None,
    prompt: PromptName = None,
    secret: Annotated[bool, typer.Option("--secret", help="also show secret items and their texts")] = False,
    form: Form = "table",
) -> None:
    """Show what changed from one version to the next.

    With --grades it also shows what the edit changes before you grade again.
    """
    old, new = read_bank(before), read_bank(after)
    effect = None
    if grades is not None:
        study = load_study(grades, bank=before, runs=run or (), llm=llm, prompt=prompt)
        level = min_grade or study.usual_level
        effect = edit_effect(old, new, study.grades, study.rankings, level=level, k=k)
    show(BankEditBoard(old, new, effect, secret), form)
