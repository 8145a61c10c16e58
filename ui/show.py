"""Sections, tables and pictures of a board on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pandas as pd
import streamlit as st

from arena.present.blocks import Block, Commands, Section
from arena.present.files import html_block, html_table, spreadsheet
from arena.present.numbers import MISSING, Duration, Money, Number, Seconds
from arena.present.picture import Chart
from arena.present.table import Table, places_of, shown
from ui import text

_WIDEST: Final = 760
"""Pixels of a chart."""
_TALLEST: Final = 36 * 11 + 2
"""Pixels of Streamlit's tables at most; a longer one scrolls."""
_ROW: Final = 36
"""Pixels of a row of theirs, a little more than it takes."""
_MOST_CELLS: Final = 4000
"""Of a table that a browser draws whole in a moment."""
_FILTERED: Final = 8
"""Tables of fewer rows are seen at one look."""
_AROUND: Final[Mapping[type[Number], tuple[str, str]]] = {Money: ("$", ""), Seconds: ("", " s"), Duration: ("", " s")}
"""What stands before and behind numbers whose form has a text of its own for each."""


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
    elif isinstance(block, Commands):
        st.code("\n".join(block.lines), language=None)
    elif isinstance(block, Chart):
        _draw_chart(block)
    else:
        st.html(html_block(block))


def show_table(
    table: Table,
    *,
    choose: Callable[[int], None] | None = None,
    chosen: int | None = None,
    whole: Callable[[], Table] | None = None,
) -> None:
    """Draw a table with its filter and its download; its title above it, its notes below it.

    A click on a heading sorts. A table of moderate size is the report's, which a browser draws at once; one whose rows
    can be chosen, and a long one, are Streamlit's. Streamlit's own download is switched off (``ui.serve``), since it
    would write cells that a spreadsheet runs as formulas.

    Args:
        table: whose columns without any value are left out; a table without rows is its notes alone.
        choose: called with the place of the row that the reader chooses.
        chosen: the place of the row that is marked. Such a table has no filter, since its rows must stay.
        whole: what is saved, where the table shows a part of it.
    """
    with st.container(gap="xsmall"):
        if table.rows:
            _draw(table, choose, chosen, whole)
        else:
            text.lines(text.Line("strong", table.title), text.Line("quiet", "\n".join(table.notes)))


def _draw(
    table: Table,
    choose: Callable[[int], None] | None,
    chosen: int | None,
    whole: Callable[[], Table] | None,
) -> None:
    places = list(range(len(table.rows)))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if table.title:
            text.strong(table.title, width="content")
        if len(places) >= _FILTERED and chosen is None:
            places = _filtered(table)
        part = replace(table, title="", rows=[table.rows[place] for place in places])
        _download(table.name, (lambda: part) if whole is None else whole)
    if not places:
        return
    if choose is None and len(places) * len(part.columns) <= _MOST_CELLS:
        st.html(html_table(part, sortable=True))
    else:
        _draw_grid(part, {} if choose is None else _choosable(part, places, choose, chosen))
        text.quiet("\n".join(table.notes))


def _draw_grid(table: Table, options: Mapping[str, Any]) -> None:
    cells, settings = frame(table)
    st.dataframe(
        cells,
        hide_index=True,
        placeholder=MISSING,
        alt=table.name,
        column_config=settings,
        height="content" if _ROW * (len(cells) + 1) < _TALLEST else _TALLEST,
        **options,
    )


def _choosable(table: Table, places: list[int], choose: Callable[[int], None], chosen: int | None) -> dict[str, Any]:
    """Options of a table whose rows can be chosen, one at a time; ``places`` are those of its rows in the whole."""
    names = tuple(table.columns[0].value(row) for row in table.rows)
    key = f"{table.name}-{hash((names, tuple(places)))}"  # rows chosen before others were shown are not these
    if chosen is not None:
        marked = [chosen] if chosen in places else []
        if st.session_state.get(key, {}).get("selection", {}).get("rows") != marked:
            st.session_state[key] = {"selection": {"rows": marked}}

    def pick() -> None:
        if rows := st.session_state[key]["selection"]["rows"]:
            choose(places[rows[0]])

    return {"key": key, "on_select": pick, "selection_mode": "single-row"}


def offer(name: str, kind: str, content: Callable[[], bytes], about: str | None = None) -> None:
    """Draw a button that saves a file, made when it is asked for.

    Args:
        name: of the file; its ending names the button.
        kind: its media type.
        content: makes it.
        about: what the button says of it.
    """
    st.download_button(
        name.rpartition(".")[2].upper(),
        content,
        file_name=name,
        mime=kind,
        key=f"download-{name}",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help=about,
    )


def _download(name: str, shown: Callable[[], Table]) -> None:
    """A button that saves a table as CSV."""

    def content() -> bytes:
        found, _ = frame(shown())
        rows = found.astype(object).where(found.notna(), "").itertuples(index=False, name=None)
        return spreadsheet([str(heading) for heading in found], rows).encode()

    offer(f"{name}.csv", "text/csv", content, "Save this table, as it is filtered now, as a CSV file.")


def _filtered(table: Table) -> list[int]:
    """Places of the rows in which any cell holds what the reader typed."""
    wanted = st.text_input(
        "Filter",
        key=f"{table.name}-filter",
        bind="query-params",
        placeholder="Filter: rows that contain …",
        label_visibility="collapsed",
        width=260,
    )
    found = places_of(table, wanted or "")
    if not found:
        st.caption("No row contains this.", width="content")
    return found


def _draw_chart(chart: Chart) -> None:
    from arena.present.charts import spec

    if chart.title:
        text.strong(chart.title)
    with st.container(width=_WIDEST):
        st.vega_lite_chart(spec=spec(chart), width="stretch", alt=chart.words)
    text.quiet(chart.caption)


def frame(table: Table) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The columns that have a value, by heading, and how Streamlit is to write them."""
    frame: dict[str, list[Any]] = {}
    settings: dict[str, Any] = {}
    for place, column in enumerate(shown(table)):
        heading = column.heading
        while heading in frame:
            heading += " "  # told from an equal one by spaces that nobody sees
        label, meaning = text.encodable(column.heading), column.meaning or None
        pinned = True if place == 0 else None
        if (form := column.form) is not None:
            decimals = max((form.places(value) for value in column.values if value is not None), default=0)
            frame[heading] = [
                None if value is None else round(form.factor * value, decimals) for value in column.values
            ]
            written = _pattern(form, decimals, frame[heading])
            settings[heading] = st.column_config.NumberColumn(label, help=meaning, format=written, pinned=pinned)
        else:
            frame[heading] = [None if cell == MISSING else text.encodable(cell) for cell in column.cells]
            settings[heading] = st.column_config.TextColumn(label, help=meaning, pinned=pinned)
    return pd.DataFrame(frame), settings


def _pattern(form: Number, decimals: int, values: Sequence[float | None]) -> str:
    """How Streamlit writes numbers as the form does: one pattern for all, so that sorting goes by their size."""
    for kind, (before, after) in _AROUND.items():
        if isinstance(form, kind):
            return f"{before}%.{decimals}f{after}"
    if form.signed or form.unit:
        return f"%{'+' * form.signed}.{decimals}f{form.unit.replace('%', '%%')}"
    return "localized" if any(abs(value or 0) >= 1000 for value in values) else f"%.{decimals}f"
