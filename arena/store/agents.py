"""Stores agents' replies; like judgments, they are keyed by content: the query's text and all that affects a reply."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, insert, select, update

from arena.store import runners, runs
from arena.store.bulk import CHUNK, among, chunks, insert_rows, replacing
from arena.store.engine import retry_while_away, retrying
from arena.store.rows import with_checksum
from arena.store.runners import Runner
from arena.store.tables import AGENT_REPLY, ASKING
from judges.masking import storable
from judges.types import Query, Usage
from retrieval_eval.agents.types import AgentFailure, AgentReply, ReplyOrFailure, RetrievedText

if TYPE_CHECKING:
    from arena.config.settings import StoredAgent
    from arena.store.database import Database

ANSWERED = "answered"
"""Outcome of a query that the agent answered; if it failed, the outcome is one of the ``AGENT_CAUSES``."""


_IF_THERE: Final = replacing(AGENT_REPLY, "reply_id", where="agent_reply.answer IS NULL")


class AgentQuery(Struct, frozen=True):
    """One query to one agent, identified by content: neither the agent's name nor, usually, the query's id counts.

    Attributes:
        identity: the agent's identity, see ``retrieval_eval.agents.types.Agent``.
        query: the query's text with the messages before it.
        query_id: empty unless the agent receives the id, because its reply may then depend on it.
    """

    identity: str
    query: str
    query_id: str = ""

    @staticmethod
    def of(agent: StoredAgent, query: Query) -> AgentQuery:
        return AgentQuery(agent.identity, query.thread, query.query_id if agent.told_id else "")

    @property
    def reply_id(self) -> str:
        parts = [self.identity, self.query, *([self.query_id] if self.query_id else [])]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class AgentReplies:
    """The agents' replies in a store; all tournaments of the store share them."""

    def __init__(self, store: Database) -> None:
        self._store = store
        self.location = store.location

    @retrying
    def replies(self, asked: Sequence[AgentQuery]) -> dict[AgentQuery, ReplyOrFailure]:
        with self._store.reading() as connection:
            idents = [each.reply_id for each in asked]
            rows = {row.reply_id: row for row in _rows(connection, idents, AGENT_REPLY)}
            replies = {ident: _reply(row) for ident, row in rows.items()}
            return {each: replies[each.reply_id] for each in asked if each.reply_id in replies}

    @retrying
    def outcomes(self, asked: Sequence[AgentQuery]) -> dict[AgentQuery, str]:
        """By query, ``ANSWERED`` or the cause of the failure; queries without a stored reply are left out."""
        with self._store.reading() as connection:
            known = _outcomes(connection, [each.reply_id for each in asked])
            return {each: known[each.reply_id] for each in asked if each.reply_id in known}

    @retrying
    def times(self, asked: Sequence[AgentQuery]) -> dict[AgentQuery, float]:
        """By query, when the reply was saved, in seconds since 1970; queries without a stored reply are left out."""
        with self._store.reading() as connection:
            columns = AGENT_REPLY.c
            rows = _rows(connection, [each.reply_id for each in asked], columns.reply_id, columns.made_at)
            times = {row.reply_id: float(row.made_at) for row in rows}
            return {each: times[each.reply_id] for each in asked if each.reply_id in times}

    @retrying
    def newest(self, identities: Iterable[str]) -> dict[str, str]:
        """The identity under which each agent's newest asking is stored; the agent's own if it was never asked anew."""
        names = list(dict.fromkeys(identities))
        with self._store.reading() as connection:
            rows = connection.execute(select(ASKING).where(ASKING.c.identity.in_(names)))
            numbers = {row.identity: row.number for row in rows}
        return {name: f"{name}/{numbers[name]}" if name in numbers else name for name in names}

    def ask_anew(self, identities: Iterable[str]) -> None:
        """Begin a new asking of these agents; their earlier replies stay in the store under their earlier identity."""
        names = sorted({*identities})
        with self._store.writing(alone=True, judged=False) as connection:
            for name in names:
                begun = update(ASKING).where(ASKING.c.identity == name).values(number=ASKING.c.number + 1)
                if not connection.execute(begun).rowcount:
                    connection.execute(insert(ASKING), {"identity": name, "number": 1})

    @retrying
    def claim(
        self,
        reply_ids: Sequence[str],
        runner: Runner,
        to_be_asked: Callable[[str | None], bool],
        tried: Callable[[str], bool] = lambda _: False,
    ) -> tuple[dict[str, str], set[str]]:
        """Claim the replies that need a call and that no other runner has claimed; see ``runners.claim``.

        Returns:
            The stored outcomes by id, and the ids of replies that another runner is asking for now.
        """
        idents = list(dict.fromkeys(reply_ids))
        with self._store.writing(judged=False) as connection:
            look_up = partial(_outcomes, connection)
            return runners.claim(connection, runner, idents, look_up, to_be_asked=to_be_asked, tried=tried)

    def save(self, replies: Sequence[tuple[AgentQuery, ReplyOrFailure]], runner: Runner | None = None) -> None:
        """Save replies and release the claims on them. A stored answer is kept; a stored failure is replaced.

        Args:
            runner: the runner that asked; the replies' cost is added to its spending. ``None`` to record no spending.
        """
        rows: dict[str, dict[str, Any]] = {}
        for asked, reply in replies:
            if (earlier := rows.get(asked.reply_id)) is None or earlier["answer"] is None:
                rows[asked.reply_id] = _values(asked, reply)

        def save(again: bool) -> None:
            with self._store.writing() as connection:
                insert_rows(connection, AGENT_REPLY, [rows[ident] for ident in sorted(rows)], _IF_THERE)
                if runner is not None:
                    paid = runners.taken(connection, runner, sorted(rows)) if again else rows
                    spent = [(runs.AGENTS, reply) for asked, reply in replies if asked.reply_id in paid]
                    runs.add_spending(connection, runner, spent)
                runners.release(connection, sorted(rows), runner)

        retry_while_away(self.location, save)


