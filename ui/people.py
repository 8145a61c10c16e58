"""What people say on the pages, into the store and out of it; only a button that somebody pressed puts anything in."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Final

import streamlit as st

from arena.store import Annotation, Annotations, Store
from arena.store.annotations import Kind, annotator_name
from judges.errors import InputError
from ui import data, text

_NAME: Final = "annotator"
"""Query parameter that holds the annotator's name, so that a reload goes on where they stopped."""


def annotator() -> str | None:
    """Ask who is at work; ``None`` until they have said it."""
    given = st.text_input(
        "Your name or initials",
        key=_NAME,
        bind="query-params",
        max_chars=80,
        width=320,
        help="Kept with what you say, to tell people apart and to go on where you stopped. It is no login.",
    )
    if not (given or "").strip():
        st.info("Enter your name or initials to begin.")
        return None
    try:
        return annotator_name(given or "")
    except InputError as error:
        text.plain(str(error))
        return None


def latest(source: data.Source, kind: Kind, annotator: str | None = None) -> list[Annotation]:
    """What is said now, read anew at every call."""
    with closing(Store.open(source.location)) as store:
        return Annotations(store, source.tournament).latest(kind, annotator)


def add(source: data.Source, said: Iterable[Annotation]) -> None:
    """Keep what somebody said.

    Raises:
        StoreError: the store cannot be written.
    """
    with closing(Store.open(source.location)) as store:
        Annotations(store, source.tournament).add(said)
