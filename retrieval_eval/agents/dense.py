"""Dense retrieval: every document and every question as a vector, compared by cosine."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from judges.types import Usage
from retrieval_eval.agents.corpus import Corpus, searched_text
from retrieval_eval.agents.embedding_spec import EmbeddingsSpec
from retrieval_eval.agents.embeddings.base import Embedder
from retrieval_eval.agents.embeddings.cache import Kept, VectorCache
from retrieval_eval.agents.meter import Meter
from retrieval_eval.agents.ranking import Hit, top

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
        self._asked: dict[str, asyncio.Task[Kept]] = {}

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

    async def _question(self, question: str) -> Kept:
        """The question's vector, asked for once, however many want it."""
        text = self._spec.query_prefix + question
        if (kept := self._cache.find(text)) is not None and kept.took is not None:
            return kept
        task = self._asked.get(text)
        if task is None:
            task = self._asked[text] = asyncio.create_task(self._embedded_question(text))
            task.add_done_callback(lambda _: self._asked.pop(text, None))
        return await asyncio.shield(task)

    async def _embedded_question(self, text: str) -> Kept:
        meter = Meter()
        (vector,) = await self._embedder.embed([text], meter)
        kept = Kept(vector, asdict(meter))
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
            self._cache.keep({text: Kept(vector) for text, vector in zip(batch, vectors, strict=True)})

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
