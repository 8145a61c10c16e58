"""The web leaderboard as Streamlit runs it: its pages in the order of the menu, which tournament, which page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import streamlit as st

from judges.errors import RagleagueError
from ui import address, data, sign_in
from ui.text import no_tournament, problem
from ui.views import (
    annotate,
    calibration,
    compare,
    games,
    items,
    ratings,
    retrieval,
    workbench,
)


def main() -> None:
    """Draw the page that is asked for; an unreadable store is said in one line."""
    st.set_page_config(page_title="ragleague", layout="wide", initial_sidebar_state="collapsed")
    pages = [
        st.Page(partial(_draw, page), title=page.title, url_path=page.address, help=page.purpose) for page in PAGES
    ]
    st.navigation(pages, position="top").run()


@dataclass(frozen=True, slots=True)
class Page:
    """An entry of the menu.

    Attributes:
        title: in the menu.
        purpose: a sentence.
        views: what draws each of its parts, by what the address calls it; the first is opened.
    """

    title: str
    purpose: str
    views: Mapping[str, Callable[[data.Source], None]]

    @property
    def address(self) -> str:
        """What addresses call it."""
        return self.title.lower()


def _draw(page: Page) -> None:
    try:
        if not sign_in.let_in():
            return
        source = _source()
        show = page.views[address.view(list(page.views))]
        if source is not None:
            show(source)
        elif show is workbench.show_runs:
            workbench.show_runs(None)
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


PAGES: Final = (
    Page(
        "Leaderboard",
        "Who leads, how sure that is, and whether the judge can be trusted.",
        {"leaderboard": ratings.show_overview},
    ),
    Page(
        "Compare",
        "Every way of scoring side by side, and whether they agree.",
        {"compare": compare.show, "retrieval": retrieval.show},
    ),
    Page(
        "Queries",
        "Which queries separate the agents, and every game on them.",
        {"queries": ratings.show_queries, "games": games.show},
    ),
    Page("Trust", "Whether the judge can be trusted, and the answer if it is biased.", {"trust": calibration.show}),
    Page(
        "Review",
        "People judge answers and documents, without knowing whose they are.",
        {"vote": annotate.vote, "label": annotate.label, "grade": annotate.grade, "assess": annotate.assess},
    ),
    Page(
        "Workbench",
        "Runs, the exam bank and nuggets with what they do to the scores, and ratings over time.",
        {
            "runs": workbench.show_runs,
            "bank": items.show_bank,
            "nuggets": items.show_nuggets,
            "history": workbench.show_history,
        },
    ),
)
"""In the order of the menu; the first is opened."""


if __name__ == "__main__":
    main()
