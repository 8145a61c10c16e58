"""Vote: a person says which of two answers is better. Neither agents nor what a judge said is shown, ever."""

from __future__ import annotations

from typing import Final

import streamlit as st

from arena.store.annotations import Annotation, Kind
from arena.voting.games import Ballot, annotation_of, ballots
from judges.errors import InputError
from judges.types import Verdict
from ui import data, people, text
from ui.states import nothing

_CHOICES: Final = ((Verdict.A, "Answer 1 is better"), (Verdict.B, "Answer 2 is better"), (Verdict.TIE, "A tie"))
"""In the order of their keys 1, 2, 3."""


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Which answer is better?", anchor=False)
    source = people.settled(source)
    games = data.met(source)
    if not games:
        nothing(
            "No game has a verdict yet. Give the YAML file a `pairwise` section and run `ragleague run`. "
            "Then people can vote here on what the judges judged."
        )
    elif who := people.annotator():
        desk = people.Desk[Ballot](source, who, Kind.VERDICT, "queries", "voted on")
        todo = ballots(games, data.dataset(source), desk.said(), who)
        desk.go_through(todo, [ballot.state for ballot in todo], _show_ballot)


def _show_ballot(desk: people.Desk[Ballot], ballot: Ballot) -> None:
    own = desk.key(ballot)
    text.lead(ballot.query)
    st.caption("Which answer serves the one who asked better? *A tie*: they are equally good, or equally bad.")
    for number, (column, answer) in enumerate(zip(st.columns(2, gap="medium"), ballot.answers, strict=True), start=1):
        with column:
            st.caption(f"Answer {number}")
            text.passage(answer, f"{number}-{own}", empty="This answer is empty.", height=people.HEIGHT, border=True)
    if ballot.answers[0] == ballot.answers[1]:
        st.caption("Both answers are the same, word for word.")
    desk.show_problem()
    with people.buttons(own):
        for number, (verdict, words) in enumerate(_CHOICES, start=1):
            st.button(
                words,
                key=f"choice-{number}-{own}",
                type="primary" if ballot.said is verdict else "secondary",
                shortcut=str(number),
                on_click=_vote,
                args=(desk, ballot, verdict),
            )
        people.skip_button(own, _vote, desk, ballot)


def _vote(desk: people.Desk[Ballot], ballot: Ballot, verdict: Verdict | None) -> None:
    texts, game = data.dataset(desk.source), (ballot.query_id, *ballot.agents)

    def same_pair(said: list[Annotation]) -> None:
        """Whether no other window asked the query with another pair, of a tournament that has changed since."""
        own = [one for one in said if one.kind is Kind.VERDICT]
        (asked,) = ballots([game], texts, own, desk.who)
        if set(asked.agents) != set(ballot.agents):
            raise InputError("You have voted on two other answers to this query meanwhile.")

    seconds = None if verdict is None else round(desk.seconds(ballot), 2)
    desk.keep([annotation_of(ballot, verdict, desk.who, seconds)], same_pair)
