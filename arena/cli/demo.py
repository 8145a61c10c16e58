"""Commands ``demo``, to run the bundled tournament, and ``init``, to write a starter configuration for you to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import output, program
from arena.cli.leaderboard import print_leaderboard
from arena.cli.run import run
from arena.cli.sources import open_tournament
from arena.demo import STRENGTHS, copy_demo, write_simulated
from arena.results.cache import cached_leaderboard
from arena.run.imports import import_table
from judges.errors import InputError


def demo(
    folder: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="folder to write the demo's files and store into")
    ] = Path("demo"),
) -> None:
    """Run a tournament offline on the bundled data.

    RAG and RAG-Fusion over BM25, dense and hybrid retrieval, and a weak baseline, answered 26 questions about a
    handbook. A lexical judge, not a language model, compares their answers.
    Prints the leaderboard. If you run it again, it judges nothing twice.

    Below the leaderboard it shows, with simulated verdicts, what a clear result looks like.
    """
    run([str(copy_demo(folder))])
    _show_simulated(folder)


def _show_simulated(folder: Path) -> None:
    file, source = folder / "simulated.csv", str(folder / "simulated.db")
    write_simulated(file)
    import_table(file, source, "simulated")
    output.print(
        "\nWhat a clear result looks like. These verdicts are simulated: nobody was asked.\n"
        f"The truth is {' > '.join(STRENGTHS)}.\n"
    )
    with open_tournament(source, "simulated") as (store, name):
        print_leaderboard(store, cached_leaderboard(store, name), "table", source=source)


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="new or empty folder to write the files into")],
) -> None:
    """Write a starter configuration and data to edit."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is not empty; name a new folder")
    config = copy_demo(folder)
    name = program()
    output.print(f"wrote {config} and its data\nnext:  {name} plan {config}   then   {name} run {config}")
