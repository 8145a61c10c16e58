"""Sections, tables and pictures of a board on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st
from msgspec.structs import replace

from arena.present.blocks import Block, Commands, Section, VerdictCard
from arena.present.files import html_block, html_table, spreadsheet
from arena.present.numbers import MISSING
from arena.present.picture import Chart
from arena.present.table import ShownColumn, Table, first, places_of, shown
from ui import text

_MOST_CELLS: Final = 4000
"""Of a table that a browser draws whole in a moment."""
_FILTERED: Final = 8
"""Tables of fewer rows are seen at one look."""


def draw(*shown: Block | Section) -> None:
    """Draw blocks, and sections under their titles, one below the other."""
    for one in shown:
        if isinstance(one, Section):
            if not any(isinstance(own, VerdictCard) for own in one.blocks[:1]):  # whose headline is the title
                st.subheader(text.encodable(one.title).replace("[", r"\["), anchor=one.ident)
            if one.lead:
                st.caption(one.lead)
            for own in one.blocks:
                draw(replace(own, title="") if isinstance(own, Table) and own.title == one.title else own)
        elif isinstance(one, Table):
            show_table(one)
        elif isinstance(one, Commands):
            st.code("\n".join(one.lines), language=None)
        elif isinstance(one, Chart):
            st.markdown(html_block(one), unsafe_allow_html=True)  # st.html removes SVG
        else:
            st.html(html_block(one))


def show_table(table: Table, *, whole: Callable[[], Table] | None = None, saved: bool = True) -> None:
    """Draw a table with its filter and its download; its title above it, its notes below it.

    A click on a heading sorts. Of a table that a browser would take long over, the first rows are drawn.

    Args:
        table: whose columns without any value are left out; a table without rows is its notes alone.
        whole: what is saved, where the table shows a part of it.
        saved: whether it can be; not where another table of the page holds all of it.
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


def _download(name: str, saved: Callable[[], Table]) -> None:
    """A button that saves a table as CSV."""

    def content() -> bytes:
        columns = shown(saved())
        rows = zip(*map(_saved, columns), strict=True)
        return spreadsheet([one.heading for one in columns], rows).encode()

    offer(f"{name}.csv", "text/csv", content, "Save this table, as it is filtered now, as a CSV file.")


def _saved(column: ShownColumn) -> list[str | float]:
    """The cells of a column for a spreadsheet: numbers without what is around them."""
    if (form := column.form) is None:
        return ["" if cell == MISSING else cell for cell in column.cells]
    return ["" if value is None else round(form.factor * value, form.places(value)) for value in column.values]


def _filtered(table: Table) -> Table:
    """The rows in which any cell holds what the reader typed."""
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
    return replace(table, rows=[table.rows[place] for place in found])


def show_beside(table: Table, scores: Sequence[Block]) -> None:
    """A table of items, and the scores that they make."""
    with st.container(key="beside"):
        items, beside = st.columns([2, 1]) if scores else (st.container(), None)
    with items:
        show_table(table)
    if beside is not None:
        with beside:
            draw(*scores)
