"""Assess: a person says which nuggets an answer states. Nobody's name, no model's label and no importance is shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import streamlit as st

from arena.boards.nugget_lists import support_words
from arena.nuggets.people import Said, Sheet, annotations_of, labels_on, said_by, sheets, state_of
from arena.nuggets.results import nuggets_section
from arena.store.annotations import Kind
from retrieval_eval.nuggets.types import Support
from ui import data, people, text
from ui.states import nothing

_HEIGHT: Final = 440
"""Pixels of the answer and of the list beside it: both are seen at once on a common screen."""
_OF_A_NUGGET: Final = 70
"""Pixels that a nugget takes at least."""


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Which facts does the answer state?", anchor=False)
    source = people.settled(source)
    results = data.nuggets(source)
    if results is None or not results.banks:
        nothing(
            "There are no nuggets yet. Give the YAML file a `nuggets` section and run `ragarena run`. "
            "Then people can say here which of them each answer states."
        )
    elif who := people.annotator():
        desk = people.Desk[Sheet](source, who, Kind.NUGGET, "answers", "assessed")
        said = said_by(desk.said(), who)
        todo = sheets(results.banks, data.dataset(source).answers.values(), who)
        if todo:
            desk.go_through(todo, [state_of(sheet, said) for sheet in todo], partial(_show_sheet, said))
        else:
            nothing("No answer to read: every answer to a query with nuggets is empty.")


def _show_sheet(said: Said, desk: people.Desk[Sheet], sheet: Sheet) -> None:
    """The answer beside the query's nuggets, each with its labels to choose from."""
    earlier = labels_on(sheet, said)
    own = desk.key(sheet)
    text.lead(sheet.query)
    grades = nuggets_section(data.settings(desk.source)).assign.grades
    offered = [label for label in Support if grades == 3 or label is not Support.PARTIAL]
    partly = "; *partial support*: a part of it" if grades == 3 else ""
    st.caption(f"*Support*: the answer states the whole fact{partly}. Whether the fact is true does not matter here.")
    left, right = st.columns(2, gap="medium")
    with left:
        text.passage(sheet.answer, f"assess-{own}", empty="", height=_HEIGHT, border=True)
    with right, st.form(f"assess-form-{own}", border=False):
        keys = []
        fits = len(sheet.nuggets) * _OF_A_NUGGET < _HEIGHT
        with st.container(height="content" if fits else _HEIGHT, border=True, key=f"assess-nuggets-{own}"):
            for number, (nugget, label) in enumerate(zip(sheet.nuggets, earlier, strict=True), start=1):
                keys.append(f"assess-{own}-{number}")
                with st.container(gap="xsmall"):
                    text.strong(f"{number}. {nugget.text}")
                    people.choice(f"Nugget {number}", keys[-1], offered, label, support_words)
        desk.show_problem()
        people.form_buttons(own, partial(_save, desk, sheet, keys), partial(_skip, desk, sheet))


def _save(desk: people.Desk[Sheet], sheet: Sheet, keys: Sequence[str]) -> None:
    labels: list[Any] = [st.session_state.get(key) for key in keys]
    if missing := labels.count(None):
        desk.refuse(f"Nuggets without a label: {missing}. Label them all, or skip the answer.")
        return
    desk.keep(annotations_of(sheet, labels, desk.who, desk.seconds(sheet)))


def _skip(desk: people.Desk[Sheet], sheet: Sheet) -> None:
    desk.keep(annotations_of(sheet, [None] * len(sheet.nuggets), desk.who))
