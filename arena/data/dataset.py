"""What a tournament starts from: queries, retrieved documents, answers, and what people said of them.

``arena.data.files`` reads and writes their tables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from textwrap import shorten
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from judges.types import Answer, Document, Query, Retrieved
from retrieval_eval.data.rows import id_of_text

if TYPE_CHECKING:
    from retrieval_eval.scores.citations import CitedSentence, Habit

SHARED = ""
"""The agent of a retrieved document in tables that name none: it was given to every agent."""
EVERY_AGENT = "(every agent)"
"""Whose scores those of such documents are."""

LATENCY, COST, TOKENS_IN, TOKENS_OUT = "latency_s", "cost_usd", "input_tokens", "output_tokens"
_SHOWN: Final = 40
"""Characters of a query's text that stand for it in a message."""
TRIED = "tried_s"
"""Columns of a table of answers, and metadata of an answer, that say what it took."""

Causes: TypeAlias = Mapping[str, int]
"""How often an agent had no answer for which cause."""


class Dataset(Struct, frozen=True, dict=True):
    """What is judged. Every id is unique, every answer and document belongs to a query.

    Attributes:
        queries: by query_id, in the order of the file.
        documents: by doc_id; each text once, however often it was retrieved.
        answers: by (query_id, agent). A text may be empty: the agent then answered nothing, and that is judged.
        retrieved: by query_id, in order of agent and rank; ``SHARED`` stands for the agent where none is named.
        qrels: people's relevance labels by query_id and doc_id, also of documents that nobody retrieved.
        notes: what to know of how its files were read.
        left_out: further queries of the files, beyond ``data.limit``.
    """

    queries: Mapping[str, Query]
    documents: Mapping[str, Document] = field(default_factory=dict)
    answers: Mapping[tuple[str, str], Answer] = field(default_factory=dict)
    retrieved: Mapping[str, Sequence[Retrieved]] = field(default_factory=dict)
    qrels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    left_out: int = 0

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """Names of all agents, sorted."""
        answering = {agent for _, agent in self.answers}
        retrieving = {entry.agent for entries in self.retrieved.values() for entry in entries}
        return tuple(sorted(answering | retrieving - {SHARED}))

    @cached_property
    def has_messages(self) -> bool:
        """Whether any query is a later turn of a conversation."""
        return any(query.messages for query in self.queries.values())

    @cached_property
    def unanswered_queries(self) -> tuple[str, ...]:
        """Queries that no agent answered: no game can be played on them."""
        answered = {query_id for query_id, _ in self.answers}
        return tuple(query_id for query_id in self.queries if query_id not in answered)

    @cached_property
    def missing_answers(self) -> tuple[tuple[str, str], ...]:
        """(query_id, agent) without an answer although another agent answered the query."""
        unanswered = set(self.unanswered_queries)
        return tuple(
            (query_id, agent)
            for query_id in self.queries
            if query_id not in unanswered
            for agent in self.agents
            if (query_id, agent) not in self.answers
        )

    def called(self, query_id: str) -> str:
        """A query as a message names it: by its id, or by its text where the id is only a hash of that."""
        text = self.queries[query_id].text
        return repr(beginning(text, _SHOWN)) if query_id == id_of_text("q", text) else query_id

    @cached_property
    def rankings(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """By query and agent the documents retrieved, best first; those given to all alike are ``EVERY_AGENT``'s."""
        found: dict[tuple[str, str], list[str]] = {}
        for query_id, entries in self.retrieved.items():
            for entry in entries:
                found.setdefault((query_id, entry.agent or EVERY_AGENT), []).append(entry.doc_id)
        return found

    @cached_property
    def given(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """By query and agent the documents that it answered from, best first, those given to all among them."""
        found: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for query_id, entries in self.retrieved.items():
            for entry in entries:
                for agent in self.agents if entry.agent == SHARED else [entry.agent]:
                    found.setdefault((query_id, agent), []).append((entry.rank, entry.doc_id))
        return {key: [doc_id for _, doc_id in sorted(own)] for key, own in found.items()}

    @cached_property
    def sentences(self) -> Mapping[tuple[str, str], Sequence[CitedSentence] | None]:
        """The sentences of all answers with what they cite, by query and agent; see ``cited_sentences``."""
        from retrieval_eval.scores.citations import cited_sentences  # late: it takes numpy

        return cited_sentences(self.answers.values(), self.given, self.documents)

    @cached_property
    def _habits(self) -> Mapping[str, Habit]:
        from retrieval_eval.scores.citations import habits_of  # late, as above

        return habits_of(self.answers.values(), self.given, self.documents)

    def renumbered(self, answer: Answer, shown: Sequence[str], agent: str = "") -> Answer:
        """An answer whose citations are places among the documents that somebody sees beside it; see ``renumbered``.

        Args:
            answer: as it was given.
            shown: ids of the documents, in the order shown.
            agent: whose documents it cites, where these are not its own agent's.
        """
        from retrieval_eval.scores.citations import Habit, renumbered  # late, as above

        whose = agent or answer.agent
        ranking, habit = self.given.get((answer.query_id, whose), ()), self._habits.get(whose, Habit())
        return replace(answer, text=renumbered(answer, ranking, self.documents, habit, shown))

    def digest(self) -> str:
        """SHA-256, in hex, of everything in the dataset; the order of rows in the files does not change it."""
        whole, encode = hashlib.sha256(), json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
        for part in _canonical(self):
            whole.update(encode(part).encode() + b"\n")
        return whole.hexdigest()


def beginning(text: str, limit: int) -> str:
    """The first words of a text, or its first characters where there are no blanks, on one line."""
    words = shorten(text, limit, placeholder="...")
    return words if 2 * len(words) > limit or not words.endswith("...") else " ".join(text.split())[: limit - 3] + "..."


def _canonical(dataset: Dataset) -> Iterator[list[object]]:
    for query_id, query in sorted(dataset.queries.items()):
        yield ["query", query_id, query.text, dict(query.columns)]
    for doc_id, document in sorted(dataset.documents.items()):
        yield ["document", doc_id, document.text, dict(document.metadata)]
    for (query_id, agent), answer in sorted(dataset.answers.items()):
        yield ["answer", query_id, agent, answer.text, dict(answer.metadata)]
    for query_id, entries in sorted(dataset.retrieved.items()):
        for entry in sorted(entries, key=lambda entry: (entry.agent, entry.rank)):
            yield ["retrieved", query_id, entry.doc_id, entry.agent, entry.rank, entry.score]
    for query_id, labels in sorted(dataset.qrels.items()):
        for doc_id, label in sorted(labels.items()):
            yield ["label", query_id, doc_id, label]


def texts_of(queries: Collection[Query]) -> dict[str, str]:
    """The texts of queries by their ids, and of conversations, whose turns are one unit, what they begin with."""
    found = {query.query_id: query.text for query in queries}
    for query in queries:
        found.setdefault(query.cluster, query.messages[0].text if query.messages else query.text)
    return found


_MOST: Final = 30
"""A column with more values, or with more than half as many as there are queries, does not group them."""


def groupings(queries: Collection[Query]) -> dict[str, tuple[str, ...]]:
    """The columns that put queries into groups, each with its values in order; a query may lack a column."""
    values: dict[str, set[str]] = {}
    for query in queries:
        for name, value in query.metadata.items():
            values.setdefault(name, set()).add(value)
    return {name: tuple(sorted(own)) for name, own in values.items() if 1 < len(own) <= min(_MOST, len(queries) / 2)}
