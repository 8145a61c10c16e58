"""Retrievers: by words, by vectors, or both merged; each index made once, and runs by them."""

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
    """Finds passages, for which it may have to ask a model."""

    async def retrieve(self, questions: Sequence[str], depth: int, meter: Meter) -> list[list[Hit]]:
        """At most ``depth`` passages for each question, best first, equal scores in the order of the passages' ids.

        What it took goes on the meter.

        Raises:
            ProviderError: an embedding did not come about.
        """
        ...

    async def close(self) -> None:
        """Release connections and memory; may be called twice."""
        ...


class Offline(Struct, frozen=True):
    """A retriever by a function of question and depth that asks nobody."""

    find: Callable[[str, int], list[Hit]]

    async def retrieve(self, questions: Sequence[str], depth: int, meter: Meter) -> list[list[Hit]]:
        """At most ``depth`` passages for each question."""
        with meter.timed():
            return [self.find(question, depth) for question in questions]

    async def close(self) -> None:
        """Nothing is held."""


class Hybrid(Struct, frozen=True):
    """Several retrievers' rankings of a question, merged by reciprocal rank."""

    retrievers: tuple[Retriever, ...]
    k: int = RRF_K

    async def retrieve(self, questions: Sequence[str], depth: int, meter: Meter) -> list[list[Hit]]:
        """At most ``depth`` passages for each question."""
        pool = max(depth, FUSED_DEPTH)
        found = [await retriever.retrieve(questions, pool, meter) for retriever in self.retrievers]
        with meter.timed():
            return [reciprocal_rank_fusion(rankings, self.k)[:depth] for rankings in zip(*found, strict=True)]

    async def close(self) -> None:
        """Close what is merged."""
        for retriever in self.retrievers:
            await retriever.close()


class DenseRetriever:
    """Ranks the whole corpus, exactly. It is embedded with the first question; that is on no reply's account.

    A question whose vector is kept counts with what it took when it was made: of agents that share it, one would
    otherwise look slow and dear for having come first.

    Args:
        corpus: what is searched.
        embedder: makes the vectors.
        spec: prefixes, and how many texts are sent at once.
        cache: keeps the vectors.

    Attributes:
        building: calls, tokens and dollars that the corpus took, as far as its vectors were not kept.
    """

    def __init__(self, corpus: Corpus, embedder: Embedder, spec: EmbeddingsSpec, cache: VectorCache) -> None:
        self.building = Meter()
        self._corpus, self._embedder, self._spec, self._cache = corpus, embedder, spec, cache
        self._matrix: asyncio.Task[NDArray[np.float32]] | None = None
        self._asked: dict[str, asyncio.Task[CachedVector]] = {}

    async def retrieve(self, questions: Sequence[str], depth: int, meter: Meter) -> list[list[Hit]]:
        """At most ``depth`` passages for each question, as a ``Searcher`` gives them.

        Raises:
            ProviderError: a vector did not come about. If it is one of the corpus, nothing can be found in this run;
                the next one goes on from those that are kept.
        """
        if self._matrix is None:
            self._matrix = asyncio.create_task(self._embedded_corpus())
        matrix = await asyncio.shield(self._matrix)
        found = await asyncio.gather(*(self._question(question) for question in questions))
        self._count([kept.took for kept in found if kept.took is not None], meter)
        with meter.timed():
            return [self._ranked(matrix, kept.vector, depth) for kept in found]

    def _ranked(self, matrix: NDArray[np.float32], vector: NDArray[np.float32], depth: int) -> list[Hit]:
        return top(self._corpus.documents, matrix @ vector, depth)

    def _count(self, took: Sequence[Mapping[str, Any]], meter: Meter) -> None:
        """What questions took that are asked together."""
        for each in took:
            meter.count(Usage(**each["usage"]), each["calls"], each["cost_usd"])
        latencies = [each["latency_s"] for each in took]
        tried = [each.get("tried_s", each["latency_s"]) for each in took]  # earlier versions kept no such figure
        meter.latency_s += seconds_together(latencies, self._embedder.parallel)
        meter.tried_s += seconds_together(tried, self._embedder.parallel)

    async def _question(self, question: str) -> CachedVector:
        """The question's vector, asked for once, however many want it."""
        text = self._spec.query_prefix + question
        if (kept := self._cache.find(text)) is not None and kept.took is not None:
            return kept
        task = self._asked.get(text)
        if task is None:
            task = self._asked[text] = asyncio.create_task(self._embedded_question(text))
            task.add_done_callback(lambda _: self._asked.pop(text, None))
        return await asyncio.shield(task)

    async def _embedded_question(self, text: str) -> CachedVector:
        meter = Meter()
        (vector,) = await self._embedder.embed([text], meter)
        kept = CachedVector(vector, to_builtins(meter))
        self._cache.keep({text: kept})
        return kept

    async def _embedded_corpus(self) -> NDArray[np.float32]:
        import numpy as np

        texts = [self._spec.document_prefix + searched_text(document) for document in self._corpus.documents]
        # By length, since a local model reads all texts of a batch as if they were as long as the longest.
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
        ended = await asyncio.gather(*map(embed, batches), return_exceptions=True)
        for error in ended:  # not before every batch has ended, so that none is paid for and lost
            if error is not None:
                raise error
        return np.stack([kept.vector for text in texts if (kept := self._cache.find(text)) is not None])

    async def close(self) -> None:
        """Release what makes the vectors."""
        await self._embedder.close()


