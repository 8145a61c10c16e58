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

_BADGES: Mapping[Status, tuple[str, str, Literal["red", "gray", "green"]]] = {
    "failed": ("Failed", ":material/close:", "red"),
    "unknown": ("Not known", ":material/question_mark:", "gray"),
    "passed": ("Passed", ":material/check:", "green"),
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
    for place, check in enumerate(found):
        with st.container(key=f"check-{place}"):
            named, said = st.columns([3, 7], gap="small")
            label, icon, color = _BADGES[check.status]
            with named, st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.badge(label, icon=icon, color=color)
                text.strong(check.name, f"check-{place}")
            with said:
                text.plain(check.finding)
                if check.status != "passed":
                    text.quiet(f"What to do: {check.remedy}", f"remedy-{place}")
