"""Subjects of planned judgments whose columns must be parsed: games, graded texts, and spans of nuggets.

Each subject is a tuple with two methods: ``of`` reads the subject from a ``Wanted``, and ``want`` makes a ``Wanted``
from the subject. In all other planned judgments, ``item`` alone names the subject: a document, an agent, a subtopic,
the number of a turn or a span of nuggets.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Self

from arena.store.rows import Wanted
from judges.types import Task


class GameSubject(NamedTuple):
    """Two agents' answers to a query, in the order shown to the judge.

    Attributes:
        swapped: whether the store has the pair in reverse, with ``second`` in the column ``item``.
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


class GradedSubject(NamedTuple):
    """An agent's answer and the criteria to grade it by, or a passage and the ids of exam items to grade it against.

    If ``by`` is empty, the judge grades by all criteria of the configuration.
    """

    query_id: str
    item: str
    by: tuple[str, ...] = ()

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id, want.item, _read_names(want.other) if want.other else ())

    def want(self, task: Task, judge: str) -> Wanted:
        return Wanted(task, judge, self.query_id, self.item, _write_names(self.by) if self.by else "")


@lru_cache(maxsize=4096)
def _read_names(text: str) -> tuple[str, ...]:
    """Parse names or ids; cached, because all passages of a query have the same ids."""
    return tuple(json.loads(text))


@lru_cache(maxsize=4096)
def _write_names(names: tuple[str, ...]) -> str:
    return json.dumps(names)


class AssignmentSubject(NamedTuple):
    """An agent's answer or a document (``target``), and the nuggets assigned to it; their ``places`` count from 1."""

    query_id: str
    target: str
    places: range

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id, want.item, read_span(want.other))

    def want(self, task: Task, judge: str) -> Wanted:
        return Wanted(task, judge, self.query_id, self.target, write_span(self.places))


NAMES_PASSAGE: Final = {Task.QUERIES: "query_id", Task.ANSWERABLE: "item"}
"""Tasks that generate queries, and the column of ``Wanted`` that names the passage; none names a query of the data."""


def read_span(text: str) -> range:
    """Places, which count from 1, from ``11-20`` or ``11``."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def write_span(places: range) -> str:
    """The places as text, such as ``11-20``."""
    return f"{places.start}-{places.stop - 1}"


def parts(texts: Sequence[str], places: range) -> Sequence[str]:
    """The texts at these places, which count from 1."""
    return texts[places.start - 1 : places.stop - 1]
