"""Whether the leaderboard may be believed: every check, passed or not, with what to do. The report shows the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Literal

import streamlit as st

from arena.calibration.judge_people import Settings
from arena.opinions.tournament import compare_with_people
from arena.report.blocks import Check, Status
from arena.report.trust import trust_checks
from arena.store import Store
from ui import data, text

_SIGNS: Mapping[Status, tuple[str, Literal["good", "bad", ""]]] = {
    "failed": ("✕ Failed", "bad"),
    "unknown": ("? Not known", ""),
    "passed": ("✓ Passed", "good"),
}


@st.cache_resource(max_entries=4, show_spinner="Checking whether this can be trusted …")
def checks(source: data.Source) -> tuple[Check, ...]:
    """All checks of a tournament, those that failed first."""
    board = data.board(source)
    ratings = board.settings["ratings"]
    settings = Settings(samples=ratings["bootstrap"]["samples"], seed=ratings["seed"])
    with closing(Store.open(source.location)) as store:
        return trust_checks(board, *compare_with_people(store, source.tournament, settings))


def show_checks(found: Sequence[Check]) -> None:
    """Draw the part."""
    st.subheader("Can this be trusted?", anchor=False)
    st.caption("Each of these must hold before the order above is worth acting on. The bars are rules of thumb.")
    text.facts(map(_fact, found))


def _fact(check: Check) -> text.Fact:
    sign, kind = _SIGNS[check.status]
    todo = "" if check.status == "passed" else f"What to do: {check.remedy}"
    return text.Fact(sign, check.name, check.finding, todo, kind)
