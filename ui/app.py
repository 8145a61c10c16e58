"""The web leaderboard's entry, run by Streamlit: which tournament, which page. ``ui.serve`` starts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import streamlit as st

from judges.errors import RagarenaError
from ui import data, text
from ui.states import nothing, problem
from ui.views import (
    assess,
    bank,
    calibration,
    exam,
    games,
    grade,
    label,
    matrix,
    nuggets,
    overview,
    queries,
    retrieval,
    runs,
    sign_in,
    vote,
)

# Title, purpose and drawing function of each page, by the heading that the menu has it under; the first is opened.
PAGES: Mapping[str, tuple[tuple[str, str, Callable[[data.Source], None]], ...]] = {
    "": (
        ("Overview", "Who leads, how sure that is, and whether the judge can be trusted.", overview.show),
        ("Matrix", "How each agent did against each other one.", matrix.show),
        ("Games", "Every game: the query, both answers, verdicts, reasons and documents.", games.show),
        ("Queries", "Which queries separate the agents, and on which each agent fails.", queries.show),
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
        ("Vote", "Say which of two answers is better, without knowing whose they are.", vote.show),
        ("Label", "Say how relevant documents are, without knowing what the judges said.", label.show),
        ("Grade", "Grade answers by the judges' criteria, without knowing whose they are.", grade.show),
        ("Assess", "Say which nuggets each answer states, without knowing whose it is.", assess.show),
    ),
}


def main() -> None:
    """Draw the page that is asked for; an unreadable store is said in one line."""
    st.set_page_config(page_title="ragarena", layout="wide", initial_sidebar_state="collapsed")
    text.use_style()
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
    except RagarenaError as error:
        problem("The store cannot be shown.", error)


def _source() -> data.Source | None:
    """The tournament chosen, or ``None`` with a word on what to do where the store has none."""
    version, names = data.tournaments()
    if not names:
        nothing("This store holds no tournament yet. Run `ragarena run` with your YAML file and come back.")
        return None
    name = names[-1]
    if len(names) == 1:
        text.quiet(f"Tournament: {name}", "source")
    else:
        name = st.selectbox("Tournament", names, index=len(names) - 1, key="tournament", bind="query-params", width=420)
    return data.Source(data.location(), version, name)


main()
