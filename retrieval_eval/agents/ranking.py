"""Rankings of documents by words: BM25, query expansion with terms of the best documents, and rank fusion."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from judges.errors import InputError
from judges.types import Document
from judges.writing import search_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RRF_K = 60
"""Constant k of reciprocal rank fusion in Cormack et al. (2009) and in the paper on RAG-Fusion."""
FUSED_DEPTH = 100
"""Rankings to be merged have at least this many documents: one at rank 30 in two rankings may be first after
merging."""

_SCORE_DIGITS = 6
"""Scores are rounded to this many decimals: their last bits differ between machines and must not change a rank."""


class Corpus(Struct, frozen=True, dict=True):
    """Documents with unique ids. Those without text cannot be retrieved: they are dropped; ``blank`` counts them."""

    documents: tuple[Document, ...]
    blank: int = 0

    @staticmethod
    def of(documents: Iterable[Document]) -> Corpus:
        all_documents = tuple(documents)
        counts = Counter(document.doc_id for document in all_documents)
        if repeated := [doc_id for doc_id, count in counts.items() if count > 1]:
            raise InputError(f"two documents of the corpus have the id {repeated[0]!r}; give each a different id")
        with_text = tuple(document for document in all_documents if searched_text(document).strip())
        if not with_text:
            raise InputError("the corpus has no text to search; add documents with words")
        return Corpus(with_text, len(all_documents) - len(with_text))

    @cached_property
    def digest(self) -> str:
        """Hash of the documents' ids, titles and texts; the order of the documents does not matter."""
        total = hashlib.sha256()
        for document in sorted(self.documents, key=lambda document: document.doc_id):
            fields = [document.doc_id, document.metadata.get("title", ""), document.text]
            total.update(json.dumps(fields, separators=(",", ":")).encode())
        return total.hexdigest()[:32]

    @cached_property
    def by_id(self) -> dict[str, Document]:
        return {document.doc_id: document for document in self.documents}


def searched_text(document: Document) -> str:
    """The text of a document that the indexes contain: its title and its text."""
    title = document.metadata.get("title", "")
    return f"{title}\n{document.text}" if title else document.text


def terms(text: str) -> list[str]:
    """The stems of a text's words, lower-case and in order, without English function words; see ``search_terms``."""
    stem, stopwords = _english()
    return stem([word for word in search_terms(text) if word not in stopwords])


@cache
def _english() -> tuple[Callable[[list[str]], list[str]], frozenset[str]]:
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return Stemmer.Stemmer("english").stemWords, frozenset(STOPWORDS_EN_PLUS)


class InverseDocumentFrequency:
    """Weight of a term by its rarity in the collection.

    idf(t) = ln(1 + (N - n_t + 0.5) / (n_t + 0.5)) for n_t of N documents, which is never negative
    (Robertson and Zaragoza 2009, in the form that Lucene uses).
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        vocabularies = [set(terms(searched_text(document))) for document in documents]
        self._size = len(vocabularies)
        self._holding = Counter(term for vocabulary in vocabularies for term in vocabulary)

    def __call__(self, term: str) -> float:
        frequency = self._holding[term]
        return math.log(1 + (self._size - frequency + 0.5) / (frequency + 0.5))

    def total(self, some_terms: Iterable[str]) -> float:
        """The summed weights of the distinct terms; bitwise the same whatever the order of the terms."""
        return math.fsum(self(term) for term in set(some_terms))


class Hit(Struct, frozen=True):
    document: Document
    score: float


def best_first(hits: Iterable[Hit], depth: int | None = None) -> list[Hit]:
    """The ``depth`` hits with the highest scores; ties are ordered by document id to make rankings reproducible."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.document.doc_id))[:depth]


def top(documents: Sequence[Document], scores: NDArray[np.floating], depth: int) -> list[Hit]:
    """The ``depth`` best of many documents, found without sorting all; documents with score 0 are left out.

    ``scores`` contains the score of each document, shape (documents,), and is rounded to six decimals first.
    """
    import numpy as np

    rounded = np.round(np.asarray(scores, dtype=np.float64), _SCORE_DIGITS)
    indices = np.flatnonzero(rounded)
    if len(indices) > depth:
        threshold = np.partition(rounded[indices], len(indices) - depth)[len(indices) - depth]
        indices = indices[rounded[indices] >= threshold]
    return best_first((Hit(documents[index], float(rounded[index])) for index in indices.tolist()), depth)


def reciprocal_rank_fusion(rankings: Iterable[Sequence[Hit]], k: int = RRF_K) -> list[Hit]:
    """Merge rankings: a document's score is the sum of 1 / (k + rank) over the rankings (Cormack et al. 2009).

    A larger k gives the first ranks less weight. A ranking must not repeat a document; ties are ordered by doc_id.
    """
    shares: defaultdict[str, list[float]] = defaultdict(list)
    documents: dict[str, Document] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            documents.setdefault(hit.document.doc_id, hit.document)
            shares[hit.document.doc_id].append(1 / (k + rank))
    # The exact sum, so that the order of the rankings does not break ties.
    return best_first(Hit(documents[doc_id], math.fsum(summands)) for doc_id, summands in shares.items())


class Bm25Index:
    """An index of titles and texts with BM25 as in Lucene (Kamphuis et al. 2020)."""

    def __init__(self, documents: Sequence[Document]) -> None:
        import bm25s

        texts = [terms(searched_text(document)) for document in documents]
        if not any(texts):
            raise InputError("the corpus has no text to search; add documents with words")
        self.documents = tuple(documents)
        self._bm25 = bm25s.BM25(k1=1.2, b=0.75, method="lucene", dtype="float64", backend="numpy")
        self._bm25.index(texts, show_progress=False)

    def find(self, question: str, depth: int) -> list[Hit]:
        """The ``depth`` best documents by BM25 score; documents that contain no term of the question are left out."""
        import numpy as np

        scores = np.zeros(len(self.documents))
        for term, count in sorted(Counter(terms(question)).items()):
            if term in self._bm25.vocab_dict:
                scores += count * self._bm25.get_scores([term])
        return top(self.documents, scores, depth)

    def expanded(self, question: str, number: int) -> list[str]:
        """Make a search query from each of the ``number`` best documents: the question plus the document's stems.

        These stems are the terms that the relevance model of one document adds to a query (Lavrenko and Croft 2001):
        the ten most frequent, ties alphabetically.
        """
        known, queries = set(terms(question)), []
        for hit in self.find(question, number):
            counts = Counter(terms(searched_text(hit.document)))
            likeliest = sorted(counts, key=lambda term: (-counts[term], term))[:10]
            queries.append(" ".join([question, *sorted(set(likeliest) - known)]))
        return queries
