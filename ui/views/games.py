"""Games: every game behind the ratings, found by filters and listed a page at a time; or one of them."""

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
from ui import data, text
from ui.address import choose, link, unfold
from ui.show import show_table
from ui.text import TextLine, nothing
from ui.views.game import flags, show_game, to_game

_PER_PAGE: Final = 25
_FOLDED: Final = ("result", "apart", "judge", "flagged")
_FIELDS: Final = ("agent", "opponent", "query", *_FOLDED)
"""As addresses call them."""


def show(source: data.Source) -> None:
    """Draw the list, or the game that the address names."""
    games = data.games(source)
    if not len(games):
        nothing("This tournament plans no games. Give its YAML file a `pairwise` section and run `ragleague run`.")
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
    """What the fields say; those behind the fold apply while they are seen."""
    with st.container(horizontal=True):
        said: dict[str, Any] = {
            "agent": choose("Agent", games.agents, "agent"),
            "opponent": choose("Opponent", games.agents, "opponent"),
            "query": st.text_input("Query", key="query", bind="query-params", placeholder="its ID, or words of it"),
        }
    with unfold("More filters", "more", *_FOLDED) as more:
        if more.open:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                said["result"] = choose("Result", get_args(GameEnding), "result")
                said["apart"] = choose("Who disagrees", get_args(Apart), "apart")
                if len(games.judges) > 1:
                    said["judge"] = choose("Judge", games.judges, "judge")
                said["flagged"] = "true" if st.toggle("Flagged", key="flagged", bind="query-params") else None
    if said.get("result") in {"the agent wins", "the agent loses"} and said["agent"] is None:
        st.info("Choose an agent first: nobody can be said to win or lose without one.")
    return {name: value for name, value in said.items() if value}


def _filter(source: data.Source, said: Mapping[str, str], games: GameTable) -> GameFilter:
    """The games that fields or an address ask for; what they name in vain is any."""

    def known(name: str, options: Any) -> Any:
        return said[name] if said.get(name) in options else None

    queries = data.queries(source)
    if source.group is not None:
        column, value = source.group
        queries = {own: query for own, query in queries.items() if query.metadata.get(column) == value}
    meant = queries_meant(said.get("query", ""), queries)
    return GameFilter(
        known("agent", games.agents),
        known("opponent", games.agents),
        list(queries) if meant is None and source.group is not None else meant,
        known("result", get_args(GameEnding)),
        known("judge", games.judges),
        known("apart", get_args(Apart)),
        flags(source).keys() if said.get("flagged") == "true" else None,
    )


def _list(source: data.Source, games: GameTable, listed: NDArray[np.intp], fields: Mapping[str, str]) -> None:
    """One page of the list."""
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
    """One game between its neighbours among those that the address asks for."""
    fields = {name: value for name in _FIELDS if (value := st.query_params.get(name))}
    listed = _filter(source, fields, games).rows(games, data.scores(source))
    place = int(np.searchsorted(listed, row))
    more = {} if fields.keys().isdisjoint(_FOLDED) else {"more": "true"}  # they apply while they are seen
    shown = [TextLine("quiet", "All games", link=link("queries", source, view="games", **fields, **more))]
    if row in listed:
        for label, at in (("Previous game", place - 1), ("Next game", place + 1)):
            if 0 <= at < listed.size:
                shown.append(TextLine("quiet", label, link=to_game(source, games.key(int(listed[at])), **fields)))
        shown.append(TextLine("quiet", f"{place + 1:,} of {listed.size:,}"))
    with st.container(horizontal=True, gap="medium"):
        for line in shown:
            text.lines(line, width="content")
    show_game(source, games.key(row))
