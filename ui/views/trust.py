"""Whether the leaderboard may be believed: every check, passed or not, with what to do. The report shows the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Literal

import streamlit as st

from arena.conclusion import Conclusion, conclude_board
from arena.opinions.tournament import compare_with_people
from arena.present.blocks import Check, Status
from arena.report.trust import TRUST, TRUST_LEAD, trust_checks
from arena.store import Store
from ui import data, text

_SIGNS: Mapping[Status, tuple[str, Literal["good", "bad", ""]]] = {
    "failed": ("✕ Failed", "bad"),
    "unknown": ("? Not known", ""),
    "passed": ("✓ Passed", "good"),
}


@st.cache_resource(max_entries=4, show_spinner="Checking whether this can be trusted …")
def concluded(source: data.Source) -> tuple[Conclusion, tuple[Check, ...]]:
    """What may be said of a tournament's ratings, and all checks, those that failed first."""
    board = data.board(source)
    with closing(Store.open(source.location)) as store:
        comparisons, not_compared = compare_with_people(store, source.tournament)
    conclusion = conclude_board(board, comparisons)
    return conclusion, trust_checks(board, conclusion, comparisons, not_compared)


def show_checks(found: Sequence[Check]) -> None:
    """Draw the part."""
    st.subheader(TRUST, anchor=False)
    st.caption(TRUST_LEAD)
    text.facts(map(_fact, found))


def _fact(check: Check) -> text.Fact:
    sign, kind = _SIGNS[check.status]
    todo = "" if check.status == "passed" else f"What to do: {check.remedy}"
    return text.Fact(sign, check.name, check.finding, todo, kind)
