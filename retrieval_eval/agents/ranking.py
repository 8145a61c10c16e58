"""Rankings of documents, and how several become one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from judges.types import Document
from retrieval_eval.agents.meter import Meter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RRF_K = 60
"""The constant of Cormack et al. (2009), which the paper on RAG-Fusion takes over."""
FUSED_DEPTH = 100
"""How far down rankings are merged, at least: a document that two rankings have at rank 30 may come out first."""

_SCORE_DIGITS = 6
"""Scores are rounded so that the last bits of a logarithm, which differ between machines, change no ranking."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found for a question; the higher the score, the better."""

    document: Document
    score: float


class Searcher(Protocol):
    """Finds passages at once, without asking anybody."""

    def retrieve(self, question: str, depth: int) -> list[Hit]:
        """At most ``depth`` passages, best first; equal scores in the order of the passages' ids."""
        ...


class Retriever(Protocol):
    """Finds passages, for which it may have to ask a model."""

    async def retrieve(self, questions: Sequence[str], depth: int, meter: Meter) -> list[list[Hit]]:
        """At most ``depth`` passages for each question, as a ``Searcher`` gives them; what it took goes on the meter.

        Raises:
            ProviderError: an embedding did not come about.
        """
        ...

    async def close(self) -> None:
        """Release connections and memory; may be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class Offline:
    """A searcher as a retriever."""

    searcher: Searcher

    async def retrieve(self, questions: Sequence[str], depth: int, meter: Meter) -> list[list[Hit]]:
        """At most ``depth`` passages for each question."""
        with meter.timed():
            return [self.searcher.retrieve(question, depth) for question in questions]

    async def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class Hybrid:
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


def reciprocal_rank_fusion(rankings: Iterable[Sequence[Hit]], k: int = RRF_K) -> list[Hit]:
    """Merge rankings: a document scores the sum of 1 / (k + rank) over those that have it (Cormack et al. 2009).

    Args:
        rankings: each best first, a document at most once in each.
        k: the larger, the less the first places count.

    Returns:
        Every document once, best first; equal scores by doc_id.
    """
    shares: defaultdict[str, list[float]] = defaultdict(list)
    documents: dict[str, Document] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            documents.setdefault(hit.document.doc_id, hit.document)
            shares[hit.document.doc_id].append(1 / (k + rank))
    # The exact sum, so that the order of the rankings decides nothing between equals.
    return best_first(Hit(documents[doc_id], math.fsum(own)) for doc_id, own in shares.items())


def best_first(hits: Iterable[Hit], depth: int | None = None) -> list[Hit]:
    """The ``depth`` best hits, equal scores by document id, so that a ranking repeats on every machine."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.document.doc_id))[:depth]


def top(documents: Sequence[Document], scores: NDArray[np.floating], depth: int) -> list[Hit]:
    """The ``depth`` best of many documents, without sorting them all; a score of 0 says that nothing was found.

    Args:
        documents: n documents.
        scores: of shape (n,); rounded to six decimals before they are compared.
        depth: how many at most.
    """
    import numpy as np

    rounded = np.round(np.asarray(scores, dtype=np.float64), _SCORE_DIGITS)
    places = np.flatnonzero(rounded)
    if len(places) > depth:
        least = np.partition(rounded[places], len(places) - depth)[len(places) - depth]
        places = places[rounded[places] >= least]
    return best_first((Hit(documents[place], float(rounded[place])) for place in places.tolist()), depth)
