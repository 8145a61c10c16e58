"""``synth``: a company's documents -> queries to test systems with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.options import Form, LogJson, RetryFailed


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("synth")(synth)


def synth(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="a YAML file with name, store, judges and synth")],
    reviewed: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="the file for review with people's decisions: draw from what they accepted"),
    ] = None,
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
    form: Form = "table",
) -> None:
    """Have models write queries about documents.

    They are filtered, and a test set is drawn by quotas.

    Nothing is asked twice. Exit status 3: a file was skipped, a judgment failed or is missing, or a model has fewer
    queries than its quota; the output says which.
    """
    from arena.boards.synth import SynthBoard
    from arena.cli.console import INCOMPLETE, errors, say
    from arena.cli.documents import print_unread
    from arena.cli.parts import print_summary
    from arena.cli.show import show
    from arena.cli.trace import asking
    from arena.stages.queries.config import load_synth_config
    from arena.stages.queries.run import synthesise

    loaded = load_synth_config(config)
    if reviewed is not None:
        loaded = loaded.model_copy(update={"synth": loaded.synth.model_copy(update={"reviewed": reviewed})})
    with asking(log_json) as (bars, trace):
        report = synthesise(loaded, bars, retry_failed=retry_failed, trace=trace)
    if report.summary is not None:
        print_summary(report.summary)
    show(SynthBoard(report, loaded.synth), form)
    if form != "json":
        print_unread(report)
        if report.undecided:
            errors.print(f"{report.undecided} queries have no decision and were not used")
        for model, (kept, quota) in report.short.items():
            wanted = f"{kept} queries of the {quota} of its quota; sample more passages, or lower the quota"
            say(f"{model}: {wanted}", errors)
    if not report.complete:
        raise typer.Exit(INCOMPLETE)
