"""Latency, tokens and cost of the answers, and the fronts of quality against them: a part of the overview."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from arena.agents.board import CostBoard
from arena.agents.costs import COST, LATENCY, Figure
from arena.agents.front import Front
from ui import text
from ui.charts import front_chart
from ui.tables import show_chart, show_table

TITLES = {LATENCY: "Rating against latency", COST: "Rating against cost"}
_LATENCY = "From sending the request to the end of the answer; waiting for a turn and failed attempts are not in it."


def show_costs(board: CostBoard) -> None:
    """Draw the part; where nothing is known and nothing is missing, there is none."""
    if not board.known and not board.gaps:
        return
    st.subheader("Latency and cost", anchor=False)
    number = st.column_config.NumberColumn
    show_table(
        costs_frame(board),
        "Latency and cost",
        {
            "Queries answered": st.column_config.TextColumn(help="Games are played where both agents answered."),
            "Why not": st.column_config.TextColumn(help="How often each cause left a query without an answer."),
            "Latency": number("Latency, median", format="%.3g s", help=_LATENCY),
            "95 %": number("Latency, 95 %", format="%.3g s", help="95 % of the answers took no longer."),
            "Latency known": st.column_config.TextColumn(help="Answers whose latency is known; others are left out."),
            "Cost": number("Cost of a query", format="$%.3g", help="Mean over the answers whose cost is known."),
            "Cost known": st.column_config.TextColumn(help="Answers whose cost is known; the others are left out."),
            "Tokens in": number(format="%.0f", help="Mean over the answers whose tokens are known."),
            "Tokens out": number(format="%.0f", help="Mean over the answers whose tokens are known."),
        },
        pinned="Agent",
        unknown="unknown",
    )
    columns = st.columns(len(board.fronts)) if board.fronts else ()
    for column, (price, front) in zip(columns, board.fronts.items(), strict=True):
        with column:
            words = f"**{TITLES[price]}**: up is better, left is better; blue is the front, whom nobody beats in both."
            show_chart(front_chart(front), words, front_frame(front), TITLES[price])
    text.lines(*(text.Line("quiet", note) for note in board.notes))


def front_frame(front: Front) -> pd.DataFrame:
    """The agents of one chart, best rated first."""
    price = "Latency, s" if front.price == LATENCY else "Cost of a query, $"
    rows = [(agent, rating, paid, agent in front.agents) for agent, (rating, paid) in front.points.items()]
    frame = pd.DataFrame(rows, columns=["Agent", "Rating", price, "On the front"])
    return frame.sort_values("Rating", ascending=False, kind="stable")


def costs_frame(board: CostBoard) -> pd.DataFrame:
    """The agents as the page shows them, best rated first; a figure that nobody knows is empty, not 0."""
    rows = board.agents
    frame = pd.DataFrame(
        {
            "Agent": [own.agent for own in rows],
            "Queries answered": [f"{own.answered} of {own.queries}" for own in rows],
            "Why not": ["; ".join(f"{cause} {count}" for cause, count in own.missing.items()) for own in rows],
            "Latency": [own.latency_s.value for own in rows],
            "95 %": [own.latency_p95_s for own in rows],
            "Latency known": [_known(own.latency_s, own.answered) for own in rows],
            "Cost": [own.cost_usd.value for own in rows],
            "Cost known": [_known(own.cost_usd, own.answered) for own in rows],
            "Tokens in": [own.input_tokens.value for own in rows],
            "Tokens out": [own.output_tokens.value for own in rows],
        }
    )
    return frame.drop(columns=[] if frame["Why not"].any() else ["Why not"])


def _known(figure: Figure, answered: int) -> str:
    return f"{figure.known} of {answered}"
