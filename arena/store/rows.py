"""Converts values to rows of the store and back, and defines the subjects of planned judgments.

A subject is what a judge has to judge. Each subject class is a tuple with two methods: ``of`` reads it from a
``Wanted`` (a planned judgment), and ``want`` makes a ``Wanted`` from it. Planned judgments without a subject class name
their subject in ``item`` alone: a document, an agent, a subtopic, the number of a turn or a span of nuggets.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self

from msgspec import Struct
from sqlalchemy import Connection, select

from arena.store.tables import TOURNAMENT
from judges.errors import InputError
from judges.types import JudgeFailure, Judgment, Task, Usage

Result = Judgment | JudgeFailure

IDENTICAL: Final = "identical-answers"
"""Judgment id of every game between two identical answers; such a game is a tie without asking a judge."""

_UNKNOWN_USAGE = Usage()


class Wanted(Struct, frozen=True):
    """A planned judgment of a tournament.

    Attributes:
        query_id, item, other, order: what is to be judged, as stored; the subject classes below interpret these fields.
        sample: number of the sample, from 0: a judge may be asked for the same judgment several times.
    """

    task: Task
    judge: str
    query_id: str
    item: str
    other: str = ""
    order: str = ""
    sample: int = 0

    @staticmethod
    def game(judge: str, query_id: str, item: str, other: str, *, swapped: bool) -> Wanted:
        """A planned game between the answers of two agents; ``swapped`` shows the answer of ``other`` first."""
        return Wanted(Task.PAIRWISE, judge, query_id, item, other, "ba" if swapped else "ab")

    @property
    def shown(self) -> tuple[str, str]:
        """The two agents of a game, in the order in which the judge sees their answers."""
        return (self.other, self.item) if self.order == "ba" else (self.item, self.other)


def tournament_number(connection: Connection, name: str) -> int:
    """The ``tournament_id`` of the tournament with this name.

    Raises:
        InputError: the store has no such tournament.
    """
    number = connection.execute(select(TOURNAMENT.c.tournament_id).where(TOURNAMENT.c.name == name)).scalar()
    if number is None:
        raise InputError(f"no tournament named {name!r} in this store; check its name")
    return int(number)


def encoded(value: Mapping[str, Any]) -> str:
    """A mapping as JSON, with sorted keys so that equal mappings give equal texts."""
    return json.dumps(dict(value), sort_keys=True, ensure_ascii=True) if value else "{}"


def decoded(text: str) -> dict[str, Any]:
    return {} if text == "{}" else json.loads(text)


def with_checksum(row: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the row with its checksum added; the row's keys must be in the order of the table's columns."""
    return {**row, "checksum": checksum(row.values())}


_ROW_FORMATS: Final = ["\x1f".join(["%s"] * size) for size in range(32)]
"""Format strings that join the values of a row, by number of columns; faster than joining them as texts."""


def checksum(values: Iterable[Any]) -> int:
    """CRC-32 of the values of a row; it misses a random change with a probability of 2^-32."""
    row = values if type(values) is tuple else tuple(values)
    return zlib.crc32((_ROW_FORMATS[len(row)] % row).encode("utf-8", "surrogatepass"))


def want_checksum(number: int, want: Wanted, judgment_id: str | None) -> int:
    """Checksum of a planned judgment's row without its position in the plan; callers add the position to it."""
    key = (want.task.value, want.judge, want.query_id, want.item, want.other, want.order, want.sample)
    return checksum((number, *key, judgment_id))


def wanted_values(number: int, position: int, want: Wanted) -> dict[str, Any]:
    return {
        "tournament_id": number,
        "position": position,
        "task": want.task.value,
        "judge": want.judge,
        "query_id": want.query_id,
        "item": want.item,
        "other": want.other,
        "order": want.order,
        "sample": want.sample,
        "judgment_id": None,
        "checksum": want_checksum(number, want, None) + position,
    }


def wanted_of(row: Any) -> Wanted:
    return Wanted(Task(row.task), row.judge, row.query_id, row.item, row.other, row.order, row.sample)


