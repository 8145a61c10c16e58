"""``demo``, ``init``, ``plan`` and ``run``: from a configuration to judgments in a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from arena.cli.console import INCOMPLETE
from arena.cli.options import Details, ForPrograms, LogJson, RetryFailed
from arena.stages import FURTHER, STAGES
from judges.errors import InputError
from judges.types import Task

if TYPE_CHECKING:
    from arena.cli.trace import Trace
    from arena.config.whole import Config
    from arena.run.ledger import RunSummary
    from arena.run.recorder import Recorder

_STAGES: Mapping[str, Sequence[Task]] = {
    "synth": (),
    "agents": (),
    **{stage.name or stage.key: stage.tasks for stage in STAGES},
}
"""The stages of a tournament, and what a judge does in each."""

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="the tournament's YAML file")]
Stage = StrEnum("Stage", list(_STAGES))  # type: ignore[misc]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("demo")(demo)
    app.command("init")(init)
    app.command("plan")(plan)
    app.command("run")(run)


def demo(
    folder: Annotated[Path, typer.Option("--dir", help="where the demo's files and store go")] = Path("demo"),
) -> None:
    """Run a tournament offline on the bundled data.

    RAG and RAG-Fusion over BM25, dense and hybrid retrieval, and a weak baseline, answered 26 questions about a
    handbook. A lexical judge, not a language model, compares them.
    Prints the leaderboard. Run again, it judges nothing anew.
    """
    from arena.demo import copy_demo

    run(copy_demo(folder))


def init(folder: Annotated[Path, typer.Argument(metavar="DIR", help="a new or empty folder")]) -> None:
    """Write a starter configuration and data to edit."""
    from arena.cli.console import output, program
    from arena.demo import copy_demo

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is not empty; name a new folder")
    config = copy_demo(folder)
    name = program()
    output.print(f"wrote {config} and its data\nnext:  {name} plan {config}   then   {name} run {config}")


def plan(config: ConfigPath, as_json: ForPrograms = False) -> None:
    """Count calls, tokens and cost of a run, or of making queries, per judge. Calls nothing."""
    from arena.boards.runs import PlanBoard
    from arena.cli.show import show
    from arena.config.whole import Config
    from arena.run.plan import plan as make_plan
    from arena.run.plan import plan_queries
    from arena.stages.queries.config import load_either

    loaded = load_either(config)
    planned = make_plan(loaded) if isinstance(loaded, Config) else plan_queries(loaded)
    show(PlanBoard(planned), "json" if as_json else "table")


def run(
    config: ConfigPath,
    stage: Annotated[list[Stage] | None, typer.Option("--stage", help="do only this stage; may be repeated")] = None,
    retry_failed: RetryFailed = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="stay until the batches of judges in 'mode: batch' have ended")
    ] = True,
    log_json: LogJson = None,
    executor: Annotated[
        Literal["local", "ray"] | None,
        typer.Option("--executor", help="where calls are made, in place of the configuration's word"),
    ] = None,
    address: Annotated[
        str | None, typer.Option("--address", metavar="HOST:PORT", help="of a Ray cluster; 'auto' finds this machine's")
    ] = None,
    details: Details = False,
    as_json: ForPrograms = False,
) -> None:
    """Make queries, ask agents and judge what is missing, rate, and print the leaderboard.

    Ctrl-C finishes what is in flight, or leaves batches to the server; a second one stops at once. Run again to go on.
    Exit status 3: something is missing or failed, and the output says what.
    """
    from arena.cli.trace import traced_to
    from arena.config.whole import load_config

    loaded = _executed_by(load_config(config), executor, address)
    stages = tuple(stage or ())
    _require_stages(loaded, stages)
    form = "json" if as_json else "table"
    with traced_to(log_json) as trace:
        _run(loaded, stages, str(config), retry_failed=retry_failed, wait=wait, trace=trace, form=form, details=details)


def _executed_by(config: Config, executor: str | None, address: str | None) -> Config:
    """The configuration with what the command line says of its executor."""
    from arena.config.whole import ExecutorSection

    kind = executor or config.executor.kind
    if address is not None and kind != "ray":
        raise InputError("--address: only with --executor ray")
    if kind == "local":
        return config.model_copy(update={"executor": ExecutorSection()})
    told = {"kind": kind} if address is None else {"kind": kind, "address": address}
    return config.model_copy(update={"executor": config.executor.model_copy(update=told)})


def _run(
    config: Config,
    stages: Sequence[Stage],
    source: str,
    *,
    retry_failed: bool,
    wait: bool,
    trace: Trace | None,
    form: str,
    details: bool,
) -> None:
    from arena.run.recorder import recorded

    with recorded(config.store, config.name) as recorder:
        whole, summary = _ask(config, stages, recorder, retry_failed=retry_failed, wait=wait, trace=trace)
    if summary is not None:
        from arena.cli.show import print_summary

        print_summary(summary)
        _print_board(config, summary.run_id, source, form, details=details)
        whole = whole and summary.complete
    if not whole:
        raise typer.Exit(INCOMPLETE)


def _ask(
    config: Config, stages: Sequence[Stage], recorder: Recorder, *, retry_failed: bool, wait: bool, trace: Trace | None
) -> tuple[bool, RunSummary | None]:
    """Do the stages; whether those before the judging are complete, and what became of it, if it came to that."""
    from arena.cli.agents import ask_agents
    from arena.cli.synth import make_queries
    from arena.cli.trace import asking
    from arena.run import tournament

    whole, answering = True, None
    if config.synth is not None and (not stages or "synth" in stages):
        whole = make_queries(config, retry_failed=retry_failed, trace=trace, part_of=recorder)
    if config.agents and (not stages or "agents" in stages):
        answering = ask_agents(config, retry_failed=retry_failed, trace=trace, part_of=recorder)
        whole = whole and answering.complete
        if answering.interrupted or not (answering.answers or config.data.answers):
            return False, None
    tasks = [task for stage in stages for task in _STAGES[stage]]
    if stages and not tasks:
        return whole, None
    with asking() as (bars, _):
        summary = tournament.run(
            config,
            bars,
            agents=None if answering is None else answering.declared,
            only=tasks if stages else None,
            retry_failed=retry_failed,
            trace=trace,
            wait=wait,
            part_of=recorder,
        )
    return whole, summary


def _require_stages(config: Config, asked: Sequence[Stage]) -> None:
    for stage in asked:
        section = "retrieval" if stage == "relevance" else stage.value
        if not (config.section(section) if section in FURTHER else getattr(config, section)):
            raise InputError(f"--stage {stage}: the configuration has no section {section!r}")


def _print_board(config: Config, run_id: str, source: str, form: str, *, details: bool) -> None:
    from arena.boards.cache import cached_leaderboard
    from arena.cli.show import print_leaderboard
    from arena.people.calibrate import keep_slow_figures
    from arena.run.recorder import standings_of
    from arena.store import Store
    from arena.store.runs import Runs

    store = Store.open(config.store)
    board = cached_leaderboard(store, config.name)
    Runs(store, config.name).keep_standings(run_id, standings_of(board))
    keep_slow_figures(store, config.name)
    print_leaderboard(store, board, form, source=source, details=details)
    store.close()
