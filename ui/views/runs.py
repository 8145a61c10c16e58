"""Runs: what a run would ask and cost, start and stop, how far it is, earlier ones, and two states compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial

import pandas as pd
import streamlit as st

from arena.agents.front import money
from arena.plan import Plan, plan
from arena.safe_files import digest
from arena.store.progress import Progress
from arena.store.runs import Run
from arena.wording import STAGES
from judges.errors import CAUSES, RagarenaError
from ui import data, editing, runs, text
from ui.editing import Session
from ui.tables import show_table
from ui.views import changes

_EVERY_S = 2.0
"""How often the page looks how far a run is."""
_PROBLEM, _PLAN = "runs-problem", "runs-plan"

_ENDED: Mapping[str, tuple[str, str]] = {
    "complete": ("success", "The last run is complete: everything it was asked for has a judgment."),
    "incomplete": ("warning", "The last run ended, and judgments are missing. Start again to ask for them."),
    "stopped": ("info", "The last run was stopped. What it judged is kept; start again to go on."),
    "failed": ("error", "The last run could not go on; the log below says why. What it judged is kept."),
    "killed": ("error", "The last run was killed: its process is gone. What it judged is kept; start again to go on."),
}
STATES: Mapping[str, str] = {
    "running": "at work", "complete": "complete", "incomplete": "incomplete", "stopped": "stopped", "failed": "failed",
    "killed": "killed",
}  # fmt: skip


def show(source: data.Source | None) -> None:
    """Draw the page; ``None`` where no tournament has begun yet."""
    st.header("Runs", anchor=False)
    session = editing.session()
    if problem := st.session_state.pop(_PROBLEM, None):
        st.error("Not done.", icon=":material/error:")
        text.plain(problem)
    name = source.tournament if source is not None else session.config.name if session is not None else None
    if name is None:
        return
    found = runs.latest(data.location(), name)
    _show_now(session if session is not None and session.config.name == name else None, name, found)
    _show_plan(session, name)
    if found:
        _show_earlier(found)
    if source is not None:
        changes.show(source)


def earlier_frame(found: list[Run]) -> pd.DataFrame:
    """A line for each run, the latest first; counts are sums over its stages, empty where it was not there to tell."""
    rows = []
    for run in found:
        stages = run.stages.values()
        told = {name: sum(own[name] for own in stages) if stages else None for name in _COUNTED}
        rows.append(
            {
                "Began": datetime.fromtimestamp(run.begun, UTC),
                "Took": None if run.ended is None else run.ended - run.begun,
                "State": STATES[run.state],
                **{name.replace("_usd", "").capitalize(): told[name] for name in _COUNTED},
                "First": run.standings[0]["agent"] if run.standings else None,
            }
        )
    return pd.DataFrame(rows)


_COUNTED = ("judged", "known", "failed", "calls", "cost_usd")


def plan_frame(planned: Plan) -> pd.DataFrame:
    """A line for each judge's part in each stage, and before them each agent that is asked."""
    agents = [
        {"Stage": "Agents asked", "Who": own.agent, "Wanted": own.wanted, "Known": own.known, **_price(own)}
        for own in planned.agents
    ]
    judges = [
        {"Stage": STAGES[own.task], "Who": own.judge, "Wanted": own.wanted, "Known": own.known, **_price(own)}
        for own in planned.rows
    ]
    return pd.DataFrame([*agents, *judges])


def _price(own: object) -> dict[str, float | None]:
    names = {"Calls": "calls", "Tokens in": "input_tokens", "Tokens out": "output_tokens", "Cost": "cost_usd"}
    return {title: getattr(own, name) for title, name in (*names.items(), ("Seconds", "seconds"))}


def _show_now(session: Session | None, name: str, found: list[Run]) -> None:
    """The run at work, drawn anew every few seconds, or how the last one ended."""
    run = found[0] if found else None
    if (session is not None and runs.begins(session)) or (run is not None and run.state == "running"):
        st.fragment(_show_running, run_every=_EVERY_S)(session, name)
        return
    if session is not None and runs.never_began(session, run):
        st.error("The last run ended before it began to judge; the log below says why.")
    elif run is not None:
        kind, said = _ENDED[run.state]
        {"success": st.success, "warning": st.warning, "info": st.info, "error": st.error}[kind](said)
    else:
        st.info("No run of this tournament has been recorded yet.")
    if session is not None:
        _show_log(session)


def _show_running(session: Session | None, name: str) -> None:
    """How far the run is; ends by drawing the whole page once it has ended."""
    found = runs.latest(data.location(), name, 1)
    run = found[0] if found and found[0].state == "running" else None
    if run is None and (session is None or not runs.begins(session)):
        st.rerun()
    if run is None:
        st.info("A run begins: it reads the data, and asks the agents that have answers to give.")
    else:
        st.info(f"A run is at work since {datetime.fromtimestamp(run.begun, UTC):%H:%M:%S} UTC.")
        show_progress(runs.how_far(data.location(), name))
    if session is not None:
        _show_stop(session, run)
        _show_log(session)


