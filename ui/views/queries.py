"""Queries: which of them tell the agents apart, and on which each agent fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import pandas as pd
import streamlit as st

from arena.queries.board import QueryBoard, query_board
from arena.queries.separation import QueryFigures, Record
from arena.store import Store
from ui import data, text
from ui.address import link, pick, say_what_is_unknown
from ui.game_list import queries_meant
from ui.states import nothing
from ui.tables import show_table

_TEXT = 300
"""Characters of a query in a cell, which opens at a double click."""
_OPENED = "query"
"""The page's address holds the query chosen under this name, as that of the games does."""


@st.cache_resource(max_entries=4, show_spinner="Reading the queries …")
def board_of(source: data.Source) -> QueryBoard:
    """What the queries show, as ``ragarena queries`` computes it."""
    with closing(Store.open(source.location)) as store:
        return query_board(store, source.tournament)


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Which queries decide", anchor=False)
    board = board_of(source)
    if not board.queries:
        nothing("This tournament has no queries yet. Name a table of them in its YAML file and run `ragarena run`.")
        return
    ratings = data.board(source).ratings
    rated = [row.agent for row in ratings.agents] if ratings else []
    agents = [*rated, *(agent for agent in board.standings.agents if agent not in rated)]
    _show_separation(board)
    _show_query(board, agents, source.tournament)
    if agents:
        _show_failures(board, agents, source.tournament)
    _show_groups(board, agents)


def separation_frame(board: QueryBoard, lines: Sequence[QueryFigures]) -> pd.DataFrame:
    """A line for each query; shares in percent, as digits are shown."""
    names = [one.query_id for one in lines]
    return pd.DataFrame(
        {
            "Query": names,
            "Separation": [_rounded(one.separation) for one in lines],
            "Spread": [_rounded(one.spread) for one in lines],
            "Agreement": [_rounded(one.agreement) for one in lines],
            "Games": [one.games for one in lines],
            "Decided": [_percent(one.decided) for one in lines],
            "Orders differ": [_percent(one.orders_differ) for one in lines],
            "Judges differ": [_percent(one.judges_differ) for one in lines],
            "Verdicts": ["{} of {}".format(*board.verdicts.get(name, (0, 0))) for name in names],
            "Text": [text.clipped(board.queries[name].text, _TEXT) for name in names],
        }
    )


def failures_frame(board: QueryBoard, agent: str) -> pd.DataFrame:
    """A line for each query, the agent's worst first."""
    found = board.failures(agent)
    frame = pd.DataFrame(
        {
            "Query": [one.query_id for one in found],
            "Share": [_percent(one.record.share) for one in found],
            "Elsewhere": [_percent(one.elsewhere) for one in found],
            "Lost": [one.record.lost for one in found],
            "Games": [one.record.games for one in found],
            "Answer": ["yes" if one.answered else "no answer" for one in found],
        }
    )
    for name in board.scores:
        frame[name.capitalize()] = [_rounded(one.scores.get(name)) for one in found]
    frame["Text"] = [text.clipped(board.queries[one.query_id].text, _TEXT) for one in found]
    return frame


def _show_separation(board: QueryBoard) -> None:
    lines = board.by_separation
    known = [one for one in lines if one.separation is not None]
    if not any(one.games for one in lines):
        nothing("No game has a verdict yet, so no query can be seen to separate the agents. Run `ragarena run`.")
        return
    if known:
        against = sum((one.separation or 0) < 0 for one in known)
        flat = sum(one.spread == 0 for one in known)
        text.lead(
            f"{known[0].query_id} separates the agents most. Of {len(known):,} queries, the order of the others is "
            f"turned round on {against:,}, and nobody can be told apart on {flat:,}."
        )
    share = st.column_config.NumberColumn(format="%.0f %%")
    frame = separation_frame(board, lines)
    figure = st.column_config.NumberColumn(format="%.2f")
    _show_choosable(
        frame[[name for name in frame if not frame[name].isna().all()]],
        "Queries by separation",
        {
            **dict.fromkeys(("Separation", "Spread"), figure),
            "Agreement": figure
            | {"help": "Correlation of the agents' shares here with those on all other queries, -1 to 1."},
            **dict.fromkeys(("Decided", "Orders differ", "Judges differ"), share),
            "Verdicts": st.column_config.TextColumn(help="Verdicts that are there, of those wanted."),
        },
    )
    st.caption(
        "Queries on which better agents do better come first. At the end are those that nobody gains by or that "
        "contradict the others: they may be unclear or badly judged, so read some of their games. Choose a line to "
        "open its query."
    )


