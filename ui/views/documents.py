"""The documents of one query with what the judges and people said of each."""

from __future__ import annotations

from typing import Final, get_args

import streamlit as st

from arena.retrieval import RetrievalBoard, depth_of
from ui import data, text
from ui.address import choose, pick, say_what_is_unknown
from ui.document_card import lines_of, show_document
from ui.retrieval import JudgedDocument, Shown, judged_documents, passing
from ui.states import nothing
from ui.text import Kind

_DRAWN: Final = 10
"""Documents drawn at first."""


def show_documents(source: data.Source, board: RetrievalBoard) -> None:
    """Draw the chooser of queries and labels, and the documents that pass."""
    queries, query_ids = data.queries(source), data.queries_with_documents(source)
    if not query_ids:
        return
    st.subheader("Documents of a query", anchor=False)
    named = {query_id: text.query_label(query_id, queries[query_id].text) for query_id in query_ids}
    labels = sorted({label for own in board.judges.values() for label in own.distribution.counts})
    with st.container(horizontal=True):
        query_id = pick("Query", query_ids, "query", named.__getitem__)
        label = choose("Label", labels, "label")
        shown: Shown = pick("Documents", get_args(Shown), "documents")
    say_what_is_unknown()
    text.lead(queries[query_id].text)
    dataset, labelled = data.dataset_of(source, query_id), data.labels_of_query(source, query_id)
    found = judged_documents(query_id, dataset, labelled, depth_of(data.settings(source)))
    listed = passing(found, shown, label)
    st.caption(f"{len(listed):,} of the {len(found):,} documents that agents retrieved for this query.")
    if not listed:
        nothing("No document passes these filters. Clear one of them.")
    if len(listed) > _DRAWN and not st.toggle(f"Show all {len(listed):,}", key=f"all-documents-{query_id}"):
        listed = listed[:_DRAWN]
    for number, document in enumerate(listed):
        _show_document(source, query_id, document, f"{number}-{query_ids.index(query_id)}")


def _show_document(source: data.Source, query_id: str, one: JudgedDocument, key: str) -> None:
    signs: list[tuple[str, Kind]] = [("no label" if one.label is None else f"label {one.label}", "")]
    if one.human is not None:
        signs.append((f"people say {one.human}", "bad" if one.disagrees else "good"))
    judges = data.labels_by_judge(source, query_id)
    said = [
        line
        for judge, results in judges.items()
        for line in lines_of(results.get((query_id, one.document.doc_id)), judge if len(judges) > 1 else "")
    ]
    show_document(one.document, signs, one.ranks, said, key)
