"""The next run: what it would ask and cost, and its start once that has been seen."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from arena.agents.plan import PlannedAgent
from arena.plan import Plan, plan
from arena.present.numbers import MONEY
from arena.runtime.counting import PlannedCalls
from arena.safe_files import digest
from arena.wording import AGENTS_ASKED, STAGES
from judges.errors import RagarenaError
from ui import editing, runs, text
from ui.editing import Session
from ui.states import problem
from ui.tables import show_table

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
    _show_planned(planned)
    _show_start(session)


def _show_planned(planned: Plan) -> None:
    frame = plan_frame(planned)
    cost = "unknown" if planned.cost_usd is None else MONEY.write(planned.cost_usd)
    with st.container(horizontal=True):
        st.metric("Calls", f"{int(frame['Calls'].fillna(0).sum()):,}" if len(frame) else "0", border=True, width=168)
        st.metric("Cost", cost, border=True, width=168)
    if len(frame):
        show_table(
            frame,
            "Plan of the next run",
            {
                "Known": st.column_config.NumberColumn(help="In the store already, or the same as another one."),
                "In a batch": st.column_config.NumberColumn(help="Sent already, and paid for."),
                "Cost": st.column_config.NumberColumn(format="$%.4f"),
                "Seconds": st.column_config.NumberColumn(format="%.0f s", help="At two seconds a call."),
            },
            unknown="unknown",
        )
    text.lines(*(text.Line("quiet", f"• {note}") for note in planned.notes))


def _show_start(session: Session) -> None:
    again = st.toggle("Also ask again where a judge gave an unusable reply", key="runs-retry")
    st.button(
        "Start the run",
        type="primary",
        on_click=partial(runs.attempt, partial(_start, session, again)),
        disabled=runs.begins(session),
        icon=":material/play_arrow:",
    )


def plan_frame(planned: Plan) -> pd.DataFrame:
    """A line for each judge's part in each stage, and before them each agent that is asked."""
    agents = [
        {"Stage": AGENTS_ASKED, "Who": own.agent, "Wanted": own.wanted, "Known": own.known, **_price(own)}
        for own in planned.agents
    ]
    judges = [
        {"Stage": STAGES[own.task], "Who": own.judge, "Wanted": own.wanted, "Known": own.known}
        | {"In a batch": own.waiting, **_price(own)}
        for own in planned.rows
    ]
    frame = pd.DataFrame([*agents, *judges])
    return frame.drop(columns=[name for name in ("In a batch",) if name in frame and not frame[name].any()])


def _price(own: PlannedCalls | PlannedAgent) -> dict[str, float | None]:
    return {
        "Calls": own.calls,
        "Tokens in": own.input_tokens,
        "Tokens out": own.output_tokens,
        "Cost": own.cost_usd,
        "Seconds": own.seconds,
    }


def _start(session: Session, again: bool) -> None:
    runs.start(session, retry_failed=again)
    st.session_state.pop(_PLAN, None)
