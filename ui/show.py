"""Sections, tables and pictures of a board on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import pandas as pd
import streamlit as st

from arena.present.blocks import Block, Check, Checks, Commands, Figure, Figures, Remarks, Section, Status
from arena.present.numbers import MISSING
from arena.present.picture import Picture
from arena.present.table import Column, Table
from ui import tables, text

_SIGNS: Final[Mapping[Status, tuple[str, Literal["good", "bad", ""]]]] = {
    "failed": ("✕ Failed", "bad"),
    "unknown": ("? Not known", ""),
    "passed": ("✓ Passed", "good"),
}
_LONG: Final = 20
"""Rows of a table that is shown whole; longer ones scroll."""
_TALLEST: Final = 740
"""Pixels of a table that scrolls."""


def show_sections(sections: Sequence[Section]) -> None:
    """Draw sections, one below the other."""
    for section in sections:
        show_section(section)


def show_section(section: Section) -> None:
    """Draw a section under its title."""
    st.subheader(text.encodable(section.title).replace("[", r"\["), anchor=section.ident)
    if section.lead:
        st.caption(section.lead)
    for block in section.blocks:
        show_block(block)


def show_block(block: Block) -> None:
    """Draw a block."""
    if isinstance(block, Table):
        show_table(block)
    elif isinstance(block, Figures):
        text.facts(map(_figure, block.items))
    elif isinstance(block, Checks):
        text.facts(map(_check, block.items))
    elif isinstance(block, Remarks):
        text.quiet("\n".join(f"• {remark}" for remark in block.items))
    elif isinstance(block, Commands):
        st.code("\n".join(block.lines), language=None)
    else:
        show_picture(block)


def show_table(
    table: Table,
    *,
    choose: Callable[[Mapping[str, Any]], None] | None = None,
    height: int = _TALLEST,
) -> None:
    """Draw a table with its filter and its download; its notes below it.

    Args:
        table: whose columns without any value are left out.
        choose: called with the row of the table that the reader chooses; the first column must name rows uniquely.
        height: the most pixels it takes.
    """
    if not table.rows:
        text.quiet("\n".join(table.notes))
        return
    frame, columns = _frame(table)
    first = str(frame.columns[0])
    by_name = {str(name): row for name, row in zip(frame[first], table.rows, strict=True)}
    if table.title:
        text.strong(table.title)
    tables.show_table(
        frame,
        table.title or table.name,
        columns,
        unknown=MISSING,
        choose=None if choose is None else lambda line: choose(by_name[str(line.iloc[0])]),
        height="content" if len(frame) <= _LONG else height,
    )
    if table.notes:
        text.quiet("\n".join(table.notes))


def show_picture(picture: Picture) -> None:
    """Draw a picture, how to read it below it."""
    raise NotImplementedError(picture.name)


def _frame(table: Table) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The columns that have a value, by heading, and how the page is to write them."""
    frame: dict[str, list[Any]] = {}
    settings: dict[str, Any] = {}
    for place, column in enumerate(table.columns):
        if not column.heading:
            continue
        cells = [_cell(column, row) for row in table.rows]
        heading = _free(column.heading, frame)
        if place == 0 or any(cell is not None for cell in cells):
            frame[heading] = cells
            settings[heading] = _settings(column, pinned=place == 0)
        if column.interval:
            ends = [column.form.between(*column.ends(row)) for row in table.rows]
            if any(cell != MISSING for cell in ends):
                heading = _free(column.interval, frame)
                frame[heading] = ends
                settings[heading] = st.column_config.TextColumn(column.interval)
    return pd.DataFrame(frame), settings


def _free(heading: str, taken: Mapping[str, Any]) -> str:
    """The heading, told from an equal one by spaces that nobody sees."""
    while heading in taken:
        heading += " "
    return heading


def _cell(column: Column, row: Mapping[str, Any]) -> Any:
    value = column.value(row)
    if not column.form.numeric:
        written = column.form.write(value)
        return None if written == MISSING else text.encodable(written)
    return None if value is None else round(column.form.factor * float(value), 6)


def _settings(column: Column, *, pinned: bool) -> Any:
    label = text.encodable(column.heading)
    if column.form.numeric:
        return st.column_config.NumberColumn(
            label, help=column.explained or None, format=column.form.printf, pinned=pinned or None
        )
    return st.column_config.TextColumn(label, help=column.explained or None, pinned=pinned or None)


def _figure(figure: Figure) -> text.Fact:
    interval = f"95% interval: {figure.interval}" if figure.interval else ""
    return text.Fact(figure.written, figure.name, figure.meaning, interval)


def _check(check: Check) -> text.Fact:
    sign, kind = _SIGNS[check.status]
    remedy = "" if check.status == "passed" else f"What to do: {check.remedy}"
    return text.Fact(sign, check.name, check.finding, remedy, kind)
