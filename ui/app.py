"""The web leaderboard's entry, run by Streamlit: which tournament, which page. ``ui.serve`` starts it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from judges.errors import RagleagueError
from ui import address, data
from ui.pages import PAGES
from ui.states import no_tournament, problem
from ui.views import runs, sign_in


def main() -> None:
    """Draw the page that is asked for; an unreadable store is said in one line."""
    st.set_page_config(page_title="ragleague", layout="wide", initial_sidebar_state="collapsed")
    pages = {
        heading: [
            st.Page(partial(_draw, show), title=title, url_path=title.lower(), help=purpose)
            for title, purpose, show in own
        ]
        for heading, own in PAGES.items()
    }
    st.navigation(pages, position="top").run()


def _draw(show: Callable[[data.Source], None]) -> None:
    try:
        if not sign_in.let_in():
            return
        source = _source()
        if source is not None:
            show(source)
        elif show is runs.show:
            runs.show(None)
        else:
            no_tournament()
    except RagleagueError as error:
        problem("The store cannot be shown.", error)


def _source() -> data.Source | None:
    """The tournament that the address names, or ``None`` where the store has none; an unknown one ends the page."""
    version, names = data.tournaments()
    if not names:
        return None
    name = address.tournament(names)
    if name is None:
        st.stop()
    return data.Source(data.location(), version, name)


main()
