"""Print the tables of a command in the output format that the user chose."""

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
"""Maximum number of files that are listed in one printed note."""


def show(board: Board, form: str) -> None:
    """Print the tables of a command: ``table`` and ``json`` print all of them, other formats only the first table."""
    if form == "json":
        print_json(board.json())
    else:
        show_parts(board.sections() if form == "table" else board.tables(), form)


def show_noted(board: RunMetrics | QrelsAgreement, form: str) -> None:
    """Print tables and their notes; with CSV, print the notes on standard error, as a CSV file holds only a table."""
    show(board, form)
    if form == "csv":
        terminal.show(errors, [board.notes()])


def show_parts(parts: Sequence[Section | Block], form: str) -> None:
    """Print sections, or blocks such as tables; CSV, Markdown, HTML and LaTeX print only the first table."""
    if form == "table":
        terminal.show(output, parts)
        return
    from arena.present import files  # late: the table on the terminal needs no templates

    write = {"csv": files.csv_text, "md": files.markdown, "html": files.html_table, "latex": files.latex}[form]
    for table in [part for part in parts if isinstance(part, Table)][:1]:
        sys.stdout.write(write(table))


def print_unread(reading: CorpusReading | SynthReport) -> None:
    """List on standard error the documents that were skipped or read only in part, and the notes on the others."""
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
