"""Whether the leaderboard may be believed: every check, passed or not, with what to do. The report shows the same."""

from __future__ import annotations

from contextlib import closing

import streamlit as st

from arena.boards.trust import trust_checks
from arena.conclusion import Conclusion, conclude_board
from arena.opinions.tournament import compare_with_people
from arena.present.blocks import Check
from arena.store import Store
from ui import data


@st.cache_resource(max_entries=4, show_spinner="Checking whether this can be trusted …")
def concluded(source: data.Source) -> tuple[Conclusion, tuple[Check, ...]]:
    """What may be said of a tournament's ratings, and all checks, those that failed first."""
    board = data.board(source)
    with closing(Store.open(source.location)) as store:
        comparisons, not_compared = compare_with_people(store, source.tournament)
    conclusion = conclude_board(board, comparisons)
    return conclusion, trust_checks(board, conclusion, comparisons, not_compared)
