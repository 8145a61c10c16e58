"""The part Versus of the page Compare: a new agent against an old one, and the queries on which it got worse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from shlex import join
from typing import Final

import streamlit as st

from arena.boards.gate.compare import compare
from arena.boards.gate.figures import PAIRWISE
from arena.boards.gate.queries import PairBoard, pair_board
from arena.boards.queries import label_of_query
from arena.present.blocks import Commands, Remarks
from ui import data, onward, text
from ui.address import links, pick, unfold
from ui.show import draw, show_beside, show_table
from ui.text import TextLine, nothing

_MARGINS: Final = (0.05, 0.01, 0.02, 0.1, 0.2)


_gate = data.judged(compare, "Comparing the agents …", grouped=True)
_pairs = data.judged(pair_board, "Comparing query by query …", grouped=True)


def show(source: data.Source) -> None:
    """Draw the verdict on a new and an old agent, the figures behind it, and one query with both answers."""
    ratings = data.board(source).ratings
    agents = [row.agent for row in ratings.agents] if ratings else []
    agents += [agent for agent in data.dataset(source).agents if agent not in agents]
    if len(agents) < 2:
        onward.run("Two agents are compared here, and this tournament has fewer. Add another agent's answers.", source)
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        new = pick("New", agents, "new", width=260, on_change=_forget_query)
        old = pick("Old", [agent for agent in agents if agent != new], "old", width=260, on_change=_forget_query)
        margin = pick("Margin: how much worse still passes", _MARGINS, "margin", width=260)
    gate = _gate(source, new, old, margin=margin, by=source.by)
    if all(score.new is None for score in gate.scores):
        onward.run("No query has a score of both agents yet.", source)
        return
    text.lead(gate.headline)
    for note in gate.notes:
        st.warning(note, icon=":material/warning:")
    show_beside(gate.table(), [gate.picture()])
    draw(Remarks(gate.reservations()))
    scores = {score.title: score.on for score in gate.scores}
    on = scores[pick("Score for groups and queries", list(scores), "score", width=260, on_change=_forget_query)]
    board = _pairs(source, (new, old), on, margin=margin, by=source.by)
    if board.collapsed:
        st.warning(board.collapsed, icon=":material/warning:")
    draw(*board.details())
    st.subheader("Queries, the largest losses first", anchor=False)
    if not board.pairs:
        nothing("No query has this score of both agents.")
        return
    text.quiet(board.finding)
    labels = {pair.query_id: label_of_query(pair.query_id, board.queries[pair.query_id], 60) for pair in board.pairs}
    here = {"view": "versus", "new": new, "old": old, "margin": str(margin), "score": st.query_params.get("score", "")}
    to = links("compare", source)

    def leads(query_id: str) -> str:
        return to(**here, query=labels[query_id])

    _show_query(source, board, labels, leads)
    with unfold("All queries", "all") as opened:
        if opened.open:
            show_table(board.query_table(leads))
    st.caption("The same verdict in a terminal or a build:")
    asked = ("--by", source.by) if source.by else ("--group", "=".join(source.group)) if source.group else ()
    words = ["ragleague", "gate", "STORE", "--new", new, "--old", old, "--margin", f"{margin:g}", *asked]
    draw(Commands([join(words)]))


def _forget_query() -> None:
    """Deselect the query, so that the page first shows the worst query of the newly chosen agents or score."""
    st.session_state.pop("query", None)
    st.query_params.pop("query", None)


def _show_query(source: data.Source, board: PairBoard, labels: Mapping[str, str], leads: Callable[[str], str]) -> None:
    """Draw one query with both answers, in which the words that differ are marked, and links to its games."""
    ids = list(labels)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query_id = pick("Query", ids, "query", labels.__getitem__, width=480)
        place = ids.index(query_id)
        for words, neighbour in (("Previous", place - 1), ("Next", place + 1)):
            if 0 <= neighbour < len(ids):
                text.lines(TextLine("quiet", words, link=leads(ids[neighbour])), width="content")
        text.lines(TextLine("quiet", f"{place + 1:,} of {len(ids):,}"), width="content")
    pair = board.pairs[place]
    query, dataset, agents = board.queries[query_id], data.dataset_of(source, query_id), (board.new, board.old)
    text.thread(query)
    to = links("queries", source)
    text.lines(
        TextLine("lead", query.text, link=to(query=query_id)),
        TextLine("quiet", board.scores_line(pair)),
    )
    raw = text.raw_switch()
    text.reference(query, raw=raw)
    for column, agent, other in zip(st.columns(2), agents, reversed(agents), strict=True):
        with column:
            answers = dataset.answers
            text.lines(TextLine("strong", agent, link=to(agent=agent)))
            if (query_id, agent) in answers:
                against = answers.get((query_id, other))
                text.answer(
                    answers[query_id, agent],
                    f"versus-{agent == board.new}",
                    raw=raw,
                    against=against.text if against else None,
                )
            else:
                st.caption("No answer to this query.")
    if board.on == PAIRWISE:
        games = to(view="games", agent=board.new, opponent=board.old, query=query_id)
        text.lines(
            TextLine("body", "The games between the two on this query: read the reasons, flag a verdict", link=games)
        )
