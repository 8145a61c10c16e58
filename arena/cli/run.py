"""``run``: make the missing judgments and print the leaderboard."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from arena.boards.leaderboard import keep_boards
from arena.cli.console import INCOMPLETE
from arena.cli.inputs import ColumnsNamed, JudgeNamed, Limit, Save, Sources, read_inputs
from arena.cli.options import Details, Form, LogJson, RetryFailed
from arena.cli.run_lines import print_part
from arena.cli.show import print_leaderboard
from arena.cli.sources import open_tournament
from arena.cli.trace import traced_to, watching
from arena.config.schema import Config, ExecutorSection
from arena.config.stages import STAGES
from arena.run.pipeline import play
from judges.errors import InputError

_STAGES = "|".join(("synth", "agents", *(stage.name or stage.key for stage in STAGES)))


def run(
    sources: Sources,
    judge: JudgeNamed = None,
    limit: Limit = None,
    column: ColumnsNamed = None,
    save: Save = None,
    stage: Annotated[
        list[str] | None, typer.Option("--stage", metavar=f"[{_STAGES}]", help="do only this stage; may be repeated")
    ] = None,
    retry_failed: RetryFailed = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="wait for the batches of judges with 'mode: batch' to end")
    ] = True,
    log_json: LogJson = None,
    executor: Annotated[
        Literal["local", "ray"] | None,
        typer.Option("--executor", help="where to make calls; default: the configuration's executor"),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option("--address", metavar="HOST:PORT", help="address of a Ray cluster; 'auto' finds this machine's"),
    ] = None,
    details: Details = False,
    form: Form = "table",
) -> None:
    """Judge what is missing and print the leaderboard.

    First it makes the queries and asks the agents that the configuration declares. With files of answers, every pair of
    agents meets on every query.

    Ctrl-C finishes the calls in flight, or leaves batches to the server; a second Ctrl-C stops at once. Run again to go
    on. Exit status 3: something is missing or failed; the output says what.
    """
    inputs = read_inputs(sources, judge, limit, column, save)
    loaded = _with_executor(inputs.config, executor, address)
    with traced_to(log_json) as trace:
        played = play(
            loaded,
            watching,
            print_part,
            stages=stage or (),
            retry_failed=retry_failed,
            wait=wait,
            trace=trace,
            data=inputs.data,
        )
    if played.board is not None:
        keep_boards(loaded.store, played.board)
        with open_tournament(loaded.store, loaded.name) as (store, _):
            print_leaderboard(store, played.board, form, source=inputs.source, details=details)
    if not played.complete:
        raise typer.Exit(INCOMPLETE)


def _with_executor(config: Config, executor: str | None, address: str | None) -> Config:
    """The configuration with the executor that the command line names."""
    kind = executor or config.executor.kind
    if address is not None and kind != "ray":
        raise InputError("--address: goes with --executor ray; add that, or leave it out")
    if kind == "local":
        return config.model_copy(update={"executor": ExecutorSection()})
    executor_fields = {"kind": kind} if address is None else {"kind": kind, "address": address}
    return config.model_copy(update={"executor": config.executor.model_copy(update=executor_fields)})
