"""Leaderboard: who leads and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import streamlit as st

from arena.boards.conclusion import Kind, expectation
from arena.boards.leaderboard import TournamentBoard, missing
from arena.boards.trust import in_short
from arena.present.blocks import Section
from ui import data, text
from ui.show import show_sections
from ui.text import incomplete, nothing

_ICONS: Final[Mapping[Kind, str]] = {
    "leader": ":material/trophy:",
    "tie": ":material/balance:",
    "unclear": ":material/help:",
    "empty": ":material/hourglass_empty:",
}
_ELSEWHERE: Final = frozenset(
    {"conclusion", "matrix", "nuggets", "nugget-intervals", "citations"}
    | {"retrieval", "retrieval-labels", "retrieval-judges", "retrieval-agreement"}
)
"""Sections on top of the page, or on pages of their own."""


def show_overview(source: data.Source) -> None:
    """Draw the page of that name."""
    board = data.board(source)
    shown, sections = _sections(source)
    conclusion = shown.conclusion
    st.header(f"{_ICONS[conclusion.kind]} {conclusion.headline}", anchor=False)
    text.lead(conclusion.sentence)
    expected = [] if board.ratings is None else expectation(board.ratings, conclusion)
    text.quiet("\n\n".join([*expected, in_short(shown.verdict()[1])]))
    if not board.coverage:
        nothing("Nothing is planned in this tournament. Give its YAML file a stage and run `ragleague run`.")
    for said in missing(board):
        incomplete(said)
    show_sections(sections)


@st.cache_resource(max_entries=4, show_spinner="Checking whether this can be trusted …")
def _sections(source: data.Source) -> tuple[TournamentBoard, list[Section]]:
    """The board with what people say of its judges, and its sections that are shown here."""
    comparisons, apart = data.people(source)
    queries = {query_id: query.text for query_id, query in data.queries(source).items()}
    board = TournamentBoard(data.board(source), comparisons, apart, queries=queries)
    return board, [section for section in board.sections() if section.ident not in _ELSEWHERE]
