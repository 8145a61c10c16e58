"""The next run: what it would ask and cost, and its start once that has been seen."""

from __future__ import annotations

from functools import partial

import streamlit as st

from arena.boards.runs import PlanBoard
from arena.plan import plan
from arena.safe_files import digest
from judges.errors import RagarenaError
from ui import editing, runs, text
from ui.editing import Session
from ui.show import show_block
from ui.states import problem

_PLAN = "runs-plan"


def show_next(session: Session | None, name: str) -> None:
    """What the next run would ask; it is started only after that has been seen."""
    st.subheader("The next run", anchor=False)
    if session is None:
        st.caption(editing.why_not())
        return
    if session.config.name != name:
        text.quiet(f"The pages were started with the configuration of {session.config.name}.")
    version = digest(session.path)
    if st.button("Plan it", icon=":material/calculate:"):
        try:
            with st.spinner("Counting what would be asked …"):
                st.session_state[_PLAN] = version, plan(session.config)
        except RagarenaError as error:
            problem("It cannot be planned.", error)
            return
    planned_version, planned = st.session_state.get(_PLAN, (None, None))
    if planned is None or planned_version != version:
        st.caption("Counts calls and estimates what they cost. Nothing is sent.")
        return
    for section in PlanBoard(planned).sections():
        for block in section.blocks:
            show_block(block)
    _show_start(session)


def _show_start(session: Session) -> None:
    again = st.toggle("Also ask again where a judge gave an unusable reply", key="runs-retry")
    st.button(
        "Start the run",
        type="primary",
        on_click=partial(runs.attempt, partial(_start, session, again)),
        disabled=runs.begins(session),
        icon=":material/play_arrow:",
    )


def _start(session: Session, again: bool) -> None:
    runs.start(session, retry_failed=again)
    st.session_state.pop(_PLAN, None)
