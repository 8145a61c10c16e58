"""The page Workbench: plan, start, watch and stop runs, changes since earlier runs, and ratings over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import streamlit as st

from arena.boards.history import BoardState, HistoryBoard, compare, history
from arena.boards.runs import PlanBoard, agents_so_far, in_words, run_names, runs_table, stages_table
from arena.data.safe_files import digest
from arena.present.numbers import COUNT, MONEY, listed
from arena.present.table import Column, Table
from arena.results.cache import rating_draws
from arena.results.outcomes import AGENTS_ASKED, stage_words
from arena.run.plan import plan
from arena.run.recorder import standings_of, subject_of
from arena.store.runs import StoredRun
from arena.store.wants import TournamentProgress
from judges.errors import CAUSES, RagleagueError, StoreError
from ui import data, editing, onward, runs, text
from ui.address import link, pick, unfold
from ui.editing import Session
from ui.show import draw, show_table
from ui.text import nothing, problem

_REFRESH_S: Final = 2.0
"""Seconds between updates while a run is active."""
_PLAN: Final = "runs-plan"
_CAUSES: Final = (Column("stage", "Stage"), Column("failures", "Failures", COUNT), Column("cause", "Cause"))

_ENDED: Final[Mapping[str, tuple[str, str]]] = {
    "complete": ("success", "The last run is complete: everything it was asked for is there."),
    "incomplete": ("warning", "The last run ended, and judgments or answers are missing. Start again to ask for them."),
    "stopped": ("info", "The last run was stopped. What it judged is kept; start again to go on."),
    "failed": ("error", "The last run could not go on; its log says why. What it judged is kept."),
    "killed": ("error", "The last run was killed: its process is gone. What it judged is kept; start again to go on."),
}


def show_runs(source: data.Source | None) -> None:
    """Draw the current run, the plan of the next, and past runs; ``source`` is ``None`` if the store is empty."""
    session = editing.session()
    editing.say_refused("Not done.")
    name = source.tournament if source is not None else session.config.name if session is not None else None
    if name is None:
        onward.run("This store holds no tournament yet.", data.Source("", (0, 0, 0), ""))
        return
    stored_runs = runs.latest(data.location(), name)
    editable = session if session is not None and session.config.name == name else None
    if editable is None and not stored_runs and source is not None and data.settings(source).imported:
        onward.run("No run of this tournament has been recorded yet.", source)
        return
    _show_now(editable, name, stored_runs)
    if editable is not None:
        _show_next(editable)
    else:
        st.caption(editing.why_not() if session is None else f"The pages were started for {session.config.name}.")
    if stored_runs:
        changed, all_runs = st.columns(2)
        with all_runs:
            _show_all(source, stored_runs)
        if source is not None:
            with changed:
                _show_changes(source, stored_runs)


def show_history(source: data.Source) -> None:
    """Draw how the agents' ratings changed over runs and versions."""
    board = _history(source)
    if len(board.moments) < 2 or not board.agents:
        onward.run("There is no history yet: once two runs have given ratings, both stand here.", source)
        return
    agents = [board.drawn, *(agent for agent in board.agents if agent != board.drawn)]
    agent = pick("Agent", agents, "agent", width=320)
    draw(*HistoryBoard(board.moments, agent).sections()[0].blocks)


_draws = data.judged(rating_draws, "Rating the games …")


@data.derived("Reading the runs …")
def _history(source: data.Source) -> HistoryBoard:
    stored_runs = runs.latest(source.location, source.tournament)
    return history(stored_runs, data.board(source), data.dataset(source), _draws(source))


def _show_now(session: Session | None, name: str, stored_runs: list[StoredRun]) -> None:
    """Draw the active run, refreshed every few seconds; if none is active, how the last run ended."""
    run = stored_runs[0] if stored_runs else None
    if (session is not None and runs.is_alive(session)) or (run is not None and run.state == "running"):
        st.fragment(_keep_showing, run_every=_REFRESH_S)(session, name)
        return
    failed = run is not None and run.state != "complete"
    if session is not None and runs.failed_to_start(session, run):
        st.error("The last run ended before it began to judge; its log says why.")
        failed = True
    elif run is not None:
        kind, sentence = _ENDED[run.state]
        {"success": st.success, "warning": st.warning, "info": st.info, "error": st.error}[kind](sentence)
    else:
        nothing("No run of this tournament has been recorded yet.")
    if failed and session is not None and (log := runs.log_tail(session)):
        with st.expander("The log of the last run started here"):
            text.passage(log, "log", label="Log", empty="", raw=True)


