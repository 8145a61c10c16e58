"""BM25 retrieval over passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judges.errors import InputError
from judges.types import Document
from retrieval_eval.agents.ranking import Hit, top
from retrieval_eval.agents.text import document_terms, terms


class Bm25Index:
    """An index of titles and texts with BM25 in the form that Lucene uses (Kamphuis et al. 2020).

    Args:
        documents: what to search; ids must be unique.
        k1: how soon further occurrences of a term stop counting.
        b: how much long documents are discounted, from 0 to 1.

    Raises:
        InputError: there is nothing to search, or two documents have one id.
    """

    def __init__(self, documents: Sequence[Document], *, k1: float = 1.2, b: float = 0.75) -> None:
        import bm25s

        repeated = [doc_id for doc_id, count in Counter(document.doc_id for document in documents).items() if count > 1]
        if repeated:
            raise InputError(f"two documents have the id {repeated[0]!r}; give each its own")
        texts = [document_terms(document) for document in documents]
        if not any(texts):
            raise InputError("there is no text to search; add documents with words")
        self.documents = tuple(documents)
        self._bm25 = bm25s.BM25(k1=k1, b=b, method="lucene", dtype="float64", backend="numpy")
        self._bm25.index(texts, show_progress=False)

    def search(self, weights: Mapping[str, float], depth: int) -> list[Hit]:
        """Rank by the weighted sum of BM25 term scores.

        Args:
            weights: weight of each query term, as ``query_weights`` or ``rm3`` gives them.
            depth: how many documents at most; those without any query term are not found.
        """
        import numpy as np

        scores = np.zeros(len(self.documents))
        for term in sorted(weights):
            if term in self._bm25.vocab_dict:
                scores += weights[term] * self._bm25.get_scores([term])
        return top(self.documents, scores, depth)


def query_weights(question: str) -> dict[str, float]:
    """Each term of a question with the number of its occurrences."""
    return {term: float(count) for term, count in Counter(terms(question)).items()}


@dataclass(frozen=True, slots=True)
class Bm25Retriever:
    """Searches with the question as it is."""

    index: Bm25Index

    def retrieve(self, question: str, depth: int) -> list[Hit]:
        """At most ``depth`` passages, best first."""
        return self.index.search(query_weights(question), depth)
