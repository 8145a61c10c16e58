"""``compare``: compare two agents by the results in a store."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from arena.boards.gate import compare as stored
from arena.boards.gate.board import GateBoard
from arena.cli.options import Form, Source, Tournament
from arena.cli.show import show
from arena.cli.sources import open_tournament

On = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="SCORE",
        help="pairwise, exam, nuggets, criteria, a criterion or a measure such as nDCG@10; may be repeated",
    ),
]
Margin = Annotated[
    float, typer.Option(min=0, help="how much worse still passes: in share of games won, or in units of the score")
]


def compare(
    source: Source,
    new: Annotated[str, typer.Argument(metavar="NEW", help="the new agent")],
    old: Annotated[str, typer.Argument(metavar="OLD", help="the agent it is compared with")],
    on: On = None,
    margin: Margin = 0.05,
    tournament: Tournament = None,
    form: Form = "table",
) -> None:
    """Compare two agents: better, not worse, worse or undecided.

    Compares all scores, query by query, unless --on names some. Reports how many more queries would decide.
    """
    show_gate(compare_stored(source, tournament, new, old, on or [], margin), form)


def compare_stored(source: str, tournament: str | None, new: str, old: str, on: list[str], margin: float) -> GateBoard:
    """Compare two agents by the results of a tournament in a store."""
    with open_tournament(source, tournament) as (store, name):
        return stored.compare(store, name, new, old, on=on, margin=margin)


def show_gate(board: GateBoard, form: str) -> None:
    """Write the comparison to standard output."""
    if form == "md":
        sys.stdout.write(board.markdown())
    else:
        show(board, form)