def _outcomes(connection: Connection, idents: Sequence[str]) -> dict[str, str]:
    columns = AGENT_REPLY.c
    return {row.reply_id: row.cause or ANSWERED for row in _rows(connection, idents, columns.reply_id, columns.cause)}


def _rows(connection: Connection, idents: Iterable[str], *columns: Any) -> Iterator[Any]:
    for chunk in chunks(dict.fromkeys(idents), CHUNK):
        yield from connection.execute(select(*columns).where(among(connection, AGENT_REPLY.c.reply_id, chunk)))


def _float(number: float | None) -> float | None:
    """Convert a number to the type that the database returns, so that a row's checksum agrees after reading."""
    return None if number is None else float(number)


def _values(asked: AgentQuery, reply: ReplyOrFailure) -> dict[str, Any]:
    """A reply as a row of its table, without characters that a database cannot store."""
    answered = reply if isinstance(reply, AgentReply) else None
    failed = reply if isinstance(reply, AgentFailure) else None
    row = {
        "reply_id": asked.reply_id,
        "identity": asked.identity,
        "query": storable(asked.query),
        "answer": None if answered is None else storable(answered.answer),
        "documents": json.dumps([] if answered is None else [_storable(asdict(each)) for each in answered.documents]),
        "citations": json.dumps([] if answered is None else list(map(storable, answered.citations))),
        "cause": None if failed is None else failed.cause,
        "message": "" if failed is None else storable(failed.message),
        "input_tokens": reply.usage.input_tokens,
        "cached_input_tokens": reply.usage.cached_input_tokens,
        "output_tokens": reply.usage.output_tokens,
        "calls": reply.calls,
        "latency_s": _float(reply.latency_s),
        "cost_usd": _float(reply.cost_usd),
        "tried_s": _float(reply.tried_s),
        "made_at": time.time(),
    }
    return with_checksum(row)


def _reply(row: Any) -> ReplyOrFailure:
    usage = Usage(row.input_tokens, row.cached_input_tokens, row.output_tokens)
    usage_fields = (row.latency_s, usage, row.calls, row.cost_usd, row.tried_s)
    if row.answer is None:
        return AgentFailure(row.cause, row.message, *usage_fields)
    documents = tuple(RetrievedText(**_storable(each)) for each in json.loads(row.documents))
    return AgentReply(row.answer, documents, tuple(map(storable, json.loads(row.citations))), *usage_fields)


def _storable(document: dict[str, Any]) -> dict[str, Any]:
    metadata = {storable(name): storable(value) for name, value in document["metadata"].items()}
    return {**document, **{name: storable(document[name]) for name in ("doc_id", "text")}, "metadata": metadata}
