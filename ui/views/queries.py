"""The page Queries: a heat map of queries by agents, the page of one query, and the page of one agent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import ceil
from typing import Final

import streamlit as st

from arena.boards.games import documents_on, lost_table, opponents_table, verdicts_table
from arena.boards.quantities import WON, quantity
from arena.boards.queries import QueryBoard, queries_meant, query_board
from arena.data.dataset import Dataset
from arena.present.files import html_block
from arena.present.table import first
from judges.types import Query, repeat_of
from ui import data, onward, text
from ui.address import link, links, switch
from ui.show import draw, show_table
from ui.text import TextLine, incomplete, nothing
from ui.views.game import games_on_query, show_bank, show_documents, to_game

_SCORED: Final = ("pairwise", "criteria", "exam", "nuggets")
"""Sections of the configuration that score answers."""
_CELLS: Final = 800
"""Maximum number of cells on one page of the heat map: about one screen, which a browser draws quickly."""
_ROWS: Final = 50
"""Maximum number of queries on one page of the heat map."""
_ANSWERS: Final = 6
"""Number of answers to a query that are drawn at first."""
_BESIDE: Final = 3
"""Number of answers that are drawn side by side in a row."""
_WORST: Final = 10
"""Number of queries with the lowest scores that an agent's page lists."""

board_of = data.judged(query_board, "Reading the queries …")
"""Results for each query, as ``ragleague queries`` computes them."""


def show(source: data.Source) -> None:
    """Draw the page of the query or agent that the URL names; if it names neither, the heat map."""
    board = _selected_board(source)
    if not board.queries:
        onward.add("This tournament has no queries yet.", "data:\n  queries: queries.csv   # qid, query", source)
        return
    agents = board.agents(data.board(source).ratings)
    query, agent = (st.query_params.get(name, "") for name in ("query", "agent"))
    meant = queries_meant(query, board.queries) or []
    if query or agent:
        text.lines(TextLine("quiet", "All queries", link=link("queries", source)))
    if len(meant) == 1:
        _show_query(source, board, agents, meant[0], agent)
    elif agent in board.standings.agents and not query:
        _show_agent(source, board, agent)
    else:
        if query or agent:
            st.warning("The address asks for something that is not here, so all queries are shown.")
        _show_heat_map(source, board, agents)


