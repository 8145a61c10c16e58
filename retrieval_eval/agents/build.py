"""Agents out of their declarations."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from judges.errors import ConfigError, DataError, InputError, ProviderError, reason
from judges.functions import UserFunction, called, name_of
from judges.judge import Judge, Stop
from judges.prompts import PromptTemplate, load_prompt
from judges.sections import nearest
from judges.types import Document, Query, Task
from retrieval_eval.agents.embeddings import HostedEmbedder
from retrieval_eval.agents.json_replies import read_reply, read_usage
from retrieval_eval.agents.rag import (
    ExtractiveGenerator,
    Generator,
    RagAgent,
    Rewriter,
    by_model,
    offline,
    rewritten_by_model,
    rewritten_offline,
)
from retrieval_eval.agents.ranking import Corpus, InverseDocumentFrequency
from retrieval_eval.agents.remote import RemoteAgent
from retrieval_eval.agents.retrieval import Library
from retrieval_eval.agents.spec import EXTRACTIVE, AgentSpec, MappingSpec
from retrieval_eval.agents.types import Agent, AgentFailure, AgentReply, Meter, ReplyOrFailure, RetrievedText
from retrieval_eval.data.collections import document_of
from retrieval_eval.data.column_report import ColumnsRead
from retrieval_eval.data.rows import Row
from retrieval_eval.data.tables import read_rows
from retrieval_eval.data.vocabulary import names_of

_WRITES = frozenset({"openai", "anthropic", "transformers", "replay"})
"""Providers whose models can write a text."""
_DECIDES_NOTHING = {"timeout_s", "max_attempts", "concurrency", "headers_env", "api_key_env", "price"}
"""Keys of an agent that do not enter its identity; files and embeddings enter by what they hold."""
_BY_CONTENT = {"embeddings", "answers", "documents", "run", "function", "prompt", "queries_prompt", "generator"}


def build_agents(
    specs: Mapping[str, AgentSpec],
    judges: Mapping[str, Judge],
    corpus: Corpus | None = None,
    *,
    cache: Path | None = None,
    stop: Stop | None = None,
) -> list[Agent]:
    """One agent per declaration, in their order. Nothing is sent and no model loaded before the first reply.

    Agents share what they can: one index per kind of retrieval, one judge per name with its limits and its budget.
    When all replies are there, close every agent, then the judges, which are the caller's.

    Args:
        specs: by the agents' names.
        judges: the declared judges; at least those of ``judges_of_agents``.
        corpus: what is searched, and has the texts of documents that are only named; needed where ``needs_corpus``
            says so.
        cache: a folder that keeps embeddings, so that none is paid twice; they are forgotten when absent.
        stop: ends requests, so that nothing new is sent.

    Raises:
        InputError: in one line that names the agent: a generator that is no judge, a missing corpus, key, extra, file
            or function.
    """
    workshop = _Workshop(judges, corpus, cache, stop or Stop())
    agents = []
    for name, spec in specs.items():
        try:
            agents.append(workshop.agent(name, spec))
        except InputError as error:
            raise ConfigError(f"agents.{name}: {error}") from error
    return agents


class _Workshop:
    """What the agents of one configuration have in common."""

    def __init__(self, judges: Mapping[str, Judge], corpus: Corpus | None, cache: Path | None, stop: Stop) -> None:
        self._judges, self._corpus, self._cache, self._stop = judges, corpus, cache, stop

    def agent(self, name: str, spec: AgentSpec) -> Agent:
        match spec.kind:
            case "rag" | "fusion":
                return self._rag(name, spec)
            case "baseline":
                judge, template = self._judge(spec.generator or ""), _answering(spec)
                identity = _identity(spec, _of_judge(judge), template.digest)
                return RagAgent(name, None, by_model(judge, template), identity=identity)
            case "endpoint" | "http":
                agent = RemoteAgent(name, spec, self._texts, _identity(spec))
                self._stop.tell(agent.halt)
                return agent
            case "python":
                assert spec.function is not None  # of every agent of this kind
                function = UserFunction(spec.function, spec.version)
                called = name_of(spec.function) if isinstance(spec.function, str) else name
                decides = [function.identity, *([function.objects] if function.objects else [])]
                return CallableAgent(name, spec, function, self._texts, _identity(spec, called, *decides))
            case "file":
                if spec.run is not None:
                    self._library  # noqa: B018 - a run has no texts
                files = [_hashed(path) for path in (spec.answers, spec.documents, spec.run) if path is not None]
                return read_recorded(name, spec, self._texts, _identity(spec, spec.agent or name, *files))

    def _rag(self, name: str, spec: AgentSpec) -> RagAgent:
        library = self._library
        retriever = library.retriever(spec.retriever, spec.embeddings, spec.rrf_k)
        decides: list[Any] = [library.corpus.digest]
        notes: list[str] = []
        if spec.retriever != "bm25":
            embedder = library.embedder(spec.embeddings)
            if isinstance(embedder, HostedEmbedder):
                self._stop.tell(embedder.halt)
            prefixes = [spec.embeddings.query_prefix, spec.embeddings.document_prefix]
            decides += [dict(embedder.identity), prefixes]
            notes += [embedder.note] if embedder.note else []
        generator: Generator
        rewriter: Rewriter
        if spec.generator in (None, EXTRACTIVE):
            generator = offline(self._extractive.generate)
            rewriter = rewritten_offline(library.bm25, spec.queries)
            decides.append(EXTRACTIVE)
        else:
            judge = self._judge(spec.generator or "")
            answering = _answering(spec)
            rewriting = load_prompt(spec.queries_prompt, Task.REWRITING)
            generator, rewriter = by_model(judge, answering), rewritten_by_model(judge, rewriting, spec.queries)
            decides += [_of_judge(judge), answering.digest, rewriting.digest if spec.kind == "fusion" else ""]
        return RagAgent(
            name,
            retriever,
            generator,
            spec.depth,
            spec.passages,
            rewriter if spec.kind == "fusion" else None,
            spec.rrf_k,
            _identity(spec, *decides),
            tuple(notes),
        )

    @cached_property
    def _library(self) -> Library:
        if self._corpus is None:
            raise InputError("there is no corpus to search")
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
        if judge.spec.provider not in _WRITES:
            raise InputError(f"generator {name!r}: provider {judge.spec.provider!r} cannot write an answer")
        return judge


def _answering(spec: AgentSpec) -> PromptTemplate:
    usual = "rag_answer" if spec.ask is None else f"baseline_{spec.ask}"
    return load_prompt(spec.prompt or usual, Task.ANSWERING)


def require_messages(specs: Mapping[str, AgentSpec]) -> None:
    """For queries of conversations: see that every agent is told what was said before.

    Raises:
        InputError: the words for one have no place for it.
    """
    for name, spec in specs.items():
        if spec.generator not in (None, EXTRACTIVE):
            _answering(spec).require_messages()
        if spec.kind == "fusion":
            load_prompt(spec.queries_prompt, Task.REWRITING).require_messages()
        if spec.sends_no_messages:
            raise ConfigError(
                f"agents.{name}.request: these queries have messages before them, and no text holds {{messages}}; add "
                '"messages": "{messages}"'
            )


def _identity(spec: AgentSpec, *decides: Any) -> str:
    """Hash of the settings that decide a reply, and of what they lead to."""
    settings = spec.model_dump(mode="json", exclude=_DECIDES_NOTHING | _BY_CONTENT, exclude_defaults=True)
    content = json.dumps([settings, *decides], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _of_judge(judge: Judge) -> dict[str, Any]:
    return dict(judge.provider.identity)


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
    """Calls ``function(query)``; an exception is a failure.

    The function gives a text, or a mapping with ``answer`` and whatever it has of ``documents`` (``id``, ``text``,
    ``score``), ``citations``, ``input_tokens``, ``output_tokens`` and ``cost_usd``. One that is no coroutine is called
    in a thread; when its time is up it is left alone there, since Python cannot end it.

    Attributes:
        lacking: see ``UserFunction``.
    """

    notes: tuple[str, ...] = ()

    def __init__(
        self, name: str, spec: AgentSpec, function: UserFunction, corpus: Mapping[str, Document], identity: str
    ) -> None:
        self.name, self.identity, self.lacking = name, identity, function.lacking
        self._function, self._corpus, self._timeout_s = function, corpus, spec.timeout_s
        self._free = asyncio.Semaphore(spec.concurrency)

    async def reply(self, query: Query) -> ReplyOrFailure:
        """Call the function."""
        meter = Meter()
        async with self._free:
            try:
                with meter.timed():
                    async with asyncio.timeout(self._timeout_s):
                        given, seconds = await called(self._function.call, query)
                if seconds is not None:
                    meter.latency_s = meter.tried_s = seconds
                return self._read(given, meter)
            except TimeoutError:
                return meter.failure(ProviderError("timeout", f"no reply within {self._timeout_s:g} s"))
            except ProviderError as error:
                return meter.failure(error)

    def _read(self, given: Any, meter: Meter) -> ReplyOrFailure:
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
        self._function.settle()


class RecordedAgent(Struct, frozen=True):
    """Gives what was read; latency and cost are not known."""

    name: str
    identity: str
    answers: Mapping[str, str]
    documents: Mapping[str, tuple[RetrievedText, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    async def reply(self, query: Query) -> ReplyOrFailure:
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
    reading = ColumnsRead({*names_of("qid", "answer", "did", "document"), "agent", "rank", "score", "title"})
    rows = read_rows(spec.answers, ("qid", "answer"), names_of("qid", "answer"))
    for row in reading.through(_own(spec.answers, called, rows)):
        query_id = row.identifier("qid")
        if query_id in answers:
            raise row.error(f"agent {called!r} has answered query {query_id!r} further up")
        answers[query_id] = row.text("answer")
    documents: Mapping[str, tuple[RetrievedText, ...]] = {}
    if spec.documents is not None:
        rows = read_rows(spec.documents, ("qid", "did", "document"), names_of("did", "document", "qid"))
        documents = _from_rows(reading.through(_own(spec.documents, called, rows)))
    elif spec.run is not None:
        documents = _from_run(spec.run, corpus)
    reading.say(f"agent {name}: {len(answers):,} answers, documents of {len(documents):,} queries")
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


def _from_rows(rows: Iterable[Row]) -> dict[str, tuple[RetrievedText, ...]]:
    """In the order of the ranks; in the file's own where it has none."""
    found: dict[str, list[tuple[float, Row]]] = {}
    for row in rows:
        own = found.setdefault(row.identifier("qid"), [])
        rank = row.text("rank")
        if rank and not rank.isdecimal():
            raise row.error("'rank' is not a whole number", rank)
        own.append((int(rank) if rank else len(own) + 1, row))
    return {query_id: tuple(_ranked(entries)) for query_id, entries in found.items()}


def _ranked(entries: list[tuple[float, Row]]) -> Iterator[RetrievedText]:
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
        yield RetrievedText(document.doc_id, document.text, rank, given, metadata)


def _from_run(path: Path, corpus: Mapping[str, Document]) -> dict[str, tuple[RetrievedText, ...]]:
    from retrieval_eval.data.runs import read_run

    found = {}
    for query_id, ranking in read_run(path).rankings.items():
        if missing := [doc_id for doc_id in ranking.doc_ids if doc_id not in corpus]:
            raise InputError(f"{path}: query {query_id!r}: the corpus has no document {missing[0]!r}")
        entries = zip(ranking.doc_ids, ranking.scores, strict=True)
        found[query_id] = tuple(
            RetrievedText(doc_id, corpus[doc_id].text, rank, score, corpus[doc_id].metadata)
            for rank, (doc_id, score) in enumerate(entries, start=1)
        )
    return found
