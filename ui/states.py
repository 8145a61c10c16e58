"""What a page says where there is nothing to show, not all of it, or something went wrong: alike on every page."""

from __future__ import annotations

import streamlit as st

from ui import text


def nothing(words: str) -> None:
    """There is nothing to show yet, or nothing that passes the filters; the words, our own, say what to do."""
    st.info(words, icon=":material/inbox:")


def no_tournament() -> None:
    """The store is empty, and what to do."""
    nothing("This store holds no tournament yet. Run `ragleague run` with your YAML file and come back.")


def incomplete(words: str) -> None:
    """Something is missing from what is shown; the words, our own, say how much and what to do."""
    st.warning(f"**Incomplete:** {words}", icon=":material/warning:")


def problem(words: str, error: Exception | str) -> None:
    """Something cannot be done, or was not; the words are our own, those of the error may quote texts from outside."""
    st.error(words, icon=":material/error:")
    text.plain(str(error))
