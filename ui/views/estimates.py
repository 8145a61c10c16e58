"""Means, win rates and ratings by judge and people together: a part of the page of calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import streamlit as st

from arena.calibration.comparison import Comparison, JudgeReport
from arena.calibration.estimates import Estimates
from retrieval_eval.stats.estimate import Estimate
from ui import text
from ui.address import note_unless, pick, say_what_is_unknown
from ui.calibration import reports
from ui.estimates import WAYS, estimates_frame, ratings_frame, three_ways
from ui.figures import NONE
from ui.tables import show_table
from ui.whiskers import BELOW, whiskers_html

_LEAST_WIDTH: Final = 0.001


def choose(key: str, options: Sequence[tuple[Comparison, str, JudgeReport]]) -> tuple[Comparison, str, JudgeReport]:
    """One of the judges and levels, asked for where there are several."""
    named = [f"{name}, {one.people.level}" for one, name, _ in options]
    label = "Judge and what it judged"
    if len(options) == 1:
        note_unless(label, key, named.__contains__)
    else:
        options = [options[named.index(pick(label, named, key, width=420))]]
    say_what_is_unknown()
    return options[0]


def show_estimates(comparisons: Sequence[Comparison]) -> None:
    """Draw the part, below its heading."""
    known = [entry for entry in reports(comparisons) if entry[2].estimates is not None and entry[2].estimates.figures]
    if not known:
        st.caption(
            "Not known without labels of people: they measure the judge's error on a few things, and that corrects its "
            "figures over all of them."
        )
        return
    one, name, report = choose("corrected", known)
    own = report.estimates
    assert own is not None
    rates = one.people.level == "verdicts"
    what = "win rate, ties half" if rates else "mean"
    text.plain(_in_words(own, name))
    _show_three_ways(
        what,
        [(entry.name, (found := entry.corrected).corrected, found.people, found.judge) for entry in own.figures],
    )
    label = "Say how many labels an interval of this width needs"
    note_unless(label, "width", _is_width)
    say_what_is_unknown()
    width = st.number_input(
        label,
        min_value=_LEAST_WIDTH,
        value=0.2,
        step=0.01,
        format="%.3f",
        key="width",
        bind="query-params",
        width=420,
    )
    number = st.column_config.NumberColumn
    ways = ("Corrected", "People alone", "Judge alone")
    show_table(
        estimates_frame(own, width),
        "Corrected figures",
        {
            **{way: number(format="%.3f") for way in ways},
            "Weight": number(format="%.2f", help="How far the judge is listened to: 0 is not at all."),
            "Labelled": number(help="Things that people labelled, of those that the judge judged."),
            "Without judge": st.column_config.TextColumn(help="Labels for the same width, were there no judge."),
        },
        pinned="Figure",
    )
    st.caption(
        f"{'Win rates, a tie being half a win' if rates else 'Means'}. Corrected: the judge's figure over all things, "
        "moved by its error on those that people labelled; right whatever the judge is like, if **what people labelled "
        "is a random sample** (`ragarena calibrate --next` draws one). The judge's own interval knows nothing of its "
        "bias."
    )
    if rates:
        _show_ratings(own)


def _is_width(asked: str) -> bool:
    try:
        return _LEAST_WIDTH <= float(asked) < math.inf
    except ValueError:
        return False


def _show_three_ways(what: str, figures: Sequence[tuple[str, Estimate, Estimate, Estimate]]) -> None:
    if rows := three_ways(figures):
        st.html(whiskers_html(rows, what, BELOW, WAYS))


def _in_words(own: Estimates, judge: str) -> str:
    """Which figure the judge gets most wrong."""
    gaps = {
        entry.name: entry.corrected.judge.value - entry.corrected.corrected.value
        for entry in own.figures
        if entry.corrected.judge.value is not None and entry.corrected.corrected.value is not None
    }
    outside = [
        entry.name
        for entry in own.figures
        if (found := entry.corrected).corrected.low is not None
        and found.corrected.high is not None
        and found.judge.value is not None
        and not found.corrected.low <= found.judge.value <= found.corrected.high
    ]
    if not gaps:
        return "No figure can be corrected yet."
    worst = max(gaps, key=lambda name: abs(gaps[name]))
    said = f"{judge} is furthest off for {worst}: {gaps[worst]:+.3f} against the corrected figure."
    if not outside:
        return f"{said} No figure of the judge lies outside the corrected interval."
    return f"{said} {len(outside)} of {len(own.figures)} figures of the judge lie outside the corrected interval."


def _show_ratings(own: Estimates) -> None:
    if own.ratings is None:
        text.quiet(f"No corrected ratings: {own.no_ratings}")
        return
    found = own.ratings
    people = found.people or [NONE] * len(found.agents)
    rows = zip(found.agents, found.corrected, people, found.judge, strict=True)
    _show_three_ways("Bradley-Terry rating, points", sorted(rows, key=lambda row: -(row[1].value or 0)))
    number = st.column_config.NumberColumn
    show_table(
        ratings_frame(own),
        "Corrected ratings",
        {way: number(format="%.0f") for way in ("Corrected", "People alone", "Judge alone")},
    )
    doubt = "" if found.converged else " The fit has not converged: do not use these."
    st.caption(
        f"Ratings with ties as half a win, from {found.labelled:,} labelled games of {found.games:,}, on "
        f"{found.queries:,} queries; the judge weighs {found.weight:.2f}.{doubt}"
    )