def judgment_values(task: Task, prompt: str, result: Result) -> dict[str, Any]:
    """The row of the table ``judgment`` for a result, without the characters that a database cannot store."""
    from judges.masking import masked, storable

    reason = result.reason if isinstance(result, Judgment) else result.message
    values = {
        "judgment_id": result.judgment_id,
        "task": task.value,
        "prompt": prompt,
        "model": storable(result.model),
        "outcome": json.dumps(_plain(result.outcome)) if isinstance(result, Judgment) else None,
        "cause": None if isinstance(result, Judgment) else result.cause,
        "reason": storable(reason),
        "reply": None if result.reply is None else storable(result.reply),
        "rejected": json.dumps([masked(text) for text in result.rejected]) if result.rejected else "[]",
        "input_tokens": result.usage.input_tokens,
        "cached_input_tokens": result.usage.cached_input_tokens,
        "output_tokens": result.usage.output_tokens,
        "calls": result.calls,
        "latency_s": float(result.latency_s),
        "cost_usd": None if result.cost_usd is None else float(result.cost_usd),
    }
    return with_checksum(values)


def _plain(outcome: Any) -> Any:
    from judges.masking import storable

    if isinstance(outcome, tuple):
        return [storable(text) for text in outcome]
    if not isinstance(outcome, Mapping):
        return storable(outcome) if isinstance(outcome, str) else outcome
    return {name: storable(value) if isinstance(value, str) else value for name, value in sorted(outcome.items())}


def result_of(columns: Iterable[Any]) -> Result:
    """The judgment or failure that a row of the table ``judgment`` stores."""
    judgment_id, _, _, model, outcome, cause, reason, reply, rejected, *tokens, calls, latency_s, cost_usd, _ = columns
    usage = _UNKNOWN_USAGE if tokens == [None, None, None] else Usage(*tokens)
    used = (model, usage, calls, latency_s, cost_usd, () if rejected == "[]" else tuple(json.loads(rejected)))
    if outcome is None:
        return JudgeFailure(judgment_id, cause, reason, reply, *used)
    return Judgment(judgment_id, _read_outcome(outcome), reason, reply or "", *used)


def _read_outcome(text: str) -> Any:
    if text[:1] == "{":
        return json.loads(text)
    return tuple(json.loads(text)) if text[:1] == "[" else _read_choice(text)


@lru_cache(maxsize=1024)
def _read_choice(text: str) -> Any:
    """Parse a stored label, verdict or grade; cached, because the same few values occur very often."""
    return json.loads(text)


class GradedSubject(NamedTuple):
    """What a judge grades: an agent's answer by criteria, or a passage by exam items.

    ``by`` holds the names of the criteria or the ids of the exam items; if it is empty, the judge grades by all
    criteria of the configuration.
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
    """Parse stored names of criteria or ids of exam items; cached, because a query's passages have the same ids."""
    return tuple(json.loads(text))


@lru_cache(maxsize=4096)
def _write_names(names: tuple[str, ...]) -> str:
    return json.dumps(names)


class AssignmentSubject(NamedTuple):
    """What a judge assigns nuggets to: an agent's answer or a document (``target``).

    ``places`` are the positions of these nuggets in the query's list of nuggets, from 1.
    """

    query_id: str
    target: str
    places: range

    @classmethod
    def of(cls, want: Wanted) -> Self:
        return cls(want.query_id, want.item, read_span(want.other))

    def want(self, task: Task, judge: str) -> Wanted:
        return Wanted(task, judge, self.query_id, self.target, write_span(self.places))


NAMES_PASSAGE: Final = {Task.QUERIES: "query_id", Task.ANSWERABLE: "item"}
"""Column of ``Wanted`` with the passage's id, by task of query generation; such rows name no query of the data."""


def read_span(text: str) -> range:
    """Parse a range of positions, which count from 1: ``11-20``, or ``11`` for a single one."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def write_span(places: range) -> str:
    return f"{places.start}-{places.stop - 1}"


def parts(texts: Sequence[str], places: range) -> Sequence[str]:
    return texts[places.start - 1 : places.stop - 1]
