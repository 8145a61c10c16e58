"""Builds agents from their declarations; defines the agents that call a function or replay recorded answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from judges.errors import ConfigError, DataError, InputError, ProviderError, reason
from judges.functions import UserFunction, called, name_of
from judges.judge import Judge, Stop
from judges.prompts import PromptTemplate, load_prompt
from judges.sections import nearest
from judges.types import Document, Query, Task
from retrieval_eval.agents.embeddings import HostedEmbedder
from retrieval_eval.agents.rag import (
    ExtractiveGenerator,
    RagAgent,
    by_model,
    offline,
    rewritten_by_model,
    rewritten_offline,
)
from retrieval_eval.agents.ranking import Corpus, InverseDocumentFrequency
from retrieval_eval.agents.remote import RemoteAgent, read_reply, read_usage
from retrieval_eval.agents.retrieval import Library
from retrieval_eval.agents.spec import EXTRACTIVE, AgentSpec, MappingSpec
from retrieval_eval.agents.types import Agent, AgentFailure, AgentReply, Meter, ReplyOrFailure, RetrievedText
from retrieval_eval.data.collections import document_of
from retrieval_eval.data.rows import Row
from retrieval_eval.data.table_spec import ColumnsRead, TableSpec

_TEXT_PROVIDERS = frozenset({"openai", "anthropic", "transformers", "replay"})
_NOT_IN_IDENTITY = {"timeout_s", "max_attempts", "concurrency", "headers_env", "api_key_env", "price", "repeats"}
"""Keys of an agent's declaration that do not affect its replies, and so are left out of its identity."""
_BY_CONTENT = {"embeddings", "answers", "documents", "run", "function", "prompt", "queries_prompt", "generator"}
"""Keys that name a file, function or model; the identity includes the named content instead of the name."""


def build_agents(
    specs: Mapping[str, AgentSpec],
    judges: Mapping[str, Judge],
    corpus: Corpus | None = None,
    *,
    cache: Path | None = None,
    stop: Stop | None = None,
) -> list[Agent]:
    """One agent per declaration, in order. Nothing is sent and no model is loaded before the first reply.

    Agents with the same kind of retrieval share an index; agents with the same judge share its limits and its budget.
    After the last reply, close every agent, then the judges, which the caller owns.

    Args:
        specs: the agents' declarations by name.
        judges: the declared judges by name; at least the judges that ``judges_of_agents`` lists.
        corpus: documents to search or to look up by id; required if ``needs_corpus`` is true.
        cache: a folder that stores embeddings for later runs; by default they stay in memory.
        stop: signal to send no further requests.
    """
    workshop = _AgentBuilder(judges, corpus, cache, stop or Stop())
    agents = []
    for name, spec in specs.items():
        try:
            agents.append(workshop.agent(name, spec))
        except InputError as error:
            raise ConfigError(f"agents.{name}: {error}") from error
    return agents


class _AgentBuilder:
    """Builds the agents of one configuration, with the resources that they share."""

    def __init__(self, judges: Mapping[str, Judge], corpus: Corpus | None, cache: Path | None, stop: Stop) -> None:
        self._judges, self._corpus, self._cache, self._stop = judges, corpus, cache, stop

    def agent(self, name: str, spec: AgentSpec) -> Agent:
        match spec.kind:
            case "rag" | "fusion":
                return self._rag(name, spec)
            case "baseline":
                judge, template = self._judge(spec.generator or ""), _answering(spec)
                identity = _identity(spec, dict(judge.provider.identity), template.digest)
                return RagAgent(name, None, by_model(judge, template), identity=identity)
            case "endpoint" | "http":
                agent = RemoteAgent(name, spec, self._texts, _identity(spec))
                self._stop.tell(agent.halt)
                return agent
            case "python":
                assert spec.function is not None  # AgentSpec requires it
                function = UserFunction(spec.function, spec.version)
                function_name = name_of(spec.function) if isinstance(spec.function, str) else name
                decides = [function.reading.digest, *([function.objects] if function.objects else [])]
                return CallableAgent(name, spec, function, self._texts, _identity(spec, function_name, *decides))
            case "file":
                if spec.run is not None:
                    self._library  # noqa: B018 - a run has no texts
                files = [_hashed(path) for path in (spec.answers, spec.documents, spec.run) if path is not None]
                return read_recorded(name, spec, self._texts, _identity(spec, spec.agent or name, *files))

    def _rag(self, name: str, spec: AgentSpec) -> RagAgent:
        library = self._library
        retriever = library.retriever(spec.retriever, spec.embeddings, spec.rrf_k)
        contents: list[Any] = [library.corpus.digest]
        notes: list[str] = []
        if spec.retriever != "bm25":
            embedder = library.embedder(spec.embeddings)
            if isinstance(embedder, HostedEmbedder):
                self._stop.tell(embedder.halt)
            prefixes = [spec.embeddings.query_prefix, spec.embeddings.document_prefix]
            contents += [dict(embedder.identity), prefixes]
            notes += [embedder.note] if embedder.note else []
        if spec.generator in (None, EXTRACTIVE):
            generator, rewriter = offline(self._extractive.generate), rewritten_offline(library.bm25, spec.queries)
            contents.append(EXTRACTIVE)
        else:
            judge, answering = self._judge(spec.generator or ""), _answering(spec)
            rewriting = load_prompt(spec.queries_prompt, Task.REWRITING)
            generator, rewriter = by_model(judge, answering), rewritten_by_model(judge, rewriting, spec.queries)
            contents += [dict(judge.provider.identity), answering.digest]
            contents.append(rewriting.digest if spec.kind == "fusion" else "")
        rewrite = rewriter if spec.kind == "fusion" else None
        identity, sizes = _identity(spec, *contents), (spec.depth, spec.passages)
        return RagAgent(name, retriever, generator, *sizes, rewrite, spec.rrf_k, identity, tuple(notes))

    @cached_property
    def _library(self) -> Library:
        if self._corpus is None:
            raise InputError("there is no corpus to search; name documents as 'corpus' under 'data'")
        return Library(self._corpus, self._cache)

    @cached_property
    def _extractive(self) -> ExtractiveGenerator:
        return ExtractiveGenerator(InverseDocumentFrequency(self._library.corpus.documents))

    @property
    def _texts(self) -> Mapping[str, Document]:
        return {} if self._corpus is None else self._corpus.by_id

    def _judge(self, name: str) -> Judge:
        if name not in self._judges:
            raise InputError(f"generator {name!r} is not declared under 'judges'{nearest(name, self._judges)}")
        judge = self._judges[name]
        if judge.spec.provider not in _TEXT_PROVIDERS:
            raise InputError(
                f"generator {name!r}: provider {judge.spec.provider!r} cannot write an answer; name another judge"
            )
        return judge


