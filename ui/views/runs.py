"""Runs: what a run would ask and cost, start and stop, how far it is, earlier ones, and two states compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import streamlit as st

from arena.boards.changes import ChangesBoard, State, compare
from arena.boards.coverage import AGENTS_ASKED, STAGES
from arena.boards.runs import PlanBoard, agents_so_far, in_words, runs_table, stages_table
from arena.data.safe_files import digest
from arena.present.numbers import COUNT, MONEY, listed
from arena.present.table import Column, Table
from arena.run.plan import plan
from arena.run.recorder import standings_of, subject_of
from arena.store.runs import Run
from arena.store.wants import Progress
from judges.errors import CAUSES, RagleagueError, StoreError
from ui import data, editing, runs, text
from ui.address import pick, say_what_is_unknown
from ui.editing import Session
from ui.show import show_block, show_table
from ui.text import no_tournament, nothing, problem

_EVERY_S = 2.0
"""How often the page looks how far a run is."""

_CAUSES = (Column("stage", "Stage"), Column("failures", "Failures", COUNT), Column("cause", "Cause"))

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
    editing.say_refused("Not done.")
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
        show_changes(source)


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
        _show_agents(found)
        show_progress(runs.how_far(data.location(), name))
        _show_spent(found)
    if session is not None:
        _show_stop(session, run)
        _show_log(session)


def _show_stop(session: Session, run: Run | None) -> None:
    asked = runs.stopping(session, run)
    st.button(
        "Stop at once" if asked else "Stop",
        on_click=editing.attempt,
        args=(runs.stop, session, run),
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
    text.quiet(f"Cost of the tournament's judgments so far, of all runs: {MONEY.write(own.cost_usd)}{unknown}.")
    causes = [
        {"stage": STAGES[task], "failures": count, "cause": CAUSES.get(cause, cause)}
        for task, stage in own.stages.items()
        for cause, count in stage.causes.items()
    ]
    show_table(Table("failures-by-cause", "", _CAUSES, causes))


def _show_log(session: Session) -> None:
    if said := runs.log_tail(session):
        with st.expander("What the last run started here said"):
            text.passage(said, "log", label="Log", empty="", raw=True)


def _show_earlier(found: list[Run], called: Mapping[str, str]) -> None:
    st.subheader("Runs so far", anchor=False)
    show_table(runs_table(found))
    by_name = {called[run.run_id]: run for run in found}
    run = by_name[pick("Run by stage", list(by_name), "run", width=420)]
    say_what_is_unknown()
    text.quiet(f"This run: {in_words(run)}.")
    show_table(stages_table(run))


def _show_agents(found: Sequence[Run]) -> None:
    """How far each run at work is with the agents that it asks, if it asks any."""
    for run, name in _named(found):
        done, failed, wanted = agents_so_far(run)
        if wanted:
            whose = f" by the {name}" if len(found) > 1 else ""
            also = f", {failed:,} failed" if failed else ""
            st.progress(min(1.0, done / wanted), text=f"{AGENTS_ASKED}{whose}: {done:,} of {wanted:,}{also}")


def _show_spent(found: Sequence[Run]) -> None:
    """What each run at work has spent so far."""
    for run, name in _named(found):
        text.quiet(f"The {name} so far: {in_words(run)}.")
        show_table(stages_table(run, at_work=True, name=f"stages-{run.run_id}"))


def _named(found: Sequence[Run]) -> list[tuple[Run, str]]:
    """Runs at work, the first first, as sentences name them."""
    called = runs.names(found)
    return [(run, f"run of {called[run.run_id]}") for run in reversed(found)]


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
        except RagleagueError as error:
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
        on_click=editing.attempt,
        args=(_start, session, again),
        disabled=runs.begins(session),
        icon=":material/play_arrow:",
    )


def _start(session: Session, again: bool) -> None:
    runs.start(session, retry_failed=again)
    st.session_state.pop(_PLAN, None)


@dataclass(frozen=True, slots=True)
class _Choice:
    """A state that can be compared; ``run_id`` is empty for a tournament as it is now."""

    label: str
    tournament: str
    run_id: str = ""


def show_changes(source: data.Source) -> None:
    """Draw the part."""
    st.subheader("What changed", anchor=False)
    found = _choices(source)
    if len(found) < 2:
        st.caption("Nothing to compare yet: after another run, or with a second tournament, two can be held together.")
        return
    labels = [one.label for one in found]
    left, right = st.columns(2)
    with left:
        earlier = pick("From", labels, "from", index=1)
    with right:
        later = pick("To", labels, "to")
    say_what_is_unknown()
    before, after = (_state(source, found[labels.index(label)]) for label in (earlier, later))
    for block in ChangesBoard(compare(before, after)).sections()[0].blocks:
        show_block(block)


def _choices(source: data.Source) -> list[_Choice]:
    """The tournament as it is now, its runs before the latest, then the other tournaments."""
    _, names = data.tournaments()
    own = source.tournament
    every = runs.latest(source.location, own)
    called = runs.names(every)
    earlier = [run for run in every[1:] if run.standings]
    return [
        _Choice(f"{own}, now", own),
        *(_Choice(f"{own}, run of {called[run.run_id]}", own, run.run_id) for run in earlier),
        *(_Choice(f"{name}, now", name) for name in names if name != own),
    ]


def _state(source: data.Source, chosen: _Choice) -> State:
    if chosen.run_id:
        every = runs.latest(source.location, chosen.tournament)
        run = next(run for run in every if run.run_id == chosen.run_id)
        return State(run.subject, run.standings)
    now = data.Source(source.location, source.version, chosen.tournament)
    return State(subject_of(data.settings(now), data.dataset(now)), standings_of(data.board(now)))
