"""Games: every game behind the ratings, one at a time, with all that its judge saw and said."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, get_args

import pandas as pd
import streamlit as st

from arena.dataset import Dataset
from ui import data, text
from ui.records import Ending, GameFilter, GameRecord
from ui.views.game import show_game

_PER_PAGE: Final = 50
_ADDRESS: Final = "game"
"""Query parameter that holds the chosen game, so that the page's address can be shared."""


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Games", anchor=False)
    games = data.games(source)
    if not games:
        st.info("This tournament plans no games. Give its YAML file a `pairwise` section and run `ragarena run`.")
        return
    dataset = data.dataset(source)
    wanted = _filter(games, dataset)
    listed = [game for game in games if wanted.passes(game)]
    chosen = _chosen(games, listed)
    if chosen is None:
        st.info("No game passes these filters. Clear one of them.")
        return
    _list(listed, dataset, chosen)
    show_game(source, chosen)


def games_frame(games: Sequence[GameRecord], dataset: Dataset) -> pd.DataFrame:
    """One line per game."""
    return pd.DataFrame(
        {
            "Agent": [game.agent_a for game in games],
            "Opponent": [game.agent_b for game in games],
            "Result": [_result(game) for game in games],
            "Orders": [_orders(game) for game in games],
            "Query": [text.clipped(dataset.queries[game.query_id].text, 120) for game in games],
            "Judge": [game.judge for game in games],
        }
    )


def _filter(games: Sequence[GameRecord], dataset: Dataset) -> GameFilter:
    agents = sorted({name for game in games for name in (game.agent_a, game.agent_b)})
    named = {query_id: text.query_label(query_id, query.text) for query_id, query in dataset.queries.items()}
    columns = st.columns(4)
    with columns[0]:
        agent = st.selectbox("Agent", agents, index=None, placeholder="any", key="agent", bind="query-params")
    with columns[1]:
        opponent = st.selectbox("Opponent", agents, index=None, placeholder="any", key="opponent", bind="query-params")
    with columns[2]:
        query_id = st.selectbox(
            "Query",
            list(named),
            index=None,
            placeholder="any",
            format_func=named.__getitem__,
            key="query",
            bind="query-params",
        )
    with columns[3]:
        ending: Ending | None = st.selectbox(
            "Result", get_args(Ending), index=None, placeholder="any", key="result", bind="query-params"
        )
    disagree = st.toggle(
        "Only games whose two orders disagree",
        key="disagree",
        bind="query-params",
        help="Each game is judged twice, with the answers exchanged. A judge that changes its mind makes a tie.",
    )
    return GameFilter(agent, opponent, query_id, ending, disagree)


def _chosen(games: Sequence[GameRecord], listed: Sequence[GameRecord]) -> GameRecord | None:
    """The game of the address if the filters let it pass, else the first one listed."""
    address = st.query_params.get(_ADDRESS)
    found = next((game for game in listed if game.game_id == address), None)
    if address is not None and found is None:
        if all(game.game_id != address for game in games):
            st.warning("The game of this address is not in the store. Choose another one below.")
        del st.query_params[_ADDRESS]
    return found or (listed[0] if listed else None)


def _list(listed: Sequence[GameRecord], dataset: Dataset, chosen: GameRecord) -> None:
    """One page of the list. A click on a line, or a step to a neighbour, puts the game into the address."""
    pages = ceil(len(listed) / _PER_PAGE)
    page_key = f"page-of-{pages}"
    place = listed.index(chosen)
    with st.container(horizontal=True, vertical_alignment="center"):
        _step("Previous game", listed, place - 1, page_key)
        _step("Next game", listed, place + 1, page_key)
        st.caption(f"{len(listed):,} games; this is number {place + 1:,}", width="content")
    page = st.pagination(pages, default=place // _PER_PAGE + 1, key=page_key) if pages > 1 else 1
    shown = listed[(page - 1) * _PER_PAGE : page * _PER_PAGE]
    key = f"list-{shown[0].game_id}-{shown[-1].game_id}"
    marked = {"selection": {"rows": [shown.index(chosen)] if chosen in shown else []}}
    if st.session_state.get(key, {}).get("selection", {}).get("rows") != marked["selection"]["rows"]:
        st.session_state[key] = marked
    st.dataframe(
        games_frame(shown, dataset),
        hide_index=True,
        height=min(36 * (len(shown) + 1) + 2, 290),
        alt="Games",
        on_select=lambda: _choose_line(key, shown),
        selection_mode="single-row",
        key=key,
        column_config={
            "Query": st.column_config.TextColumn(width="large"),
            "Orders": st.column_config.TextColumn(help="Whether the verdicts of the two orders differ."),
        },
    )


def _step(label: str, listed: Sequence[GameRecord], place: int, page_key: str) -> None:
    """A button to a neighbour in the list."""

    def go() -> None:
        st.query_params[_ADDRESS] = listed[place].game_id
        st.session_state[page_key] = place // _PER_PAGE + 1

    st.button(label, on_click=go, disabled=not 0 <= place < len(listed))


def _choose_line(key: str, shown: Sequence[GameRecord]) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows:
        st.query_params[_ADDRESS] = shown[rows[0]].game_id


def _orders(game: GameRecord) -> str:
    if sum(order.preferred is not None for order in game.orders) < 2:
        return "one order only" if game.score is not None else ""
    return "disagree" if game.orders_disagree else "agree"


def _result(game: GameRecord) -> str:
    return game.ending if game.winner is None else f"{game.winner} wins"
