"""Draw sections, tables and charts of a board on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st
from msgspec.structs import replace

from arena.present.blocks import Block, Commands, Section, VerdictCard
from arena.present.files import html_block, html_table, spreadsheet
from arena.present.picture import Chart
from arena.present.table import Table, first, places_of, shown
from ui import text

_MOST_CELLS: Final = 4000
"""Maximum number of cells of a table; browsers are slow to draw larger tables."""
_FILTERED: Final = 8
"""Tables with at least this many rows get a field to filter the rows by a text."""


def draw(*parts: Block | Section) -> None:
    """Draw blocks, and sections with their titles, below each other."""
    for part in parts:
        if isinstance(part, Section):
            if not any(isinstance(block, VerdictCard) for block in part.blocks[:1]):  # its headline is the title
                st.subheader(text.encodable(part.title).replace("[", r"\["), anchor=part.ident)
            if part.lead:
                st.caption(part.lead)
            for block in part.blocks:
                draw(replace(block, title="") if isinstance(block, Table) and block.title == part.title else block)
        elif isinstance(part, Table):
            show_table(part)
        elif isinstance(part, Commands):
            st.code("\n".join(part.lines), language=None, wrap_lines=True)
        elif isinstance(part, Chart):
            st.markdown(html_block(part), unsafe_allow_html=True)  # st.html removes SVG
        elif markup := html_block(part):  # a picture without any figure is empty
            st.html(markup)


def show_table(table: Table, *, whole: Callable[[], Table] | None = None, saved: bool = True) -> None:
    """Draw a table with title, notes, filter and download.

    A click on a heading sorts. A very large table shows only its first rows.

    Args:
        table: the table. Columns without any value are left out; if it has no rows, only its notes are drawn.
        whole: function that makes the complete table for the download, if ``table`` is only a part of it.
        saved: whether to offer the download; false if the download of another table on the page includes this one.
    """
    with st.container(gap="xsmall"):
        if not table.rows:
            text.lines(text.TextLine("strong", table.title), text.TextLine("quiet", "\n".join(table.notes)))
            return
        part = replace(table, title="")
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            if table.title:
                text.strong(table.title, width="content")
            if len(table.rows) >= _FILTERED:
                part = _filtered(part)
            if saved:
                _download(table.name, (lambda: part) if whole is None else whole)
        if part.rows:
            st.html(html_table(first(part, _MOST_CELLS // len(part.columns), "the filter finds them"), sortable=True))


def offer(name: str, kind: str, content: Callable[[], bytes], about: str | None = None) -> None:
    """Draw a button that downloads a file; the file is made when the button is pressed.

    Args:
        name: name of the file; the button is labelled with its ending.
        kind: media type of the file.
        content: function that makes the content of the file.
        about: tooltip of the button.
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


def _download(name: str, saved: Callable[[], Table]) -> None:
    """Draw a button that saves a table as CSV."""

    def content() -> bytes:
        kept = shown(saved())
        rows = zip(*(column.for_spreadsheet(kept.rows) for column in kept.columns), strict=True)
        return spreadsheet([column.heading for column in kept.columns], rows).encode()

    offer(f"{name}.csv", "text/csv", content, "Save this table, as it is filtered now, as a CSV file.")


def _filtered(table: Table) -> Table:
    """Draw the filter field; returns the table with only the rows that contain the typed text."""
    words = st.text_input(
        "Filter",
        key=f"{table.name}-filter",
        bind="query-params",
        placeholder="Filter: rows that contain …",
        label_visibility="collapsed",
        width=260,
    )
    places = places_of(table, words or "")
    if not places:
        st.caption("No row contains this.", width="content")
    return replace(table, rows=[table.rows[place] for place in places])


def show_beside(table: Table, scores: Sequence[Block]) -> None:
    """Draw a table of exam items or nuggets, with the agents' scores beside it, if there are any."""
    with st.container(key="beside"):
        items, beside = st.columns([2, 1]) if scores else (st.container(), None)
    with items:
        show_table(table)
    if beside is not None:
        with beside:
            draw(*scores)