def _show_query(board: QueryBoard, agents: Sequence[str], tournament: str) -> None:
    """One query: its text, and how each agent did on it."""
    asked = st.text_input("Query", key=_OPENED, bind="query-params", placeholder="its ID, or words that only it holds")
    meant = queries_meant(asked, board.queries)
    if meant is None:
        return
    if len(meant) != 1:
        st.caption(f"{len(meant):,} queries hold these words. Give the ID of one, or choose its line above.")
        return
    query_id = meant[0]
    text.passage(board.queries[query_id].text, "query", empty="An empty query.")
    at = board.standings.queries.index(query_id)
    records = {agent: board.standings.each(agent)[at] for agent in agents}
    frame = pd.DataFrame([{"Agent": agent, **_record(own)} for agent, own in records.items()])
    for name, scores in board.scores.items():
        frame[name.capitalize()] = [_rounded(scores.get((query_id, agent))) for agent in agents]
    show_table(
        frame.sort_values("Share", ascending=False, kind="stable") if agents else frame,
        "Agents on the query",
        {"Share": st.column_config.NumberColumn("Share of points", format="%.0f %%")},
        pinned="Agent",
    )
    st.link_button("Read its games", link("games", tournament, query=query_id), icon=":material/sports:")


def _show_failures(board: QueryBoard, agents: Sequence[str], tournament: str) -> None:
    st.subheader("Where an agent fails", anchor=False)
    agent = pick("Agent", agents, "agent", width=420)
    say_what_is_unknown()
    frame = failures_frame(board, agent)
    _show_choosable(
        frame[[name for name in frame if name != "Answer" or (frame[name] != "yes").any()]],
        f"Queries of agent {agents.index(agent) + 1}",
        {
            **{name.capitalize(): st.column_config.NumberColumn(format="%.2f") for name in board.scores},
            "Share": st.column_config.NumberColumn(
                "Share of points", format="%.0f %%", help="A win counts 1, a tie half."
            ),
            "Elsewhere": st.column_config.NumberColumn(
                format="%.0f %%", help="The agent's share of points on all other queries."
            ),
        },
    )
    st.caption(
        "The agent's worst queries first: those without an answer, then those with the smallest share of points."
    )
    lost = link("games", tournament, agent=agent, result="the agent loses")
    st.link_button("Read the games that it lost", lost, icon=":material/sports:")


def _show_groups(board: QueryBoard, agents: Sequence[str]) -> None:
    """Each agent's share in each group of queries, where the queries' table has a column that makes groups."""
    if not board.columns or not agents:
        return
    st.subheader("By group of queries", anchor=False)
    column = pick("Column of the queries' table", board.columns, "by", width=420)
    say_what_is_unknown()
    lines = board.by_group(column)
    rows = [
        {
            "Group": text.clipped(line.value, 80) or "(none)",
            "Queries": line.queries,
            "Separation": _rounded(line.separation),
            "Agent": agent,
            **_record(line.agents[agent]),
            "95 %": _span(line.agents[agent]),
        }
        for line in lines
        for agent in agents
    ]
    show_table(
        pd.DataFrame(rows),
        "By group of queries",
        {
            "Share": st.column_config.NumberColumn("Share of points", format="%.0f %%"),
            "95 %": st.column_config.TextColumn(help="Interval of the share, clustered by query."),
            "Separation": st.column_config.NumberColumn(format="%.2f", help="Mean over the queries of the group."),
        },
    )
    st.caption("With few queries in a group, its shares may be chance: see their intervals.")


def _show_choosable(frame: pd.DataFrame, name: str, columns: Mapping[str, Any]) -> None:
    """A table of queries whose lines open their query."""
    show_table(
        frame,
        name,
        {"Query": st.column_config.TextColumn(pinned=True, width=_width(frame["Query"])), **columns},
        choose=_open,
        height=420,
    )


def _width(names: pd.Series[str]) -> int:
    """Pixels for ids, of which long ones are cut."""
    return min(30 + 7 * int(names.str.len().max()), 200)


def _open(line: pd.Series[Any]) -> None:
    st.session_state[_OPENED] = line["Query"]


def _record(own: Record) -> dict[str, float | int | None]:
    return {"Share": _percent(own.share), "Games": own.games, "Won": own.won, "Tied": own.tied, "Lost": own.lost}


def _span(own: Record) -> str:
    return "none" if own.low is None or own.high is None else f"{100 * own.low:.0f} to {100 * own.high:.0f} %"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share)
