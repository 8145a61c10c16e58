"""A document on the page: its signs, what judges said of it, and its text at a click."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import streamlit as st

from arena.dataset import SHARED
from judges.errors import CAUSES
from judges.types import Document, JudgeFailure, Judgment, details_of, label_of
from ui import text
from ui.text import Kind, Line


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
                text.passage(document.text, f"text-{key}", empty="The document is empty.")


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
