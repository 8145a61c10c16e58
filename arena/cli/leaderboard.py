"""``leaderboard``: ratings from a tournament's judgments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import INCOMPLETE
from arena.cli.options import BelowCoverage, Details, Form, Source, Tournament
from arena.cli.show import print_leaderboard, show
from arena.cli.sources import open_tournament
from arena.results.cache import cached_leaderboard
from arena.results.ratings import of_group
from judges.errors import InputError


def leaderboard(
    source: Source,
    form: Form = "table",
    tournament: Tournament = None,
    below_coverage: BelowCoverage = False,
    matrix: Annotated[bool, typer.Option("--matrix", help="print instead the matrix of win percentages")] = False,
    details: Details = False,
    group: Annotated[
        str | None, typer.Option(metavar="COLUMN=VALUE", help="only queries with this value in this column")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="plot ratings, win matrix and all other scores to this .svg, .png or .html file"),
    ] = None,
) -> None:
    """Print the leaderboard of a tournament.

    Exit status 3: too little is judged for ratings; the output says what is missing.
    """
    column, separator, value = (group or "").partition("=")
    if group is not None and not (column and separator):
        raise InputError(f"--group {group!r}: write COLUMN=VALUE, such as kind=factual")
    group_filter = None if group is None else (column.strip(), value.strip())
    with open_tournament(source, tournament) as (store, name):
        board = cached_leaderboard(store, name, group_filter, below_coverage=below_coverage)
        pairs = None
        if matrix and board.ratings is not None:
            from arena.boards.games import Wins, as_declared, tournament_pairs

            pairs = tournament_pairs(store if group_filter is None else of_group(store, name, group_filter), name)
        if pairs is not None:
            show(Wins(pairs, as_declared(board)), form)
        else:
            print_leaderboard(store, board, form, source=source, tournament=tournament, details=details)
        if plot is not None:
            from arena.boards.compare import compare_board
            from arena.present.files import save_plot

            comparison = compare_board(store, name, group_filter)
            save_plot(plot, [comparison.figure()] if comparison.ways else [], name)
    if board.withheld:
        raise typer.Exit(INCOMPLETE)
