"""Tables of the store, and values to rows and back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import BigInteger, Connection, Index
from sqlmodel import Field, SQLModel, select

from judges.errors import InputError
from judges.types import JudgeFailure, Judgment, Task, Usage

Result = Judgment | JudgeFailure

IDENTICAL: Final = "identical-answers"
"""The judgment of every game between two equal answers: a tie, without a call."""

SCHEMA_VERSION: Final = 4
"""The last revision in ``migrations/versions``."""

NOT_BEGUN: Final = ""
"""In place of a digest: the tournament has runs, and no data yet."""

_UNKNOWN_USAGE = Usage()


class Damage(Exception):  # noqa: N818 - the word for it
    """Something stored is not what was written; the message names it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One judgment that a tournament needs.

    Attributes:
        query_id, item, other, order: what it is about, as stored; ``arena.store.subjects`` reads them by task.
        sample: which repetition, from 0, where a judge is asked several times.
    """

    task: Task
    judge: str
    query_id: str
    item: str
    other: str = ""
    order: str = ""
    sample: int = 0


class TournamentRow(SQLModel, table=True):
    """A tournament's settings, and the digest of the data it was last begun with."""

    __tablename__ = "tournament"
    tournament_id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    settings: str
    data_digest: str


class QueryRow(SQLModel, table=True):
    """A query of a tournament's data; ``extra`` is its ``columns`` as JSON."""

    __tablename__ = "query"
    tournament_id: int = Field(primary_key=True, foreign_key="tournament.tournament_id")
    position: int = Field(primary_key=True)
    query_id: str
    text: str
    extra: str


class DocumentRow(SQLModel, table=True):
    """A document text, once however often it was retrieved."""

    __tablename__ = "document"
    tournament_id: int = Field(primary_key=True, foreign_key="tournament.tournament_id")
    doc_id: str = Field(primary_key=True)
    text: str
    extra: str


class RetrievedRow(SQLModel, table=True):
    """One agent's retrieval of one document."""

    __tablename__ = "retrieved"
    tournament_id: int = Field(primary_key=True, foreign_key="tournament.tournament_id")
    query_id: str = Field(primary_key=True)
    agent: str = Field(primary_key=True)
    rank: int = Field(primary_key=True)
    doc_id: str = Field(primary_key=True)
    score: float | None


class AnswerRow(SQLModel, table=True):
    """One agent's answer to one query."""

    __tablename__ = "answer"
    tournament_id: int = Field(primary_key=True, foreign_key="tournament.tournament_id")
    query_id: str = Field(primary_key=True)
    agent: str = Field(primary_key=True)
    text: str
    extra: str


class LabelRow(SQLModel, table=True):
    """A person's relevance label of one document for one query."""

    __tablename__ = "label"
    tournament_id: int = Field(primary_key=True, foreign_key="tournament.tournament_id")
    query_id: str = Field(primary_key=True)
    doc_id: str = Field(primary_key=True)
    label: int


class WantedRow(SQLModel, table=True):
    """One judgment a tournament needs, and which judgment answers it once that is known."""

    __tablename__ = "wanted"
    tournament_id: int = Field(primary_key=True, foreign_key="tournament.tournament_id")
    task: str = Field(primary_key=True)
    judge: str = Field(primary_key=True)
    query_id: str = Field(primary_key=True)
    item: str = Field(primary_key=True)
    other: str = Field(primary_key=True)
    order: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    position: int
    judgment_id: str | None = Field(default=None, index=True)
    checksum: int | None = Field(default=None, sa_type=BigInteger)
    """``want_checksum`` and the position, added up; null in rows of earlier versions."""


class JudgmentRow(SQLModel, table=True):
    """A judgment, or a failure where ``outcome`` is null; ``reason`` then holds the failure's message."""

    __tablename__ = "judgment"
    judgment_id: str = Field(primary_key=True)
    task: str
    prompt: str
    model: str
    outcome: str | None
    cause: str | None
    reason: str
    reply: str | None
    rejected: str
    input_tokens: int | None
    cached_input_tokens: int | None
    output_tokens: int | None
    calls: int
    latency_s: float
    cost_usd: float | None
    checksum: int | None = Field(default=None, sa_type=BigInteger)
    """``checksum`` of the other columns; null in rows of earlier versions."""


class ChecksumRow(SQLModel, table=True):
    """A ``checksum`` of what has no column for one: a tournament's settings or data, or what somebody said."""

    __tablename__ = "checksum"
    kind: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    checksum: int = Field(sa_type=BigInteger)


class AnnotationRow(SQLModel, table=True):
    """One saying; none is ever changed. ``value`` is JSON."""

    __tablename__ = "annotation"
    annotation_id: int | None = Field(default=None, primary_key=True)
    tournament_id: int = Field(foreign_key="tournament.tournament_id")
    kind: str
    annotator: str
    query_id: str
    item: str
    other: str
    texts: str
    value: str
    seconds: float | None
    at: str
    __table_args__ = (Index("ix_annotation_thing", "tournament_id", "kind", "annotator", "query_id", "item", "other"),)


