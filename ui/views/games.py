"""Games: every game behind the ratings, one at a time, with all that its judge saw and said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Final, get_args

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from arena.games.table import GameTable
from judges.types import Query
from ui import data
from ui.address import choose, say_what_is_unknown, unfold
from ui.game_list import Apart, Ending, GameFilter, address_of, game_at, games_table, queries_meant
from ui.show import show_table
from ui.states import nothing
from ui.views.game import show_game

_PER_PAGE: Final = 50
_ADDRESS: Final = "game"
"""Query parameter that holds the chosen game, so that the page's address can be shared."""


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Games", anchor=False)
    games = data.games(source)
    if not len(games):
        nothing("This tournament plans no games. Give its YAML file a `pairwise` section and run `ragleague run`.")
        return
    wanted = _filter(games, data.queries(source))
    listed = wanted.rows(games, data.scores(source))
    chosen = _chosen(games, listed)
    if chosen is None:
        nothing("No game passes these filters. Clear one of them.")
        return
    _list(source, listed, chosen)
    show_game(source, games.key(chosen))


def _filter(games: GameTable, queries: Mapping[str, Query]) -> GameFilter:
    """What the fields say; those behind the fold apply while they are seen."""
    with st.container(horizontal=True):
        agent = choose("Agent", games.agents, "agent")
        opponent = choose("Opponent", games.agents, "opponent")
        asked = st.text_input("Query", key="query", bind="query-params", placeholder="any: its ID, or words of it")
    wanted = GameFilter(agent, opponent, queries_meant(asked, queries))
    with unfold("More filters: result, who disagrees, judge", "more", "result", "apart", "judge") as more:
        if more.open:
            wanted = _filter_further(wanted, games)
    say_what_is_unknown()
    if wanted.ending in {"the agent wins", "the agent loses"} and agent is None:
        st.info("Choose an agent first: nobody can be said to win or lose without one.")
    return wanted


def _filter_further(wanted: GameFilter, games: GameTable) -> GameFilter:
    with st.container(horizontal=True):
        ending: Ending | None = choose("Result", get_args(Ending), "result")
        apart: Apart | None = choose(
            "Who disagrees",
            get_args(Apart),
            "apart",
            help="The two orders: each game is judged twice, with the answers exchanged, and a judge that changes its "
            "mind makes a tie. The judges: several judge the same answers.",
        )
        judge = choose("Judge", games.judges, "judge")
    return replace(wanted, ending=ending, apart=apart, judge=judge)


def _chosen(games: GameTable, listed: NDArray[np.intp]) -> int | None:
    """The row of the address's game if the filters let it pass, else the first one listed."""
    address = st.query_params.get(_ADDRESS)
    key = game_at(address)
    found = None if key is None else games.find(key)
    if address is not None and (found is None or found not in listed):
        if found is None:
            st.warning("The game of this address is not in the store. Choose another one below.")
        del st.query_params[_ADDRESS]
        found = None
    return found if found is not None or not listed.size else int(listed[0])


def _list(source: data.Source, listed: NDArray[np.intp], chosen: int) -> None:
    """One page of the list. A click on a line, or a step to a neighbour, puts the game into the address."""
    games, scores, queries = data.games(source), data.scores(source), data.queries(source)
    pages = ceil(listed.size / _PER_PAGE)
    page_key = f"page-of-{pages}"
    place = int(np.searchsorted(listed, chosen))
    with st.container(horizontal=True, vertical_alignment="center"):
        _step("Previous game", games, listed, place - 1, page_key)
        _step("Next game", games, listed, place + 1, page_key)
        st.caption(f"{listed.size:,} games; this is number {place + 1:,}", width="content")
    page = st.pagination(pages, default=place // _PER_PAGE + 1, key=page_key) if pages > 1 else 1
    shown = listed[(page - 1) * _PER_PAGE : page * _PER_PAGE].tolist()
    show_table(
        games_table(games, scores, shown, queries),
        whole=lambda: games_table(games, scores, listed.tolist(), queries, whole=True),
        choose=lambda place: _choose(games, shown[place]),
        chosen=shown.index(chosen) if chosen in shown else -1,
    )


def _step(label: str, games: GameTable, listed: NDArray[np.intp], place: int, page_key: str) -> None:
    """A button to a neighbour in the list."""

    def go() -> None:
        _choose(games, int(listed[place]))
        st.session_state[page_key] = place // _PER_PAGE + 1

    st.button(label, on_click=go, disabled=not 0 <= place < listed.size)


def _choose(games: GameTable, row: int) -> None:
    st.query_params[_ADDRESS] = address_of(games.key(row))
