"""Runs: plan, start, watch and stop them, and what changed since an earlier one; ratings over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import streamlit as st

from arena.boards.changes import BoardState, compare
from arena.boards.history import HistoryBoard, history
from arena.boards.runs import PlanBoard, agents_so_far, in_words, run_names, runs_table, stages_table
from arena.data.safe_files import digest
from arena.present.numbers import COUNT, MONEY, listed
from arena.present.table import Column, Table
from arena.results.cache import rating_draws
from arena.results.coverage import AGENTS_ASKED, STAGES
from arena.run.plan import plan
from arena.run.recorder import standings_of, subject_of
from arena.store.runs import StoredRun
from arena.store.wants import TournamentProgress
from judges.errors import CAUSES, RagleagueError, StoreError
from ui import data, editing, runs, text
from ui.address import link, pick, unfold
from ui.editing import Session
from ui.show import draw, show_table
from ui.text import no_tournament, nothing, problem

_EVERY_S: Final = 2.0
"""How often the page looks how far a run is."""
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
    """Draw the runs; ``None`` where no tournament has begun yet."""
    session = editing.session()
    editing.say_refused("Not done.")
    name = source.tournament if source is not None else session.config.name if session is not None else None
    if name is None:
        no_tournament()
        return
    found = runs.latest(data.location(), name)
    own = session if session is not None and session.config.name == name else None
    if own is None and not found and source is not None and data.settings(source).imported:
        nothing(f"No run of this tournament has been recorded yet. {text.IMPORTED}")
        return
    _show_now(own, name, found)
    if own is not None:
        _show_next(own)
    else:
        st.caption(editing.why_not() if session is None else f"The pages were started for {session.config.name}.")
    if found:
        changed, every = st.columns(2)
        with every:
            _show_all(source, found)
        if source is not None:
            with changed:
                _show_changes(source, found)


def show_history(source: data.Source) -> None:
    """Draw the ratings over runs and versions."""
    board = _history(source)
    if len(board.moments) < 2 or not board.agents:
        imported = text.IMPORTED if data.settings(source).imported else ""
        nothing(f"There is no history yet: once two runs have given ratings, both stand here. {imported}")
        return
    agents = [board.drawn, *(agent for agent in board.agents if agent != board.drawn)]
    agent = pick("Agent", agents, "agent", width=320)
    draw(*HistoryBoard(board.moments, agent).sections()[0].blocks)


_draws = data.judged(rating_draws, "Rating the games …")


@data.derived("Reading the runs …")
def _history(source: data.Source) -> HistoryBoard:
    found = runs.latest(source.location, source.tournament)
    return history(found, data.board(source), data.dataset(source), _draws(source))


def _show_now(session: Session | None, name: str, found: list[StoredRun]) -> None:
    """The run at work, drawn anew every few seconds, or how the last one ended."""
    run = found[0] if found else None
    if (session is not None and runs.begins(session)) or (run is not None and run.state == "running"):
        st.fragment(_keep_showing, run_every=_EVERY_S)(session, name)
        return
    failed = run is not None and run.state != "complete"
    if session is not None and runs.never_began(session, run):
        st.error("The last run ended before it began to judge; its log says why.")
        failed = True
    elif run is not None:
        kind, said = _ENDED[run.state]
        {"success": st.success, "warning": st.warning, "info": st.info, "error": st.error}[kind](said)
    else:
        nothing("No run of this tournament has been recorded yet.")
    if failed and session is not None and (log := runs.log_tail(session)):
        with st.expander("The log of the last run started here"):
            text.passage(log, "log", label="Log", empty="", raw=True)


def _keep_showing(session: Session | None, name: str) -> None:
    """How far the run is; ends by drawing the whole page once it has ended."""
    try:
        found = runs.at_work(data.location(), name)
        if not found and (session is None or not runs.begins(session)):
            st.rerun()
        if not found:
            st.info("A run begins: it reads the data.")
        else:
            _show_at_work(found, runs.how_far(data.location(), name))
    except StoreError as error:
        problem("The store cannot be read just now.", error)
        return
    if session is not None:
        run = found[0] if found else None
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


def _show_at_work(found: Sequence[StoredRun], so_far: TournamentProgress) -> None:
    """How far each stage is, what failed why, and what each run at work has spent."""
    called = run_names(found)
    since = [f"{datetime.fromtimestamp(run.begun, UTC):%H:%M:%S}" for run in reversed(found)]
    st.info(f"{'A run is' if len(found) == 1 else f'{len(found)} runs are'} at work since {listed(since)} UTC.")
    for run in reversed(found):
        done, failed, wanted = agents_so_far(run)
        if wanted:
            whose = f" by the run of {called[run.run_id]}" if len(found) > 1 else ""
            _show_bar(f"{AGENTS_ASKED}{whose}", done, failed, wanted)
    for task, stage in so_far.stages.items():
        _show_bar(STAGES[task], stage.judged + stage.failed, stage.failed, stage.wanted)
    unknown = f", and {so_far.cost_unknown:,} judgments of unknown cost" if so_far.cost_unknown else ""
    text.quiet(f"Cost of the tournament's judgments so far, of all runs: {MONEY.write(so_far.cost_usd)}{unknown}.")
    causes = [
        {"stage": STAGES[task], "failures": count, "cause": CAUSES.get(cause, cause)}
        for task, stage in so_far.stages.items()
        for cause, count in stage.causes.items()
    ]
    show_table(Table("failures-by-cause", "", _CAUSES, causes))
    for run in reversed(found):
        text.quiet(f"The run of {called[run.run_id]} so far: {in_words(run)}.")


def _show_bar(words: str, done: int, failed: int, wanted: int) -> None:
    also = f", {failed:,} failed" if failed else ""
    st.progress(min(1.0, done / wanted), text=f"{words}: {done:,} of {wanted:,}{also}")


def _show_next(session: Session) -> None:
    """What the next run would ask; it is started only after that has been seen."""
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
        disabled=runs.begins(session),
        icon=":material/play_arrow:",
    )


def _start(session: Session, again: bool) -> None:
    runs.start(session, retry_failed=again)
    st.session_state.pop(_PLAN, None)


def _show_changes(source: data.Source, found: Sequence[StoredRun]) -> None:
    """What is different now from an earlier run, or from another tournament."""
    called = run_names(found)
    earlier = {f"run of {called[run.run_id]}": run for run in found[1:] if run.standings}
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


def _show_all(source: data.Source | None, found: list[StoredRun]) -> None:
    """Every run in a table, and the stages of one."""
    st.subheader("All runs", anchor=False)
    called = run_names(found)
    names = [called[run.run_id] for run in found]

    def leads(run: StoredRun) -> str:
        return "" if source is None else link("workbench", source, view="runs", run=called[run.run_id])

    show_table(runs_table(found, leads))
    run = found[names.index(pick("Run", names, "run", width=420))]
    text.quiet(f"This run: {in_words(run)}.")
    with unfold("Stage by stage", "stages") as fold:
        if fold.open:
            show_table(stages_table(run))
