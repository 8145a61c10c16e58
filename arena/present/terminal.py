"""Sections and tables on a terminal: as wide as they need be, narrow where they can, every digit kept."""

from __future__ import annotations

import io
import re
import textwrap
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as Grid
from rich.text import Text

from arena.present.blocks import Block, Checks, Commands, Figure, Figures, Remarks, Section
from arena.present.numbers import clipped, printable
from arena.present.table import ShownColumn, Table, shown

WIDE: Final = 10_000
"""Columns of an output that is no terminal: lines stay whole, so that they can be searched and compared."""
_LONGEST: Final = 160
"""Characters of a text in a cell; files and pages have more of it."""
_NARROWEST: Final = 8
"""Characters a line of words keeps where it is folded."""
_WORD: Final = 24
"""Characters of a name that is not broken unless nothing else helps."""
_STACKED: Final = re.compile(r" |(?<=\w{4}-)(?=\w{4})|(?<=.)(?=@)")
"""Where a heading is broken: at spaces, behind hyphens of long words, before the depth of a measure."""


def show(console: Console, parts: Sequence[Section | Block]) -> None:
    """Write sections or blocks, an empty line between them. Pictures are for other renderers."""
    blocks = [block for part in parts for block in (part.blocks if isinstance(part, Section) else [part])]
    first = True
    for block in blocks:
        if isinstance(block, Table) and not (block.rows or block.notes):
            continue
        if not isinstance(block, Table | Figures | Checks | Remarks | Commands):
            continue
        if not first:
            console.print()
        first = False
        _block(console, block)


def fitted(forms: Iterable[Sequence[Section | Block]], width: int, lines: int) -> str:
    """The first of several forms of the same that has at most so many lines of at most so many characters.

    Args:
        forms: the fullest first; the last one where none fits.
        width: in characters; a name without a space may be longer.
        lines: with empty ones.
    """
    text = ""
    for form in forms:
        out = io.StringIO()
        show(Console(file=out, width=width, highlight=False, markup=False, emoji=False, force_jupyter=False), form)
        text = "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
        if text.count("\n") <= lines:
            break
    return text


def show_table(console: Console, table: Table) -> None:
    """Write a table that never loses a digit, its title above and its notes below it.

    Where it is too wide, headings are stacked, then the longest words are folded; if all that does not help, the
    terminal wraps.
    """
    if table.title:
        console.print(printable(table.title), style="bold")
    if table.rows:
        _grid(console, shown(table))
    for note in table.notes:
        console.print(printable(note))


def _block(console: Console, block: Table | Figures | Checks | Remarks | Commands) -> None:
    if isinstance(block, Table):
        show_table(console, block)
    elif isinstance(block, Figures):
        for figure in block.items:
            console.print(printable(_figure(figure)))
    elif isinstance(block, Checks):
        for check in block.items:
            console.print(printable(check.sentence))
    else:
        for line in block.items if isinstance(block, Remarks) else block.lines:
            console.print(printable(line))


def _figure(figure: Figure) -> str:
    return f"{figure.name}: {figure.written}" + (f" ({figure.interval})" if figure.interval else "")


def _grid(console: Console, columns: Sequence[ShownColumn]) -> None:
    width, how = console.width, _How()
    needed = _needed(console, columns, how)
    if needed > width:
        how = _How(gap=1)
        needed = _needed(console, columns, how)
    if needed > width:
        words = [max(map(len, map(printable, one.cells)), default=0) for one in columns if not one.numeric]
        most = max(words, default=0)
        folds = [_How(1, True), *(_How(1, True, fewer) for fewer in range(most - 1, _NARROWEST - 1, -1))]
        folds += [_How(1, True, min(most, _NARROWEST), word) for word in range(_WORD - 1, _NARROWEST - 1, -1)]
        fitting = bisect_left(folds, True, key=lambda fold: _needed(console, columns, fold) <= width)
        how = folds[min(fitting, len(folds) - 1)]
        needed = _needed(console, columns, how)
    console.width = max(width, needed)
    console.print(_made(columns, how))
    console.width = width


def _needed(console: Console, columns: Sequence[ShownColumn], how: _How) -> int:
    """Characters that the table takes, which its widest cells say."""
    grid = _made(columns, how, widest=True)
    return Measurement.get(console, console.options.update(width=WIDE), grid).maximum


class _How(Struct, frozen=True):
    """How a table is made to fit.

    Attributes:
        gap: spaces between columns.
        stacked: whether headings are.
        most: characters on a line of words, ``None`` for all they have.
        word: characters up to which a word stays whole nevertheless.
    """

    gap: int = 2
    stacked: bool = False
    most: int | None = None
    word: int = _WORD


def _made(columns: Sequence[ShownColumn], how: _How, *, widest: bool = False) -> Grid:
    """The table, of the widest cell of each column alone if that is wanted."""
    gap, stacked, most, word = how.gap, how.stacked, how.most, how.word
    grid = Grid(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    for place, one in enumerate(columns):
        heading = printable(one.heading)
        if one.numeric and place:
            heading = _STACKED.sub("\n", heading) if stacked else heading
            grid.add_column(Text(heading), justify="right", no_wrap=True)
        else:
            longest = max((len(own) for text in (heading, *one.cells) for own in printable(text).split()), default=0)
            limit = None if most is None else max(most, min(longest, word))
            if limit is not None:  # a heading no wider than what is below it, or than its longest word
                below = min(limit, max((len(printable(cell)) for cell in one.cells), default=0))
                heading = "\n".join(textwrap.wrap(heading, max(below, *map(len, heading.split()), 1)))
            grid.add_column(Text(heading), overflow="fold", max_width=limit)
    written = [
        [printable(cell if len(cell) <= _LONGEST else clipped(cell, _LONGEST)) for cell in one.cells] for one in columns
    ]
    if widest:
        written = [[max(cells, key=_width)] for cells in written]
    for cells in zip(*written, strict=True):
        grid.add_row(*map(Text, cells))
    return grid


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))
