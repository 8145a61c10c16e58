"""The web leaderboard as Streamlit runs it: its pages in the order of the menu, which tournament, which page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import streamlit as st

from judges.errors import RagleagueError
from ui import address, data, sign_in
from ui.text import no_tournament, problem
from ui.views import (
    annotate,
    bank,
    calibration,
    exam,
    games,
    nuggets,
    ratings,
    retrieval,
    runs,
)


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


# Title, purpose and drawing function of each page, by the heading that the menu has it under; the first is opened.
PAGES: Mapping[str, tuple[tuple[str, str, Callable[[data.Source], None]], ...]] = {
    "": (
        ("Overview", "Who leads, how sure that is, and whether the judge can be trusted.", ratings.show_overview),
        ("Matrix", "How each agent did against each other one.", ratings.show_matrix),
        ("Games", "Every game: the query, both answers, verdicts, reasons and documents.", games.show),
        ("Queries", "Which queries separate the agents, and on which each agent fails.", ratings.show_queries),
    ),
    "Scores": (
        ("Retrieval", "What each agent's documents are worth, and whether people agree with that.", retrieval.show),
        ("Exam", "How much of the test bank each agent covers, and where grades and bank go wrong.", exam.show),
        ("Nuggets", "Which facts each answer states, and the lists of them to edit.", nuggets.show),
        ("Calibration", "Whether the judge can be trusted, and the answer if it is biased.", calibration.show),
    ),
    "Manage": (
        ("Runs", "What a run would cost, start and stop, how far it is, and what changed.", runs.show),
        ("Bank", "The items that answers are graded against, and their edits.", bank.show),
    ),
    "People": (  # on these people judge, blind
        ("Vote", "Say which of two answers is better, without knowing whose they are.", annotate.vote),
        ("Label", "Say how relevant documents are, without knowing what the judges said.", annotate.label),
        ("Grade", "Grade answers by the judges' criteria, without knowing whose they are.", annotate.grade),
        ("Assess", "Say which nuggets each answer states, without knowing whose it is.", annotate.assess),
    ),
}


if __name__ == "__main__":
    main()
