"""Assess: a person says which nuggets an answer states. Nobody's name, no model's label and no importance is shown."""

from __future__ import annotations

from functools import partial

import streamlit as st

from arena.boards.nugget_lists import support_words
from arena.stages.nuggets.people import Said, Sheet, annotations_of, labels_on, said_by, sheets, state_of
from arena.stages.nuggets.results import nuggets_section
from arena.store.annotations import Kind
from retrieval_eval.nuggets.types import Support
from ui import data, people, text
from ui.states import nothing


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Which facts does the answer state?", anchor=False)
    source = people.settled(source)
    results = data.nuggets(source)
    if results is None or not results.banks:
        nothing(
            "There are no nuggets yet. Give the YAML file a `nuggets` section and run `ragleague run`. "
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
    text.lead(sheet.query)
    grades = nuggets_section(data.settings(desk.source)).assign.grades
    offered = [label for label in Support if grades == 3 or label is not Support.PARTIAL]
    partly = "; *partial support*: a part of it" if grades == 3 else ""
    st.caption(f"*Support*: the answer states the whole fact{partly}. Whether the fact is true does not matter here.")
    texts = [f"{number}. {nugget.text}" for number, nugget in enumerate(sheet.nuggets, start=1)]
    desk.show_form(
        sheet,
        sheet.answer,
        list(zip(texts, labels_on(sheet, said), strict=True)),
        offered,
        lambda labels, seconds: annotations_of(sheet, labels or [None] * len(sheet.nuggets), desk.who, seconds),
        item="Nugget",
        refusal="Nuggets without a label: {}. Label them all, or skip the answer.",
        worded=support_words,
    )
