"""Games: every game behind the ratings, found by filters, listed a page at a time, and one of them shown."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from arena.data.games import Bools, GameKey, GameTable
from arena.present.table import Column, Table
from arena.ratings.games import Floats
from judges.types import Query
from ui import data, text
from ui.address import choose, say_what_is_unknown, unfold
from ui.show import show_table
from ui.text import nothing
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


Ending: TypeAlias = Literal["a winner", "a tie", "no verdict yet", "the agent wins", "the agent loses"]
Apart: TypeAlias = Literal["the two orders", "the judges"]

_COLUMNS: Final = (
    Column("agent_a", "Agent"),
    Column("agent_b", "Opponent"),
    Column("result", "Result"),
    Column("orders", "Orders"),
    Column("query", "Query"),
    Column("query_id", "Query ID"),
    Column("judge", "Judge"),
)


@dataclass(frozen=True, slots=True)
class GameFilter:
    """Which games to list; ``None`` is any.

    Attributes:
        agent: who plays.
        opponent: who else plays.
        queries: their ids.
        ending: how the rated game ended; that the agent wins or loses says nothing without an agent.
        apart: who disagrees on the game.
    """

    agent: str | None = None
    opponent: str | None = None
    queries: Collection[str] | None = None
    ending: Ending | None = None
    judge: str | None = None
    apart: Apart | None = None

    def rows(self, games: GameTable, scores: Floats) -> NDArray[np.intp]:
        """The rows that pass, in the order of the plan; ``scores`` are those of ``games.scores``."""
        passing = np.ones(len(games), np.bool_)
        for agent in (self.agent, self.opponent):
            if agent is not None:
                passing &= games.of_agent(agent)
        if self.queries is not None:
            passing &= games.of_query(*self.queries)
        if self.judge is not None:
            passing &= games.of_judge(self.judge)
        if self.ending is not None:
            passing &= self._ended(self.ending, games, scores)
        if self.apart is not None:
            passing &= games.orders_disagree if self.apart == "the two orders" else games.judges_disagree(scores)
        return np.flatnonzero(passing)

    def _ended(self, ending: Ending, games: GameTable, scores: Floats) -> Bools:
        won = np.zeros(len(games), np.bool_)
        if self.agent in games.agents:
            is_a = games.a == games.agents.index(self.agent)
            won = np.where(is_a, scores == 1, scores == 0)
        decided = (scores == 1) | (scores == 0)
        found: dict[Ending, Bools] = {
            "a winner": decided,
            "a tie": scores == 0.5,
            "no verdict yet": np.isnan(scores),
            "the agent wins": decided & won,
            "the agent loses": decided & ~won & (self.agent in games.agents),
        }
        return found[ending]


def queries_meant(words: str, queries: Mapping[str, Query]) -> list[str] | None:
    """Ids of the queries that a reader asks for; ``None`` for any.

    Args:
        words: an id, a query's label as links hold it, or words that a query holds, in any order and case.
        queries: all by id.
    """
    asked = words.strip()
    if not asked:
        return None
    for query_id, query in queries.items():
        if asked in (query_id, text.query_label(query_id, query.text)):
            return [query_id]
    parts = asked.casefold().split()
    held = {query_id: f"{query_id} {query.text}".casefold() for query_id, query in queries.items()}
    return [query_id for query_id, own in held.items() if all(part in own for part in parts)]


def games_table(
    games: GameTable, scores: Floats, rows: Sequence[int], queries: Mapping[str, Query], *, whole: bool = False
) -> Table:
    """One line per game; ``whole`` queries are not cut."""
    lines = []
    for row in rows:
        key = games.key(row)
        query = queries[key.query_id].text
        said = {"result": _result(key, scores[row]), "orders": _orders(games, row)}
        lines.append({**key._asdict(), **said, "query": query if whole else text.clipped(query, 120)})
    return Table("games", "", _COLUMNS, lines)


def address_of(key: GameKey) -> str:
    """A game as a page's address holds it."""
    return json.dumps(key, ensure_ascii=False, separators=(",", ":"))


def game_at(address: str | None) -> GameKey | None:
    """The game that an address names; ``None`` where it names none."""
    try:
        names = json.loads(address or "null")
    except (ValueError, RecursionError):
        return None
    is_key = isinstance(names, list) and len(names) == len(GameKey._fields)
    return GameKey(*names) if is_key and all(isinstance(name, str) for name in names) else None


def _result(key: GameKey, score: float) -> str:
    if np.isnan(score):
        return "no verdict yet"
    return {1.0: f"{key.agent_a} wins", 0.0: f"{key.agent_b} wins"}.get(float(score), "a tie")


def _orders(games: GameTable, row: int) -> str:
    if not games.judged[row].all():
        return "one order only" if games.played[row] else ""
    return "disagree" if games.orders_disagree[row] else "agree"
