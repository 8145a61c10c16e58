"""Agents out of their declarations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from judges.errors import ConfigError, InputError
from judges.functions import load_function, name_of
from judges.judge import Judge
from judges.mistakes import nearest
from judges.prompts import PromptTemplate, load_prompt
from judges.types import Document, Task
from retrieval_eval.agents.local import CallableAgent, read_recorded
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
from retrieval_eval.agents.spec import EXTRACTIVE, AgentSpec
from retrieval_eval.agents.types import Agent

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

    Raises:
        InputError: in one line that names the agent: a generator that is no judge, a missing corpus, key, extra, file
            or function.
    """
    workshop = _Workshop(judges, corpus, cache)
    agents = []
    for name, spec in specs.items():
        try:
            agents.append(workshop.agent(name, spec))
        except InputError as error:
            raise ConfigError(f"agents.{name}: {error}") from error
    return agents


class _Workshop:
    """What the agents of one configuration have in common."""

    def __init__(self, judges: Mapping[str, Judge], corpus: Corpus | None, cache: Path | None) -> None:
        self._judges, self._corpus, self._cache = judges, corpus, cache

    def agent(self, name: str, spec: AgentSpec) -> Agent:
        match spec.kind:
            case "rag" | "fusion":
                return self._rag(name, spec)
            case "baseline":
                judge, template = self._judge(spec.generator or ""), self._prompt(spec, f"baseline_{spec.ask}")
                identity = _identity(spec, _of_judge(judge), template.digest)
                return RagAgent(name, None, by_model(judge, template), identity=identity)
            case "endpoint" | "http":
                return RemoteAgent(name, spec, self._texts, _identity(spec))
            case "python":
                assert spec.function is not None  # of every agent of this kind
                function, source = load_function(spec.function)
                return CallableAgent(name, spec, function, self._texts, _identity(spec, name_of(spec.function), source))
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
            answering = self._prompt(spec, "rag_answer")
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

    def _prompt(self, spec: AgentSpec, usual: str) -> PromptTemplate:
        return load_prompt(spec.prompt or usual, Task.ANSWERING)


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
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
