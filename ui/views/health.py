"""What the verdicts say about their judge, each figure with its meaning."""

from __future__ import annotations

import streamlit as st

from arena.ratings.health import JudgeHealth
from arena.wording import health_figures


def show_health(health: JudgeHealth) -> None:
    """Draw the figures."""
    st.subheader("Habits of the judge", anchor=False)
    with st.container(horizontal=True, gap="small"):
        for name, value, meaning in health_figures(health):
            st.metric(name, value, help=meaning, border=True, width=168)
    st.caption("Over all its verdicts. The question marks say what each figure should look like.")
