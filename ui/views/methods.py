"""Ways of scoring the same agents held against each other: a part of the page of calibration."""

from __future__ import annotations

from typing import Final

import streamlit as st

from arena.calibration.methods import MethodComparison
from arena.calibration.words import least_and_most_alike
from ui import text
from ui.address import pick, say_what_is_unknown, switch, unfold
from ui.calibration_charts import points_chart
from ui.methods import (
    correlation_frame,
    correlations_html,
    named_agents,
    places_frame,
    points_frame,
    scores_frame,
)
from ui.tables import show_chart, show_table

_COEFFICIENTS: Final = ("Kendall's tau-b", "Spearman's rho")


def show_methods(found: MethodComparison) -> None:
    """Draw the part."""
    st.subheader("Do the methods agree with each other?", anchor=False)
    ends = least_and_most_alike(found)
    if ends is None:
        st.caption("Not known: it takes two ways of scoring, and three agents that both score.")
    else:
        least, most = ends
        said = f"Most alike are {most.first} and {most.second} (tau {most.kendall.value:.2f})"
        if least is not most:
            said += f", least {least.first} and {least.second} ({least.kendall.value:.2f})"
        text.plain(f"{said}: 1 is the same order of agents, 0 none in common, -1 the reverse.")
        _show_matrix(found)
    if found.methods:
        _show_places(found)
        with unfold("Scores and places by every method", "scores-and-places") as opened:
            if opened.open:
                show_table(scores_frame(found), "Scores and places")
    if found.pairs:
        with unfold("Two methods against each other", "two-methods", "across", "up") as opened:
            if opened.open:
                least = ends[0] if ends else found.pairs[0]
                _show_points(found, (least.first, least.second))


def _show_matrix(found: MethodComparison) -> None:
    names = [own.method for own in found.methods]
    coefficient = switch("Correlation", _COEFFICIENTS, "coefficient")
    say_what_is_unknown()
    frame = correlation_frame(found, coefficient)
    agents = max(pair.agents for pair in found.pairs)
    pairs = agents * (agents - 1) // 2
    words = (
        f"{coefficient} of the agents' places by every two methods, with its 95 % interval. {agents} agents make "
        f"{pairs} pairs: one pair turned round takes {2 / pairs:.2g} off tau. A gap is two methods that do not score "
        "three agents in common."
    )
    columns = {
        "row": "Method",
        "column": "Other method",
        "value": st.column_config.NumberColumn(coefficient, format="%.2f"),
        "interval": st.column_config.TextColumn(
            "95 % interval", help="Every method is scored anew on 200 draws of the queries, the same for all."
        ),
        "agents": "Agents",
    }
    show_chart(correlations_html(frame, names, coefficient), words, frame, "Correlations", columns)


def _show_places(found: MethodComparison) -> None:
    frame = places_frame(found)
    if frame.empty:
        st.caption("Every method that scores all agents puts each of them in the same place.")
        return
    show_table(frame, "Places that differ")
    st.caption("Agents whose place differs between methods, the most first: read their games before you trust one.")


def _show_points(found: MethodComparison, first: tuple[str, str]) -> None:
    """Agents by two methods, at first those that are least alike."""
    names = sorted({name for pair in found.pairs for name in (pair.first, pair.second)})
    left, right = st.columns(2)
    with left:
        across = pick("Method across", names, "across", index=names.index(first[0]))
    with right:
        up = pick("Method up", names, "up", index=names.index(first[1]))
    say_what_is_unknown()
    frame = points_frame(found, across, up)
    words = "One mark for each agent. Two methods that agree put the marks on a line that rises to the right."
    named = named_agents(frame)
    if len(named) < len(frame):
        words += f" Only {len(named)} have room for their names; those whose places differ most come first."
    with st.container(width=640):
        columns = {"agent": "Agent", "x": across, "y": up}
        show_chart(points_chart(frame, named, across, up), words, frame, "Two methods", columns)
