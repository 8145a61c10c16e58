"""How commands write what they found: any board in any format."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from arena.cli.console import errors, output
from arena.present import terminal
from arena.present.blocks import Board
from arena.present.numbers import printable
from arena.present.plain import json_text

if TYPE_CHECKING:
    from arena.calibration.comparison import Comparison
    from arena.leaderboard import Leaderboard
    from arena.present.blocks import Section


def print_leaderboard(board: Leaderboard, form: str, comparisons: Sequence[Comparison] = ()) -> None:
    """Write a leaderboard to standard output in one of the formats of ``leaderboard --format``.

    Args:
        board: the leaderboard.
        form: of the output.
        comparisons: its judges held against people, where people judged games.
    """
    from arena.boards.leaderboard import TERMINAL, TournamentBoard

    lacking = board.shortfall
    refusal = f"no ratings: {lacking.message}; {lacking.remedy}" if lacking is not None and board.withheld else ""
    show(TournamentBoard(board, comparisons), form, said=refusal, sections=TERMINAL)


def show(board: Board, form: str, *, said: str = "", sections: Collection[str] = ()) -> None:
    """Write a board to standard output.

    Args:
        board: what to write.
        form: ``table`` for people at a terminal, ``json`` for programs, ``csv``, ``md``, ``html`` or ``latex`` for the
            first table alone.
        said: a sentence below a table for a page, on standard error beside one for programs.
        sections: those that people get, also as ``md`` and ``html``; all, or the first table, where none is named.
    """
    chosen = [section for section in board.sections() if section.ident in sections] if sections else []
    if form == "json":
        print(json_text(board.json()))
    elif form == "table":
        terminal.show(output, chosen or board.sections())
    else:
        _written(board, chosen, form, said)


def _written(board: Board, chosen: Sequence[Section], form: str, said: str) -> None:
    from arena.present import files

    if chosen and form in {"md", "html"}:
        sys.stdout.write(files.document(chosen, form))
        if said:
            errors.print(printable(said))
    else:
        table = board.tables()[0]
        if form == "csv":
            sys.stdout.write(files.csv_text(table))
            if said:
                errors.print(printable(said))
            return
        write = {"md": files.markdown, "html": files.html_table, "latex": files.latex}[form]
        sys.stdout.write(write(table))
        if said:
            sys.stdout.write(files.sentence(said, form))
