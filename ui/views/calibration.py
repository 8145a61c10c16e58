"""Calibration: can the judge be trusted, do methods agree, and what is the answer if the judge is biased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from arena.calibration.comparison import Comparison
from arena.calibration.style import StyleEffect
from arena.calibration.words import Trust, findings, gain_from_ties
from arena.opinions.tournament import TournamentCalibration
from ui import data, text
from ui.address import link
from ui.calibration import (
    VOTERS,
    agreement_frame,
    calibration,
    effects_whiskers,
    money_frame,
    styles_frame,
    votes_whiskers,
)
from ui.states import incomplete, nothing
from ui.tables import show_table
from ui.views.coefficients import show_coefficients, show_people
from ui.views.disagreements import show_differences, show_reading_list
from ui.views.estimates import show_estimates
from ui.views.methods import show_methods
from ui.whiskers import BELOW, whiskers_html

_SIGNS: Final[dict[Trust, str]] = {
    "unknown": "Not known",
    "few": "Too few labels to say",
    "chance": "No better than chance",
    "below people": "Below people",
    "above chance": "Better than chance",
    "as people": "As good as people",
}


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Can this judge be trusted?", anchor=False)
    found = calibration(source)
    _show_notes(found)
    if found.comparisons:
        _show_trust(found.comparisons)
    else:
        _say_how_to_get_people(source.tournament)
    show_methods(found.methods)
    st.subheader("The answer if the judge is biased", anchor=False)
    show_estimates(found.comparisons)
    _show_money(found)
    _show_styles(found.styles)
    show_differences(found.comparisons)
    show_reading_list(source, found)


def _show_notes(found: TournamentCalibration) -> None:
    if found.outdated:
        incomplete(f"{found.outdated:,} things that people said are left out: the texts have changed since.")
    for level in found.apart:
        incomplete(f"people spoke of {level}, but of nothing that a judge judged: left out.")


def _say_how_to_get_people(tournament: str) -> None:
    pages = (f"[{name}]({link(name.lower(), tournament)})" for name in ("Vote", "Label", "Grade", "Assess"))
    nothing(
        "**Nobody knows yet: there are no labels of people** on anything that a judge judged. Three ways to get "
        "some:\n\n"
        f"- on the pages where people judge without knowing whose an answer is: {', '.join(pages)};\n"
        "- relevance labels: `data: {qrels: FILE}` in the YAML file, then `ragarena run`;\n"
        "- labels that you have already: `ragarena votes import`, or `ragarena calibrate CONFIG --people FILE`.\n\n"
        "Fifty labels on many queries say more than hundreds on few. Until then this page shows what needs no people."
    )


def _show_trust(comparisons: Sequence[Comparison]) -> None:
    for one in (finding for own in comparisons for finding in findings(own)):
        heading = f"{_SIGNS[one.trust]}: {one.judge}, {one.level}"
        text.lines(text.Line("strong", heading), text.Line("body", one.sentence))
    if rows := votes_whiskers(comparisons):
        st.html(whiskers_html(rows, "votes alike, %", BELOW, VOTERS))
        st.caption(
            "How often a judge says what a person says of the same thing, beside how often two people agree: that is "
            "what to measure a judge by. Whiskers: 95 % intervals, had other queries been asked."
        )
    number = st.column_config.NumberColumn
    show_table(
        agreement_frame(comparisons),
        "Judges against people",
        {
            "Things": number(help="Judged by this judge and by people."),
            "Coverage": number(format="%.1f %%", help="Of what people judged, how much the judge judged too."),
            **{name: number(format="%.1f %%") for name in ("Agrees with a vote", "Two people agree", "Without ties")},
            "Kappa": number(
                format="%.2f", help="Cohen's, against what most people say: 0 is chance, 1 full agreement."
            ),
            "Spearman": number(format="%.2f", help="Rank correlation with what most people say."),
            "Leaderboard tau": number(
                format="%.2f", help="Whether judge and people put agents in one order, by the things that both judged."
            ),
            "Bias": number(format="%+.2f", help="Mean of judge less people; verdicts have none."),
        },
        pinned="Judge",
    )
    show_coefficients(comparisons)
    show_people(comparisons)


def _show_money(found: TournamentCalibration) -> None:
    st.subheader("Which judge for the money", anchor=False)
    frame = money_frame(found)
    if frame.empty:
        st.caption("No judge of answers: this tournament plays no games.")
        return
    number = st.column_config.NumberColumn
    show_table(
        frame,
        "Judges of answers",
        {
            "Same as people": number(format="%.1f %%"),
            "Kappa": number(format="%.2f"),
            "Same in both orders": number(format="%.1f %%", help="Games with one outcome, whichever answer is first."),
            "Cost of 1000 games": number(format="$%.2f", help="None where a price is not known."),
        },
        pinned="Judge",
    )
    for one in found.comparisons:
        if one.gain is not None and one.people.level == "verdicts":
            own = one.gain
            told = f"All judges with one vote each say what people say of {own.agreement:.1%} of {own.n:,} games"
            text.plain(f"{told}; the best of them, {own.best}, of {own.best_agreement:.1%}.")
            if ties := gain_from_ties(one):
                text.plain(f"{ties[0].upper()}{ties[1:]}.")
    st.caption(
        "Take the cheapest judge whose agreement with people is no lower than that of a dearer one by more than the "
        "intervals allow, that fails seldom, and that does not change its mind with the order of the answers."
    )


def _show_styles(styles: Sequence[StyleEffect]) -> None:
    st.subheader("Style and kin", anchor=False)
    if not styles:
        st.caption("Not known: no judge has compared answers yet.")
        return
    if rows := effects_whiskers(styles):
        st.html(whiskers_html(rows, "rating points", BELOW, signed=True))
    show_table(
        styles_frame(styles),
        "Style and kin",
        {"Points": st.column_config.NumberColumn(format="%+.0f")},
    )
    st.caption(
        "What goes along with winning besides an agent's strength: rating points for one standard deviation more words "
        "(on a log scale), list items, citations or confident words; own family: points that a judge gives to its kin "
        "more than other raters do. An interval on one side of 0 is an effect. It says what verdicts go along with, "
        "not why: a longer answer may be a better one. Families are declared in the YAML file."
    )
