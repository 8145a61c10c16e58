"""Runs: what a run would ask and cost, start and stop, how far it is, earlier ones, and two states compared."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from arena.present.numbers import MONEY, listed
from arena.store.progress import Progress
from arena.store.runs import Run
from arena.store.spending import AGENTS
from arena.wording import STAGES
from judges.errors import CAUSES, StoreError
from ui import data, editing, runs, text
from ui.editing import Session
from ui.states import no_tournament, nothing, problem
from ui.tables import show_table
from ui.views import changes
from ui.views.next_run import show_next
from ui.views.spending import failures, known, show_agents, show_one, show_spent, total

_EVERY_S = 2.0
"""How often the page looks how far a run is."""

_ENDED: Mapping[str, tuple[str, str]] = {
    "complete": ("success", "The last run is complete: everything it was asked for is there."),
    "incomplete": ("warning", "The last run ended, and judgments or answers are missing. Start again to ask for them."),
    "stopped": ("info", "The last run was stopped. What it judged is kept; start again to go on."),
    "failed": ("error", "The last run could not go on; the log below says why. What it judged is kept."),
    "killed": ("error", "The last run was killed: its process is gone. What it judged is kept; start again to go on."),
}


def show(source: data.Source | None) -> None:
    """Draw the page; ``None`` where no tournament has begun yet."""
    st.header("Runs", anchor=False)
    session = editing.session()
    if refused := runs.problem():
        problem("Not done.", refused)
    name = source.tournament if source is not None else session.config.name if session is not None else None
    if name is None:
        no_tournament()
        return
    found = runs.latest(data.location(), name)
    _show_now(session if session is not None and session.config.name == name else None, name, found)
    show_next(session, name)
    if ended := [run for run in found if run.state != "running"]:
        _show_earlier(ended, runs.names(found))
    if source is not None:
        changes.show(source)


def earlier_frame(found: list[Run]) -> pd.DataFrame:
    """A line for each run, the latest first; counts are sums over its stages, empty where it was not there to tell."""
    frame = pd.DataFrame([_line(run) for run in found])
    return frame if frame["Answered"].any() else frame.drop(columns="Answered")


def _line(run: Run) -> dict[str, Any]:
    spent = total(run)
    answered = run.spent[AGENTS].judged if AGENTS in run.spent else 0
    return {
        "Began": datetime.fromtimestamp(run.begun, UTC),
        "Took": None if run.ended is None else run.ended - run.begun,
        "State": run.state,
        "Answered": answered,
        "Judged": spent.judged - answered,
        "Known": known(run),
        "Failed": failures(run),
        "Calls": spent.calls,
        "Cost": spent.cost_usd if spent.cost_known else None,
        "Cost unknown": spent.cost_unknown,
        "First": run.standings[0]["agent"] if run.standings else "",
    }


def _show_now(session: Session | None, name: str, found: list[Run]) -> None:
    """The run at work, drawn anew every few seconds, or how the last one ended."""
    run = found[0] if found else None
    if (session is not None and runs.begins(session)) or (run is not None and run.state == "running"):
        st.fragment(_keep_showing, run_every=_EVERY_S)(session, name)
        return
    if session is not None and runs.never_began(session, run):
        st.error("The last run ended before it began to judge; the log below says why.")
    elif run is not None:
        kind, said = _ENDED[run.state]
        {"success": st.success, "warning": st.warning, "info": st.info, "error": st.error}[kind](said)
    else:
        nothing("No run of this tournament has been recorded yet.")
    if session is not None:
        _show_log(session)


def _keep_showing(session: Session | None, name: str) -> None:
    """Show it where the store can be read; where it cannot just now, the next time may tell."""
    try:
        _show_running(session, name)
    except StoreError as error:
        problem("The store cannot be read just now.", error)


def _show_running(session: Session | None, name: str) -> None:
    """How far the run is; ends by drawing the whole page once it has ended."""
    found = runs.at_work(data.location(), name)
    run = found[0] if found else None
    if run is None and (session is None or not runs.begins(session)):
        st.rerun()
    if run is None:
        st.info("A run begins: it reads the data.")
    else:
        since = [f"{datetime.fromtimestamp(each.begun, UTC):%H:%M:%S}" for each in reversed(found)]
        st.info(f"{'A run is' if len(found) == 1 else f'{len(found)} runs are'} at work since {listed(since)} UTC.")
        show_agents(found)
        show_progress(runs.how_far(data.location(), name))
        show_spent(found)
    if session is not None:
        _show_stop(session, run)
        _show_log(session)


def _show_stop(session: Session, run: Run | None) -> None:
    asked = runs.stopping(session, run)
    st.button(
        "Stop at once" if asked else "Stop",
        on_click=partial(runs.attempt, partial(runs.stop, session, run)),
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
    st.caption(f"Cost of the tournament's judgments so far, of all runs: \\{MONEY.write(own.cost_usd)}{unknown}.")
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


def _show_earlier(found: list[Run], called: Mapping[str, str]) -> None:
    st.subheader("Runs so far", anchor=False)
    frame = earlier_frame(found)
    show_table(
        frame,
        "Runs so far",
        {
            "Began": st.column_config.DatetimeColumn("Began (UTC)", format="YYYY-MM-DD HH:mm:ss", timezone="UTC"),
            "Took": st.column_config.NumberColumn(format="%.1f s"),
            "Answered": st.column_config.NumberColumn(help="By agents that the run asked."),
            "Judged": st.column_config.NumberColumn(help="By calls of the run."),
            "Known": st.column_config.NumberColumn(help="Found in the store, or the same as another one."),
            "Calls": st.column_config.NumberColumn(help="Requests sent, attempts included."),
            "Cost": st.column_config.NumberColumn(format="$%.4f", help="As far as prices and tokens are known."),
            "Cost unknown": st.column_config.NumberColumn(help="Judgments and answers whose cost is not known."),
            "First": st.column_config.TextColumn(help="The best rated agent after the run; see who is tied with it."),
        },
        unknown="unknown",
        height="content" if len(frame) <= 8 else 290,
    )
    show_one(found, called)