def seconds_together(seconds: Sequence[float], parallel: int) -> float:
    """How long calls of so many seconds take, begun in this order and at most ``parallel`` at a time."""
    ends = [0.0] * parallel
    for each in seconds:
        heapq.heapreplace(ends, ends[0] + each)
    return max(ends)


class Library:
    """The indexes over one corpus, which agents share.

    Args:
        corpus: what is searched.
        cache: a folder that keeps embeddings.
    """

    def __init__(self, corpus: Corpus, cache: Path | None = None) -> None:
        self.corpus = corpus
        self._cache = cache
        self._dense: dict[str, tuple[DenseRetriever, Embedder]] = {}

    @cached_property
    def bm25(self) -> Bm25Index:
        """The index of words."""
        return Bm25Index(self.corpus.documents)

    def retriever(self, name: RetrieverName, embeddings: EmbeddingsSpec, rrf_k: int = RRF_K) -> Retriever:
        """BM25, dense, or both merged.

        Raises:
            InputError: embeddings need a key, extra or folder that is not there.
        """
        if name == "dense":
            return self._opened(embeddings)[0]
        words = Offline(self.bm25.find)
        return words if name == "bm25" else Hybrid((words, self._opened(embeddings)[0]), rrf_k)

    def embedder(self, embeddings: EmbeddingsSpec) -> Embedder:
        """What makes the vectors of a declaration."""
        return self._opened(embeddings)[1]

    def _opened(self, spec: EmbeddingsSpec) -> tuple[DenseRetriever, Embedder]:
        key = spec.model_dump_json()
        if key not in self._dense:
            embedder = open_embedder(spec)
            cache = VectorCache(self._cache, embedder.identity)
            self._dense[key] = DenseRetriever(self.corpus, embedder, spec, cache), embedder
        return self._dense[key]


def searched(query: Query) -> str:
    """What is searched for: the question, behind what its user said before it in the conversation."""
    return "\n".join([*(each.text for each in query.messages if each.role == "user"), query.text])


async def retrieve_run(retriever: Retriever, queries: Iterable[Query], depth: int, name: str) -> Run:
    """What a retriever finds for each query, as a run; queries that find nothing are not in it.

    Raises:
        ProviderError: an embedding did not come about.
    """
    rankings = {}
    for query in queries:
        (hits,) = await retriever.retrieve([searched(query)], depth, Meter())
        if hits:
            rankings[query.query_id] = Ranking(
                tuple(hit.document.doc_id for hit in hits), tuple(hit.score for hit in hits)
            )
    return Run(name, rankings)
