"""Retrievers (by words, by vectors, or by both), the indexes that agents share, and runs made by a retriever."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from msgspec import Struct, to_builtins

from judges.types import Query, Usage
from retrieval_eval.agents.embeddings import CachedVector, Embedder, VectorCache, open_embedder
from retrieval_eval.agents.ranking import (
    FUSED_DEPTH,
    RRF_K,
    Bm25Index,
    Corpus,
    Hit,
    reciprocal_rank_fusion,
    searched_text,
    top,
)
from retrieval_eval.agents.spec import EmbeddingsSpec
from retrieval_eval.agents.types import Meter
from retrieval_eval.data.runs import Ranking, Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RetrieverName: TypeAlias = Literal["bm25", "dense", "hybrid"]


class Retriever(Protocol):
    """Finds the best documents for questions; async, since a server may have to embed the questions first."""

    async def retrieve(self, questions: Sequence[str], depth: int, meter: Meter) -> list[list[Hit]]:
        """The ``depth`` best documents for each question, best first; ties are ordered by document id.

        Adds the costs of embedding the questions to the meter.

        Raises:
            ProviderError: an embedding failed.
        """
        ...

    async def close(self) -> None:
        """Release connections and memory; may be called twice."""
        ...


class Offline(Struct, frozen=True):
    find: Callable[[str, int], list[Hit]]

    async def retrieve(self, questions: Sequence[str], depth: int, meter: Meter) -> list[list[Hit]]:
        with meter.timed():
            return [self.find(question, depth) for question in questions]

    async def close(self) -> None: ...


class Hybrid(Struct, frozen=True):
    """Merges the rankings of several retrievers by reciprocal rank fusion."""

    retrievers: tuple[Retriever, ...]
    k: int = RRF_K

    async def retrieve(self, questions: Sequence[str], depth: int, meter: Meter) -> list[list[Hit]]:
        pool = max(depth, FUSED_DEPTH)
        rankings_by_retriever = [await retriever.retrieve(questions, pool, meter) for retriever in self.retrievers]
        with meter.timed():
            return [
                reciprocal_rank_fusion(rankings, self.k)[:depth]
                for rankings in zip(*rankings_by_retriever, strict=True)
            ]

    async def close(self) -> None:
        for retriever in self.retrievers:
            await retriever.close()


class DenseRetriever:
    """Ranks all documents of the corpus by exact vector similarity to the question.

    The corpus is embedded before the first question; the costs of that are in ``building``, and count for no reply. If
    a question's vector is cached, its original time and cost are added to the meter again: otherwise, of several agents
    that share the vector, only the first would look slow and expensive.
    """

    def __init__(self, corpus: Corpus, embedder: Embedder, spec: EmbeddingsSpec, cache: VectorCache) -> None:
        self.building = Meter()
        self._corpus, self._embedder, self._spec, self._cache = corpus, embedder, spec, cache
        self._matrix: asyncio.Task[NDArray[np.float32]] | None = None
        self._asked: dict[str, asyncio.Task[CachedVector]] = {}

    async def retrieve(self, questions: Sequence[str], depth: int, meter: Meter) -> list[list[Hit]]:
        """The ``depth`` best documents for each question, see ``Retriever``.

        If embedding the corpus fails, every later question of this run fails too; the next run continues from the
        cached vectors.
        """
        if self._matrix is None:
            self._matrix = asyncio.create_task(self._embedded_corpus())
        matrix = await asyncio.shield(self._matrix)
        cached = await asyncio.gather(*(self._question(question) for question in questions))
        self._count([vector.took for vector in cached if vector.took is not None], meter)
        with meter.timed():
            return [top(self._corpus.documents, matrix @ vector.vector, depth) for vector in cached]

    def _count(self, calls: Sequence[Mapping[str, Any]], meter: Meter) -> None:
        """Add to the meter what it cost to embed these questions, which are embedded concurrently."""
        for call in calls:
            meter.count(Usage(**call["usage"]), call["calls"], call["cost_usd"])
        latencies = [call["latency_s"] for call in calls]
        tried = [call.get("tried_s", call["latency_s"]) for call in calls]  # earlier versions did not store it
        meter.latency_s += seconds_together(latencies, self._embedder.parallel)
        meter.tried_s += seconds_together(tried, self._embedder.parallel)

    async def _question(self, question: str) -> CachedVector:
        """The question's vector; concurrent calls with the same question share one request."""
        text = self._spec.query_prefix + question
        if (cached := self._cache.find(text)) is not None and cached.took is not None:
            return cached
        task = self._asked.get(text)
        if task is None:
            task = self._asked[text] = asyncio.create_task(self._embedded_question(text))
            task.add_done_callback(lambda _: self._asked.pop(text, None))
        return await asyncio.shield(task)

    async def _embedded_question(self, text: str) -> CachedVector:
        meter = Meter()
        (vector,) = await self._embedder.embed([text], meter)
        cached = CachedVector(vector, to_builtins(meter))
        self._cache.keep({text: cached})
        return cached

    async def _embedded_corpus(self) -> NDArray[np.float32]:
        import numpy as np

        texts = [self._spec.document_prefix + searched_text(document) for document in self._corpus.documents]
        # Sorted by length, since a local model pads all texts of a batch to the longest one.
        missing = sorted({text for text in texts if self._cache.find(text) is None}, key=lambda text: (len(text), text))
        size = self._spec.batch

        async def embed(batch: list[str]) -> None:
            meter = Meter()
            try:
                vectors = await self._embedder.embed(batch, meter)
            finally:
                self.building.count(meter.usage, meter.calls, meter.cost_usd)
            self._cache.keep({text: CachedVector(vector) for text, vector in zip(batch, vectors, strict=True)})

        batches = [missing[start : start + size] for start in range(0, len(missing), size)]
        outcomes = await asyncio.gather(*map(embed, batches), return_exceptions=True)
        for error in outcomes:  # only after every batch has ended, so that no paid batch is lost
            if error is not None:
                raise error
        return np.stack([cached.vector for text in texts if (cached := self._cache.find(text)) is not None])

    async def close(self) -> None:
        await self._embedder.close()


