"""All tables of a store, and views for users who query it with SQL. Only this module declares columns."""

from __future__ import annotations

from typing import Final

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
    insert,
    text,
)

SCHEMA_VERSION: Final = 1
"""Version of the tables below; ragleague refuses to open a store of another version."""

NOT_BEGUN: Final = ""
"""Value of ``data_digest`` for a tournament that has runs but no data yet."""

METADATA: Final = MetaData()


def _number_of_tournament(*, primary_key: bool = True, index: bool = False) -> Column[int]:
    key = ForeignKey("tournament.tournament_id")
    return Column("tournament_id", Integer, key, primary_key=primary_key, index=index, nullable=False)


def _checksum() -> Column[int]:
    """A column for the checksum of the row's other columns (``rows.checksum``), which only ``store check`` verifies."""
    return Column("checksum", BigInteger, nullable=False)


TOURNAMENT: Final = Table(
    "tournament",
    METADATA,
    Column("tournament_id", Integer, primary_key=True),
    Column("name", String, unique=True, nullable=False),
    Column("settings", String, nullable=False),
    Column("data_digest", String, nullable=False),
    _checksum(),
)
"""A tournament's settings as JSON, and the digest of its data. The checksum does not cover ``tournament_id``."""

QUERY: Final = Table(
    "query",
    METADATA,
    _number_of_tournament(),
    Column("position", Integer, primary_key=True),
    Column("query_id", String, nullable=False),
    Column("text", String, nullable=False),
    Column("extra", String, nullable=False),
)

DOCUMENT: Final = Table(
    "document",
    METADATA,
    _number_of_tournament(),
    Column("doc_id", String, primary_key=True),
    Column("text", String, nullable=False),
    Column("extra", String, nullable=False),
)
"""One document of a tournament, stored once even if agents retrieved it many times."""

RETRIEVED: Final = Table(
    "retrieved",
    METADATA,
    _number_of_tournament(),
    Column("query_id", String, primary_key=True),
    Column("agent", String, primary_key=True),
    Column("rank", Integer, primary_key=True),
    Column("doc_id", String, primary_key=True),
    Column("score", Float),
)

ANSWER: Final = Table(
    "answer",
    METADATA,
    _number_of_tournament(),
    Column("query_id", String, primary_key=True),
    Column("agent", String, primary_key=True),
    Column("text", String, nullable=False),
    Column("extra", String, nullable=False),
)

LABEL: Final = Table(
    "label",
    METADATA,
    _number_of_tournament(),
    Column("query_id", String, primary_key=True),
    Column("doc_id", String, primary_key=True),
    Column("label", Integer, nullable=False),
)

