"""Matrix: how each agent did against each other one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd
import streamlit as st

from arena.ratings.counts import WinMatrix
from ui import data, text
from ui.address import choose, say_what_is_unknown, switch
from ui.matrix import ALPHA, Counted, matrix_frame, matrix_html
from ui.states import incomplete, nothing
from ui.tables import show_chart


@dataclass(frozen=True, slots=True)
class Choice:
    """The games asked for, and what percentages count."""

    judge: str | None
    group: tuple[str, str] | None
    counted: Counted


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Who beats whom", anchor=False)
    if not data.games(source).played.any():
        nothing("No game has a verdict yet. Run `ragarena run` and come back.")
        return
    choice = _chosen(source)
    if data.pairs(source, choice.judge, choice.group) is None:
        nothing("No game of these has a verdict. Clear one of the fields above.")
        return
    if data.board(source).ratings is None:
        incomplete("too little is judged to rate the agents, so they are sorted by their share of points.")
    frame, drawn = _matrix(source, choice)
    told = int((frame["p"] < ALPHA).sum()) // 2
    words = (
        f"Read a row: the figure is the percentage of its games against the column's agent that the row's agent took "
        f"({choice.counted}); with few agents the number of games is below it. Blue: the row's agent does better; "
        "orange: worse; pale: even. The best agent comes first; a gap is a pair that never met. A figure in bold says "
        f"that the two agents' own games tell them apart: {told:,} of {len(frame) // 2:,} pairs, at 5 % for all of "
        "them together. Where it is not bold, a strong colour may be chance."
    )
    columns = {
        "row": "Agent",
        "column": "Against",
        "percent": st.column_config.NumberColumn("Percent", format="%.1f"),
        **{name: name.capitalize() for name in ("games", "won", "tied", "lost")},
        "p": st.column_config.NumberColumn("p, corrected", format="%.3g"),
    }
    show_chart(drawn, words, frame.round({"percent": 1}), "Win matrix", columns)


def by_points(wins: WinMatrix) -> list[str]:
    """The agents, that with the largest share of its points first: a win counts 1, a tie half."""
    share = (wins.wins + wins.ties / 2).sum(axis=1) / wins.games.sum(axis=1)
    return [wins.agents[number] for number in np.argsort(-share, kind="stable")]


@st.cache_resource(max_entries=8, show_spinner=False)
def _matrix(source: data.Source, choice: Choice) -> tuple[pd.DataFrame, str]:
    """The cells, and their heat map."""
    results = data.pairs(source, choice.judge, choice.group)
    assert results is not None
    ratings = data.board(source).ratings
    order = [row.agent for row in ratings.agents] if ratings else by_points(results.wins)
    frame = matrix_frame(results, order, choice.counted)
    return frame, matrix_html(frame, order)


def _chosen(source: data.Source) -> Choice:
    """The page's fields."""
    ways: tuple[Counted, ...] = get_args(Counted)
    counted = switch(
        "Percentages count",
        ways,
        "counted",
        help="Half of each tie goes to both sides, so that a cell and its mirror image sum to 100 %; or wins alone.",
    )
    judges, groups = data.games(source).judges, data.groups(source)
    judge, group = None, None
    columns = st.columns(2)
    if len(judges) > 1:
        with columns[0]:
            judge = choose("Judge", judges, "judge", help="Only games that this judge judged.")
    if groups:
        with columns[1]:
            group = choose(
                "Query group",
                groups,
                "group",
                lambda own: text.clipped(f"{own[0]}: {own[1]}", 60),
                help="Only games on queries whose metadata say this.",
            )
    say_what_is_unknown()
    return Choice(judge, group, counted)
