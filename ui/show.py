"""Sections, tables and pictures of a board on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import pandas as pd
import streamlit as st

from arena.present.blocks import Block, Check, Checks, Commands, Figure, Figures, Remarks, Section, Status
from arena.present.files import spreadsheet
from arena.present.glossary import TERMS
from arena.present.markup import STYLE, html
from arena.present.numbers import MISSING
from arena.present.picture import Chart, Picture
from arena.present.table import Column, Table
from ui import text

_SIGNS: Final[Mapping[Status, tuple[str, Literal["good", "bad", ""]]]] = {
    "failed": ("✕ Failed", "bad"),
    "unknown": ("? Not known", ""),
    "passed": ("✓ Passed", "good"),
}
_WIDEST: Final = 760
"""Pixels of a chart."""
_TALLEST: Final = 740
"""Pixels of a table at most; a longer one scrolls."""
_FILTERED: Final = 5
"""Tables of fewer rows are seen at one look."""
_ROW: Final = 36
"""Pixels of a row, a little more than it takes."""


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
        if isinstance(block, Table) and block.title == section.title:
            show_table(replace(block, title=""))
        else:
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
    choose: Callable[[int], None] | None = None,
    chosen: int | None = None,
    whole: Callable[[], Table] | None = None,
    height: int = _TALLEST,
) -> None:
    """Draw a table with its filter and its download; its title above it, its notes below it.

    Streamlit sorts at a click on a heading. Its own download is switched off (``ui.serve``), since it would write cells
    that a spreadsheet runs as formulas.

    Args:
        table: whose columns without any value are left out; a table without rows is its notes alone.
        choose: called with the place of the row that the reader chooses.
        chosen: the place of the row that is marked. Such a table has no filter, since its rows must stay.
        whole: what is saved, where the table shows a part of it.
        height: the most pixels it takes.
    """
    if table.rows:
        _draw(table, choose, chosen, whole, height)
    elif table.title:
        text.strong(table.title)
    if table.notes:
        text.quiet("\n".join(table.notes))


def _draw(
    table: Table,
    choose: Callable[[int], None] | None,
    chosen: int | None,
    whole: Callable[[], Table] | None,
    height: int,
) -> None:
    shown, settings = frame(table)
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center", gap="small"):
        if table.title:
            text.strong(table.title)
        if len(shown) >= _FILTERED and chosen is None:
            shown = _filtered(shown, table.name)
        _download(table.name, (lambda: shown) if whole is None else (lambda: frame(whole())[0]))
    options: dict[str, Any] = {}
    if choose is not None:
        options = _choosable(table.name, shown, choose, chosen)
    st.dataframe(
        shown,
        hide_index=True,
        placeholder=MISSING,
        alt=table.title or table.name,
        column_config=settings,
        height="content" if _ROW * (len(shown) + 1) < height else height,
        **options,
    )


def _choosable(name: str, shown: pd.DataFrame, choose: Callable[[int], None], chosen: int | None) -> dict[str, Any]:
    """Options of a table whose rows can be chosen, one at a time."""
    places = list(shown.index)
    key = (
        f"{name}-{hash((tuple(shown.iloc[:, 0]), tuple(places)))}"  # rows chosen before others were shown are not these
    )
    if chosen is not None:
        marked = [chosen] if chosen in places else []
        if st.session_state.get(key, {}).get("selection", {}).get("rows") != marked:
            st.session_state[key] = {"selection": {"rows": marked}}

    def pick() -> None:
        if rows := st.session_state[key]["selection"]["rows"]:
            choose(places[rows[0]])

    return {"key": key, "on_select": pick, "selection_mode": "single-row"}


def _download(name: str, shown: Callable[[], pd.DataFrame]) -> None:
    """A button that saves a table as CSV, made when it is asked for."""

    def content() -> bytes:
        found = shown()
        rows = found.astype(object).where(found.notna(), "").itertuples(index=False, name=None)
        return spreadsheet([str(heading) for heading in found], rows).encode()

    st.download_button(
        "CSV",
        content,
        file_name=f"{name}.csv",
        mime="text/csv",
        key=f"download-{name}",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help="Save this table, as it is filtered now, as a CSV file.",
    )


def _filtered(shown: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows in which any cell holds what the reader typed, in capitals or not."""
    wanted = st.text_input(
        "Filter",
        key=f"{name}-filter",
        bind="query-params",
        placeholder="Filter: rows that contain …",
        label_visibility="collapsed",
        width=260,
    )
    if not wanted:
        return shown
    holds = [any(wanted.casefold() in str(cell).casefold() for cell in row) for row in shown.itertuples(index=False)]
    if not any(holds):
        st.caption("No row contains this.", width="content")
    return shown[holds]


def show_picture(picture: Picture) -> None:
    """Draw a picture, how to read it below it."""
    if not isinstance(picture, Chart):
        st.html(f"<style>{STYLE}</style>{html(picture)}")
        return
    from arena.present.charts import spec

    if picture.title:
        text.strong(picture.title)
    with st.container(width=_WIDEST):
        st.vega_lite_chart(spec=spec(picture), width="stretch", alt=picture.words)
    text.quiet(picture.caption)


def frame(table: Table) -> tuple[pd.DataFrame, dict[str, Any]]:
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
                settings[heading] = st.column_config.TextColumn(column.interval, help=TERMS.get(column.interval))
    return pd.DataFrame(frame), settings


def _free(heading: str, taken: Mapping[str, Any]) -> str:
    """The heading, told from an equal one by spaces that nobody sees."""
    while heading in taken:
        heading += " "
    return heading


def _cell(column: Column, row: Mapping[str, Any]) -> Any:
    value = column.value(row)
    if not column.form.printf:
        written = column.form.write(value)
        return None if written == MISSING else text.encodable(written)
    return None if value is None else round(column.form.factor * float(value), column.form.decimals)


def _settings(column: Column, *, pinned: bool) -> Any:
    label = text.encodable(column.heading)
    if column.form.printf:
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
