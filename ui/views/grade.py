"""Grade: a person grades an answer by the judges' criteria. Neither its agent nor anybody else's grade is shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from arena.stages.samples import outcomes
from arena.store import Store
from arena.store.annotations import Annotation, Kind
from arena.voting.grades import Paper, Rubric, annotations_of, papers, rubric_of
from judges.types import Judgment, Task
from ui import data, people, text
from ui.states import nothing


def _graded(store: Store, tournament: str) -> Sequence[tuple[str, str]]:
    found = outcomes(store, tournament, Task.CRITERIA)
    return list(dict.fromkeys((want.query_id, want.item) for want, said in found if isinstance(said, Judgment)))


graded_answers = data.stored(_graded, "Reading the grades …")
"""Query and agent of every answer that a judge graded."""


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("How good is the answer?", anchor=False)
    source = people.settled(source)
    rubric, graded = rubric_of(data.settings(source)), graded_answers(source)
    if rubric is None or not graded:
        nothing(
            "No answer has a grade yet. Give the YAML file a `criteria` section and run `ragleague run`. "
            "Then people can grade here what the judges graded."
        )
    elif who := people.annotator():
        desk = people.Desk[Paper](source, who, Kind.CRITERIA, "answers", "graded")
        todo = papers(graded, data.dataset(source), desk.said(), who)
        desk.go_through(todo, [paper.state for paper in todo], partial(_show_paper, rubric))


def _show_paper(rubric: Rubric, desk: people.Desk[Paper], paper: Paper) -> None:
    """The answer beside the criteria, each with its grades to choose from."""
    text.lead(paper.query)
    st.caption(f"From {rubric.low}, not at all, to {rubric.high}, fully. Grade each criterion on its own.")
    earlier = paper.said or {}
    criteria = [(f"{name}: {told}" if told else name, earlier.get(name)) for name, told in rubric.criteria.items()]

    def annotations(grades: Sequence[int] | None, seconds: float | None) -> list[Annotation]:
        given = None if grades is None else dict(zip(rubric.criteria, grades, strict=True))
        return annotations_of(paper, given, desk.who, seconds)

    desk.show_form(
        paper,
        paper.answer,
        criteria,
        range(rubric.low, rubric.high + 1),
        annotations,
        item="Criterion",
        refusal="Criteria without a grade: {}. Grade by all, or skip the answer.",
    )