def _keep_showing(session: Session | None, name: str) -> None:
    """Draw the active run's progress; redraws the whole page once the run has ended."""
    try:
        active_runs = runs.active(data.location(), name)
        if not active_runs and (session is None or not runs.is_alive(session)):
            st.rerun()
        if not active_runs:
            st.info("A run begins: it reads the data.")
        else:
            _show_active(active_runs, runs.current_progress(data.location(), name))
    except StoreError as error:
        problem("The store cannot be read just now.", error)
        return
    if session is not None:
        run = active_runs[0] if active_runs else None
        is_stopping = runs.stopping(session, run)
        st.button(
            "Stop at once" if is_stopping else "Stop",
            on_click=editing.attempt,
            args=(runs.stop, session, run),
            icon=":material/stop:",
            help="The first press lets the run finish its calls in flight, like Ctrl-C; the second stops it at once.",
        )
        if is_stopping:
            st.caption("It has been asked to stop and finishes what is in flight.")


def _show_active(active_runs: Sequence[StoredRun], so_far: TournamentProgress) -> None:
    """Draw the progress of each stage, the number of failures by cause, and the cost of each active run."""
    names = run_names(active_runs)
    since = [f"{datetime.fromtimestamp(run.begun, UTC):%H:%M:%S}" for run in reversed(active_runs)]
    st.info(
        f"{'A run is' if len(active_runs) == 1 else f'{len(active_runs)} runs are'} at work since {listed(since)} UTC."
    )
    for run in reversed(active_runs):
        done, failed, wanted = agents_so_far(run)
        if wanted:
            of_run = f" by the run of {names[run.run_id]}" if len(active_runs) > 1 else ""
            _show_bar(f"{AGENTS_ASKED}{of_run}", done, failed, wanted)
    words = stage_words()
    for task, stage in so_far.stages.items():
        _show_bar(words.get(task, task), stage.judged + stage.failed, stage.failed, stage.wanted)
    unknown = f", and {so_far.cost_unknown:,} judgments of unknown cost" if so_far.cost_unknown else ""
    text.quiet(f"Cost of the tournament's judgments so far, of all runs: {MONEY.write(so_far.cost_usd)}{unknown}.")
    causes = [
        {"stage": words.get(task, task), "failures": count, "cause": CAUSES.get(cause, cause)}
        for task, stage in so_far.stages.items()
        for cause, count in stage.causes.items()
    ]
    show_table(Table("failures-by-cause", "", _CAUSES, causes))
    for run in reversed(active_runs):
        text.quiet(f"The run of {names[run.run_id]} so far: {in_words(run)}.")


def _show_bar(words: str, done: int, failed: int, wanted: int) -> None:
    failures = f", {failed:,} failed" if failed else ""
    st.progress(min(1.0, done / wanted), text=f"{words}: {done:,} of {wanted:,}{failures}")


def _show_next(session: Session) -> None:
    """Draw the plan of the next run; the button that starts the run appears only once the plan is drawn."""
    st.subheader("The next run", anchor=False)
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
    draw(*PlanBoard(planned).sections()[0].blocks)
    again = st.toggle("Also ask again where a judge gave an unusable reply", key="runs-retry")
    st.button(
        "Start the run",
        type="primary",
        on_click=editing.attempt,
        args=(_start, session, again),
        disabled=runs.is_alive(session),
        icon=":material/play_arrow:",
    )


def _start(session: Session, again: bool) -> None:
    runs.start(session, retry_failed=again)
    st.session_state.pop(_PLAN, None)


def _show_changes(source: data.Source, stored_runs: Sequence[StoredRun]) -> None:
    """Draw what changed since an earlier run, or what differs from another tournament."""
    names = run_names(stored_runs)
    earlier = {f"run of {names[run.run_id]}": run for run in stored_runs[1:] if run.standings}
    others = [name for name in data.tournaments()[1] if name != source.tournament]
    st.subheader("What changed", anchor=False)
    if not earlier and not others:
        st.caption("Nothing to compare yet: after another run, or with a second tournament, this says what changed.")
        return
    chosen = pick("Since", [*earlier, *others], "since", width=420)
    run = earlier.get(chosen)
    other = data.Source(source.location, source.version, chosen)
    before = _state(other) if run is None else BoardState(run.subject, run.standings)
    draw(*compare(before, _state(source)).sections()[0].blocks)


def _state(source: data.Source) -> BoardState:
    return BoardState(subject_of(data.settings(source), data.dataset(source)), standings_of(data.board(source)))


def _show_all(source: data.Source | None, stored_runs: list[StoredRun]) -> None:
    """Draw a table of all runs, and the stages of the selected run."""
    st.subheader("All runs", anchor=False)
    names_by_run = run_names(stored_runs)
    names = [names_by_run[run.run_id] for run in stored_runs]

    def leads(run: StoredRun) -> str:
        return "" if source is None else link("workbench", source, view="runs", run=names_by_run[run.run_id])

    show_table(runs_table(stored_runs, leads))
    run = stored_runs[names.index(pick("Run", names, "run", width=420))]
    text.quiet(f"This run: {in_words(run)}.")
    with unfold("Stage by stage", "stages") as fold:
        if fold.open:
            show_table(stages_table(run))
