"""What a RAG system under evaluation is: it retrieves passages for a query and answers from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from judges.types import Answer, Document, Query, Retrieved


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found for a question; the higher the score, the better."""

    document: Document
    score: float


@dataclass(frozen=True, slots=True)
class Response:
    """All that one agent gave for one query.

    ``documents`` and ``retrieved`` describe the same passages in the same order, best first.
    """

    answer: Answer
    documents: tuple[Document, ...]
    retrieved: tuple[Retrieved, ...]


class Agent(Protocol):
    """A system under evaluation."""

    @property
    def name(self) -> str:
        """How files and tables call the agent."""
        ...

    def respond(self, query: Query) -> Response:
        """Answer one query."""
        ...


class Retriever(Protocol):
    """Finds passages."""

    def retrieve(self, question: str, depth: int) -> list[Hit]:
        """At most ``depth`` passages, best first; equal scores in the order of the passages' ids."""
        ...


class Generator(Protocol):
    """Writes an answer."""

    def generate(self, question: str, passages: Sequence[Document]) -> str:
        """An answer from passages that are given best first; empty if they hold none."""
        ...


@dataclass(frozen=True, slots=True)
class RagAgent:
    """Naive RAG: retrieve ``depth`` passages once, then generate from them.

    Follows section 6.2 of Rackauckas et al. (2024), where the generator is an LLM.
    """

    name: str
    retriever: Retriever
    generator: Generator
    depth: int

    def respond(self, query: Query) -> Response:
        """Answer one query."""
        hits = self.retriever.retrieve(query.text, self.depth)
        documents = tuple(hit.document for hit in hits)
        answer = Answer(query.query_id, self.name, self.generator.generate(query.text, documents))
        retrieved = tuple(
            Retrieved(query.query_id, hit.document.doc_id, self.name, rank, hit.score)
            for rank, hit in enumerate(hits, start=1)
        )
        return Response(answer, documents, retrieved)


def best_first(hits: Sequence[Hit], depth: int) -> list[Hit]:
    """The ``depth`` best hits, equal scores by document id, so that a ranking repeats on every machine."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.document.doc_id))[:depth]
