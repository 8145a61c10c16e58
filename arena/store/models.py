"""The tables of a store as SQLModel classes, for programs and notebooks; no command imports them.

Examples: docs/ask-the-store.md.
"""

from __future__ import annotations

from typing import Any

from sqlmodel import Field, SQLModel
from sqlmodel.main import SQLModelMetaclass

from arena.store import tables


class _OfTable(SQLModelMetaclass):
    """Metaclass that makes each column of ``__table__`` a field; a class only states the columns' Python types."""

    def __new__(cls, name: str, bases: tuple[type, ...], content: dict[str, Any], **options: Any) -> Any:
        if (table := content.get("__table__")) is not None:
            content |= {column.name: Field(sa_column=column) for column in table.columns}
        return super().__new__(cls, name, bases, content, **options)


class _Row(SQLModel, metaclass=_OfTable): ...


class TournamentRow(_Row, table=True):
    """A tournament: its settings as JSON, and the digest of its data."""

    __table__ = tables.TOURNAMENT
    tournament_id: int
    name: str
    settings: str
    data_digest: str
    checksum: int


class QueryRow(_Row, table=True):
    """A query of a tournament."""

    __table__ = tables.QUERY
    tournament_id: int
    position: int
    query_id: str
    text: str
    extra: str


class DocumentRow(_Row, table=True):
    """A document of a tournament."""

    __table__ = tables.DOCUMENT
    tournament_id: int
    doc_id: str
    text: str
    extra: str


class RetrievedRow(_Row, table=True):
    """A document that an agent retrieved for a query."""

    __table__ = tables.RETRIEVED
    tournament_id: int
    query_id: str
    agent: str
    rank: int
    doc_id: str
    score: float | None


class AnswerRow(_Row, table=True):
    """An agent's answer to a query."""

    __table__ = tables.ANSWER
    tournament_id: int
    query_id: str
    agent: str
    text: str
    extra: str


class LabelRow(_Row, table=True):
    """A person's relevance label for a document, given a query."""

    __table__ = tables.LABEL
    tournament_id: int
    query_id: str
    doc_id: str
    label: int


class WantedRow(_Row, table=True):
    """A planned judgment of a tournament; ``judgment_id`` links it to its row in ``JudgmentRow``."""

    __table__ = tables.WANTED
    tournament_id: int
    task: str
    judge: str
    query_id: str
    item: str
    other: str
    order: str
    sample: int
    position: int
    judgment_id: str | None
    checksum: int


class JudgmentRow(_Row, table=True):
    """A judge's judgment, or the failure to get one if ``outcome`` is ``None``; ``outcome`` is JSON."""

    __table__ = tables.JUDGMENT
    judgment_id: str
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
    checksum: int


class AnnotationRow(_Row, table=True):
    """A person's annotation, such as a vote on two answers or a relevance label; ``value`` is JSON."""

    __table__ = tables.ANNOTATION
    annotation_id: int
    tournament_id: int
    kind: str
    annotator: str
    query_id: str
    item: str
    other: str
    texts: str
    value: str
    seconds: float | None
    at: str
    checksum: int


class AgentReplyRow(_Row, table=True):
    """An agent's reply to a query, or the failure to get one if ``answer`` is ``None``."""

    __table__ = tables.AGENT_REPLY
    reply_id: str
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
    tried_s: float | None
    made_at: float
    checksum: int


class AskingRow(_Row, table=True):
    """How many times all queries were asked anew of the agent with this identity."""

    __table__ = tables.ASKING
    identity: str
    number: int


class RunnerRow(_Row, table=True):
    """A process that is running judges and saves their judgments in this store."""

    __table__ = tables.RUNNER
    runner_id: str
    host: str
    pid: int
    beat: float


class LeaseRow(_Row, table=True):
    """A runner's claim on a judgment, so that no other runner asks for it too."""

    __table__ = tables.LEASE
    judgment_id: str
    runner_id: str


class RunRow(_Row, table=True):
    """One run of a tournament: its process, start, end, settings and standings."""

    __table__ = tables.RUN
    number: int
    run_id: str
    tournament_id: int
    runner_id: str
    host: str
    pid: int
    begun: float
    beat: float
    ended: float | None
    ending: str | None
    subject: str
    stages: str
    standings: str


class SpendingRow(_Row, table=True):
    """Number of results, tokens and cost of one runner in one stage of a tournament."""

    __table__ = tables.SPENDING
    runner_id: str
    stage: str
    judged: int
    failed: int
    calls: int
    input_tokens: int
    output_tokens: int
    tokens_unknown: int
    cost_usd: float
    cost_unknown: int


class BatchRow(_Row, table=True):
    """A batch of requests that was sent to a provider's batch API."""

    __table__ = tables.BATCH
    marker: str
    made_at: float
    requests: int
    remote_id: str | None
    judge: str
    provider: str
    model: str


class BatchLineRow(_Row, table=True):
    """A request in a batch, stored until its judgment is saved."""

    __table__ = tables.BATCH_LINE
    custom_id: str
    judgment_id: str
    marker: str


class CachedFiguresRow(_Row, table=True):
    """Cached figures of a tournament, valid until the store changes."""

    __table__ = tables.FIGURES
    tournament_id: int
    kind: str
    made_by: str
    content: bytes
    checksum: int


class StateRow(_Row, table=True):
    """The only row of the table ``state``: the schema's version and the store's change counter."""

    __table__ = tables.STATE
    only: int
    schema_version: int
    changes: int
