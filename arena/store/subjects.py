"""Subjects of wants, by task: typed views of the columns ``query_id``, ``item``, ``other`` and ``order``.

Each is a tuple with two methods: ``of`` reads the subject of a want, and ``want`` makes a want for the subject.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Self

from arena.store.rows import Wanted
from judges.types import Task


class DocumentSubject(NamedTuple):
    """A query and a document: for relevance, and for whether a passage answers the query generated from it."""

    query_id: str
    doc_id: str

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id, want.item)

    def want(self, task: Task, judge: str) -> Wanted:
        return Wanted(task, judge, self.query_id, self.doc_id)


class AnswerSubject(NamedTuple):
    """An agent's answer to a query: for asking the agents, and for criteria whichever they are."""

    query_id: str
    agent: str

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id, want.item)

    def want(self, task: Task, judge: str) -> Wanted:
        return Wanted(task, judge, self.query_id, self.agent)


class GradedSubject(NamedTuple):
    """An agent's answer and the criteria to grade it by; without any, all criteria of the configuration."""

    query_id: str
    agent: str
    criteria: tuple[str, ...] = ()

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id, want.item, _read_ids(want.other) if want.other else ())

    def want(self, judge: str) -> Wanted:
        named = _write_ids(self.criteria) if self.criteria else ""
        return Wanted(Task.CRITERIA, judge, self.query_id, self.agent, named)


class GameSubject(NamedTuple):
    """Two agents' answers to a query, in the order shown to the judge.

    Attributes:
        swapped: whether the want stores the pair the other way round, with ``second`` as its item.
    """

    query_id: str
    first: str
    second: str
    swapped: bool = False

    @classmethod
    def of(cls, want: Wanted) -> Self:
        if want.order == "ab":
            return cls(want.query_id, want.item, want.other)
        return cls(want.query_id, want.other, want.item, swapped=True)

    def want(self, judge: str) -> Wanted:
        if self.swapped:
            return Wanted(Task.PAIRWISE, judge, self.query_id, self.second, self.first, "ba")
        return Wanted(Task.PAIRWISE, judge, self.query_id, self.first, self.second, "ab")


class FacetSubject(NamedTuple):
    """A query, or one of its subtopics, for which exam items are written."""

    query_id: str
    subtopic: str | None = None

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id, want.item or None)

    def want(self, judge: str) -> Wanted:
        return Wanted(Task.QUESTIONS, judge, self.query_id, self.subtopic or "")


class PassageSubject(NamedTuple):
    """A passage of an answer or document, with the ids of the exam items to grade it against."""

    query_id: str
    passage_id: str
    item_ids: tuple[str, ...]

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id, want.item, _read_ids(want.other))

    def want(self, task: Task, judge: str) -> Wanted:
        return Wanted(task, judge, self.query_id, self.passage_id, _write_ids(self.item_ids))


@lru_cache(maxsize=4096)
def _read_ids(text: str) -> tuple[str, ...]:
    """Parse item ids; cached, because all passages of a query have the same ids."""
    return tuple(json.loads(text))


@lru_cache(maxsize=4096)
def _write_ids(item_ids: tuple[str, ...]) -> str:
    return json.dumps(item_ids)


class TurnSubject(NamedTuple):
    """A turn of creating nuggets from documents; turns count from 1."""

    query_id: str
    number: int

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id, int(want.item))

    def want(self, judge: str) -> Wanted:
        return Wanted(Task.NUGGETS, judge, self.query_id, str(self.number))


class NuggetSubject(NamedTuple):
    """Nuggets of a query whose importance is judged in one request; ``places`` count from 1."""

    query_id: str
    places: range

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id, _read_span(want.item))

    def want(self, judge: str) -> Wanted:
        return Wanted(Task.IMPORTANCE, judge, self.query_id, _write_span(self.places))


class AssignmentSubject(NamedTuple):
    """An agent's answer or a document (``target``), and the nuggets assigned to it; their ``places`` count from 1."""

    query_id: str
    target: str
    places: range

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id, want.item, _read_span(want.other))

    def want(self, task: Task, judge: str) -> Wanted:
        return Wanted(task, judge, self.query_id, self.target, _write_span(self.places))


NAMES_PASSAGE: Final = {Task.QUERIES: "query_id", Task.ANSWERABLE: "item"}
"""Tasks that generate queries, whose wants name no query of the data: the column that names a passage instead."""


class SourceSubject(NamedTuple):
    """A passage to generate queries from; the want stores it in ``query_id``."""

    passage_id: str

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id)

    def want(self, judge: str) -> Wanted:
        return Wanted(Task.QUERIES, judge, self.passage_id, "")


def _read_span(text: str) -> range:
    """Parse ``11-20`` or ``11``."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _write_span(places: range) -> str:
    return f"{places.start}-{places.stop - 1}"


def parts(texts: Sequence[str], places: range) -> Sequence[str]:
    """The texts at these places, which count from 1."""
    return texts[places.start - 1 : places.stop - 1]
