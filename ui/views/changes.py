"""Two states compared: tournaments as they are now, or as a run left them."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from arena.boards.changes import ChangesBoard
from arena.history.comparison import State, compare
from arena.history.record import standings_of, subject_of
from ui import data, runs
from ui.address import pick, say_what_is_unknown
from ui.show import show_block


@dataclass(frozen=True, slots=True)
class _Choice:
    """A state that can be compared; ``run_id`` is empty for a tournament as it is now."""

    label: str
    tournament: str
    run_id: str = ""


def show(source: data.Source) -> None:
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
