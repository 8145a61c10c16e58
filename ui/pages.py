"""The pages of the web leaderboard, in the order of its menu."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ui import data
from ui.views import (
    annotate,
    bank,
    calibration,
    exam,
    games,
    matrix,
    nuggets,
    overview,
    queries,
    retrieval,
    runs,
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
        ("Vote", "Say which of two answers is better, without knowing whose they are.", annotate.vote),
        ("Label", "Say how relevant documents are, without knowing what the judges said.", annotate.label),
        ("Grade", "Grade answers by the judges' criteria, without knowing whose they are.", annotate.grade),
        ("Assess", "Say which nuggets each answer states, without knowing whose it is.", annotate.assess),
    ),
}
