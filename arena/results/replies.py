"""Adds the agents' stored replies to a tournament's dataset, and finds queries that agents have not answered."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from msgspec import Struct
from msgspec.structs import replace

from arena.config.settings import StoredAgent, StoredSettings
from arena.data.dataset import COST, LATENCY, SHARED, TOKENS_IN, TOKENS_OUT, TRIED, Causes, Dataset
from arena.store import Store, missing
from arena.store.agents import ANSWERED, AgentQuery, AgentReplies
from judges.errors import InputError
from judges.types import CITATIONS, Answer, Document, Query, Retrieved, repeat_of
from retrieval_eval.agents.types import AgentFailure, AgentReply

NOT_ASKED = "not asked"
"""Cause of a missing answer: the agent has not been asked yet, or it answered after the tournament's last run."""


def with_replies(data: Dataset, agents: Sequence[StoredAgent], location: str) -> Dataset:
    """Add the agents' stored replies, with their answers and documents, to a dataset from files.

    A retrieved document keeps its id unless another text already has that id; then a hash of its text is appended.

    Args:
        data: the dataset from files: queries, and perhaps answers and documents.
        location: the store's path or URL; the store may not exist yet.

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
                entries, names = _retrieved(query, agent, reply, documents)
                retrieved[query.query_id] += entries
                answers[query.query_id, agent.name] = _answer(query, agent, reply, names)
    ordered = {
        query_id: tuple(sorted(entries, key=lambda entry: (entry.agent, entry.rank)))
        for query_id, entries in retrieved.items()
        if entries
    }
    return replace(data, documents=documents, answers=answers, retrieved=ordered)


def unanswered(data: Dataset, settings: StoredSettings) -> dict[str, list[str]]:
    return {
        agent.name: [query_id for query_id in data.queries if (query_id, agent.name) not in data.answers]
        for agent in settings.agents
    }


class AnswerTimes(Struct, frozen=True):
    """How many answers of an agent a tournament has, and when they were made, in seconds since 1970.

    Attributes:
        first, last: ``None`` for answers from a file.
        asked: number of answers made in this run; ``None`` if no run is part of the command.
    """

    agent: str
    answers: int
    first: float | None = None
    last: float | None = None
    asked: int | None = None


def answer_times(store: Store, tournament: str, agent: str, since: float | None = None) -> AnswerTimes:
    """When an agent's answers in a tournament were made; those of this run were made after ``since``."""
    answered, _ = store.answered(tournament)
    of_agent = {name for name in {name for _, name in answered} if repeat_of(name)[0] == agent}
    names = {key for key in answered if key[1] in of_agent}
    stored = [each for each in store.settings(tournament).agents if repeat_of(each.name)[0] == agent]
    if not stored or stored[0].settings.get("kind") == "file":
        return AnswerTimes(agent, len(names))
    queries = store.queries(tournament).items()
    asked = [
        AgentQuery.of(each, query) for each in stored for query_id, query in queries if (query_id, each.name) in names
    ]
    times = AgentReplies(store).times(asked)
    made = [times[query] for query in asked if query in times]
    anew = None if since is None else sum(at >= since for at in made)
    return AnswerTimes(agent, len(names), min(made, default=None), max(made, default=None), anew)


def owed(store: Store, data: Dataset, settings: StoredSettings) -> dict[str, Causes]:
    """By agent and cause, the number of queries that the agent has not answered."""
    causes_by_agent: dict[str, Causes] = {}
    unanswered_ids = unanswered(data, settings)
    for agent in settings.agents:
        missing = [AgentQuery.of(agent, data.queries[query_id]) for query_id in unanswered_ids[agent.name]]
        outcomes = AgentReplies(store).outcomes(missing)
        causes = Counter(outcomes.get(query, NOT_ASKED) for query in missing)
        causes_by_agent[agent.name] = {
            NOT_ASKED if cause == ANSWERED else cause: causes[cause] for cause in sorted(causes)
        }
    return causes_by_agent


def failures(store: Store, data: Dataset, settings: StoredSettings) -> list[tuple[str, str, AgentFailure]]:
    """The agent's name, the query_id and the failure for every query that an agent failed to answer."""
    entries = []
    for agent in settings.agents:
        asked = {query_id: AgentQuery.of(agent, query) for query_id, query in data.queries.items()}
        replies = AgentReplies(store).replies(list(asked.values()))
        for query_id, agent_query in asked.items():
            if isinstance(reply := replies.get(agent_query), AgentFailure):
                entries.append((agent.name, query_id, reply))
    return entries


def require_fit(data: Dataset, agents: Iterable[StoredAgent]) -> None:
    """Check that the agents to ask do not conflict with the answers and documents in files.

    Raises:
        InputError: an agent's name occurs in the files too, or the files do not say which agent retrieved a document.
    """
    retrieving = {entry.agent for entries in data.retrieved.values() for entry in entries}
    if SHARED in retrieving:
        raise InputError(
            "agents: each agent retrieves its own documents; add a column 'agent' to the table of documents that "
            "names the agent that retrieved each one"
        )
    in_files = retrieving | {agent for _, agent in data.answers}
    for agent in agents:
        if agent.name in in_files:
            raise InputError(
                f"agents.{agent.name}: the data already has answers or documents of an agent with this name; "
                "rename one of the two"
            )


def _replies(store: Store, agent: StoredAgent, queries: Iterable[Query]) -> list[tuple[Query, AgentReply]]:
    agent_queries = [(query, AgentQuery.of(agent, query)) for query in queries]
    replies = AgentReplies(store).replies([agent_query for _, agent_query in agent_queries])
    return [
        (query, reply)
        for query, agent_query in agent_queries
        if isinstance(reply := replies.get(agent_query), AgentReply)
    ]


def _answer(query: Query, agent: StoredAgent, reply: AgentReply, names: Mapping[str, str]) -> Answer:
    figures = {
        LATENCY: reply.latency_s,
        TRIED: reply.tried_s,
        COST: reply.cost_usd,
        TOKENS_IN: reply.usage.input_tokens,
        TOKENS_OUT: reply.usage.output_tokens,
    }
    metadata = {name: str(value) for name, value in figures.items() if value is not None}
    if reply.citations:
        metadata[CITATIONS] = json.dumps([names.get(doc_id, doc_id) for doc_id in reply.citations])
    return Answer(query.query_id, agent.name, reply.answer, metadata)


def _retrieved(
    query: Query, agent: StoredAgent, reply: AgentReply, documents: dict[str, Document]
) -> tuple[list[Retrieved], dict[str, str]]:
    """The documents that a reply retrieved for its query; and by their id in the reply, their id in the dataset.

    New documents are added to ``documents``; a repeated one counts once. Documents without a text are left out, because
    they cannot be labelled; in a reply, either all have a text or none has.
    """
    entries: dict[str, Retrieved] = {}
    names: dict[str, str] = {}
    for document in sorted(
        (document for document in reply.documents if document.text.strip()), key=lambda document: document.rank
    ):
        doc_id = _free_id(document.doc_id, document.text, documents)
        names.setdefault(document.doc_id, doc_id)
        known = documents.get(doc_id, Document(doc_id, document.text))
        documents[doc_id] = replace(known, metadata={**document.metadata, **known.metadata})
        entries.setdefault(doc_id, Retrieved(query.query_id, doc_id, agent.name, len(entries) + 1, document.score))
    return list(entries.values()), names


def _free_id(doc_id: str, text: str, documents: Mapping[str, Document]) -> str:
    if doc_id not in documents or documents[doc_id].text == text:
        return doc_id
    return f"{doc_id}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"
