"""Overview and Queries: who leads and how sure that is, and which queries decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import streamlit as st

from arena.boards.conclusion import Kind, expectation
from arena.boards.leaderboard import TournamentBoard, missing
from arena.boards.queries import QueryBoard, query_board
from arena.boards.trust import in_short
from arena.present.blocks import Section
from arena.present.table import Table
from ui import data, text
from ui.address import link, pick, say_what_is_unknown
from ui.show import show_block, show_sections, show_table
from ui.text import incomplete, nothing
from ui.views.games import queries_meant

_ICONS: Final[Mapping[Kind, str]] = {
    "leader": ":material/trophy:",
    "tie": ":material/balance:",
    "unclear": ":material/help:",
    "empty": ":material/hourglass_empty:",
}
_ELSEWHERE: Final = frozenset(
    {"conclusion", "matrix", "nuggets", "nugget-intervals", "citations"}
    | {"retrieval", "retrieval-labels", "retrieval-judges", "retrieval-agreement"}
)
"""Sections on top of the page, or on pages of their own."""


def show_overview(source: data.Source) -> None:
    """Draw the page of that name."""
    board = data.board(source)
    shown, sections = _sections(source)
    conclusion = shown.conclusion
    st.header(f"{_ICONS[conclusion.kind]} {conclusion.headline}", anchor=False)
    text.lead(conclusion.sentence)
    expected = [] if board.ratings is None else expectation(board.ratings, conclusion)
    text.quiet("\n\n".join([*expected, in_short(shown.verdict()[1])]))
    if not board.coverage:
        nothing("Nothing is planned in this tournament. Give its YAML file a stage and run `ragleague run`.")
    for said in missing(board):
        incomplete(said)
    show_sections(sections)


@st.cache_resource(max_entries=4, show_spinner="Checking whether this can be trusted …")
def _sections(source: data.Source) -> tuple[TournamentBoard, list[Section]]:
    """The board with what people say of its judges, and its sections that are shown here."""
    comparisons, apart = data.people(source)
    queries = {query_id: query.text for query_id, query in data.queries(source).items()}
    board = TournamentBoard(data.board(source), comparisons, apart, queries=queries)
    return board, [section for section in board.sections() if section.ident not in _ELSEWHERE]


_OPENED = "query"
"""The page's address holds the query chosen under this name, as that of the games does."""


board_of = data.judged(query_board, "Reading the queries …")
"""What the queries show, as ``ragleague queries`` computes it."""


def show_queries(source: data.Source) -> None:
    """Draw the page of that name."""
    st.header("Which queries decide", anchor=False)
    board = board_of(source)
    if not board.queries:
        nothing("This tournament has no queries yet. Name a table of them in its YAML file and run `ragleague run`.")
        return
    ratings = data.board(source).ratings
    rated = [row.agent for row in ratings.agents] if ratings else []
    agents = [*rated, *(agent for agent in board.standings.agents if agent not in rated)]
    _show_separation(board)
    _show_query(board, agents, source)
    if agents:
        _show_failures(board, agents, source)
    _show_groups(board, agents)


def _show_separation(board: QueryBoard) -> None:
    if not any(one.games for one in board.standings.figures):
        nothing("No game has a verdict yet, so no query can be seen to separate the agents. Run `ragleague run`.")
        return
    show_block(board.in_short())
    _show_choosable(board.by_separation_table())
    st.caption("Choose a line to open its query.")


def _show_query(board: QueryBoard, agents: Sequence[str], source: data.Source) -> None:
    """One query: its text, and how each agent did on it."""
    asked = st.text_input("Query", key=_OPENED, bind="query-params", placeholder="its ID, or words that only it holds")
    meant = queries_meant(asked, board.queries)
    if meant is None:
        return
    if len(meant) != 1:
        st.caption(f"{len(meant):,} queries hold these words. Give the ID of one, or choose its line above.")
        return
    query_id = meant[0]
    text.passage(board.queries[query_id].text, "query", label="Query", empty="An empty query.")
    show_table(board.query_table(query_id, agents))
    st.link_button("Read its games", link("queries", source, view="games", query=query_id), icon=":material/sports:")


def _show_failures(board: QueryBoard, agents: Sequence[str], source: data.Source) -> None:
    st.subheader("Where an agent fails", anchor=False)
    agent = pick("Agent", agents, "agent", width=420)
    say_what_is_unknown()
    _show_choosable(board.failures_table(agent))
    st.caption(
        "The agent's worst queries first: those without an answer, then those with the smallest share of points."
    )
    lost = link("queries", source, view="games", agent=agent, result="the agent loses")
    st.link_button("Read the games that it lost", lost, icon=":material/sports:")


def _show_groups(board: QueryBoard, agents: Sequence[str]) -> None:
    """Each agent's share in each group of queries, where the queries' table has a column that makes groups."""
    if not board.columns or not agents:
        return
    st.subheader("By group of queries", anchor=False)
    column = pick("Column of the queries' table", board.columns, "by", width=420)
    say_what_is_unknown()
    show_table(board.groups_table(column, agents))


def _show_choosable(table: Table) -> None:
    """A table of queries whose lines open their query."""

    def choose(row: int) -> None:
        st.session_state[_OPENED] = table.rows[row]["query_id"]

    show_table(table, choose=choose)