def seconds_together(seconds: Sequence[float], parallel: int) -> float:
    """Total time of calls with the given durations, if they start in order and at most ``parallel`` run at a time."""
    ends = [0.0] * parallel
    for duration in seconds:
        heapq.heapreplace(ends, ends[0] + duration)
    return max(ends)


class Library:
    """The indexes of one corpus, shared by agents; embeddings are stored in the folder ``cache``."""

    def __init__(self, corpus: Corpus, cache: Path | None = None) -> None:
        self.corpus = corpus
        self._cache = cache
        self._dense: dict[str, tuple[DenseRetriever, Embedder]] = {}

    @cached_property
    def bm25(self) -> Bm25Index:
        return Bm25Index(self.corpus.documents)

    def retriever(self, name: RetrieverName, embeddings: EmbeddingsSpec, rrf_k: int = RRF_K) -> Retriever:
        if name == "dense":
            return self._opened(embeddings)[0]
        words = Offline(self.bm25.find)
        return words if name == "bm25" else Hybrid((words, self._opened(embeddings)[0]), rrf_k)

    def embedder(self, embeddings: EmbeddingsSpec) -> Embedder:
        return self._opened(embeddings)[1]

    def _opened(self, spec: EmbeddingsSpec) -> tuple[DenseRetriever, Embedder]:
        key = spec.model_dump_json()
        if key not in self._dense:
            embedder = open_embedder(spec)
            cache = VectorCache(self._cache, embedder.identity)
            self._dense[key] = DenseRetriever(self.corpus, embedder, spec, cache), embedder
        return self._dense[key]


def searched(query: Query) -> str:
    """The text to search for: the user's earlier messages in the conversation, then the query."""
    return "\n".join([*(each.text for each in query.messages if each.role == "user"), query.text])


async def retrieve_run(retriever: Retriever, queries: Iterable[Query], depth: int, name: str) -> Run:
    """A run with the retriever's ranking for each query; queries for which nothing was found are left out."""
    rankings = {}
    for query in queries:
        (hits,) = await retriever.retrieve([searched(query)], depth, Meter())
        if hits:
            rankings[query.query_id] = Ranking(
                tuple(hit.document.doc_id for hit in hits), tuple(hit.score for hit in hits)
            )
    return Run(name, rankings)
