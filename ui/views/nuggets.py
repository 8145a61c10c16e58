"""Nuggets: what each agent's answers state, query by query, and what people make of the list."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from arena.boards.nuggets import Nuggets, support_blocks
from arena.stages.nuggets.results import NuggetResults
from retrieval_eval.nuggets.types import NuggetBank
from ui import data, text
from ui.address import link, pick, say_what_is_unknown
from ui.show import show_block, show_sections
from ui.text import incomplete, nothing
from ui.views.nugget_editor import show_editor


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Nuggets", anchor=False)
    results, board = data.nuggets(source), data.board(source)
    if results is None or board.nuggets is None:
        nothing(
            "This tournament has no nuggets. Give its YAML file a section `nuggets`, with a `bank` or with a judge "
            "that makes them, and run `ragleague run`."
        )
        return
    scores = Nuggets(board.nuggets, [row.agent for row in board.ratings.agents] if board.ratings else [])
    agents = scores.scored()
    _say_what_is_missing(results)
    show_sections(scores.sections())
    if results.banks and not agents:
        nothing("Nothing to a query with nuggets is there to be scored.")
    queries = data.queries(source)
    named = {query_id: text.query_label(query_id, query.text) for query_id, query in queries.items()}
    st.subheader("Nuggets of a query", anchor=False)
    query_id = pick("Query", list(named), "query", named.__getitem__)
    say_what_is_unknown()
    text.lead(queries[query_id].text)
    if query_id in results.banks:
        _show_support(results.banks[query_id], results, agents)
        st.markdown(f"[Games on this query]({link('games', source.tournament, query=named[query_id])})")
    else:
        st.caption(f"No nuggets for this query: {results.without.get(query_id, 'none were made')}.")
    show_editor(source, results, query_id)


def _say_what_is_missing(results: NuggetResults) -> None:
    labels = [label for own in (*results.assignments, *results.passages.values()) for label in own.labels]
    if open_ := labels.count(None):
        incomplete(
            f"{open_:,} of {len(labels):,} labels failed or are not made yet. A score that needs "
            "one of them is in no mean. `ragleague run` makes what is missing, with `--retry-failed` also what failed."
        )


def _show_support(bank: NuggetBank, results: NuggetResults, order: Sequence[str]) -> None:
    labels = {own.run: own for own in results.assignments if own.query_id == bank.query_id}
    agents = [agent for agent in order if agent in labels]
    for block in support_blocks(bank, labels, agents):
        show_block(block)