WANTED: Final = Table(
    "wanted",
    METADATA,
    _number_of_tournament(),
    Column("task", String, primary_key=True),
    Column("judge", String, primary_key=True),
    Column("query_id", String, primary_key=True),
    Column("item", String, primary_key=True),
    Column("other", String, primary_key=True),
    Column("order", String, primary_key=True),
    Column("sample", Integer, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("judgment_id", String, index=True),
    _checksum(),
)
"""A planned judgment of a tournament; ``judgment_id`` is null until the judgment's prompt is known."""

JUDGMENT: Final = Table(
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
    _checksum(),
)
"""A judgment, or a failure to get one if ``outcome`` is null; ``reason`` then holds the failure's message."""

ANNOTATION: Final = Table(
    "annotation",
    METADATA,
    Column("annotation_id", Integer, primary_key=True, autoincrement=False),
    _number_of_tournament(primary_key=False),
    Column("kind", String, nullable=False),
    Column("annotator", String, nullable=False),
    Column("query_id", String, nullable=False),
    Column("item", String, nullable=False),
    Column("other", String, nullable=False),
    Column("texts", String, nullable=False),
    Column("value", String, nullable=False),
    Column("seconds", Float),
    Column("at", String, nullable=False),
    _checksum(),
    Index("ix_annotation_thing", "tournament_id", "kind", "annotator", "query_id", "item", "other"),
)
"""One annotation by a person; a later one adds a row and changes none. ``value`` is JSON."""

AGENT_REPLY: Final = Table(
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
    Column("tried_s", Float),
    Column("made_at", Float, nullable=False),
    _checksum(),
)
"""An agent's reply, or a failure to get one if ``answer`` is null; documents and citations are JSON.

``tried_s`` is the time in seconds that all attempts to get the reply took together, null if unknown. ``made_at`` is in
seconds since 1970.
"""

ASKING: Final = Table(
    "asking",
    METADATA,
    Column("identity", String, primary_key=True),
    Column("number", Integer, nullable=False),
)
"""How many times all queries were asked anew of an agent (``--ask``); replies to asking 2 have ``IDENTITY/2``."""

RUNNER: Final = Table(
    "runner",
    METADATA,
    Column("runner_id", String, primary_key=True),
    Column("host", String, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("beat", Float, nullable=False),
)
"""A process that is running judges for this store; ``beat`` is its last heartbeat, in seconds since 1970."""

LEASE: Final = Table(
    "lease",
    METADATA,
    Column("judgment_id", String, primary_key=True),
    Column("runner_id", String, index=True, nullable=False),
)

RUN: Final = Table(
    "run",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("run_id", String, unique=True, nullable=False),
    _number_of_tournament(primary_key=False, index=True),
    Column("runner_id", String, nullable=False),
    Column("host", String, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("begun", Float, nullable=False),
    Column("beat", Float, nullable=False),
    Column("ended", Float),
    Column("ending", String),
    Column("subject", String, nullable=False),
    Column("stages", String, nullable=False),
    Column("standings", String, nullable=False),
)
"""One run; ``beat`` is the last heartbeat of its process, and ``ending`` stays null if the process is killed.

Times are seconds since 1970; ``subject``, ``stages`` and ``standings`` are JSON, see ``StoredRun``.
"""

SPENDING: Final = Table(
    "spending",
    METADATA,
    Column("runner_id", String, primary_key=True),
    Column("stage", String, primary_key=True),
    Column("judged", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("tokens_unknown", Integer, nullable=False),
    Column("cost_usd", Float, nullable=False),
    Column("cost_unknown", Integer, nullable=False),
)

BATCH: Final = Table(
    "batch",
    METADATA,
    Column("marker", String, primary_key=True),
    Column("made_at", Float, nullable=False),
    Column("requests", Integer, nullable=False),
    Column("remote_id", String),
    Column("judge", String, nullable=False),
    Column("provider", String, nullable=False),
    Column("model", String, nullable=False),
)
"""A batch of requests; ``remote_id`` is null until the provider confirms it. ``made_at`` is in seconds since 1970."""

BATCH_LINE: Final = Table(
    "batch_line",
    METADATA,
    Column("custom_id", String, primary_key=True),
    Column("judgment_id", String, index=True, nullable=False),
    Column("marker", String, index=True, nullable=False),
)
"""A request of a batch; deleted once its judgment is in the store."""

FIGURES: Final = Table(
    "figures",
    METADATA,
    _number_of_tournament(),
    Column("kind", String, primary_key=True),
    Column("made_by", String, nullable=False),
    Column("content", LargeBinary, nullable=False),
    _checksum(),
)
"""Cached figures of one kind for one tournament; every change to judgments or tournaments deletes all rows."""

STATE: Final = Table(
    "state",
    METADATA,
    Column("only", Integer, primary_key=True, autoincrement=False),
    Column("schema_version", Integer, nullable=False),
    Column("changes", Integer, nullable=False),
)
"""One row: the schema's version, and a counter that each change increments, so that readers know when to reload."""

_LABEL: Final = {
    "sqlite": "json_extract(judgment.outcome, '$.label')",
    "postgresql": "CAST(CAST(judgment.outcome AS json) ->> 'label' AS integer)",
}
"""SQL for the label in a relevance judgment's outcome if that is a JSON object, by kind of database."""

VIEWS: Final = {
    "verdicts": """
        SELECT tournament.name AS tournament, game.judge, game.query_id, query.text AS query,
            game.agent_a, game.agent_b, a.text AS answer_a, b.text AS answer_b, game.sample,
            replace(judgment.outcome, '"', '') AS verdict,
            CASE judgment.outcome WHEN '"A"' THEN game.agent_a WHEN '"B"' THEN game.agent_b ELSE 'TIE' END AS winner,
            judgment.reason, judgment.model, judgment.cost_usd
        FROM (
            SELECT tournament_id, judge, query_id, sample, judgment_id,
                CASE "order" WHEN 'ba' THEN other ELSE item END AS agent_a,
                CASE "order" WHEN 'ba' THEN item ELSE other END AS agent_b
            FROM wanted WHERE task = 'pairwise'
        ) AS game
        JOIN judgment ON judgment.judgment_id = game.judgment_id AND judgment.outcome IS NOT NULL
        JOIN tournament ON tournament.tournament_id = game.tournament_id
        LEFT JOIN query ON query.tournament_id = game.tournament_id AND query.query_id = game.query_id
        LEFT JOIN answer AS a
            ON a.tournament_id = game.tournament_id AND a.query_id = game.query_id AND a.agent = game.agent_a
        LEFT JOIN answer AS b
            ON b.tournament_id = game.tournament_id AND b.query_id = game.query_id AND b.agent = game.agent_b""",
    "labels": """
        SELECT tournament.name AS tournament, wanted.judge, wanted.query_id, wanted.item AS doc_id, wanted.sample,
            CASE WHEN judgment.outcome LIKE '{%' THEN {label} ELSE CAST(judgment.outcome AS integer) END AS label,
            judgment.reason
        FROM wanted
        JOIN judgment ON judgment.judgment_id = wanted.judgment_id AND judgment.outcome IS NOT NULL
        JOIN tournament ON tournament.tournament_id = wanted.tournament_id
        WHERE wanted.task = 'relevance'
        UNION ALL
        SELECT tournament.name, NULL, label.query_id, label.doc_id, 0, label.label, NULL
        FROM label JOIN tournament ON tournament.tournament_id = label.tournament_id""",
    "costs": """
        SELECT tournament.name AS tournament, asked.task AS stage, asked.judge, count(judgment.outcome) AS judged,
            count(*) - count(judgment.outcome) AS failed, sum(judgment.calls) AS calls,
            sum(judgment.input_tokens) AS input_tokens, sum(judgment.output_tokens) AS output_tokens,
            sum(judgment.cached_input_tokens) AS cached_input_tokens,
            sum(judgment.cost_usd) AS cost_usd, count(*) - count(judgment.cost_usd) AS cost_unknown
        FROM (SELECT DISTINCT tournament_id, task, judge, judgment_id FROM wanted) AS asked
        JOIN judgment ON judgment.judgment_id = asked.judgment_id
        JOIN tournament ON tournament.tournament_id = asked.tournament_id
        GROUP BY tournament.name, asked.task, asked.judge""",
    "failures": """
        SELECT tournament.name AS tournament, wanted.task AS stage, wanted.judge, wanted.query_id, wanted.item,
            wanted.other, wanted.sample, judgment.cause, judgment.reason AS message, judgment.reply
        FROM wanted
        JOIN judgment ON judgment.judgment_id = wanted.judgment_id AND judgment.outcome IS NULL
        JOIN tournament ON tournament.tournament_id = wanted.tournament_id""",
    "votes": """
        SELECT tournament.name AS tournament, annotation.annotator, annotation.query_id, annotation.item AS agent_a,
            annotation.other AS agent_b, replace(annotation.value, '"', '') AS verdict,
            CASE annotation.value WHEN '"A"' THEN annotation.item WHEN '"B"' THEN annotation.other ELSE 'TIE' END
                AS winner,
            annotation.seconds, annotation.at
        FROM annotation
        JOIN tournament ON tournament.tournament_id = annotation.tournament_id
        WHERE annotation.value <> 'null' AND annotation.annotation_id IN (
            SELECT max(annotation_id) FROM annotation WHERE kind = 'verdict'
            GROUP BY tournament_id, annotator, query_id, item, other, texts
        )""",
}
"""SQL views by name, for users who query the store; ragleague itself reads none. See docs/ask-the-store.md."""


def create_all(connection: Connection) -> None:
    METADATA.create_all(connection)
    label = _LABEL[connection.dialect.name]
    for name, query in VIEWS.items():
        connection.execute(text(f"CREATE VIEW {name} AS {query.replace('{label}', label)}"))
    connection.execute(insert(STATE), {"only": 1, "schema_version": SCHEMA_VERSION, "changes": 0})
