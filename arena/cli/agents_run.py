"""``agents run``: ask the agents of a configuration what they have not answered yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.cli.agents import group
from arena.cli.console import INCOMPLETE

if TYPE_CHECKING:
    from arena.agents.summary import AgentsRun
    from arena.cli.trace import Trace
    from arena.config.whole import Config
    from arena.history.record import Recorder


def register(app: typer.Typer) -> None:  # noqa: ARG001 - its place is in the group
    """Add the command of this module."""
    group.command("run")(run)


def run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="the tournament's YAML file")],
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="also ask again what an agent would not answer")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="write queries, answers and documents there, to look at")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable output")] = False,
) -> None:
    """Ask the agents what they have not answered yet, and keep every reply in the store. Nothing is judged.

    Ctrl-C finishes what is in flight; a second one stops at once. Run again to go on. Exit status 3: an answer is
    missing, and the output says whose and why.
    """
    from dataclasses import asdict

    from arena.cli.console import output, print_json, rounded
    from arena.config.whole import load_config
    from arena.dataset.files import save_dataset
    from arena.tournament import load_data

    loaded = load_config(config)
    answering = ask_agents(loaded, retry_failed=retry_failed)
    if out is not None:
        for file in save_dataset(load_data(loaded, answering.declared), out):
            output.print(f"wrote {file}") if not as_json else None
    if as_json:
        summaries = {
            name: {**asdict(own), "failed": own.failed, "left": own.left} for name, own in answering.agents.items()
        }
        print_json(rounded({"agents": summaries, "complete": answering.complete}))
    if not answering.complete:
        raise typer.Exit(INCOMPLETE)


def ask_agents(
    config: Config, *, retry_failed: bool, trace: Trace | None = None, part_of: Recorder | None = None
) -> AgentsRun:
    """Ask what is missing with a bar for each agent, and say what became of it."""
    from arena.agents.run import run_agents
    from arena.cli.agents_output import print_agents
    from arena.cli.console import Bars, errors

    with Bars(shown=errors.is_terminal) as bars:
        answering = run_agents(config, bars, retry_failed=retry_failed, trace=trace, part_of=part_of)
    print_agents(answering)
    return answering