def _show_stop(session: Session, run: Run | None) -> None:
    asked = runs.stopping(session, run)
    st.button(
        "Stop at once" if asked else "Stop",
        on_click=partial(_try, partial(runs.stop, session, run)),
        icon=":material/stop:",
        help="The first press finishes what is in flight, as Ctrl-C does; the second stops at once.",
    )
    if asked:
        st.caption("It has been asked to stop and finishes what is in flight.")


def show_progress(own: Progress) -> None:
    """How far each stage is, what failed why, and what all that cost."""
    for task, stage in own.stages.items():
        done = stage.judged + stage.failed
        failed = f", {stage.failed:,} failed" if stage.failed else ""
        st.progress(done / stage.wanted, text=f"{STAGES[task]}: {done:,} of {stage.wanted:,}{failed}")
    unknown = f", and {own.cost_unknown:,} judgments of unknown cost" if own.cost_unknown else ""
    st.caption(f"Cost of the tournament so far: \\{money(own.cost_usd)}{unknown}.")
    causes = [
        {"Stage": STAGES[task], "Failures": count, "Cause": CAUSES.get(cause, cause)}
        for task, stage in own.stages.items()
        for cause, count in stage.causes.items()
    ]
    if causes:
        show_table(pd.DataFrame(causes), "Failures by cause")


def _show_log(session: Session) -> None:
    if said := runs.log_tail(session):
        with st.expander("What the last run started here said"):
            text.passage(said, "log", empty="")


def _show_plan(session: Session | None, name: str) -> None:
    """What the next run would ask; it is started only after that has been seen."""
    st.subheader("The next run", anchor=False)
    if session is None:
        st.caption(editing.why_not())
        return
    if session.config.name != name:
        text.quiet(f"The pages were started with the configuration of {session.config.name}.", "other")
    version = digest(session.path)
    if st.button("Plan it", icon=":material/calculate:"):
        with st.spinner("Counting what would be asked …"):
            st.session_state[_PLAN] = version, plan(session.config)
    planned_version, planned = st.session_state.get(_PLAN, (None, None))
    if planned is None or planned_version != version:
        st.caption("Counts calls and estimates what they cost. Nothing is sent.")
        return
    _show_planned(planned)
    _show_start(session)


def _show_planned(planned: Plan) -> None:
    frame = plan_frame(planned)
    cost = "unknown" if planned.cost_usd is None else money(planned.cost_usd)
    with st.container(horizontal=True):
        st.metric("Calls", f"{int(frame['Calls'].fillna(0).sum()):,}" if len(frame) else "0", border=True, width=168)
        st.metric("Cost", cost, border=True, width=168)
    if len(frame):
        show_table(
            frame,
            "Plan of the next run",
            {
                "Known": st.column_config.NumberColumn(help="In the store already, or the same as another one."),
                "Cost": st.column_config.NumberColumn(format="$%.4f"),
                "Seconds": st.column_config.NumberColumn(format="%.0f s", help="At two seconds a call."),
            },
            unknown="unknown",
        )
    for place, note in enumerate(planned.notes):
        text.quiet(f"• {note}", f"note-{place}")


def _show_start(session: Session) -> None:
    again = st.toggle("Also ask again where a judge gave an unusable reply", key="runs-retry")
    st.button(
        "Start the run",
        type="primary",
        on_click=partial(_try, partial(_start, session, again)),
        disabled=runs.begins(session),
        icon=":material/play_arrow:",
    )


def _start(session: Session, again: bool) -> None:
    runs.start(session, retry_failed=again)
    st.session_state.pop(_PLAN, None)


def _try(act: Callable[[], None]) -> None:
    """Do what a button asks for, or say with the next drawing why not."""
    try:
        act()
    except RagarenaError as error:
        st.session_state[_PROBLEM] = str(error)


def _show_earlier(found: list[Run]) -> None:
    st.subheader("Runs so far", anchor=False)
    frame = earlier_frame(found)
    show_table(
        frame,
        "Runs so far",
        {
            "Began": st.column_config.DatetimeColumn("Began (UTC)", format="YYYY-MM-DD HH:mm:ss", timezone="UTC"),
            "Took": st.column_config.NumberColumn(format="%.1f s"),
            "Known": st.column_config.NumberColumn(help="Found in the store, or the same as another one."),
            "Calls": st.column_config.NumberColumn(help="Requests sent, attempts included."),
            "Cost": st.column_config.NumberColumn(format="$%.4f", help="As far as prices and tokens are known."),
            "First": st.column_config.TextColumn(help="The best rated agent after the run; see who is tied with it."),
        },
        height="content" if len(frame) <= 8 else 290,
    )
