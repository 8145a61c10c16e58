"""Two states compared: tournaments as they are now, or as a run left them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd
import streamlit as st

from arena.history.comparison import Changes, Difference, Move, State, compare
from arena.history.record import standings_of, subject_of
from arena.present.numbers import listed
from ui import data, runs, text
from ui.address import pick, say_what_is_unknown
from ui.figures import between
from ui.tables import show_chart, show_table
from ui.whiskers import BELOW, Look, Mark, Whiskers, whiskers_html

_STATES: Final[Mapping[Look, str]] = {"grey": "before", "blue": "after"}
_NAMED = 8
"""Names in a cell; the others are counted."""


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
    changes = compare(before, after)
    text.lead(_in_words(changes))
    if changes.moves:
        _show_moves(changes)
    _show_subjects(changes)


def moves_frame(changes: Changes) -> pd.DataFrame:
    """A line for each agent that both states rate."""
    return pd.DataFrame(
        [
            {
                "Agent": own.agent,
                "Place before": own.place_before,
                "Place after": own.place_after,
                "Ranks before": between(own.before["rank_low"], own.before["rank_high"]),
                "Ranks after": between(own.after["rank_low"], own.after["rank_high"]),
                "Rating before": round(own.before["bt"], 1),
                "Interval before": between(own.before["bt_low"], own.before["bt_high"]),
                "Rating after": round(own.after["bt"], 1),
                "Interval after": between(own.after["bt_low"], own.after["bt_high"]),
                "Points": round(own.points, 1),
                "Intervals": {True: "apart", False: "overlap", None: "none"}[own.apart],
            }
            for own in changes.moves
        ]
    )


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


def _in_words(changes: Changes) -> str:
    if changes.same_subject and not changes.moves:
        return "Agents, judges, queries and settings are the same; no agent has a rating in both."
    if changes.same_subject:
        moved = sum(own.place_before != own.place_after for own in changes.moves)
        return (
            f"Agents, judges, queries and settings are the same; {moved} of {len(changes.moves)} agents changed place."
        )
    kinds = {"agents": changes.agents, "judges": changes.judges, "queries": changes.queries}
    different = [kind for kind, own in kinds.items() if own]
    if any(own.path.split(".")[0] != "judges" for own in changes.settings):
        different.append("settings")
    return f"Different are {listed(different)}. Ratings of different fields, judges or queries are not on one scale."


def _show_moves(changes: Changes) -> None:
    frame = moves_frame(changes)
    show_table(
        frame,
        "Agents in both",
        {
            "Place before": st.column_config.NumberColumn(help="Among the agents that both states rate."),
            "Ranks before": st.column_config.TextColumn(help="The ranks it might have, among all agents there."),
            "Points": st.column_config.NumberColumn(format="%+.1f", help="Rating points gained."),
            "Intervals": st.column_config.TextColumn(
                help="Apart: the two intervals share no point, so the change is more than the ratings' own uncertainty."
            ),
        },
        pinned="Agent",
    )
    show_chart(
        whiskers_html(_lines(changes.moves), "Bradley-Terry rating, points", BELOW, _STATES),
        "A mark is a Bradley-Terry rating, the line its interval. Where both states share games, overlapping intervals "
        "do not show that nothing changed.",
        frame[["Agent", "Rating before", "Interval before", "Rating after", "Interval after"]],
        "Ratings in both",
    )


def _lines(moves: Sequence[Move]) -> list[Whiskers]:
    """Each agent's ratings before and after."""
    return [
        Whiskers(
            own.agent,
            [
                Mark(line["bt"], line["bt_low"], line["bt_high"], look)
                for look, line in zip(_STATES, (own.before, own.after), strict=True)
            ],
        )
        for own in moves
    ]


def _show_subjects(changes: Changes) -> None:
    """What differs in agents, judges, queries and settings."""
    kinds: Mapping[str, Difference] = {"Agents": changes.agents, "Judges": changes.judges, "Queries": changes.queries}
    rows = [
        {"What": kind, "Added": _few(own.added), "Removed": _few(own.removed), "Changed": _few(own.changed)}
        for kind, own in kinds.items()
        if own
    ]
    if rows:
        show_table(pd.DataFrame(rows), "Agents, judges and queries that differ")
    if changes.settings:
        settings = [
            {"Setting": own.path, "Before": _value(own.before), "After": _value(own.after)} for own in changes.settings
        ]
        show_table(pd.DataFrame(settings), "Settings that differ")


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return text.clipped(shown, 300) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")


def _value(value: object) -> str:
    return "not set" if value is None else text.clipped(str(value), 200)
