"""Tables as every page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st


def show_table(
    frame: pd.DataFrame,
    name: str,
    columns: Mapping[str, Any] | None = None,
    *,
    pinned: str = "",
    unknown: str = "none",
) -> None:
    """Draw a table without row numbers.

    Args:
        frame: its cells.
        name: what a screen reader calls it.
        columns: Streamlit's configuration of columns.
        pinned: the column of words that stays in sight while others scroll.
        unknown: what stands where there is no figure.
    """
    held = {pinned: st.column_config.TextColumn(pinned=True)} if pinned else {}
    st.dataframe(frame, hide_index=True, placeholder=unknown, alt=name, column_config={**held, **(columns or {})})
