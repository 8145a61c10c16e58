"""Print boards in any output format."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from arena.cli.console import errors, output, print_json, say
from arena.present import terminal
from arena.present.blocks import Block, Board, Section
from arena.present.numbers import listed
from arena.present.table import Table

if TYPE_CHECKING:
    from arena.boards.metrics import QrelsAgreement, RunMetrics
    from arena.data.corpus import CorpusReading
    from arena.run.queries import SynthReport

_LISTED_SOURCES = 10
"""Maximum number of files that a note names."""


def show(board: Board, form: str) -> None:
    """Write a board to standard output: ``table`` and ``json`` show all of it, other formats its first table."""
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
    from arena.present import files  # late: the table on the terminal needs no templates

    write = {"csv": files.csv_text, "md": files.markdown, "html": files.html_table, "latex": files.latex}[form]
    for table in [part for part in parts if isinstance(part, Table)][:1]:
        sys.stdout.write(write(table))


def print_unread(reading: CorpusReading | SynthReport) -> None:
    """Print on standard error a line for each file that was skipped or read in part, and a line per distinct note."""
    if reading.other_files:
        counts = ", ".join(f"{number} {ending}" for ending, number in reading.other_files.items())
        say(f"files of other formats, not read: {counts}", errors)
    sources_by_reason: dict[str, list[str]] = {}
    for note in reading.notes:
        sources_by_reason.setdefault(note.reason, []).append(note.source)
    for remark, sources in sources_by_reason.items():
        say(f"note: {listed(sources, _LISTED_SOURCES)}: {remark}", errors)
    for each in reading.skipped:
        say(f"{each.outcome}: {each.source}: {each.reason}", errors)
