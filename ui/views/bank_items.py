"""The table of a test bank's items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import streamlit as st

from retrieval_eval.exam.items import Item
from ui.bank import Draft, items_frame
from ui.tables import show_table

_HEIGHT: Final = 36 * 11 + 2

_USUAL: Final = {"Subtopic": "", "Kind": "free"}
"""Columns that are left out where they say the same of all items, and what."""


def show_items(items: Sequence[Item], draft: Draft | None = None, key: str | None = None, **options: Any) -> None:
    """Draw it; ``options`` are those of ``st.dataframe``."""
    frame = items_frame(items, draft)
    show_table(
        frame,
        "Items",
        height="content" if len(frame) <= 10 else _HEIGHT,
        key=key,
        column_order=[str(name) for name in frame if name not in _USUAL or set(frame[name]) - {_USUAL[name]}],
        columns={
            "Query": st.column_config.TextColumn(pinned=True),
            "Item": st.column_config.TextColumn(width="large"),
            "Weight": st.column_config.NumberColumn(format="%g"),
            "Marks": st.column_config.TextColumn(help="Gold: it has gold answers. Retired: kept, but not counted."),
        },
        **options,
    )
