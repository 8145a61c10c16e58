"""Label: a person says how relevant a document is to a query. No label of a judge or of another person is shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from arena.store.annotations import Kind
from arena.voting.documents import Slip, annotation_of, scale_of, slips
from judges.types import Judgment, label_of
from ui import data, people, text
from ui.states import nothing


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("How relevant is the document?", anchor=False)
    source = people.settled(source)
    labelled = {
        names: label_of(result.outcome) for names, result in data.labels(source).items() if isinstance(result, Judgment)
    }
    if not labelled:
        nothing(
            "No document has a label yet. Give the YAML file a `retrieval` section and run `ragleague run`. "
            "Then people can label here what the judges labelled."
        )
    elif who := people.annotator():
        desk = people.Desk[Slip](source, who, Kind.RELEVANCE, "documents", "labelled")
        scale = scale_of(data.settings(source), labelled.values())
        todo = slips(labelled, data.dataset(source), desk.said(), who)
        desk.go_through(todo, [slip.state for slip in todo], partial(_show_slip, scale))


def _show_slip(scale: Sequence[tuple[int, str]], desk: people.Desk[Slip], slip: Slip) -> None:
    own = desk.key(slip)
    text.lead(slip.query)
    with st.container(gap="xsmall"):
        if title := slip.document.metadata.get("title"):
            text.strong(title)
        text.passage(
            slip.document.text, f"label-{own}", empty="This document is empty.", height=people.HEIGHT, border=True
        )
    desk.show_problem()
    with people.buttons(own, horizontal=False):
        for label, word in scale:
            _show_choice(desk, slip, label, "" if word == str(label) else word)
    if all(word == str(label) for label, word in scale):
        st.caption(f"{scale[0][0]} is not relevant at all, {scale[-1][0]} is all one could wish for.")
    with people.buttons(f"skip-{own}"):
        people.skip_button(own, _label, desk, slip)


def _show_choice(desk: people.Desk[Slip], slip: Slip, label: int, words: str) -> None:
    """A button with the label's number, and the prompt's words for it, which are none of ours, as inert text."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            f"Label {label}",
            key=f"choice-{label}-{desk.key(slip)}",
            type="primary" if slip.said == label else "secondary",
            shortcut=str(label) if 0 <= label <= 9 else None,
            on_click=_label,
            args=(desk, slip, label),
        )
        text.plain(words)


def _label(desk: people.Desk[Slip], slip: Slip, label: int | None) -> None:
    seconds = None if label is None else round(desk.seconds(slip), 2)
    desk.keep([annotation_of(slip, label, desk.who, seconds)])
