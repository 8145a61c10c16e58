"""The agents of Rackauckas et al. (2024): naive RAG and RAG-Fusion. And a model without retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from judges.errors import ProviderError
from judges.types import Document, Query
from retrieval_eval.agents.generation import Generator
from retrieval_eval.agents.meter import Meter
from retrieval_eval.agents.ranking import FUSED_DEPTH, RRF_K, Hit, Retriever, reciprocal_rank_fusion
from retrieval_eval.agents.types import Reply, Retrieved


class Rewriter(Protocol):
    """Writes further search queries for a question."""

    async def queries(self, query: Query, meter: Meter) -> list[str]:
        """The further queries, without the question itself.

        Raises:
            ProviderError: they did not come about.
        """
        ...


@dataclass(frozen=True, slots=True)
class RagAgent:
    """Naive RAG: retrieve once, then generate from the best passages (section 6.2). With a rewriter, RAG-Fusion.

    RAG-Fusion retrieves for the question and for each further query, and merges the rankings (section 3).

    Attributes:
        depth: documents that are retrieved.
        passages: of those, how many the generator sees.
    """

    name: str
    retriever: Retriever
    generator: Generator
    depth: int
    passages: int
    rewriter: Rewriter | None = None
    rrf_k: int = RRF_K
    identity: str = ""
    notes: tuple[str, ...] = ()

    async def reply(self, query: Query) -> Reply:
        """Answer one query."""
        meter = Meter()
        try:
            hits = await self._found(query, meter)
            shown = [hit.document for hit in hits[: self.passages]]
            written = await self.generator.answer(query, shown, meter)
        except ProviderError as error:
            return meter.failure(error)
        return meter.reply(written.text, retrieved(hits), [shown[number - 1].doc_id for number in written.cited])

    async def _found(self, query: Query, meter: Meter) -> list[Hit]:
        if self.rewriter is None:
            (hits,) = await self.retriever.retrieve([query.text], self.depth, meter)
            return hits
        questions = [query.text, *await self.rewriter.queries(query, meter)]
        rankings = await self.retriever.retrieve(questions, max(self.depth, FUSED_DEPTH), meter)
        with meter.timed():
            return reciprocal_rank_fusion(rankings, self.rrf_k)[: self.depth]

    async def close(self) -> None:
        """Release what it searches, which other agents may share; the judge is its owner's to close."""
        await self.retriever.close()


@dataclass(frozen=True, slots=True)
class BaselineAgent:
    """A model that is asked for an article, a page or an answer, and searches nothing.

    After the generated systems of the Rubric-Grading Workbench (Farzi and Dietz 2024, section 5).
    """

    name: str
    generator: Generator
    identity: str = ""
    notes: tuple[str, ...] = ()

    async def reply(self, query: Query) -> Reply:
        """Answer one query."""
        meter = Meter()
        try:
            written = await self.generator.answer(query, (), meter)
        except ProviderError as error:
            return meter.failure(error)
        return meter.reply(written.text)

    async def close(self) -> None:
        """Its model is shared with other agents."""


def retrieved(hits: Sequence[Hit]) -> list[Retrieved]:
    """Hits with their ranks."""
    return [_entry(rank, hit.document, hit.score) for rank, hit in enumerate(hits, start=1)]


def _entry(rank: int, document: Document, score: float) -> Retrieved:
    return Retrieved(document.doc_id, document.text, rank, score, document.metadata)
