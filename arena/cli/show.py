"""How commands write what they found: any board in any format."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from arena.cli.console import errors, output, print_json
from arena.present import terminal
from arena.present.blocks import Board
from arena.present.numbers import printable

if TYPE_CHECKING:
    from arena.boards.results import Leaderboard
    from arena.present.blocks import Section
    from arena.store import Store


def print_leaderboard(store: Store, board: Leaderboard, form: str) -> None:
    """Write a leaderboard to standard output in one of the formats of ``leaderboard --format``.

    Args:
        store: with what people said, which judges are held against.
        board: the leaderboard.
        form: of the output.
    """
    from arena.boards.leaderboard import TERMINAL, TournamentBoard
    from arena.store.annotations import Annotations

    lacking = board.shortfall
    refusal = f"no ratings: {lacking.message}; {lacking.remedy}" if lacking is not None and board.withheld else ""
    whole = TournamentBoard(board)
    labelled = board.retrieval is not None and store.is_labelled(board.tournament)
    if labelled or Annotations(store, board.tournament).counts():
        from arena.people.calibrate import compare_with_people

        whole = TournamentBoard(board, *compare_with_people(store, board.tournament))
    show(whole, form, said=refusal, sections=TERMINAL | board.further.keys())


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
        print_json(board.json())
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
