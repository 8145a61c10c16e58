"""``make bank`` and ``make grades``: a judge writes a test bank, and grades passages by a test bank."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.boards.exam import exam_board
from arena.cli.console import INCOMPLETE, errors, output, print_json, say
from arena.cli.options import Config, Force, Form, LogJson, RetryFailed, require_free
from arena.cli.run_lines import print_summary
from arena.cli.show import show
from arena.cli.trace import asking
from arena.config.schema import load_config
from arena.data.safe_files import digest
from arena.present.numbers import counted
from arena.run import exam as exam_run
from arena.stages.exam import save_bank, shorter_than_asked


def make_bank(
    config: Config,
    out: Annotated[Path, typer.Option(metavar="FILE", help="the bank: .jsonl, .yaml, .csv ...")],
    force: Force = False,
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
) -> None:
    """Have a judge write a test bank, with its secret items.

    No call is made twice: run the command again to go on. Exit status 3: something failed or is missing; the output
    says what.
    """
    loaded = load_config(config)
    require_free(out, force)
    digest_before = digest(out) if out.exists() else None
    with asking(log_json) as (bars, trace):
        summary, bank = exam_run.generate(loaded, bars, retry_failed=retry_failed, trace=trace)
    print_summary(summary, "--force" if bank.items else "")
    if bank.items:
        save_bank(out, bank, seen=digest_before)
    secret = sum(item.secret for item in bank.items)
    size = f"{counted(len(bank.items), 'item')} on {counted(len(bank.query_ids), 'query', 'queries')}"
    output.print(f"{size}, {secret} of them secret{f', written to {out}' if bank.items else '; nothing is written'}")
    assert loaded.exam is not None
    assert loaded.exam.generate is not None
    for name, number in shorter_than_asked(loaded.exam.generate, bank).items():
        say(f"- {name}: {number} of the {loaded.exam.generate.per_query} asked for")
    if not summary.complete:
        raise typer.Exit(INCOMPLETE)


def make_grades(
    config: Config,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write the grades: a .csv, or the workbench's .jsonl.gz")
    ] = None,
    secret: Annotated[bool, typer.Option("--secret", help="also write the grades of secret items")] = False,
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
    form: Form = "table",
) -> None:
    """Have a judge grade passages by a test bank.

    Shows the scores of 'exam score'. No call is made twice: run the command again to go on. Exit status 3: something
    failed or is missing; the output says what.
    """
    loaded = load_config(config)
    with asking(log_json) as (bars, trace):
        graded = exam_run.grade(loaded, bars, retry_failed=retry_failed, trace=trace)
    print_summary(graded.summary)
    if graded.scores is not None:
        show(exam_board(graded.scores), form)
    elif form == "json":
        print_json(None)
    if out is not None:
        left_out = exam_run.save_grades(out, graded.study, secret=secret)
        if form != "json":
            output.print(f"grades written to {out}")
        if left_out:
            errors.print(f"{left_out} grades of secret items left out; --secret writes them")
    if not graded.summary.complete:
        raise typer.Exit(INCOMPLETE)
