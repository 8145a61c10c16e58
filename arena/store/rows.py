"""The tables of the store, and the conversion of values to rows and back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    select,
)

from judges.errors import InputError
from judges.types import JudgeFailure, Judgment, Task, Usage

Result = Judgment | JudgeFailure

IDENTICAL: Final = "identical-answers"
"""The judgment id of every game between two equal answers, which is a tie without a call."""

SCHEMA_VERSION: Final = 4
"""The last revision in ``migrations/versions``."""

NOT_BEGUN: Final = ""
"""The data digest of a tournament that has runs but no data yet."""

METADATA: Final = MetaData()
"""SQLAlchemy's registry of all tables of a store."""

_UNKNOWN_USAGE = Usage()


class Damage(Exception):  # noqa: N818 - it names the damage
    """A stored row does not match its checksum; the message names the row."""


class Wanted(Struct, frozen=True):
    """One judgment that a tournament needs.

    Attributes:
        query_id, item, other, order: the subject as stored; ``arena.store.subjects`` interprets them by task.
        sample: number of the sample, from 0, if a judge is asked several times.
    """

    task: Task
    judge: str
    query_id: str
    item: str
    other: str = ""
    order: str = ""
    sample: int = 0


TOURNAMENT_ROWS: Final = Table(
    "tournament",
    METADATA,
    Column("tournament_id", Integer, primary_key=True),
    Column("name", String, unique=True, nullable=False),
    Column("settings", String, nullable=False),
    Column("data_digest", String, nullable=False),
)
"""A tournament's settings, and the digest of its data."""


