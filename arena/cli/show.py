"""Print boards and leaderboards in any output format."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from arena.cli.console import errors, output, print_json, program, say
from arena.present import terminal
from arena.present.blocks import Board

if TYPE_CHECKING:
    from arena.boards.metrics import QrelsAgreement, RunMetrics
    from arena.present.blocks import Block, Section
    from arena.results.ratings import Leaderboard
    from arena.store import Store


def print_leaderboard(
    store: Store,
    board: Leaderboard,
    form: str,
    *,
    source: str = "",
    tournament: str | None = None,
    details: bool = False,
) -> None:
    """Write a leaderboard to standard output in one of the formats of ``leaderboard --format``.

    Args:
        store: the store with people's labels, with which the judges are compared.
        board: the leaderboard.
        form: the output format.
        source: the configuration or store that the command line names.
        tournament: the tournament that the command line names.
        details: whether to print every section instead of one screen.
    """
    from arena.boards.leaderboard import DETAILS, with_people

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
        option = "" if tournament is None else f" --tournament {shlex.quote(tournament)}"
        hints = f"More: {name} leaderboard {place}{option} --details", f"In the browser: {name} ui {place}"
        if form == "table":
            sys.stdout.write(full_board.screen(hints, output.width))
        else:
            _show_sections(full_board.brief(), form)
    if refusal and form not in {"json", "table"}:
        say(refusal, errors)


def show(board: Board, form: str) -> None:
    """Write a board to standard output.

    Args:
        board: the board.
        form: ``table`` for people at a terminal, ``json`` for programs, ``csv``, ``md``, ``html`` or ``latex`` for the
            first table alone.
    """
    if form == "json":
        print_json(board.json())
    else:
        show_parts(board.sections() if form == "table" else board.tables(), form)


def show_noted(board: RunMetrics | QrelsAgreement, form: str) -> None:
    """Write a board to standard output; as CSV has no place for the board's notes, they then go to standard error."""
    show(board, form)
    if form == "csv":
        terminal.show(errors, [board.notes()])


def show_parts(parts: Sequence[Section | Block], form: str) -> None:
    """Write sections or blocks to standard output; CSV, Markdown, HTML and LaTeX write only the first table."""
    if form == "table":
        terminal.show(output, parts)
        return
    from arena.present import files
    from arena.present.table import Table

    write = {"csv": files.csv_text, "md": files.markdown, "html": files.html_table, "latex": files.latex}[form]
    for table in [part for part in parts if isinstance(part, Table)][:1]:
        sys.stdout.write(write(table))


def _show_sections(sections: Sequence[Section], form: str) -> None:
    """Write sections as text, Markdown or HTML."""
    if form == "table":
        terminal.show(output, sections)
    else:
        from arena.present import files

        sys.stdout.write(files.document(sections, form))
