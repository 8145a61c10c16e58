"""Retrieval: what each agent's documents are worth, whether the labels can be trusted, and the documents themselves."""

from __future__ import annotations

import streamlit as st

from arena.boards.documents import Source
from arena.boards.retrieval import WHOSE, Retrieval
from judges.types import Task
from ui import data
from ui.address import pick, say_what_is_unknown
from ui.show import show_section, show_table
from ui.text import incomplete, nothing


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("What was retrieved", anchor=False)
    leaderboard = data.board(source)
    board = leaderboard.retrieval
    if board is None:
        nothing(
            "No document is labelled in this tournament. Give its YAML file a `retrieval` section, or people's labels "
            "under `data: {qrels: ...}`, and run `ragleague run`."
        )
        return
    stage = leaderboard.coverage.get(Task.RELEVANCE)
    if stage is not None and stage.judged < stage.wanted:
        incomplete(
            f"of {stage.wanted:,} labels {stage.failed:,} failed and {stage.left:,} are not made yet. "
            "A document without a label counts as not relevant in the measures; Judged says how many have one."
        )
    shown = Retrieval(board, [row.agent for row in leaderboard.ratings.agents] if leaderboard.ratings else [])
    if not board.scores:
        agents = "No agent's documents have a label yet, or all agents were given the same documents: nothing to score."
        documents = board.mean_labels or data.queries_with_documents(source)
        nothing(agents if documents else "No agent came with documents.")
    for section in [*shown.sections(), *([shown.intervals()] if board.scores else [])]:
        show_section(section)
    if board.agreement is None:
        st.caption("No labels of people: name them under `data: {qrels: FILE}` in the YAML file and run again.")
    if board.scores:
        _show_queries(source, shown)


def _show_queries(source: data.Source, shown: Retrieval) -> None:
    st.subheader("Query by query", anchor=False)
    columns = st.columns(2)
    with columns[0]:
        measure = pick("Measure", shown.board.measures, "measure")
    with columns[1]:
        sources: list[Source] = list(shown.board.scores)
        whose = pick("Labels of", sources, "labels", WHOSE.__getitem__)
    say_what_is_unknown()
    show_table(shown.by_query(whose, measure, data.queries(source)))