QUERY_ROWS: Final = Table(
    "query",
    METADATA,
    Column("tournament_id", Integer, ForeignKey("tournament.tournament_id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("query_id", String, nullable=False),
    Column("text", String, nullable=False),
    Column("extra", String, nullable=False),
)
"""One query of a tournament; ``extra`` is its ``columns`` as JSON."""


DOCUMENT_ROWS: Final = Table(
    "document",
    METADATA,
    Column("tournament_id", Integer, ForeignKey("tournament.tournament_id"), primary_key=True),
    Column("doc_id", String, primary_key=True),
    Column("text", String, nullable=False),
    Column("extra", String, nullable=False),
)
"""One document of a tournament, stored once even if retrieved many times."""


RETRIEVED_ROWS: Final = Table(
    "retrieved",
    METADATA,
    Column("tournament_id", Integer, ForeignKey("tournament.tournament_id"), primary_key=True),
    Column("query_id", String, primary_key=True),
    Column("agent", String, primary_key=True),
    Column("rank", Integer, primary_key=True),
    Column("doc_id", String, primary_key=True),
    Column("score", Float),
)
"""One document retrieved by one agent for one query, with its rank and score."""


ANSWER_ROWS: Final = Table(
    "answer",
    METADATA,
    Column("tournament_id", Integer, ForeignKey("tournament.tournament_id"), primary_key=True),
    Column("query_id", String, primary_key=True),
    Column("agent", String, primary_key=True),
    Column("text", String, nullable=False),
    Column("extra", String, nullable=False),
)
"""One agent's answer to one query."""


LABEL_ROWS: Final = Table(
    "label",
    METADATA,
    Column("tournament_id", Integer, ForeignKey("tournament.tournament_id"), primary_key=True),
    Column("query_id", String, primary_key=True),
    Column("doc_id", String, primary_key=True),
    Column("label", Integer, nullable=False),
)
"""A person's relevance label of one document for one query."""


WANTED_ROWS: Final = Table(
    "wanted",
    METADATA,
    Column("tournament_id", Integer, ForeignKey("tournament.tournament_id"), primary_key=True),
    Column("task", String, primary_key=True),
    Column("judge", String, primary_key=True),
    Column("query_id", String, primary_key=True),
    Column("item", String, primary_key=True),
    Column("other", String, primary_key=True),
    Column("order", String, primary_key=True),
    Column("sample", Integer, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("judgment_id", String, index=True),
    # ``want_checksum`` plus the position; null in rows of earlier versions.
    Column("checksum", BigInteger),
)
"""One judgment that a tournament needs; ``judgment_id`` links to it once the prompt is known."""


JUDGMENT_ROWS: Final = Table(
    "judgment",
    METADATA,
    Column("judgment_id", String, primary_key=True),
    Column("task", String, nullable=False),
    Column("prompt", String, nullable=False),
    Column("model", String, nullable=False),
    Column("outcome", String),
    Column("cause", String),
    Column("reason", String, nullable=False),
    Column("reply", String),
    Column("rejected", String, nullable=False),
    Column("input_tokens", Integer),
    Column("cached_input_tokens", Integer),
    Column("output_tokens", Integer),
    Column("calls", Integer, nullable=False),
    Column("latency_s", Float, nullable=False),
    Column("cost_usd", Float),
    # ``checksum`` of the other columns; null in rows of earlier versions.
    Column("checksum", BigInteger),
)
"""A judgment, or a failure where ``outcome`` is null; ``reason`` then holds the failure's message."""


CHECKSUM_ROWS: Final = Table(
    "checksum",
    METADATA,
    Column("kind", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("checksum", BigInteger, nullable=False),
)
"""Checksums of rows without a checksum column: settings and data of tournaments, annotations, agents' replies."""


ANNOTATION_ROWS: Final = Table(
    "annotation",
    METADATA,
    Column("annotation_id", Integer, primary_key=True),
    Column("tournament_id", Integer, ForeignKey("tournament.tournament_id"), nullable=False),
    Column("kind", String, nullable=False),
    Column("annotator", String, nullable=False),
    Column("query_id", String, nullable=False),
    Column("item", String, nullable=False),
    Column("other", String, nullable=False),
    Column("texts", String, nullable=False),
    Column("value", String, nullable=False),
    Column("seconds", Float),
    Column("at", String, nullable=False),
    Index("ix_annotation_thing", "tournament_id", "kind", "annotator", "query_id", "item", "other"),
)
"""One annotation; rows are never changed. ``value`` is JSON."""


REPLY_ROWS: Final = Table(
    "agent_reply",
    METADATA,
    Column("reply_id", String, primary_key=True),
    Column("identity", String, nullable=False),
    Column("query", String, nullable=False),
    Column("answer", String),
    Column("documents", String, nullable=False),
    Column("citations", String, nullable=False),
    Column("cause", String),
    Column("message", String, nullable=False),
    Column("input_tokens", Integer),
    Column("cached_input_tokens", Integer),
    Column("output_tokens", Integer),
    Column("calls", Integer, nullable=False),
    Column("latency_s", Float),
    Column("cost_usd", Float),
)
"""An agent's reply, or a failure where ``answer`` is null; documents and citations are JSON."""


RUNNER_ROWS: Final = Table(
    "runner",
    METADATA,
    Column("runner_id", String, primary_key=True),
    Column("host", String, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("beat", Float, nullable=False),
)
"""A process that judges for this store now; ``beat`` is its last heartbeat, in seconds since 1970."""


LEASE_ROWS: Final = Table(
    "lease",
    METADATA,
    Column("judgment_id", String, primary_key=True),
    Column("runner_id", String, index=True, nullable=False),
)
"""A runner's claim on a judgment, so that no other runner asks for it."""


FIGURES_ROWS: Final = Table(
    "figures",
    METADATA,
    Column("tournament_id", Integer, ForeignKey("tournament.tournament_id"), primary_key=True),
    Column("kind", String, primary_key=True),
    Column("made_by", String, nullable=False),
    Column("content", LargeBinary, nullable=False),
)
"""Cached figures of one kind for one tournament; every change to judgments or tournaments deletes all rows."""


STATE_ROWS: Final = Table(
    "state",
    METADATA,
    Column("only", Integer, primary_key=True, autoincrement=False),
    Column("schema_version", Integer, nullable=False),
    Column("changes", Integer, nullable=False),
)
"""One row: the schema's version and a counter that every change increments, for readers that cache."""


def has_table(connection: Connection, table: Table) -> bool:
    """Whether a store has a table; a store of an earlier version may lack it until a run writes there."""
    return connection.dialect.has_table(connection, table.name)


def tournament_number(connection: Connection, name: str) -> int:
    """The number of a tournament, which is the key of its rows.

    Raises:
        InputError: no such tournament.
    """
    number = connection.execute(select(TOURNAMENT_ROWS.c.tournament_id).where(TOURNAMENT_ROWS.c.name == name)).scalar()
    if number is None:
        raise InputError(f"no tournament named {name!r} in this store")
    return int(number)


def encoded(value: Mapping[str, Any]) -> str:
    """A mapping as JSON, with sorted keys so that equal mappings give equal texts."""
    return json.dumps(dict(value), sort_keys=True, ensure_ascii=True) if value else "{}"


def decoded(text: str) -> dict[str, Any]:
    """The mapping that ``encoded`` wrote."""
    return {} if text == "{}" else json.loads(text)


_ROW_FORMATS: Final = ["\x1f".join(["%s"] * size) for size in range(32)]
"""Format strings that join all values of a row, by the number of its columns; faster than joining their texts."""


def checksum(values: Iterable[Any]) -> int:
    """CRC-32 of the values of a row; it misses a random change with a probability of 2^-32."""
    row = values if type(values) is tuple else tuple(values)
    return zlib.crc32((_ROW_FORMATS[len(row)] % row).encode("utf-8", "surrogatepass"))


def want_checksum(number: int, want: Wanted, judgment_id: str | None) -> int:
    """The checksum of a want's row without its position, which callers add."""
    key = (want.task.value, want.judge, want.query_id, want.item, want.other, want.order, want.sample)
    return checksum((number, *key, judgment_id))


def wanted_values(number: int, position: int, want: Wanted) -> dict[str, Any]:
    """The row of a want without a judgment."""
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
    """The want in a row of ``WANTED_ROWS``."""
    return Wanted(Task(row.task), row.judge, row.query_id, row.item, row.other, row.order, row.sample)


def judgment_values(task: Task, prompt: str, result: Result) -> dict[str, Any]:
    """The row of a result, without the characters that a database cannot store."""
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
    return {**values, "checksum": checksum(values.values())}


def _plain(outcome: Any) -> Any:
    from judges.masking import storable

    if isinstance(outcome, tuple):
        return [storable(text) for text in outcome]
    if not isinstance(outcome, Mapping):
        return storable(outcome) if isinstance(outcome, str) else outcome
    return {name: storable(value) if isinstance(value, str) else value for name, value in sorted(outcome.items())}


def result_of(columns: Iterable[Any]) -> Result:
    """The judgment or failure in a row of ``JUDGMENT_ROWS``.

    Raises:
        Damage: the row does not match its checksum.
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
    """Parse a label, verdict or grade; cached, because a store repeats few values very often."""
    return json.loads(text)
