"""Sections and tables as text for terminals; narrow terminals fold words but never cut numbers."""

from __future__ import annotations

import io
import re
import textwrap
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from arena.present.blocks import Block, Checks, Commands, Figures, Remarks, Section, VerdictCard
from arena.present.numbers import clipped, printable
from arena.present.table import Table, shown

if TYPE_CHECKING:
    from rich.table import Table as Grid

WIDE: Final = 10_000
"""Line width of output to a file or pipe: wide enough that lines are not wrapped and can be searched and compared."""
_LONGEST: Final = 160
_NARROWEST: Final = 8
_WORD: Final = 24
"""Words of up to this many characters are broken only if the table does not fit otherwise."""
_STACKED: Final = re.compile(r" |(?<=\w{4}-)(?=\w{4})|(?<=.)(?=@)")
"""Matches where a heading may break: at spaces, after the hyphen of a long word, before the ``@`` of a cutoff."""


def show(console: Console, parts: Sequence[Section | Block]) -> None:
    """Write sections or blocks to a terminal, with empty lines between them; skips blocks that need HTML."""
    blocks = [block for part in parts for block in (part.blocks if isinstance(part, Section) else [part])]
    texts = [
        block for block in blocks if isinstance(block, Table | Figures | Checks | Remarks | Commands | VerdictCard)
    ]
    for place, block in enumerate(own for own in texts if not isinstance(own, Table) or own.rows or own.notes):
        if place:
            console.print()
        _block(console, block)


def fitted(forms: Iterable[Sequence[Section | Block]], width: int, lines: int) -> str:
    """Text of the first of ``forms`` that fits into ``lines`` lines of ``width`` characters, otherwise of the last.

    ``forms`` are versions of one output, from the fullest to the shortest.
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
    """Write a table, with its title above and its notes below; numbers are never cut.

    If the table is too wide, headings are stacked, then the longest texts are folded; if it is still too wide, the
    terminal wraps its lines.
    """
    if table.title:
        console.print(printable(table.title), style="bold")
    if table.rows:
        _grid(console, shown(table))
    for note in table.notes:
        console.print(printable(note))


def narrowest(table: Table) -> int:
    """The width in characters at which a table has all names and numbers whole."""
    return _width_needed(shown(table), _Layout(gap=1, stacked=True))


def _block(console: Console, block: Table | Figures | Checks | Remarks | Commands | VerdictCard) -> None:
    if isinstance(block, Table):
        show_table(console, block)
        return
    lines: Iterable[str] = block.lines if isinstance(block, Commands | VerdictCard) else ()
    if isinstance(block, Figures):
        lines = (f"{own.name}: {own.written}" + (f" ({own.interval})" if own.interval else "") for own in block.items)
    elif isinstance(block, Checks):
        lines = (check.sentence for check in block.items)
    elif isinstance(block, Remarks):
        lines = block.items
    for line in lines:
        console.print(printable(line))


def _grid(console: Console, table: Table) -> None:
    width, layout = console.width, _Layout()
    needed = _width_needed(table, layout)
    if needed > width:
        layout = _Layout(gap=1)
        needed = _width_needed(table, layout)
    if needed > width:
        columns = zip(table.columns, table.cells, strict=True)
        words = [max(map(len, map(printable, cells)), default=0) for column, cells in columns if not column.numeric]
        most = max(words, default=0)
        layouts = [_Layout(1, True), *(_Layout(1, True, fewer) for fewer in range(most - 1, _NARROWEST - 1, -1))]
        layouts += [_Layout(1, True, min(most, _NARROWEST), word) for word in range(_WORD - 1, _NARROWEST - 1, -1)]
        first = bisect_left(layouts, True, key=lambda narrower: _width_needed(table, narrower) <= width)
        layout = layouts[min(first, len(layouts) - 1)]
        needed = _width_needed(table, layout)
    console.width = max(width, needed)
    if layout.most is None:
        _print_lines(console, table, layout)
    else:
        console.print(_folded(table, layout))
    console.width = width


def _print_lines(console: Console, table: Table, layout: _Layout) -> None:
    """Print a table none of whose cells folds."""
    headings = [heading.split("\n") for heading, _ in _headings(table, layout)]
    height, last = max(map(len, headings)), len(headings) - 1
    padded: list[list[str]] = []
    for place, (column, heading, texts) in enumerate(zip(table.columns, headings, table.cells, strict=True)):
        cells = [*[""] * (height - len(heading)), *heading, *_texts(texts)]
        widest, gap = max(map(cell_len, cells)), " " * layout.gap if place < last else ""
        room = [" " * (widest - cell_len(cell)) for cell in cells]
        right = column.numeric and place
        padded.append(
            [f"{blank}{cell}{gap}" if right else f"{cell}{blank}{gap}" for cell, blank in zip(cells, room, strict=True)]
        )
    for number, line in enumerate(zip(*padded, strict=True)):
        console.print(Text("".join(line), "bold" if number < height else "", no_wrap=True, end=""))


class _Layout(Struct, frozen=True):
    """Settings that make a table fit the width of a terminal.

    Attributes:
        most: largest width of a column of words, in characters, before its texts fold; ``None`` for no folding.
        word: longest word that makes its column wider than ``most`` instead of breaking.
    """

    gap: int = 2
    stacked: bool = False
    most: int | None = None
    word: int = _WORD


def _width_needed(table: Table, layout: _Layout) -> int:
    """Width in characters of the table in this layout."""
    width = layout.gap * (len(table.columns) - 1)
    for (heading, limit), cells in zip(_headings(table, layout), table.cells, strict=True):
        widest = max(map(_width, (heading, *_texts(cells))))
        width += widest if limit is None else min(widest, limit)
    return width


def _folded(table: Table, layout: _Layout) -> Grid:
    from rich.table import Table as Grid  # late: most tables fit without folding

    grid = Grid(box=None, pad_edge=False, padding=(0, layout.gap, 0, 0))
    for place, (heading, limit) in enumerate(_headings(table, layout)):
        if table.columns[place].numeric and place:
            grid.add_column(Text(heading), justify="right", no_wrap=True)
        else:
            grid.add_column(Text(heading), overflow="fold", max_width=limit)
    for cells in zip(*map(_texts, table.cells), strict=True):
        grid.add_row(*map(Text, cells))
    return grid


def _headings(table: Table, layout: _Layout) -> Iterator[tuple[str, int | None]]:
    """The heading of each column, broken as the layout asks for, and the width at which its cells fold."""
    for place, (column, cells) in enumerate(zip(table.columns, table.cells, strict=True)):
        heading = printable(column.heading)
        if column.numeric and place:
            yield _STACKED.sub("\n", heading) if layout.stacked else heading, None
        elif layout.most is None:
            yield heading, None
        else:
            words = (part for text in (heading, *cells) for part in printable(text).split())
            limit = max(layout.most, min(max(map(len, words), default=0), layout.word))
            # The heading is no wider than the cells below, or than its longest word.
            below = min(limit, max((len(printable(cell)) for cell in cells), default=0))
            yield "\n".join(textwrap.wrap(heading, max(below, *map(len, heading.split()), 1))), limit


def _texts(cells: Iterable[str]) -> list[str]:
    return [printable(cell if len(cell) <= _LONGEST else clipped(cell, _LONGEST)) for cell in cells]


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))