def _answering(spec: AgentSpec) -> PromptTemplate:
    default = "rag_answer" if spec.ask is None else f"baseline_{spec.ask}"
    return load_prompt(spec.prompt or default, Task.ANSWERING)


def require_messages(specs: Mapping[str, AgentSpec]) -> None:
    """Check that every agent's prompt or request includes earlier messages; needed if queries have any."""
    for name, spec in specs.items():
        if spec.generator not in (None, EXTRACTIVE):
            _answering(spec).require_messages()
        if spec.kind == "fusion":
            load_prompt(spec.queries_prompt, Task.REWRITING).require_messages()
        if spec.sends_no_messages:
            raise ConfigError(
                f"agents.{name}.request: these queries have earlier messages, and the request has no {{messages}}; add "
                '"messages": "{messages}"'
            )


def _identity(spec: AgentSpec, *decides: Any) -> str:
    """Hash of all that affects an agent's replies: its settings, and contents such as prompts (``decides``)."""
    settings = spec.model_dump(mode="json", exclude=_NOT_IN_IDENTITY | _BY_CONTENT, exclude_defaults=True)
    content = json.dumps([settings, *decides], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _hashed(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {reason(error)}") from error


_MAPPING = MappingSpec(
    answer="answer",
    documents="documents",
    citations="citations",
    input_tokens="input_tokens",
    output_tokens="output_tokens",
    cost_usd="cost_usd",
)


class CallableAgent:
    """Agent that calls ``function(query)``; an exception becomes an ``AgentFailure``.

    The function returns a text, or a mapping with ``answer`` and optionally ``documents`` (``id``, ``text``,
    ``score``), ``citations``, ``input_tokens``, ``output_tokens`` and ``cost_usd``. A function that is not a coroutine
    runs in a thread; after the timeout it continues there, since Python cannot end a thread.
    """

    notes: tuple[str, ...] = ()

    def __init__(
        self, name: str, spec: AgentSpec, function: UserFunction, corpus: Mapping[str, Document], identity: str
    ) -> None:
        self.name, self.identity, self.lacking = name, identity, function.lacking
        self._function, self._corpus, self._timeout_s = function, corpus, spec.timeout_s
        self._slots = asyncio.Semaphore(spec.concurrency)

    async def reply(self, query: Query) -> ReplyOrFailure:
        meter = Meter()
        async with self._slots:
            try:
                with meter.timed():
                    async with asyncio.timeout(self._timeout_s):
                        returned, seconds = await called(self._function.call, query)
                if seconds is not None:
                    meter.latency_s = meter.tried_s = seconds
                return self._read(returned, meter)
            except TimeoutError:
                return meter.failure(ProviderError("timeout", f"no reply within {self._timeout_s:g} s"))
            except ProviderError as error:
                return meter.failure(error)

    def _read(self, returned: Any, meter: Meter) -> ReplyOrFailure:
        if isinstance(returned, str):
            returned = {"answer": returned}
        if returned is None:
            raise ProviderError("empty", "the function returned None")
        if not isinstance(returned, Mapping):
            message = f"the function returned a {type(returned).__name__}, not a text or a mapping"
            raise ProviderError("contract", message)
        body = dict(returned)
        meter.usage, meter.cost_usd = read_usage(body, _MAPPING)
        return meter.reply(*read_reply(body, _MAPPING, self._corpus))

    async def close(self) -> None:
        self._function.settle()


class RecordedAgent(Struct, frozen=True):
    """Agent that replays answers recorded in a file; their latency and cost are unknown."""

    name: str
    identity: str
    answers: Mapping[str, str]
    documents: Mapping[str, tuple[RetrievedText, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    async def reply(self, query: Query) -> ReplyOrFailure:
        answer = self.answers.get(query.query_id)
        if answer is None:
            return AgentFailure("not_recorded", f"the file has no answer to query {query.query_id!r}")
        if not answer.strip():
            return AgentFailure("empty", f"the file's answer to query {query.query_id!r} is empty")
        return AgentReply(answer, self.documents.get(query.query_id, ()), latency_s=None)

    async def close(self) -> None: ...


RECORDED: Final = TableSpec(("qid", "agent", "answer"), ("qid", "answer"))
RETRIEVED: Final = TableSpec(("did", "document", "qid", "agent", "rank", "score"), ("qid", "did", "document"))


def read_recorded(name: str, spec: AgentSpec, corpus: Mapping[str, Document], identity: str) -> RecordedAgent:
    assert spec.answers is not None  # AgentSpec requires it
    agent = spec.agent or name
    answers: dict[str, str] = {}
    reading = ColumnsRead({*RECORDED.columns, *RETRIEVED.columns, "title"})
    for row in reading.through(_rows_of_agent(spec.answers, agent, RECORDED.rows(spec.answers))):
        query_id = row.identifier("qid")
        if query_id in answers:
            raise row.error(f"agent {agent!r} has answered query {query_id!r} further up; remove one")
        answers[query_id] = row.text("answer")
    documents: Mapping[str, tuple[RetrievedText, ...]] = {}
    if spec.documents is not None:
        rows = _rows_of_agent(spec.documents, agent, RETRIEVED.rows(spec.documents))
        documents = _from_rows(reading.through(rows))
    elif spec.run is not None:
        documents = _from_run(spec.run, corpus)
    reading.say(f"agent {name}: {len(answers):,} answers, documents of {len(documents):,} queries")
    return RecordedAgent(name, identity, answers, documents)


def _rows_of_agent(path: Path, agent: str, rows: Iterable[Row]) -> Iterator[Row]:
    """One agent's rows of a table; all rows if the table has no column ``agent``."""
    other_agents: dict[str, None] = {}
    any_rows = False
    for row in rows:
        row_agent = row.text("agent")
        if "agent" in row.values and row_agent != agent:
            other_agents[row_agent] = None
            continue
        any_rows = True
        yield row
    if not any_rows:
        known = ", ".join(map(repr, list(other_agents)[:10]))
        raise DataError(path, f"has no row of agent {agent!r}, only of {known}; set 'agent' to one of these")


def _from_rows(rows: Iterable[Row]) -> dict[str, tuple[RetrievedText, ...]]:
    """Each query's retrieved documents by rank, or in the file's order if the table has no ranks."""
    entries_by_query: dict[str, list[tuple[float, Row]]] = {}
    for row in rows:
        entries = entries_by_query.setdefault(row.identifier("qid"), [])
        entries.append((row.rank(0) if row.text("rank") else len(entries) + 1, row))
    documents: dict[str, dict[str, RetrievedText]] = {}
    for query_id, entries in entries_by_query.items():
        ranked = documents[query_id] = {}
        for rank, (_, row) in enumerate(sorted(entries, key=lambda entry: entry[0]), start=1):
            document = document_of(row)
            if document.doc_id in ranked:
                raise row.error("the document is listed twice for the query; remove one", document.doc_id)
            metadata = {key: value for key, value in document.metadata.items() if key not in RETRIEVED.columns}
            text = RetrievedText(document.doc_id, document.text, rank, row.number("score"), metadata)
            ranked[document.doc_id] = text
    return {query_id: tuple(ranked.values()) for query_id, ranked in documents.items()}


def _from_run(path: Path, corpus: Mapping[str, Document]) -> dict[str, tuple[RetrievedText, ...]]:
    from retrieval_eval.data.runs import read_run

    documents = {}
    for query_id, ranking in read_run(path).rankings.items():
        if missing := [doc_id for doc_id in ranking.doc_ids if doc_id not in corpus]:
            raise InputError(
                f"{path}: query {query_id!r}: the corpus has no document {missing[0]!r}; add it to the corpus"
            )
        entries = zip(ranking.doc_ids, ranking.scores, strict=True)
        documents[query_id] = tuple(
            RetrievedText(doc_id, corpus[doc_id].text, rank, score, corpus[doc_id].metadata)
            for rank, (doc_id, score) in enumerate(entries, start=1)
        )
    return documents
