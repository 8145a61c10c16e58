"""Retrievers by name, each index made once, and runs by them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from judges.types import Query
from retrieval_eval.agents.bm25 import Bm25Index, Bm25Retriever
from retrieval_eval.agents.corpus import Corpus
from retrieval_eval.agents.dense import DenseRetriever
from retrieval_eval.agents.embedding_spec import EmbeddingsSpec
from retrieval_eval.agents.embeddings import open_embedder
from retrieval_eval.agents.embeddings.base import Embedder
from retrieval_eval.agents.embeddings.cache import VectorCache
from retrieval_eval.agents.meter import Meter
from retrieval_eval.agents.ranking import RRF_K, Hybrid, Offline, Retriever
from retrieval_eval.trec import Ranking, Run

RetrieverName: TypeAlias = Literal["bm25", "dense", "hybrid"]


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
        words = Offline(Bm25Retriever(self.bm25))
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


async def retrieve_run(retriever: Retriever, queries: Iterable[Query], depth: int, name: str) -> Run:
    """What a retriever finds for each query, as a run; queries that find nothing are not in it.

    Raises:
        ProviderError: an embedding did not come about.
    """
    rankings = {}
    for query in queries:
        (hits,) = await retriever.retrieve([query.text], depth, Meter())
        if hits:
            rankings[query.query_id] = Ranking(
                tuple(hit.document.doc_id for hit in hits), tuple(hit.score for hit in hits)
            )
    return Run(name, rankings)
