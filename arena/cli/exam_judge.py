"""``exam generate`` and ``exam grade``: what of an exam asks a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import INCOMPLETE
from arena.cli.exam import exam
from arena.cli.options import ForPrograms, LogJson, RetryFailed

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="a tournament's YAML file with a section 'exam'")]


@exam.command("generate")
def generate(
    config: ConfigPath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="the new bank: .jsonl, .yaml or a table")],
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
) -> None:
    """Have a judge write the test bank, and save it with its secret items.

    Nothing is asked twice. Exit status 3: something of it failed or is missing, and the output says what.
    """
    from arena.cli.console import output, say
    from arena.cli.tournament import print_summary
    from arena.cli.trace import asking
    from arena.config.whole import load_config
    from arena.stages.exam import run as exam_run
    from arena.stages.exam.bank import shorter_than_asked
    from arena.stages.exam.edits import save_new_bank
    from judges.errors import InputError

    loaded = load_config(config)
    if out.exists():
        raise InputError(f"{out}: exists and may have been edited; name a new file")
    with asking(log_json) as (bars, trace):
        summary, bank = exam_run.generate(loaded, bars, retry_failed=retry_failed, trace=trace)
    print_summary(summary)
    if bank.items:
        save_new_bank(out, bank)
    secret = sum(item.secret for item in bank.items)
    output.print(f"{len(bank.items)} items on {len(bank.query_ids)} queries, {secret} of them secret, written to {out}")
    assert loaded.exam is not None
    assert loaded.exam.generate is not None
    for name, number in shorter_than_asked(loaded.exam.generate, bank).items():
        say(f"- {name}: {number} of the {loaded.exam.generate.per_query} asked for")
    if not summary.complete:
        raise typer.Exit(INCOMPLETE)


@exam.command("grade")
def grade(
    config: ConfigPath,
    out: Annotated[
        Path | None, typer.Option(help="also write the grades: a table, or .jsonl.gz for the workbench's form")
    ] = None,
    secret: Annotated[bool, typer.Option("--secret", help="also write the grades of secret items")] = False,
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
    as_json: ForPrograms = False,
) -> None:
    """Grade passages of all answers, or retrieved documents, by the test bank, and print EXAM-Cover of every agent.

    Only what is new is asked: after an edit of the bank, the new items. Exit status 3: something failed or is missing.
    """
    from arena.boards.exam import ExamBoard
    from arena.cli.console import errors, output, print_json
    from arena.cli.show import show
    from arena.cli.tournament import print_summary
    from arena.cli.trace import asking
    from arena.config.whole import load_config
    from arena.stages.exam import run as exam_run

    loaded = load_config(config)
    with asking(log_json) as (bars, trace):
        graded = exam_run.grade(loaded, bars, retry_failed=retry_failed, trace=trace)
    print_summary(graded.summary)
    if graded.scores is not None:
        show(ExamBoard(graded.scores), "json" if as_json else "table")
    elif as_json:
        print_json(None)
    if out is not None:
        left_out = exam_run.save_grades(out, graded.study, secret=secret)
        if not as_json:
            output.print(f"grades written to {out}")
        if left_out:
            errors.print(f"{left_out} grades of secret items left out; --secret writes them")
    if not graded.summary.complete:
        raise typer.Exit(INCOMPLETE)
