"""Agents that are no server: a Python function of one's own, or answers that stand in files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judges.errors import DataError, InputError, ProviderError
from judges.functions import called
from judges.types import Document, Query
from retrieval_eval.agents.reading import read_reply, read_usage
from retrieval_eval.agents.spec import AgentSpec, MappingSpec
from retrieval_eval.agents.types import AgentFailure, AgentReply, Meter, Reply, Retrieved
from retrieval_eval.data.collections import document_of
from retrieval_eval.data.names import names_of
from retrieval_eval.data.rows import Row
from retrieval_eval.data.tables import read_rows

_MAPPING = MappingSpec(
    answer="answer",
    documents="documents",
    citations="citations",
    input_tokens="input_tokens",
    output_tokens="output_tokens",
    cost_usd="cost_usd",
)

Function = Callable[[Query], Any]


class CallableAgent:
    """Calls ``function(query)``; an exception is a failure.

    The function gives a text, or a mapping with ``answer`` and whatever it has of ``documents`` (``id``, ``text``,
    ``score``), ``citations``, ``input_tokens``, ``output_tokens`` and ``cost_usd``. One that is no coroutine is called
    in a thread; when its time is up it is left alone there, since Python cannot end it.
    """

    notes: tuple[str, ...] = ()

    def __init__(
        self, name: str, spec: AgentSpec, function: Function, corpus: Mapping[str, Document], identity: str
    ) -> None:
        self.name, self.identity = name, identity
        self._function, self._corpus, self._timeout_s = function, corpus, spec.timeout_s
        self._free = asyncio.Semaphore(spec.concurrency)

    async def reply(self, query: Query) -> Reply:
        """Call the function."""
        meter = Meter()
        async with self._free:
            try:
                with meter.timed():
                    async with asyncio.timeout(self._timeout_s):
                        given, seconds = await called(self._function, query)
                if seconds is not None:
                    meter.latency_s = meter.tried_s = seconds
                return self._read(given, meter)
            except TimeoutError:
                return meter.failure(ProviderError("timeout", f"no reply within {self._timeout_s:g} s"))
            except ProviderError as error:
                return meter.failure(error)

    def _read(self, given: Any, meter: Meter) -> Reply:
        if isinstance(given, str):
            given = {"answer": given}
        if given is None:
            raise ProviderError("empty", "the function returned None")
        if not isinstance(given, Mapping):
            message = f"the function returned a {type(given).__name__}, not a text or a mapping"
            raise ProviderError("contract", message)
        body = dict(given)
        meter.usage, meter.cost_usd = read_usage(body, _MAPPING)
        found = read_reply(body, _MAPPING, self._corpus)
        return meter.reply(found.answer, found.documents, found.citations)

    async def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class RecordedAgent:
    """Gives what was read; latency and cost are not known."""

    name: str
    identity: str
    answers: Mapping[str, str]
    documents: Mapping[str, tuple[Retrieved, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    async def reply(self, query: Query) -> Reply:
        """Look the query up by its id."""
        answer = self.answers.get(query.query_id)
        if answer is None:
            return AgentFailure("not_recorded", f"the file has no answer to query {query.query_id!r}")
        if not answer.strip():
            return AgentFailure("empty", f"the file's answer to query {query.query_id!r} is empty")
        return AgentReply(answer, self.documents.get(query.query_id, ()), latency_s=None)

    async def close(self) -> None:
        """Nothing is held."""


def read_recorded(name: str, spec: AgentSpec, corpus: Mapping[str, Document], identity: str) -> RecordedAgent:
    """Read the files of a declaration.

    Raises:
        InputError: a file cannot be read, holds nothing of this agent, two answers to a query, or a document that the
            corpus does not have.
    """
    assert spec.answers is not None  # of every agent of this kind
    called = spec.agent or name
    answers: dict[str, str] = {}
    for row in _own(spec.answers, called, read_rows(spec.answers, ("qid", "answer"), names_of("qid", "answer"))):
        query_id = row.identifier("qid")
        if query_id in answers:
            raise row.error(f"agent {called!r} has answered query {query_id!r} further up")
        answers[query_id] = row.text("answer")
    documents: Mapping[str, tuple[Retrieved, ...]] = {}
    if spec.documents is not None:
        rows = read_rows(spec.documents, ("qid", "did", "document"), names_of("did", "document", "qid"))
        documents = _from_rows(_own(spec.documents, called, rows))
    elif spec.run is not None:
        documents = _from_run(spec.run, corpus)
    return RecordedAgent(name, identity, answers, documents)


def _own(path: Path, agent: str, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of one agent; all of them where the table does not say whose they are."""
    others: dict[str, None] = {}
    found = False
    for row in rows:
        named = row.text("agent")
        if "agent" in row.values and named != agent:
            others[named] = None
            continue
        found = True
        yield row
    if not found:
        known = ", ".join(map(repr, list(others)[:10]))
        raise DataError(path, f"has no row of agent {agent!r}; there are {known} (name one with 'agent')")


def _from_rows(rows: Iterable[Row]) -> dict[str, tuple[Retrieved, ...]]:
    """In the order of the ranks; in the file's own where it has none."""
    found: dict[str, list[tuple[float, Row]]] = {}
    for row in rows:
        own = found.setdefault(row.identifier("qid"), [])
        rank = row.text("rank")
        if rank and not rank.isdecimal():
            raise row.error("'rank' is not a whole number", rank)
        own.append((int(rank) if rank else len(own) + 1, row))
    return {query_id: tuple(_ranked(entries)) for query_id, entries in found.items()}


def _ranked(entries: list[tuple[float, Row]]) -> Iterator[Retrieved]:
    seen: set[str] = set()
    for rank, (_, row) in enumerate(sorted(entries, key=lambda entry: entry[0]), start=1):
        document = document_of(row)
        if document.doc_id in seen:
            raise row.error("the document stands twice among those of the query", document.doc_id)
        seen.add(document.doc_id)
        score = row.text("score")
        try:
            given = float(score) if score else None
        except ValueError:
            raise row.error("'score' is not a number", score) from None
        columns = {"qid", "agent", "rank", "score"}
        metadata = {key: value for key, value in document.metadata.items() if key not in columns}
        yield Retrieved(document.doc_id, document.text, rank, given, metadata)


def _from_run(path: Path, corpus: Mapping[str, Document]) -> dict[str, tuple[Retrieved, ...]]:
    from retrieval_eval.data.runs import read_run

    found = {}
    for query_id, ranking in read_run(path).rankings.items():
        if missing := [doc_id for doc_id in ranking.doc_ids if doc_id not in corpus]:
            raise InputError(f"{path}: query {query_id!r}: the corpus has no document {missing[0]!r}")
        entries = zip(ranking.doc_ids, ranking.scores, strict=True)
        found[query_id] = tuple(
            Retrieved(doc_id, corpus[doc_id].text, rank, score, corpus[doc_id].metadata)
            for rank, (doc_id, score) in enumerate(entries, start=1)
        )
    return found
