"""What a want is about, by its task: typed views of the columns ``query_id, item, other, order`` that store it.

Each is a tuple that has ``of``, which reads it from a want, and ``want``, which writes one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Self

from arena.store.rows import Wanted
from judges.types import Task


class DocumentSubject(NamedTuple):
    """A document retrieved for a query: relevance, and whether a passage answers a query that was written about it."""

    query_id: str
    doc_id: str

    @classmethod
    def of(cls, want: Wanted) -> Self:
        """That of a want."""
        return cls(want.query_id, want.item)

    def want(self, task: Task, judge: str) -> Wanted:
        """A want about it."""
        return Wanted(task, judge, self.query_id, self.doc_id)


class AnswerSubject(NamedTuple):
    """An agent's answer to a query: the asking of agents, and criteria, whichever they are."""

    query_id: str
    agent: str

    @classmethod
    def of(cls, want: Wanted) -> Self:
        """That of a want."""
        return cls(want.query_id, want.item)

    def want(self, task: Task, judge: str) -> Wanted:
        """A want about it."""
        return Wanted(task, judge, self.query_id, self.agent)


class GradedSubject(NamedTuple):
    """An agent's answer, and the criteria that it is graded by: all of the configuration where none is named."""

    query_id: str
    agent: str
    criteria: tuple[str, ...] = ()

    @classmethod
    def of(cls, want: Wanted) -> Self:
        """That of a want."""
        return cls(want.query_id, want.item, _read_ids(want.other) if want.other else ())

    def want(self, judge: str) -> Wanted:
        """A want about it."""
        named = _write_ids(self.criteria) if self.criteria else ""
        return Wanted(Task.CRITERIA, judge, self.query_id, self.agent, named)


class GameSubject(NamedTuple):
    """Two agents' answers to a query in the order shown.

    Attributes:
        swapped: whether ``second`` comes first among the pair as it is stored.
    """

    query_id: str
    first: str
    second: str
    swapped: bool = False

    @classmethod
    def of(cls, want: Wanted) -> Self:
        """That of a want."""
        if want.order == "ab":
            return cls(want.query_id, want.item, want.other)
        return cls(want.query_id, want.other, want.item, swapped=True)

    def want(self, judge: str) -> Wanted:
        """A want about it."""
        if self.swapped:
            return Wanted(Task.PAIRWISE, judge, self.query_id, self.second, self.first, "ba")
        return Wanted(Task.PAIRWISE, judge, self.query_id, self.first, self.second, "ab")


class FacetSubject(NamedTuple):
    """A query, or one of its subtopics, about which exam items are written."""

    query_id: str
    subtopic: str | None = None

    @classmethod
    def of(cls, want: Wanted) -> Self:
        """That of a want."""
        return cls(want.query_id, want.item or None)

    def want(self, judge: str) -> Wanted:
        """A want about it."""
        return Wanted(Task.QUESTIONS, judge, self.query_id, self.subtopic or "")


class PassageSubject(NamedTuple):
    """A passage of an answer or document, and the exam items that it is graded against."""

    query_id: str
    passage_id: str
    item_ids: tuple[str, ...]

    @classmethod
    def of(cls, want: Wanted) -> Self:
        """That of a want."""
        return cls(want.query_id, want.item, _read_ids(want.other))

    def want(self, task: Task, judge: str) -> Wanted:
        """A want about it."""
        return Wanted(task, judge, self.query_id, self.passage_id, _write_ids(self.item_ids))


@lru_cache(maxsize=4096)
def _read_ids(written: str) -> tuple[str, ...]:
    """All passages of a query have the same ones."""
    return tuple(json.loads(written))


@lru_cache(maxsize=4096)
def _write_ids(item_ids: tuple[str, ...]) -> str:
    return json.dumps(item_ids)


class TurnSubject(NamedTuple):
    """A turn in which nuggets are made from documents, counted from 1."""

    query_id: str
    number: int

    @classmethod
    def of(cls, want: Wanted) -> Self:
        """That of a want."""
        return cls(want.query_id, int(want.item))

    def want(self, judge: str) -> Wanted:
        """A want about it."""
        return Wanted(Task.NUGGETS, judge, self.query_id, str(self.number))


class NuggetSubject(NamedTuple):
    """Nuggets of a query whose importance is asked together; ``places`` count from 1."""

    query_id: str
    places: range

    @classmethod
    def of(cls, want: Wanted) -> Self:
        """That of a want."""
        return cls(want.query_id, _read_span(want.item))

    def want(self, judge: str) -> Wanted:
        """A want about it."""
        return Wanted(Task.IMPORTANCE, judge, self.query_id, _write_span(self.places))


class AssignmentSubject(NamedTuple):
    """What nuggets are held against: an agent's answer, or a document; ``places`` of the nuggets count from 1."""

    query_id: str
    held: str
    places: range

    @classmethod
    def of(cls, want: Wanted) -> Self:
        """That of a want."""
        return cls(want.query_id, want.item, _read_span(want.other))

    def want(self, task: Task, judge: str) -> Wanted:
        """A want about it."""
        return Wanted(task, judge, self.query_id, self.held, _write_span(self.places))


NAMES_PASSAGE: Final = {Task.QUERIES: "query_id", Task.ANSWERABLE: "item"}
"""Tasks about queries that are no part of a tournament's data: the column of their wants that names the passage."""


class SourceSubject(NamedTuple):
    """A passage that queries are written about; the store has it in the place of a query."""

    passage_id: str

    @classmethod
    def of(cls, want: Wanted) -> Self:
        """That of a want."""
        return cls(want.query_id)

    def want(self, judge: str) -> Wanted:
        """A want about it."""
        return Wanted(Task.QUERIES, judge, self.passage_id, "")


def _read_span(written: str) -> range:
    """Of ``11-20``, or of ``11``."""
    first, _, last = written.partition("-")
    return range(int(first), int(last or first) + 1)


def _write_span(places: range) -> str:
    return f"{places.start}-{places.stop - 1}"


def parts(texts: Sequence[str], places: range) -> Sequence[str]:
    """The texts at these places."""
    return texts[places.start - 1 : places.stop - 1]
