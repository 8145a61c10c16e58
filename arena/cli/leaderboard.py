"""Command ``leaderboard``, to print ratings and other scores from a tournament's judgments."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from arena.boards.leaderboard import DETAILS, with_people
from arena.cli.console import INCOMPLETE, errors, output, program, say
from arena.cli.options import BelowCoverage, By, Details, Form, OfGroup, Source, Tournament
from arena.cli.show import show
from arena.cli.sources import open_tournament
from arena.present import terminal
from arena.present.blocks import Section
from arena.results.cache import cached_leaderboard
from arena.results.ratings import Leaderboard
from arena.store import Store


def leaderboard(
    source: Source,
    form: Form = "table",
    tournament: Tournament = None,
    below_coverage: BelowCoverage = False,
    matrix: Annotated[bool, typer.Option("--matrix", help="print the matrix of win percentages instead")] = False,
    details: Details = False,
    by: By = "",
    group: OfGroup = "",
    plot: Annotated[
        Path | None,
        typer.Option(
            help="write a plot of how all scores order the agents, and the win matrix, to this .svg, .png or .html file"
        ),
    ] = None,
) -> None:
    """Print the leaderboard of a tournament.

    Exit status 3: too little is judged for ratings; the output says what is missing.
    """
    with open_tournament(source, tournament, group) as (store, name):
        board = cached_leaderboard(store, name, by=by, below_coverage=below_coverage)
        pairs = None
        if matrix and board.ratings is not None:
            from arena.boards.games import Wins, as_declared, tournament_pairs

            pairs = tournament_pairs(store, name)
        if pairs is not None:
            show(Wins(pairs, as_declared(board)), form)
        else:
            print_leaderboard(store, board, form, source=source, tournament=tournament, details=details, by=by)
        if plot is not None:
            from arena.boards.compare import compare_board  # late: it reads all scores, and costs 60 ms
            from arena.boards.compare_drawing import compare_figure
            from arena.present import files

            comparison = compare_board(store, name)
            files.save_plot(plot, [compare_figure(comparison)] if comparison.ways else [], name)
    if board.withheld:
        raise typer.Exit(INCOMPLETE)


def print_leaderboard(
    store: Store,
    board: Leaderboard,
    form: str,
    *,
    source: str = "",
    tournament: str | None = None,
    details: bool = False,
    by: str = "",
) -> None:
    """Write a leaderboard to standard output in one of the formats of ``leaderboard --format``.

    ``source`` and ``tournament`` are the command's arguments, to repeat in the commands that the output suggests.
    ``details`` prints every section instead of one screen; ``by`` adds the one on groups of queries to the screen.
    """
    shortfall = board.shortfall
    refusal = f"no ratings: {shortfall.message}; {shortfall.remedy}" if shortfall is not None and board.withheld else ""
    full_board = with_people(store, board)
    if form in {"json", "csv", "latex"}:
        show(full_board, form)
    elif details:
        _show_sections(
            [section for section in full_board.sections() if section.ident in DETAILS | board.further.keys()], form
        )
    else:
        name, place = program(), shlex.quote(source)
        options = {"tournament": tournament, "group": "=".join(board.group or ()), "by": by}
        given = "".join(f" --{option} {shlex.quote(value)}" for option, value in options.items() if value)
        hints = f"More: {name} leaderboard {place}{given} --details", f"In the browser: {name} ui {place}"
        if by and board.by_group is None:
            say(f"--by {by}: no ratings; 'ragleague compare {place} NEW OLD --by {by}' compares other scores", errors)
        groups = [section for section in full_board.sections() if section.ident == "groups"] if by else []
        if form == "table":
            sys.stdout.write(full_board.screen(hints, output.width) + "\n" * bool(groups))
            _show_sections(groups, form)
        else:
            _show_sections([*full_board.brief(), *groups], form)
    if refusal and form not in {"json", "table"}:
        say(refusal, errors)


def _show_sections(sections: Sequence[Section], form: str) -> None:
    """Write sections of a board to standard output as text, Markdown or HTML."""
    if form == "table":
        terminal.show(output, sections)
    else:
        from arena.present import files

        sys.stdout.write(files.document(sections, form))
