"""``demo``, ``init``, ``plan`` and ``run``: write a configuration, plan its judgments and make them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from arena.cli.console import INCOMPLETE
from arena.cli.inputs import ColumnsNamed, JudgeNamed, Limit, Save, Sources, are_answers, read_inputs
from arena.cli.options import Details, Form, LogJson, RetryFailed
from arena.config.stages import STAGES
from judges.errors import InputError

if TYPE_CHECKING:
    from arena.config.schema import Config

_STAGES = "|".join(("synth", "agents", *(stage.name or stage.key for stage in STAGES)))


def demo(
    folder: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="folder for the demo's files and store")
    ] = Path("demo"),
) -> None:
    """Run a tournament offline on the bundled data.

    RAG and RAG-Fusion over BM25, dense and hybrid retrieval, and a weak baseline, answered 26 questions about a
    handbook. A lexical judge, not a language model, compares them.
    Prints the leaderboard. If you run it again, it judges nothing twice.

    Below that it shows, with simulated verdicts, what a decided result looks like.
    """
    from arena.demo import copy_demo

    run([str(copy_demo(folder))])
    _show_simulated(folder)


def _show_simulated(folder: Path) -> None:
    """Print a leaderboard of verdicts simulated from known strengths."""
    from arena.cli.console import output
    from arena.cli.show import print_leaderboard
    from arena.cli.sources import open_tournament
    from arena.demo.simulated import STRENGTHS, write_simulated
    from arena.results.cache import cached_leaderboard
    from arena.run.imports import import_table

    file, source = folder / "simulated.csv", str(folder / "simulated.db")
    write_simulated(file)
    import_table(file, source, "simulated")
    output.print(
        "\nWhat a decided result looks like. These verdicts are simulated: nobody was asked.\n"
        f"The truth is {' > '.join(STRENGTHS)}.\n"
    )
    with open_tournament(source, "simulated") as (store, name):
        print_leaderboard(store, cached_leaderboard(store, name), "table", source=source)


def init(folder: Annotated[Path, typer.Argument(metavar="DIR", help="a new or empty folder")]) -> None:
    """Write a starter configuration and data to edit."""
    from arena.cli.console import output, program
    from arena.demo import copy_demo

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is not empty; name a new folder")
    config = copy_demo(folder)
    name = program()
    output.print(f"wrote {config} and its data\nnext:  {name} plan {config}   then   {name} run {config}")


def plan(
    sources: Sources,
    judge: JudgeNamed = None,
    limit: Limit = None,
    column: ColumnsNamed = None,
    save: Save = None,
    form: Form = "table",
) -> None:
    """Count the calls, tokens and cost of a run. Calls nothing.

    For a file that only makes queries, it counts the calls that make them.
    """
    from arena.boards.runs import PlanBoard
    from arena.cli.show import show
    from arena.run.plan import plan as make_plan
    from arena.run.plan import plan_queries
    from arena.run.preflight import preflight
    from arena.stages.queries.config import SynthConfig, load_either

    if judge is None and limit is None and not are_answers(sources, judge):
        loaded = load_either(Path(sources[0]))
        if isinstance(loaded, SynthConfig):
            show(PlanBoard(plan_queries(loaded)), form)
            return
    inputs = read_inputs(sources, judge, limit, column, save)
    config = inputs.config
    checked = preflight(config, inputs.data)
    if not checked.only_judges:
        checked.require()
    show(PlanBoard(make_plan(config, checked.opened)), form)
    checked.require()  # a missing key is reported below the cost of the run


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
    from arena.boards.kept import keep_boards
    from arena.cli.run_lines import print_part
    from arena.cli.show import print_leaderboard
    from arena.cli.sources import open_tournament
    from arena.cli.trace import traced_to, watching
    from arena.run.pipeline import play

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
    from arena.config.schema import ExecutorSection

    kind = executor or config.executor.kind
    if address is not None and kind != "ray":
        raise InputError("--address: goes with --executor ray; add that, or leave it out")
    if kind == "local":
        return config.model_copy(update={"executor": ExecutorSection()})
    executor_fields = {"kind": kind} if address is None else {"kind": kind, "address": address}
    return config.model_copy(update={"executor": config.executor.model_copy(update=executor_fields)})
