"""``bank``: show a test bank, compare two versions of it, and write edited nuggets with their history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.options import Force, Form, K, Llm, MinGrade, PromptName, Runs, given_options, require_free
from judges.errors import DataError, InputError

_EFFECT, _HISTORY = "What an edit changes", "Edits of nuggets"


def bank(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(metavar="BANK", help="the workbench's bank .jsonl.gz, .yaml, or a table qid, question; nuggets"),
    ],
    after: Annotated[Path | None, typer.Argument(metavar="[NEXT]", help="the next version of BANK")] = None,
    query: Annotated[str | None, typer.Option(help="only this query")] = None,
    secret: Annotated[bool, typer.Option("--secret", help="also show secret items and their texts")] = False,
    grades: Annotated[
        Path | None,
        typer.Option(help="grades by BANK: also show which labels and rankings change", rich_help_panel=_EFFECT),
    ] = None,
    run: Runs = None,
    min_grade: MinGrade = None,
    k: K = 20,
    llm: Llm = None,
    prompt: PromptName = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="write the edited nuggets with their history", rich_help_panel=_HISTORY),
    ] = None,
    editor: Annotated[str, typer.Option(help="who edited them", rich_help_panel=_HISTORY)] = "",
    force: Force = False,
    form: Form = "table",
) -> None:
    """Show a test bank, or what changed from one version to the next.

    With --grades it also shows what the edit changes before you grade again. With --out, BANK and NEXT are nuggets
    before and after a person edited them: the new file records what was added, removed, merged, split or given another
    weight. A nugget in NEXT may list under "from" the texts of BANK that it comes from; queries that are not in NEXT
    stay unchanged.
    """
    options = given_options(ctx) - {"--format"}
    edit_options = {"--out", "--editor", "--force"}
    diff_options = {"--secret", "--grades", "--run", "--min-grade", "--k", "--llm", "--prompt"}
    allowed = {"--query", "--secret"} if after is None else edit_options if "--out" in options else diff_options
    if misplaced := options - allowed:
        subject = "one bank" if after is None else "edited nuggets" if "--out" in options else "two banks"
        raise InputError(f"{', '.join(sorted(misplaced))}: does not go with {subject}")
    if after is None:
        _show(file, query, secret, form)
    elif out is None:
        _diff(file, after, grades, run, min_grade, k, llm, prompt, secret, form)
    else:
        _write_edit(file, after, out, editor, force, form)


def _show(file: Path, query: str | None, secret: bool, form: str) -> None:
    from arena.boards.bank import BankBoard
    from arena.cli.show import show
    from retrieval_eval.exam.bank_files import read_bank

    test_bank = read_bank(file)
    if query is not None and query not in test_bank.query_ids:
        raise InputError(f"{file}: no query {query!r}")
    items = [item for item in test_bank.items if query in (None, item.query_id)]
    show(BankBoard(test_bank.version, items, secret), form)


def _diff(
    before: Path,
    after: Path,
    grades: Path | None,
    run: list[Path] | None,
    min_grade: int | None,
    k: int,
    llm: str | None,
    prompt: str | None,
    secret: bool,
    form: str,
) -> None:
    from arena.boards.bank import BankEditBoard
    from arena.cli.show import show
    from arena.results.exam_evaluation import load_study
    from retrieval_eval.exam.bank_files import read_bank
    from retrieval_eval.exam.oversight import edit_effect

    old, new = read_bank(before), read_bank(after)
    effect = None
    if grades is not None:
        study = load_study(grades, bank=before, runs=run or (), llm=llm, prompt=prompt)
        level = min_grade or study.usual_level
        effect = edit_effect(old, new, study.grades, study.rankings, level=level, k=k)
    show(BankEditBoard(old, new, effect, secret), form)


def _write_edit(before: Path, after: Path, out: Path, by: str, force: bool, form: str) -> None:
    from datetime import UTC, datetime

    from arena.boards.nuggets import NuggetEdits
    from arena.cli.show import show
    from retrieval_eval.nuggets.editing import Change, changes, edited
    from retrieval_eval.nuggets.files import read_banks, write_banks
    from retrieval_eval.nuggets.types import NuggetBank

    require_free(out, force)
    old, new = ({bank.query_id: bank for bank in read_banks(path)} for path in (before, after))
    edited_at = datetime.now(UTC).isoformat(timespec="seconds")
    changes_by_query: dict[str, list[Change]] = {}
    banks = []
    for query_id in {**old, **new}:
        bank_before = old.get(query_id, NuggetBank(query_id, "", ()))
        bank_after = new.get(query_id, bank_before)
        try:
            changes_by_query[query_id] = changes(bank_before, bank_after)
            banks.append(edited(bank_before, bank_after, by=by, at=edited_at))
        except ValueError as error:
            raise DataError(after, f"query {query_id!r}: {error}") from error
    write_banks(out, banks)
    board = NuggetEdits(str(out), changes_by_query, [query_id for query_id in old if query_id not in new])
    show(board, form)
