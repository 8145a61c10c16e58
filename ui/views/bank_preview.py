"""What the edits of a bank change, before they are saved and before anything is graded anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pandas as pd
import streamlit as st

from judges.errors import InputError
from retrieval_eval.exam.items import diff
from ui import data, exam, text
from ui.address import unfold
from ui.bank import Draft, changes_of, effect, labels_frame, places_frame
from ui.states import problem
from ui.tables import show_table

_LISTED: Final = 20
"""Changes that are listed at first."""


def attempt(change: Callable[[], None]) -> None:
    """Make a change of the draft and draw the page with it, or say why it cannot be made."""
    try:
        change()
    except (ValueError, InputError) as error:
        problem("This cannot be done.", error)
        return
    st.rerun()


def show_preview(source: data.Source, draft: Draft) -> None:
    """Draw it, with what is needed to take edits back."""
    st.subheader("What your edits change", anchor=False)
    lines = changes_of(diff(draft.file.bank, draft.bank))
    listed = lines if len(lines) <= _LISTED or st.toggle(f"List all {len(lines):,}") else lines[:_LISTED]
    show_table(
        pd.DataFrame([(kind, text.clipped(line, 400)) for kind, line in listed], columns=["Change", "Item"]),
        "Changes",
        columns={"Change": st.column_config.TextColumn(width=90)},
    )
    _take_back(draft)
    study = exam.study(source)
    if study is None or not study.grades:
        st.caption("Nothing is graded yet, so no score changes.")
        return
    found = effect(source, draft, study, k=exam.depth(source))
    with st.container(horizontal=True):
        st.metric("Labels that change", f"{len(found.labels):,}", border=True, width=220)
        moved = sum(move.place_before != move.place_after for move in found.places)
        st.metric("Agents that change places", f"{moved:,}", border=True, width=220)
        st.metric(
            "Pairs to grade",
            f"{found.to_grade:,}",
            border=True,
            width=220,
        )
    config = {
        name: st.column_config.NumberColumn(format="%.3f" if name.startswith("Cover") else "%g")
        for name in ("Place before", "Place after", "Cover before", "Cover after")
    }
    show_table(places_frame(found), "Places", columns=config)
    if found.to_grade:
        st.caption(
            "A pair of passage and item without a grade covers nothing here, so until the next run has graded the "
            f"{found.to_grade:,} pairs the cover after is the least that they allow."
        )
    if found.labels:
        name = f"The {len(found.labels):,} passages whose label changes"
        with unfold(name, "passages-that-change") as opened:
            if opened.open:
                show_table(labels_frame(found), "Labels that change")


def _take_back(draft: Draft) -> None:
    """One edit at a time, or all of them."""
    by_id = draft.file.bank.by_id
    edits: list[str | int] = [*draft.edits, *range(len(draft.added))]

    def name(place: int) -> str:
        which = edits[place]
        item = draft.added[which] if isinstance(which, int) else by_id[which]
        return f"{item.query_id}: {text.clipped(item.open_text, 120)}"

    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = st.selectbox("Take back", range(len(edits)), format_func=name, key=f"back-{len(edits)}", width=420)
        if st.button("Take this one back"):
            draft.turn += 1
            attempt(lambda: _drop(draft, edits[place]))
        if st.button("Take all back"):
            draft.clear()
            st.rerun()


def _drop(draft: Draft, which: str | int) -> None:
    if isinstance(which, int):
        draft.added.pop(which)
    else:
        draft.change(which, None)
