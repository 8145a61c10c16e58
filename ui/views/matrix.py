"""Matrix: how each agent did against each other one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import streamlit as st

from arena.boards.wins import Counted, Wins, by_points
from ui import data, text
from ui.address import choose, link, say_what_is_unknown, switch, unfold
from ui.show import show_block, show_table
from ui.states import incomplete, nothing


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
        nothing("No game has a verdict yet. Run `ragleague run` and come back.")
        return
    choice = _chosen(source)
    if data.pairs(source, choice.judge, choice.group) is None:
        nothing("No game of these has a verdict. Clear one of the fields above.")
        return
    if data.board(source).ratings is None:
        incomplete("too little is judged to rate the agents, so they are sorted by their share of points.")
    wins = _wins(source, choice)
    show_block(wins.picture(lambda agent, opponent: link("games", source.tournament, agent=agent, opponent=opponent)))
    with unfold("The numbers of this picture", "numbers") as opened:
        if opened.open:
            show_table(wins.pairwise())


@st.cache_resource(max_entries=8, show_spinner=False)
def _wins(source: data.Source, choice: Choice) -> Wins:
    pairs = data.pairs(source, choice.judge, choice.group)
    assert pairs is not None
    ratings = data.board(source).ratings
    order = [row.agent for row in ratings.agents] if ratings else by_points(pairs.wins)
    return Wins(pairs, [agent for agent in order if agent in pairs.wins.agents], choice.counted)


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
