"""Agents' replies as data of a tournament: answers, what was retrieved, and what is still owed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.settings import StoredAgent, StoredSettings
from arena.data.dataset import COST, LATENCY, SHARED, TOKENS_IN, TOKENS_OUT, TRIED, Causes, Dataset
from arena.store import Store, missing
from arena.store.agents import ANSWERED, AgentQuery, AgentReplies
from judges.errors import InputError
from judges.types import Answer, Document, Query, Retrieved
from retrieval_eval.agents.types import AgentFailure, AgentReply
from retrieval_eval.scores.citations import CITATIONS

NOT_ASKED = "not asked"
"""In place of a cause, where nobody asked the agent yet, or the answer came after the tournament was last run."""


class Declared(Struct, frozen=True):
    """One agent as a tournament knows it.

    Attributes:
        identity: hash of everything that decides its replies, but for the query.
        settings: what of its declaration is told.
        notes: what a reader of its results must know.
        told_id: see ``AgentSpec.told_id``.
    """

    name: str
    identity: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    told_id: bool = False

    def asked(self, query: Query) -> AgentQuery:
        """The query, as the store knows it of this agent."""
        return AgentQuery.of(self.identity, query, told_id=self.told_id)


def with_replies(data: Dataset, agents: Sequence[Declared], location: str) -> Dataset:
    """The dataset with what the store knows of the agents' replies beside what files gave.

    A document keeps its id unless another text has it already: then the id says which text it is.

    Args:
        data: queries, and answers and documents out of files.
        agents: in the order of the configuration.
        location: of the store, which may not be there yet.

    Raises:
        InputError: see ``require_fit``.
    """
    require_fit(data, agents)
    if missing(location):
        return data
    documents, answers = dict(data.documents), dict(data.answers)
    retrieved: dict[str, list[Retrieved]] = {
        query_id: list(data.retrieved.get(query_id, ())) for query_id in data.queries
    }
    with closing(Store.open(location)) as store:
        for agent in agents:
            for query, reply in _replies(store, agent, data.queries.values()):
                found, names = _retrieved(query, agent, reply, documents)
                retrieved[query.query_id] += found
                answers[query.query_id, agent.name] = _answer(query, agent, reply, names)
    ordered = {
        query_id: tuple(sorted(entries, key=lambda entry: (entry.agent, entry.rank)))
        for query_id, entries in retrieved.items()
        if entries
    }
    return replace(data, documents=documents, answers=answers, retrieved=ordered)


def unanswered(data: Dataset, settings: StoredSettings) -> dict[str, list[str]]:
    """By agent that a tournament asks itself, the queries to which it has no answer, from its stored settings."""
    return {
        agent.name: [query_id for query_id in data.queries if (query_id, agent.name) not in data.answers]
        for agent in settings.agents
    }


def owed(store: Store, data: Dataset, settings: StoredSettings) -> dict[str, Causes]:
    """By agent that a tournament asks itself, why it has no answer to how many queries.

    Args:
        store: that holds the replies.
        data: of the tournament, as it was last run.
        settings: as stored with it.
    """
    found: dict[str, Causes] = {}
    without = unanswered(data, settings)
    for agent in settings.agents:
        missing = [_asked(agent, data.queries[query_id]) for query_id in without[agent.name]]
        outcomes = AgentReplies(store).outcomes(missing)
        causes = Counter(outcomes.get(asked, NOT_ASKED) for asked in missing)
        found[agent.name] = {NOT_ASKED if cause == ANSWERED else cause: causes[cause] for cause in sorted(causes)}
    return found


def failures(store: Store, data: Dataset, settings: StoredSettings) -> list[tuple[str, str, AgentFailure]]:
    """Agent, query_id and failure of every answer that an agent was asked for in vain; arguments as of ``owed``."""
    found = []
    for agent in settings.agents:
        asked = {query_id: _asked(agent, query) for query_id, query in data.queries.items()}
        replies = AgentReplies(store).replies(list(asked.values()))
        for query_id, each in asked.items():
            if isinstance(reply := replies.get(each), AgentFailure):
                found.append((agent.name, query_id, reply))
    return found


def _asked(agent: StoredAgent, query: Query) -> AgentQuery:
    return AgentQuery.of(agent.identity, query, told_id=agent.told_id)


def require_fit(data: Dataset, agents: Iterable[Declared]) -> None:
    """See that agents and files can stand beside each other.

    Raises:
        InputError: an agent is in the files too, or the files' documents are everybody's.
    """
    retrieving = {entry.agent for entries in data.retrieved.values() for entry in entries}
    if SHARED in retrieving:
        raise InputError("agents: they retrieve documents of their own, and the table of documents names no agent")
    in_files = retrieving | {agent for _, agent in data.answers}
    for agent in agents:
        if agent.name in in_files:
            raise InputError(f"agents.{agent.name}: the data has answers or documents of an agent of this name already")


def _replies(store: Store, agent: Declared, queries: Iterable[Query]) -> list[tuple[Query, AgentReply]]:
    asked = [(query, agent.asked(query)) for query in queries]
    known = AgentReplies(store).replies([each for _, each in asked])
    return [(query, reply) for query, each in asked if isinstance(reply := known.get(each), AgentReply)]


def _answer(query: Query, agent: Declared, reply: AgentReply, names: Mapping[str, str]) -> Answer:
    """The answer with what it took and cites, as a table of answers would have it."""
    took = {
        LATENCY: reply.latency_s,
        TRIED: reply.tried_s,
        COST: reply.cost_usd,
        TOKENS_IN: reply.usage.input_tokens,
        TOKENS_OUT: reply.usage.output_tokens,
    }
    metadata = {name: str(value) for name, value in took.items() if value is not None}
    if reply.citations:
        metadata[CITATIONS] = json.dumps([names.get(doc_id, doc_id) for doc_id in reply.citations])
    return Answer(query.query_id, agent.name, reply.answer, metadata)


def _retrieved(
    query: Query, agent: Declared, reply: AgentReply, documents: dict[str, Document]
) -> tuple[list[Retrieved], dict[str, str]]:
    """What was retrieved, and the ids that the reply's ids became.

    Documents that are new are added to ``documents``, a repeated one counts once.

    What has no text cannot be labelled and is left out; a reply has none such, or nothing else.
    """
    entries: dict[str, Retrieved] = {}
    names: dict[str, str] = {}
    for found in sorted((found for found in reply.documents if found.text.strip()), key=lambda found: found.rank):
        doc_id = _free_id(found.doc_id, found.text, documents)
        names.setdefault(found.doc_id, doc_id)
        known = documents.get(doc_id, Document(doc_id, found.text))
        documents[doc_id] = replace(known, metadata={**found.metadata, **known.metadata})
        entries.setdefault(doc_id, Retrieved(query.query_id, doc_id, agent.name, len(entries) + 1, found.score))
    return list(entries.values()), names


def _free_id(doc_id: str, text: str, documents: Mapping[str, Document]) -> str:
    """The id, or one of its own where another text has it."""
    if doc_id not in documents or documents[doc_id].text == text:
        return doc_id
    return f"{doc_id}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"
