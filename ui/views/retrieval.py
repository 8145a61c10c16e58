"""Retrieval: what each agent's documents are worth, whether the labels can be trusted, and the documents themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

import streamlit as st

from arena.boards.documents import RetrievalBoard, Source
from arena.boards.retrieval import WHOSE, Retrieval
from arena.data.dataset import SHARED, Dataset
from arena.stages.samples import LabelResults
from judges.errors import CAUSES
from judges.types import Document, JudgeFailure, Judgment, Task, details_of, label_of
from ui import data, text
from ui.address import choose, pick, say_what_is_unknown
from ui.data import label_in
from ui.show import show_section, show_table
from ui.text import Kind, Line, incomplete, nothing


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
    show_documents(source, board)


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


Shown: TypeAlias = Literal["all", "where people disagree", "without a label"]


@dataclass(frozen=True, slots=True)
class JudgedDocument:
    """One document of a query.

    Attributes:
        ranks: agent and rank of each retrieval; ``SHARED`` for one given to every agent.
        label: of the judges together, ``None`` without one.
        human: of people, ``None`` where they gave none.
    """

    document: Document
    ranks: tuple[tuple[str, int], ...]
    label: int | None
    human: int | None

    @property
    def disagrees(self) -> bool:
        """Whether both labels are there and differ."""
        return self.label is not None and self.human is not None and self.label != self.human


def judged_documents(query_id: str, data: Dataset, labels: LabelResults, depth: int | None) -> list[JudgedDocument]:
    """The documents that agents retrieved for a query, by label from the highest; those without one last."""
    ranks: dict[str, list[tuple[str, int]]] = {}
    for entry in data.retrieved.get(query_id, ()):
        if depth is None or entry.rank <= depth:
            ranks.setdefault(entry.doc_id, []).append((entry.agent, entry.rank))
    human = data.qrels.get(query_id, {})
    found = [
        JudgedDocument(data.documents[doc_id], tuple(own), label_in(labels.get((query_id, doc_id))), human.get(doc_id))
        for doc_id, own in ranks.items()
    ]
    return sorted(found, key=lambda one: (one.label is None, -(one.label or 0), one.document.doc_id))


def passing(documents: Sequence[JudgedDocument], shown: Shown, label: int | None) -> list[JudgedDocument]:
    """Those that a reader asked for; ``label`` ``None`` is any."""
    wanted = {
        "all": documents,
        "where people disagree": [one for one in documents if one.disagrees],
        "without a label": [one for one in documents if one.label is None],
    }[shown]
    return [one for one in wanted if label in {None, one.label}]


def show_document(
    document: Document,
    signs: Sequence[tuple[str, Kind]],
    ranks: Iterable[tuple[str, int]],
    said: Sequence[Line],
    key: str,
) -> None:
    """Draw the card.

    Args:
        document: with its title among the metadata, where it has one.
        signs: labels and the like, before its title.
        ranks: agent and rank of each retrieval; ``SHARED`` for one given to every agent.
        said: by judges.
        key: unique on the page.
    """
    title = document.metadata.get("title", "")
    with st.container(border=True, key=f"document-{key}"):
        named = f"{title} ({document.doc_id})" if title else document.doc_id
        by = ", ".join(f"{'every agent' if agent == SHARED else agent} at rank {rank}" for agent, rank in ranks)
        text.lines(Line("strong", named, signs), Line("quiet", f"Retrieved by {by}"), *said)
        with st.expander("The text", key=f"open-{key}", on_change="rerun") as opened:
            if opened.open:
                text.passage(document.text, f"text-{key}", label="Document", empty="The document is empty.")


def lines_of(result: Judgment | JudgeFailure | None, judge: str = "") -> list[Line]:
    """What one relevance judge said of a document; with its name where there are several."""
    whose = f"{judge}: " if judge else ""
    if isinstance(result, Judgment):
        details = ", ".join(f"{name} {value}" for name, value in details_of(result.outcome).items())
        label = f"{whose}label {label_of(result.outcome)}. " if judge else ""
        reason = Line("body", label + (result.reason.strip() or "The relevance judge gave no reason."))
        return [Line("quiet", whose + details), reason] if details else [reason]
    if isinstance(result, JudgeFailure):
        return [Line("body", f"{whose}No label: {CAUSES.get(result.cause, result.cause)}. {result.message}")]
    return [Line("body", f"{whose}Not judged yet.")]


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
    found = judged_documents(query_id, dataset, labelled, data.settings(source).depth)
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
