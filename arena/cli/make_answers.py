"""``make answers``: ask the agents for their answers, without judging them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import INCOMPLETE, print_json, say
from arena.cli.options import Config, JsonForm, RetryFailed
from arena.cli.run_lines import print_part
from arena.cli.trace import watching
from arena.config.schema import load_config
from arena.data.files import save_dataset
from arena.present.table import plain
from arena.run.answers import run_agents
from arena.run.judging import load_data


def make_answers(
    config: Config,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="also write queries, documents and answers into this folder")
    ] = None,
    retry_failed: RetryFailed = False,
    form: JsonForm = "table",
) -> None:
    """Ask the agents for the answers that are missing.

    The answers go into the store, and nothing is judged. Run the command again to go on. Exit status 3: something
    failed or is missing; the output says what.
    """
    loaded = load_config(config)
    with watching() as bars:
        agents_run = run_agents(loaded, bars, retry_failed=retry_failed)
    print_part(agents_run)
    if out is not None:
        files = save_dataset(load_data(loaded, agents_run.declared), out)
        for file in () if form == "json" else files:
            say(f"wrote {file}")
    if form == "json":
        agents = {
            name: {**plain(summary), "failed": summary.failed, "left": summary.left}
            for name, summary in agents_run.agents.items()
        }
        print_json({"agents": agents, "complete": agents_run.complete})
    if not agents_run.complete:
        raise typer.Exit(INCOMPLETE)
