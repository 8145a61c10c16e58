"""Tables as every page shows them: filtered, sorted, downloaded, and in words.

Streamlit sorts a table at a click on a heading. Its own download is switched off (``ui.serve``), since it would write
cells that a spreadsheet runs as formulas.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pandas as pd
import streamlit as st

from arena.present.glossary import TERMS

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that some spreadsheet takes for a formula (OWASP, "CSV Injection")."""
_NUMBERS: Final = re.compile(r"-?[\d.,]+( to -?[\d.,]+)?")
"""A number or an interval, which may begin with a minus."""
_FILTERED: Final = 5
"""Tables of fewer rows are seen at one look."""
_ROW: Final = 36
"""Height of a row, in pixels and a little more."""


def show_table(
    frame: pd.DataFrame,
    name: str,
    columns: Mapping[str, Any] | None = None,
    *,
    pinned: str = "",
    unknown: str = "none",
    style: Callable[[pd.DataFrame], Any] | None = None,
    whole: Callable[[], pd.DataFrame] | None = None,
    choose: Callable[[pd.Series[Any]], None] | None = None,
    **options: Any,
) -> None:
    """Draw a table with its filter and its download.

    Where the page keeps rows chosen by their places (``on_select``), these must stay: such a table has no filter.

    Args:
        frame: texts in it are shown as they are.
        name: what a screen reader calls it; unique on the page. The file of the download and the filter in the page's
            address are named by it.
        columns: Streamlit's configuration of columns; a heading that the glossary knows gets its meaning.
        pinned: the column of words that stays in sight while others scroll.
        unknown: what stands where there is no figure.
        style: from what is left of the frame to what is drawn, such as its cells in colours.
        whole: what is saved, where the table shows a part of it.
        choose: called with the line that the reader chooses; the first column names the lines.
        options: further ones of ``st.dataframe``; a height in pixels is the largest.
    """
    key = re.sub(r"\W+", "-", name.lower()).strip("-")
    shown = frame
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center", gap="small"):
        if len(frame) >= _FILTERED and "on_select" not in options:
            shown = _filtered(frame, key)
        _download(key, whole or (lambda: shown))
    if isinstance(most := options.get("height"), int):
        options["height"] = min(_ROW * (len(shown) + 1) + 2, most)
    if choose is not None:
        options |= _choosable(shown, key, choose)
    held = {pinned: st.column_config.TextColumn(pinned=True)} if pinned else {}
    st.dataframe(
        style(shown) if style else shown,
        hide_index=True,
        placeholder=unknown,
        alt=name,
        column_config=with_meanings(frame, {**held, **(columns or {})}),
        **options,
    )


def _choosable(shown: pd.DataFrame, name: str, choose: Callable[[pd.Series[Any]], None]) -> dict[str, Any]:
    """Options of a table whose lines can be chosen, one at a time."""
    key = f"{name}-{hash(tuple(shown.iloc[:, 0]))}"  # a line chosen before the filter changed is another one now

    def chosen() -> None:
        if rows := st.session_state[key]["selection"]["rows"]:
            choose(shown.iloc[rows[0]])

    return {"key": key, "on_select": chosen, "selection_mode": "single-row"}


def _download(name: str, frame: Callable[[], pd.DataFrame]) -> None:
    """A button that saves a table as CSV, made when it is asked for."""
    st.download_button(
        "CSV",
        lambda: as_csv(frame()),
        file_name=f"{name}.csv",
        mime="text/csv",
        key=f"download-{name}",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help="Save this table, as it is filtered now, as a CSV file.",
    )


def as_csv(frame: pd.DataFrame) -> bytes:
    """A table as CSV in UTF-8. Texts that a spreadsheet would run as a formula begin with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")  # a lone \r in a cell is quoted with this
    writer.writerow([_inert(str(name)) for name in frame])
    for row in frame.itertuples(index=False, name=None):
        writer.writerow([_inert(cell) for cell in row])
    return out.getvalue().encode()


def with_meanings(frame: pd.DataFrame, given: Mapping[str, Any]) -> dict[str, Any]:
    """The columns' settings, with the glossary's meaning of each heading that has none of its own."""
    found = dict(given)
    for name in map(str, frame):
        own = found.get(name)
        column = {"label": own} if isinstance(own, str) else dict(own or {})
        meaning = TERMS.get(column.get("label") or name)
        if meaning is not None and not column.get("help"):
            found[name] = column | {"help": meaning}
    return found


def _filtered(frame: pd.DataFrame, name: str) -> pd.DataFrame:
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
        return frame
    holds = [any(wanted.casefold() in str(cell).casefold() for cell in row) for row in frame.itertuples(index=False)]
    if not any(holds):
        st.caption("No row contains this.", width="content")
    return frame[holds]


def _inert(cell: Any) -> Any:
    if isinstance(cell, str):
        runs = cell.lstrip(" ").startswith(_FORMULA) and not _NUMBERS.fullmatch(cell)
        return f"'{cell}" if runs else cell
    return "" if pd.isna(cell) else cell
