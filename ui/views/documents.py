"""The documents of one query with what the judges and people said of each."""

from __future__ import annotations

from typing import Final, get_args

import streamlit as st

from arena.retrieval import RetrievalBoard, depth_of
from judges.errors import CAUSES
from judges.pointwise import details_of, label_of
from judges.types import JudgeFailure, Judgment
from ui import data, text
from ui.address import choose, pick, say_what_is_unknown
from ui.retrieval import JudgedDocument, Shown, judged_documents, passing, retrieved_by
from ui.states import nothing

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
    columns = st.columns(3)
    with columns[0]:
        query_id = pick("Query", query_ids, "query", named.__getitem__)
    with columns[1]:
        label = choose("Label", labels, "label")
    with columns[2]:
        shown: Shown = pick("Documents", get_args(Shown), "documents")
    say_what_is_unknown()
    text.lead(queries[query_id].text, "query")
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
    document = one.document
    with st.container(border=True, key=f"judged-{key}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge("no label" if one.label is None else f"label {one.label}", color="blue" if one.label else "gray")
            if one.human is not None:
                st.badge(f"people say {one.human}", color="orange" if one.disagrees else "green")
            title = document.metadata.get("title", "")
            text.strong(f"{title} ({document.doc_id})" if title else document.doc_id, f"title-{key}")
        text.quiet(retrieved_by(one), f"ranks-{key}")
        said = data.labels_by_judge(source, query_id)
        for number, (judge, results) in enumerate(said.items()):
            _show_result(judge if len(said) > 1 else "", results.get((query_id, document.doc_id)), f"{number}-{key}")
        with st.expander("The text", key=f"open-{key}", on_change="rerun") as opened:
            if opened.open:
                text.passage(document.text, f"text-{key}", empty="The document is empty.")


def _show_result(judge: str, result: Judgment | JudgeFailure | None, key: str) -> None:
    """What one judge said; its name where there are several."""
    whose = f"{judge}: " if judge else ""
    if isinstance(result, Judgment):
        if details := details_of(result.outcome):
            text.quiet(whose + ", ".join(f"{name} {value}" for name, value in details.items()), f"details-{key}")
        label = f"{whose}label {label_of(result.outcome)}. " if judge else ""
        text.plain(label + result.reason, empty="The relevance judge gave no reason.")
    elif isinstance(result, JudgeFailure):
        text.plain(f"{whose}No label: {CAUSES.get(result.cause, result.cause)}. {result.message}")
    else:
        text.plain(f"{whose}Not judged yet.")
