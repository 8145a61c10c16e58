"""``make queries``: have several models write queries about documents, and write the queries to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.boards.synth import SynthBoard
from arena.cli.console import INCOMPLETE, errors, say
from arena.cli.documents import print_unread
from arena.cli.options import Config, Form, LogJson, RetryFailed
from arena.cli.run_lines import print_summary, quota_lines
from arena.cli.show import show
from arena.cli.trace import asking
from arena.run.queries import synthesise
from arena.stages.queries_config import load_synth_config


def make_queries(
    config: Config,
    reviewed: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="draw from this review file, in which people made their decisions"),
    ] = None,
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
    form: Form = "table",
) -> None:
    """Have models write queries about your documents.

    Models write queries about passages of documents; these are filtered, and a test set is drawn by quotas. The
    configuration names the files.

    No call is made twice: run the command again to go on. Exit status 3: something failed or is missing; the output
    says what.
    """
    loaded = load_synth_config(config)
    if reviewed is not None:
        loaded = loaded.model_copy(update={"synth": loaded.synth.model_copy(update={"reviewed": reviewed})})
    with asking(log_json) as (bars, trace):
        report = synthesise(loaded, bars, retry_failed=retry_failed, trace=trace)
    if report.summary is not None:
        print_summary(report.summary)
    show(SynthBoard(report, loaded.synth), form)
    if form == "table":
        print_unread(report)
        if report.undecided:
            errors.print(f"{report.undecided} queries have no decision and were not used")
        for line in quota_lines(report):
            say(line, errors)
    if not report.complete:
        raise typer.Exit(INCOMPLETE)
