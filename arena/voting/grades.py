"""People grade: an answer by the criteria of the judges, without knowing whose it is or what these gave it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from arena.config.judging import CriteriaSection
from arena.data.dataset import Dataset
from arena.opinions.people import texts_now
from arena.store.annotations import Annotation, Kind, texts_digest
from arena.voting.things import State, asker, drawn
from judges.criteria import Criterion

_Heard: TypeAlias = Mapping[tuple[str, str], Mapping[str, int] | None]
"""Grades by query and agent, ``None`` where they were skipped."""


@dataclass(frozen=True, slots=True)
class Rubric:
    """What answers are graded by: criteria with a description each, or none, and the whole numbers from low to high."""

    criteria: Mapping[str, str]
    low: int
    high: int


@dataclass(frozen=True)
class Paper:
    """One answer to be graded.

    Attributes:
        answer: its text.
        agents: who gave this answer; not for the grader's eyes.
        state: what became of it.
        said: grades by criterion, where there are any.
    """

    query_id: str
    query: str
    answer: str
    agents: tuple[str, ...]
    state: State = State.OPEN
    said: Mapping[str, int] | None = None

    @property
    def thing_id(self) -> str:
        """Twelve hexadecimal digits for what is read."""
        return texts_digest(self.query_id, self.query, self.answer)[:12]


def rubric_of(settings: Mapping[str, Any]) -> Rubric | None:
    """A tournament's, ``None`` where its answers are graded by none."""
    section = settings.get("criteria")
    if not section:
        return None
    criteria = CriteriaSection.model_validate({"judge": "", **section}).listed()
    return Rubric({each.name: _described(each) for each in criteria}, *section["scale"])


def _described(criterion: Criterion) -> str:
    """What a person reads of a criterion: the same as the judge."""
    levels = "; ".join(f"{grade}: {meaning}" for grade, meaning in criterion.levels)
    return (
        f"{criterion.description} ({levels})" if levels and criterion.description else levels or criterion.description
    )


def papers(graded: Iterable[tuple[str, str]], data: Dataset, said: Iterable[Annotation], annotator: str) -> list[Paper]:
    """What a person is to grade, in their own random order. Answers of one text are read once, a changed one anew.

    Args:
        graded: query and agent of every answer that a judge graded.
        data: the texts.
        said: the latest word of this person.
        annotator: who they are.
    """
    heard: _Heard = {
        (own.query_id, own.item): own.value
        for own in said
        if own.kind is Kind.CRITERIA and texts_now(own, data, {}) == own.texts
    }
    agents: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for query_id, agent in graded:
        agents[query_id, data.answers[query_id, agent].text].append(agent)
    order = sorted(agents, key=lambda names: drawn(asker(annotator, *names), *names))
    return [_paper(query_id, text, sorted(agents[query_id, text]), data, heard) for query_id, text in order]


def annotations_of(
    paper: Paper, grades: Mapping[str, int] | None, annotator: str, seconds: float | None = None
) -> list[Annotation]:
    """What a person said of an answer, ``None`` where they skip it: the same of every agent that gave it."""
    texts, value = texts_digest(paper.query, paper.answer), None if grades is None else dict(grades)
    return [
        Annotation(Kind.CRITERIA, annotator, paper.query_id, agent, "", texts, value, seconds) for agent in paper.agents
    ]


def _paper(query_id: str, text: str, agents: list[str], data: Dataset, heard: _Heard) -> Paper:
    known = [heard[query_id, agent] for agent in agents if (query_id, agent) in heard]
    said = next((grades for grades in known if grades is not None), None)
    state = State.DONE if said is not None else State.SKIPPED if known else State.OPEN
    return Paper(query_id, data.queries[query_id].text, text, tuple(agents), state, said)
