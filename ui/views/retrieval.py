"""Retrieval: what each agent's documents are worth, and whether the labels behind that can be trusted."""

from __future__ import annotations

import streamlit as st

from arena.retrieval import RetrievalBoard, Source
from judges.types import Task
from ui import data, text
from ui.address import pick, say_what_is_unknown
from ui.retrieval import WHOSE, labels_frame, queries_frame, scores_frame, span
from ui.states import incomplete, nothing
from ui.tables import show_table
from ui.views.agreement import figure, show_agreement
from ui.views.documents import show_documents


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("What was retrieved", anchor=False)
    leaderboard = data.board(source)
    board = leaderboard.retrieval
    if board is None:
        nothing(
            "No document is labelled in this tournament. Give its YAML file a `retrieval` section, or people's labels "
            "under `data: {qrels: ...}`, and run `ragarena run`."
        )
        return
    stage = leaderboard.coverage.get(Task.RELEVANCE)
    if stage is not None and stage.judged < stage.wanted:
        incomplete(
            f"of {stage.wanted:,} labels {stage.failed:,} failed and {stage.left:,} are not made yet. "
            "A document without a label counts as not relevant in the measures; Judged says how many have one."
        )
    order = _order(board, [row.agent for row in leaderboard.ratings.agents] if leaderboard.ratings else [])
    if board.scores:
        _show_scores(board, order)
        _show_queries(source, board, order)
    elif not board.mean_labels and not data.queries_with_documents(source):
        nothing("No agent came with documents.")
    else:
        nothing("No agent's documents have a label yet, or all agents were given the same documents: nothing to score.")
    if board.judges:
        _show_labels(board, order)
    show_agreement(board)
    show_documents(source, board)


def _order(board: RetrievalBoard, ranked: list[str]) -> list[str]:
    scored = {agent for scores in board.scores.values() for agent in scores.agents} | set(board.mean_labels)
    return list(dict.fromkeys([*ranked, *sorted(scored), *board.without_documents]))


def _show_scores(board: RetrievalBoard, order: list[str]) -> None:
    st.subheader("Measures", anchor=False)
    frame = scores_frame(board, order)
    number = st.column_config.NumberColumn
    show_table(
        frame,
        "Retrieval measures",
        column_order=[name for name in map(str, frame) if name != "Labels of" or len(board.scores) > 1],
        columns={
            "Agent": st.column_config.TextColumn(pinned=True),
            **{measure: number(format="%.3f") for measure in board.measures},
            **{f"{measure} interval": st.column_config.TextColumn("95% interval") for measure in board.measures},
            "Nothing retrieved": number(help="Queries for which the agent has no documents; they count as 0."),
            "No answer": number(help="Queries on which the agent failed; they are in none of its figures."),
        },
    )
    topics = "; ".join(
        f"by labels of {WHOSE[source]}, {len(scores.topics):,} of {board.queries:,} queries have any"
        + (f", and {len(scores.without_relevant):,} of them none above 0" if scores.without_relevant else "")
        for source, scores in board.scores.items()
    )
    st.caption(
        "nDCG rewards relevant documents near the top, and highly relevant ones more; RR(rel=2) is one over the rank "
        "of the first document with a label of 2 or more; Judged is the share of the first documents that have one. "
        f"All run from 0 to 1, higher is better. Means over the queries with labels: {topics}. Intervals: had other "
        "queries been asked. Agents are in the order of their ratings; one without figures came without documents."
    )


def _show_queries(source: data.Source, board: RetrievalBoard, order: list[str]) -> None:
    st.subheader("Query by query", anchor=False)
    columns = st.columns(2)
    with columns[0]:
        measure = pick("Measure", board.measures, "measure")
    with columns[1]:
        sources: list[Source] = list(board.scores)
        whose = pick("Labels of", sources, "labels", WHOSE.__getitem__)
    say_what_is_unknown()
    frame = queries_frame(board.scores[whose], measure, data.queries(source), order)
    agents = [str(name) for name in frame if name not in {"Query", "Text"}]
    frame["Text"] = [text.clipped(query, 120) for query in frame["Text"]]
    show_table(
        frame,
        "Scores by query",
        height=380,
        columns={
            "Query": st.column_config.TextColumn(pinned=True, width=70),
            "Text": st.column_config.TextColumn(width="medium"),
            **{name: st.column_config.NumberColumn(format="%.3f") for name in agents},
        },
    )
    st.caption("Click a heading to sort. Start where one agent fails alone.")


def _show_labels(board: RetrievalBoard, order: list[str]) -> None:
    st.subheader("Labels given", anchor=False)
    show_table(
        labels_frame(board, order),
        "Labels given",
        columns={"Mean label": st.column_config.NumberColumn(format="%.2f")},
    )
    st.caption(
        "How many of an agent's documents got which label. A failed judgment is no label: it is left out of the mean. "
        "A judge that gives nearly all documents one label tells nothing apart."
    )
    if board.between_judges is not None:
        own = board.between_judges
        st.metric(
            "Krippendorff's alpha between the judges",
            figure(own.alpha_ordinal),
            help="1 if they always give the same label, 0 if they agree no more than chance would, labels taken as an "
            f"order. 95 % interval: {span(own.alpha_ordinal, 2)}; {own.documents:,} documents labelled by several.",
            border=True,
            width=340,
        )
