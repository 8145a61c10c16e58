"""Games on the page Queries: a list of all games, with filters and paging, or one game."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, Final, get_args

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from arena.boards.games import Apart, GameEnding, GameFilter, game_at, games_table
from arena.boards.queries import queries_meant
from arena.present.numbers import counted
from arena.results.games import GameKey, GameTable
from ui import data, onward, text
from ui.address import choose, link, unfold
from ui.show import show_table
from ui.text import TextLine, nothing
from ui.views.game import flags, show_game, to_game

_PER_PAGE: Final = 25
_FOLDED: Final = ("result", "apart", "judge", "flagged")
_FIELDS: Final = ("agent", "opponent", "query", *_FOLDED)
"""Filter fields of the list of games, by their names in URLs."""


def show(source: data.Source) -> None:
    """Draw the game that the URL names; if it names none, draw the list of games."""
    games = data.games(source)
    if not len(games):
        onward.add("No answers are compared here: this tournament plans no games.", onward.PAIRWISE, source)
        return
    address = st.query_params.get("game")
    key = game_at(address)
    row = None if key is None else games.find(key)
    if row is not None:
        _show_one(source, games, row)
        return
    if address is not None:
        st.warning("The game of this address is not in the store. Choose another one below.")
    fields = _fields(games)
    listed = _filter(source, fields, games).rows(games, data.scores(source))
    if not listed.size:
        nothing("No game passes these filters. Clear one of them.")
        return
    _list(source, games, listed, fields)


def _fields(games: GameTable) -> dict[str, Any]:
    """Draw the filter fields and return their values; fields in the expander apply only while it is open."""
    with st.container(horizontal=True):
        values: dict[str, Any] = {
            "agent": choose("Agent", games.agents, "agent"),
            "opponent": choose("Opponent", games.agents, "opponent"),
            "query": st.text_input("Query", key="query", bind="query-params", placeholder="its ID, or words of it"),
        }
    with unfold("More filters", "more", *_FOLDED) as more:
        if more.open:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                values["result"] = choose("Result", get_args(GameEnding), "result")
                values["apart"] = choose("Who disagrees", get_args(Apart), "apart")
                if len(games.judges) > 1:
                    values["judge"] = choose("Judge", games.judges, "judge")
                values["flagged"] = "true" if st.toggle("Flagged", key="flagged", bind="query-params") else None
    if values.get("result") in {"the agent wins", "the agent loses"} and values["agent"] is None:
        st.info("Choose an agent first: nobody can be said to win or lose without one.")
    return {name: value for name, value in values.items() if value}


def _filter(source: data.Source, values: Mapping[str, str], games: GameTable) -> GameFilter:
    """Make a filter from values of the filter fields or of URL parameters; unknown values are ignored."""

    def known(name: str, options: Any) -> Any:
        return values[name] if values.get(name) in options else None

    queries = data.selected(source)
    meant = queries_meant(values.get("query", ""), queries)
    return GameFilter(
        known("agent", games.agents),
        known("opponent", games.agents),
        list(queries) if meant is None and source.group is not None else meant,
        known("result", get_args(GameEnding)),
        known("judge", games.judges),
        known("apart", get_args(Apart)),
        flags(source).keys() if values.get("flagged") == "true" else None,
    )


def _list(source: data.Source, games: GameTable, listed: NDArray[np.intp], fields: Mapping[str, str]) -> None:
    """Draw one page of the list of games."""
    scores, queries, flagged = data.scores(source), data.queries(source), flags(source)
    pages = ceil(listed.size / _PER_PAGE)
    st.caption(counted(listed.size, "game"))
    page = min(st.pagination(pages, key="page", bind="query-params"), pages) if pages > 1 else 1
    rows = listed[(page - 1) * _PER_PAGE : page * _PER_PAGE].tolist()

    def leads(key: GameKey) -> dict[str, str]:
        agents = {name: link("queries", source, agent=getattr(key, name)) for name in ("agent_a", "agent_b")}
        query = link("queries", source, query=key.query_id)
        return {**agents, "query": query, "result": to_game(source, key, **fields)}

    show_table(
        games_table(games, scores, rows, queries, flags=flagged, link=leads),
        whole=lambda: games_table(games, scores, listed.tolist(), queries, flags=flagged, longest=10**6),
    )


def _show_one(source: data.Source, games: GameTable, row: int) -> None:
    """Draw one game with links to the previous and the next game of its filtered list."""
    fields = {name: value for name in _FIELDS if (value := st.query_params.get(name))}
    listed = _filter(source, fields, games).rows(games, data.scores(source))
    position = int(np.searchsorted(listed, row))
    more = (
        {} if fields.keys().isdisjoint(_FOLDED) else {"more": "true"}
    )  # the fields in the expander apply only while it is open
    navigation = [TextLine("quiet", "All games", link=link("queries", source, view="games", **fields, **more))]
    if row in listed:
        for label, neighbour in (("Previous game", position - 1), ("Next game", position + 1)):
            if 0 <= neighbour < listed.size:
                navigation.append(
                    TextLine("quiet", label, link=to_game(source, games.key(int(listed[neighbour])), **fields))
                )
        navigation.append(TextLine("quiet", f"{position + 1:,} of {listed.size:,}"))
    with st.container(horizontal=True, gap="medium"):
        for line in navigation:
            text.lines(line, width="content")
    show_game(source, games.key(row))