class ReplyRow(SQLModel, table=True):
    """An agent's reply, or a failure where ``answer`` is null; documents and citations are JSON."""

    __tablename__ = "agent_reply"
    reply_id: str = Field(primary_key=True)
    identity: str
    query: str
    answer: str | None
    documents: str
    citations: str
    cause: str | None
    message: str
    input_tokens: int | None
    cached_input_tokens: int | None
    output_tokens: int | None
    calls: int
    latency_s: float | None
    cost_usd: float | None


class RunnerRow(SQLModel, table=True):
    """A process that judges for this store now; ``beat`` is when it last said so, in seconds since 1970."""

    __tablename__ = "runner"
    runner_id: str = Field(primary_key=True)
    host: str
    pid: int
    beat: float


class LeaseRow(SQLModel, table=True):
    """A judgment that a runner is about to ask for, so that no other one does."""

    __tablename__ = "lease"
    judgment_id: str = Field(primary_key=True)
    runner_id: str = Field(index=True)


class StateRow(SQLModel, table=True):
    """One row: the schema's version and a counter that every change increments, for readers that cache."""

    __tablename__ = "state"
    only: int = Field(default=1, primary_key=True)
    schema_version: int
    changes: int


def table(row: type[SQLModel]) -> Any:
    """The SQLAlchemy table of a row class."""
    return row.__table__  # type: ignore[attr-defined]


def has_table(connection: Connection, row: type[SQLModel]) -> bool:
    """Whether a store has the table of a row class, which one of an earlier version may lack until it is written to."""
    return connection.dialect.has_table(connection, table(row).name)


def tournament_number(connection: Connection, name: str) -> int:
    """The key of a tournament's rows.

    Raises:
        InputError: no such tournament.
    """
    number = connection.execute(select(TournamentRow.tournament_id).where(TournamentRow.name == name)).scalar()
    if number is None:
        raise InputError(f"no tournament named {name!r} in this store")
    return int(number)


def encoded(value: Mapping[str, Any]) -> str:
    """A mapping as JSON, the same bytes for equal mappings."""
    return json.dumps(dict(value), sort_keys=True, ensure_ascii=True)


def checksum(values: Iterable[Any]) -> int:
    """CRC-32 of the values of a row: bytes that change on a disk change it, but for one time in 2^32."""
    return zlib.crc32("\x1f".join(map(str, values)).encode("utf-8", "surrogatepass"))


def want_checksum(number: int, want: Wanted, judgment_id: str | None) -> int:
    """The checksum of a want's row, to which its position is still to be added."""
    key = (want.task.value, want.judge, want.query_id, want.item, want.other, want.order, want.sample)
    return checksum((number, *key, judgment_id))


def wanted_values(number: int, position: int, want: Wanted) -> dict[str, Any]:
    """A want as a row that has no judgment yet."""
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
    """The want of a row."""
    return Wanted(Task(row.task), row.judge, row.query_id, row.item, row.other, row.order, row.sample)


def judgment_values(task: Task, prompt: str, result: Result) -> dict[str, Any]:
    """A result as a row; its texts may hold what a server could spell and no database can keep."""
    from judges.masking import masked, storable

    reason = result.reason if isinstance(result, Judgment) else result.message
    values = {
        "judgment_id": result.judgment_id,
        "task": task.value,
        "prompt": prompt,
        "model": storable(result.model),
        "outcome": json.dumps(_plain(result.outcome), sort_keys=True) if isinstance(result, Judgment) else None,
        "cause": None if isinstance(result, Judgment) else result.cause,
        "reason": storable(reason),
        "reply": None if result.reply is None else storable(result.reply),
        "rejected": json.dumps([masked(text) for text in result.rejected]),
        "input_tokens": result.usage.input_tokens,
        "cached_input_tokens": result.usage.cached_input_tokens,
        "output_tokens": result.usage.output_tokens,
        "calls": result.calls,
        "latency_s": float(result.latency_s),
        "cost_usd": None if result.cost_usd is None else float(result.cost_usd),
    }
    return {**values, "checksum": checksum(values.values())}


def _plain(outcome: Any) -> Any:
    from judges.masking import storable

    if isinstance(outcome, tuple):
        return [storable(text) for text in outcome]
    if not isinstance(outcome, Mapping):
        return storable(outcome) if isinstance(outcome, str) else outcome
    return {name: storable(value) if isinstance(value, str) else value for name, value in outcome.items()}


def result_of(columns: Iterable[Any]) -> Result:
    """The judgment or failure of a row, its columns in the table's order.

    Raises:
        Damage: the row is not what was written.
    """
    *columns, summed = columns
    judgment_id, _, _, model, outcome, cause, reason, reply, rejected, *tokens, calls, latency_s, cost_usd = columns
    if summed is not None and summed != checksum(columns):
        raise Damage(f"judgment {judgment_id}")
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
    """A label, verdict or grade: one of a few, and read by the hundred thousand."""
    return json.loads(text)
