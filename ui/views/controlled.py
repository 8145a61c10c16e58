"""Ratings controlled for what the judge may like besides quality, beside the raw ones."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from arena.present.numbers import listed
from arena.ratings.covariates import ControlledBoard
from arena.wording import CONTROLLED, controlled_doubts, controlled_effects
from ui import text
from ui.tables import show_table


def controlled_frame(board: ControlledBoard) -> pd.DataFrame:
    """A line for each agent, best first."""
    return pd.DataFrame(
        {
            "Agent": [row.agent for row in board.agents],
            "Controlled": [round(row.rating, 1) for row in board.agents],
            "Standard error": [
                None if row.standard_error is None else round(row.standard_error, 1) for row in board.agents
            ],
            "Raw": [round(row.raw, 1) for row in board.agents],
        }
    )


def show_controlled(board: ControlledBoard) -> None:
    """Draw the table and what each quality is worth."""
    st.subheader(f"Controlled for {listed([effect.name for effect in board.effects])}", anchor=False)
    formats = {name: st.column_config.NumberColumn(format="%.1f") for name in ("Controlled", "Standard error", "Raw")}
    show_table(controlled_frame(board), "Controlled ratings", formats, pinned="Agent")
    st.caption(f"{CONTROLLED} Every verdict is a game here, for the raw ratings too.")
    lines = [*controlled_effects(board), *controlled_doubts(board)]
    text.quiet("\n".join(f"• {line}" for line in lines))
