"""What the verdicts say about their judge, each figure with its meaning."""

from __future__ import annotations

import streamlit as st

from arena.ratings.health import JudgeHealth
from arena.wording import health_figures
from ui import text


def show_health(health: JudgeHealth) -> None:
    """Draw the figures."""
    st.subheader("Habits of the judge", anchor=False)
    st.caption("Over all its verdicts.")
    text.facts(text.Fact(value, name, meaning) for name, value, meaning in health_figures(health))