def _show_heat_map(source: data.Source, board: QueryBoard, agents: Sequence[str]) -> None:
    if not board.kinds:
        words = "so no query can be seen to separate the agents."
        onward.run_or_compare(f"Nothing is scored yet, {words}", source, _SCORED, f"No answer gets a score, {words}")
        return
    finding = st.container()
    if board.missing:
        incomplete(board.missing)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        headings = {quantity(kind).title: kind for kind in board.kinds}
        kind = headings[switch("Score", list(headings), "score")]
        words = st.text_input("Find", key="find", bind="query-params", placeholder="words of a query", width=320)
    matching = set(board.queries if (meant := queries_meant(words, board.queries)) is None else meant)
    listed = [query_id for query_id in _separating(source, kind) if query_id in matching]
    if not listed:
        nothing("No query holds these words.")
        return
    rows = max(10, min(_ROWS, _CELLS // max(1, len(agents))))
    pages = ceil(len(listed) / rows)
    page = min(st.pagination(pages, key="page", bind="query-params"), pages) if pages > 1 else 1
    if kind == WON and page == 1 and not words:  # the queries that it names stand first below
        with finding:
            text.lead(board.finding)
    st.html(_heat_map(source, kind, tuple(agents), tuple(listed[(page - 1) * rows : page * rows]), link("", source)))


def _selected_board(source: data.Source) -> QueryBoard:
    """The results for each query, limited to the selected group of queries."""
    board = board_of(source)
    return board if source.group is None else board.of_group(*source.group)


@st.cache_resource(max_entries=8, show_spinner=False)
def _separating(source: data.Source, kind: str) -> Sequence[str]:
    return _selected_board(source).separating(kind)


@st.cache_resource(max_entries=32, show_spinner=False)
def _heat_map(
    source: data.Source,
    kind: str,
    agents: Sequence[str],
    listed: Sequence[str],
    carried: str,  # noqa: ARG001 - part of the cache key, as links contain it
) -> str:
    to = links("queries", source)

    def leads(query_id: str, agent: str) -> str:
        return to(query=query_id, agent=agent, view="games" if query_id and agent and kind == WON else "")

    return html_block(_selected_board(source).heat_map(kind, agents, listed, leads))


def _show_query(source: data.Source, board: QueryBoard, agents: Sequence[str], query_id: str, first_agent: str) -> None:
    """Draw one query: the answers side by side with their nuggets and exam items, the documents, and all verdicts."""
    query, to = board.queries[query_id], links("queries", source)
    facts = [f"{column}: {query.metadata[column]}" for column in board.columns if column in query.metadata]
    facts = facts if query.text == query_id else [query_id, *facts]
    text.thread(query)
    text.lines(TextLine("lead", query.text), TextLine("quiet", " · ".join(facts)))

    ranking = board.query_table(
        query_id, agents, lambda query_id, agent: to(query=query_id, agent=agent, view="games" if query_id else "")
    )
    show_table(ranking)
    dataset = data.dataset_of(source, query_id)
    ordered = sorted((row["agent"] for row in ranking.rows), key=lambda agent: agent != first_agent)
    answering = [name for agent in ordered for name in dataset.names_of(query_id, agent)]
    st.subheader("Answers", anchor=False)
    if answering and not any(dataset.answers[query_id, agent].has_text for agent in answering):
        st.caption(text.NO_TEXTS)
    else:
        answering = _show_answers(source, board, dataset, query, answering)
    show_bank(source, query_id, answering)
    show_documents(source, documents_on(query_id, dataset, data.labels_of_query(source, query_id)), query_id)
    if records := games_on_query(source, query_id):
        st.subheader("Verdicts", anchor=False)
        show_table(verdicts_table(records, partial(to_game, source)))


def _show_answers(
    source: data.Source, board: QueryBoard, dataset: Dataset, query: Query, agents: list[str]
) -> list[str]:
    """Draw the answers to a query side by side; returns the agents whose answers are drawn, which may not be all."""
    with st.container(horizontal=True, gap="medium"):
        raw = text.raw_switch()
        if len(agents) > _ANSWERS and not st.toggle(f"All {len(agents)}", key="answers", bind="query-params"):
            agents = agents[:_ANSWERS]
    text.reference(query, raw=raw)
    to = links("queries", source)
    for start in range(0, len(agents), _BESIDE):
        for column, agent in zip(st.columns(min(_BESIDE, len(agents))), agents[start : start + _BESIDE], strict=False):
            with column:
                scores = TextLine("quiet", board.scores_line(query.query_id, agent))
                text.lines(TextLine("strong", agent, link=to(agent=repeat_of(agent)[0])), scores)
                text.answer(dataset.answers[query.query_id, agent], f"answer-{agents.index(agent)}", raw=raw)
    return agents


def _show_agent(source: data.Source, board: QueryBoard, agent: str) -> None:
    """Draw one agent: its scores, the queries on which it does worst, and the games that it lost."""
    to = links("queries", source)
    text.lead(agent)
    draw(board.scores_of(agent, data.board(source).ratings))
    st.subheader("Worst queries", anchor=False)
    worst = first(
        board.failures_table(
            agent, lambda query_id, has_games: to(query=query_id, agent=agent, view="games" if has_games else "")
        ),
        _WORST,
        "see All queries",
    )
    show_table(worst)
    games = data.games(source)
    if agent not in games.agents:
        return

    def against(opponent: str, lost: bool) -> str:
        result = {"result": "the agent loses", "more": "true"} if lost else {}
        return to(agent=agent, view="games", opponent=opponent, **result)

    chosen = None if source.group is None else board.queries
    opponents = opponents_table(games, data.scores(source), agent, against, chosen)
    if not opponents.rows:
        return
    st.subheader("Lost games on these queries", anchor=False)
    records = [
        record
        for row in worst.rows
        if row["games"]
        for record in games_on_query(source, row["query_id"])
        if agent in (record.agent_a, record.agent_b)
    ]
    show_table(lost_table(records, agent, board.queries, partial(to_game, source)))
    text.lines(
        TextLine(
            "body", "All games that it lost", link=to(agent=agent, view="games", result="the agent loses", more="true")
        )
    )
    st.subheader("Against each agent", anchor=False)
    show_table(opponents)
