"""Grade: a person grades an answer by the judges' criteria. Neither its agent nor anybody else's grade is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Final

import streamlit as st

from arena.samples import outcomes
from arena.store import Store
from arena.store.annotations import Kind
from arena.voting.grades import Paper, Rubric, annotations_of, papers, rubric_of
from judges.types import Judgment, Task
from ui import data, people, text
from ui.states import nothing

_HEIGHT: Final = 440
"""Pixels of the answer: it and the criteria beside it are seen at once on a common screen."""


@st.cache_resource(max_entries=4, show_spinner="Reading the grades …")
def graded_answers(source: data.Source) -> Sequence[tuple[str, str]]:
    """Query and agent of every answer that a judge graded."""
    with closing(Store.open(source.location)) as store:
        found = outcomes(store, source.tournament, Task.CRITERIA)
    return list(dict.fromkeys((want.query_id, want.item) for want, own in found if isinstance(own, Judgment)))


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("How good is the answer?", anchor=False)
    source = people.settled(source)
    rubric, graded = rubric_of(data.settings(source)), graded_answers(source)
    if rubric is None or not graded:
        nothing(
            "No answer has a grade yet. Give the YAML file a `criteria` section and run `ragarena run`. "
            "Then people can grade here what the judges graded."
        )
    elif who := people.annotator():
        desk = people.Desk[Paper](source, who, Kind.CRITERIA, "answers", "graded")
        todo = papers(graded, data.dataset(source), desk.said(), who)
        desk.go_through(todo, [paper.state for paper in todo], partial(_show_paper, rubric))


def _show_paper(rubric: Rubric, desk: people.Desk[Paper], paper: Paper) -> None:
    """The answer beside the criteria, each with its grades to choose from."""
    own = desk.key(paper)
    text.lead(paper.query)
    st.caption(f"From {rubric.low}, not at all, to {rubric.high}, fully. Grade each criterion on its own.")
    left, right = st.columns(2, gap="medium")
    with left:
        text.passage(paper.answer, f"grade-{own}", empty="This answer is empty.", height=_HEIGHT, border=True)
    with right, st.form(f"grade-form-{own}", border=False):
        keys, offered = {}, range(rubric.low, rubric.high + 1)
        for number, (name, description) in enumerate(rubric.criteria.items(), start=1):
            keys[name] = f"grade-{own}-{number}"
            with st.container(gap="xsmall"):
                text.strong(f"{name}: {description}" if description else name)
                people.choice(f"Criterion {number}", keys[name], offered, (paper.said or {}).get(name))
        desk.show_problem()
        people.form_buttons(own, partial(_save, desk, paper, keys), partial(_skip, desk, paper))


def _save(desk: people.Desk[Paper], paper: Paper, keys: Mapping[str, str]) -> None:
    given = {name: st.session_state.get(key) for name, key in keys.items()}
    grades = {name: grade for name, grade in given.items() if grade is not None}
    if missing := len(given) - len(grades):
        desk.refuse(f"Criteria without a grade: {missing}. Grade by all, or skip the answer.")
        return
    desk.keep(annotations_of(paper, grades, desk.who, round(desk.seconds(paper), 2)))


def _skip(desk: people.Desk[Paper], paper: Paper) -> None:
    desk.keep(annotations_of(paper, None, desk.who))
