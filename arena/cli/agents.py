"""``agents``: the systems under evaluation by themselves."""

from __future__ import annotations

import typer

from arena.cli import agents_retrieve, agents_run


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="agents")


group = typer.Typer(help="Run the systems under evaluation, or their retrieval alone.", no_args_is_help=True)
group.command("run")(agents_run.run)
group.command("retrieve")(agents_retrieve.retrieve)
