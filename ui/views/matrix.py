"""Matrix: how each agent did against each other one."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from ui import data
from ui.charts import Counted, matrix_chart, matrix_frame


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Who beats whom", anchor=False)
    ratings, wins = data.board(source).ratings, data.wins(source)
    if ratings is None or wins is None:
        st.info("No game has a verdict yet. Run `ragarena run` and come back.")
        return
    counted: Counted = st.segmented_control(
        "Percentages count",
        get_args(Counted),
        default="wins and half the ties",
        required=True,
        key="counted",
        bind="query-params",
        help="Half of each tie goes to both sides, so that a cell and its mirror image sum to 100 %; or wins alone.",
    )
    order = [row.agent for row in ratings.agents]
    frame = matrix_frame(wins, order, counted)
    with st.container(width=260 + 96 * len(order)):
        st.altair_chart(matrix_chart(frame, order, counted), width="stretch")
    st.caption(
        f"Read a row: the upper figure is the percentage of its games against the column's agent that the row's agent "
        f"took ({counted}), the lower one the number of games. Blue: the row's agent does better; orange: worse; "
        "pale: even. Agents are sorted by rating; a gap is a pair that never met. With few games a strong colour may "
        "be chance."
    )
    with st.expander("The same as a table"):
        st.dataframe(
            frame.round({"percent": 1}),
            hide_index=True,
            alt="Win matrix as a table",
            column_config={
                "row": "Agent",
                "column": "Against",
                "percent": st.column_config.NumberColumn("Percent", format="%.1f"),
                **{name: name.capitalize() for name in ("games", "won", "tied", "lost")},
            },
        )
