"""Tables for a terminal: as wide as they need be, narrow where they can."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TypeAlias

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from arena.cli.console import WIDE, output, printable

Cells: TypeAlias = Sequence[str]

_NARROWEST = 8
"""Characters a line that names keep where they are folded."""


def print_table(names: Cells, numbers: Cells, rows: Sequence[Cells], *, flags: Sequence[Cells] = ()) -> None:
    """Write a table that never loses a digit to standard output.

    Where it is too wide headings are stacked and flags stand below the name, then the longest names are folded. If all
    that does not help, names stay whole and the terminal wraps.

    Args:
        names: headings of the columns of text; those in the last one may be folded.
        numbers: headings of the columns of numbers; they may break into lines.
        rows: a cell for each heading.
        flags: of each row, where any row has some.
    """
    width = output.width
    table = _made(names, numbers, rows, flags, narrow=False)
    if _needed(table) > width:
        table = _made(names, numbers, rows, flags, narrow=True)
        last = len(names) - 1
        name = max(len(printable(row[last])) for row in rows) - (_needed(table) - width)
        if name >= max([_NARROWEST, *(len(flag) for own in flags for flag in own)]):
            table = _made(names, numbers, rows, flags, narrow=True, name=name)
    output.width = max(width, _needed(table))
    output.print(table)
    output.width = width


def _needed(table: Table) -> int:
    return Measurement.get(output, output.options.update(width=WIDE), table).maximum


def _made(
    names: Cells,
    numbers: Cells,
    rows: Sequence[Cells],
    flags: Sequence[Cells],
    *,
    narrow: bool,
    name: int | None = None,
) -> Table:
    """The table; ``name`` is the most characters a line of the last column of text, ``None`` for all it has."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0) if narrow else (0, 1))
    last = len(names) - 1
    for place, heading in enumerate(names):
        table.add_column(heading, overflow="fold", max_width=name if place == last else None)
    for heading in numbers:
        shown = heading if narrow else heading.replace("-\n", "-").replace("\n(", "(").replace("\n", " ")
        table.add_column(shown, justify="right", no_wrap=True)
    if flags and not narrow:
        table.add_column("flags", no_wrap=True)
    for row, own in zip_longest(rows, flags, fillvalue=()):
        cells = [printable(cell) for cell in row]
        if narrow:
            cells[last] = "\n".join([cells[last], *own])
        table.add_row(*(Text(cell) for cell in cells), *([" ".join(own)] if flags and not narrow else []))
    return table
