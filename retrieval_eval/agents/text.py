"""Words of English text, as the offline agents see them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache

from judges.types import Document

_WORD = re.compile(r"\w+")


def terms(text: str) -> list[str]:
    """Lower-cased word stems in the order of the text, without English function words."""
    stem, stopwords = _english()
    return stem([word for word in _WORD.findall(text.lower()) if word not in stopwords])


@cache
def _english() -> tuple[Callable[[list[str]], list[str]], frozenset[str]]:
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return Stemmer.Stemmer("english").stemWords, frozenset(STOPWORDS_EN_PLUS)


def document_terms(document: Document) -> list[str]:
    """Terms of a document's title and text."""
    return terms(f"{document.metadata.get('title', '')}\n{document.text}")


class InverseDocumentFrequency:
    """How much a term tells about a document: the rarer in the collection, the more.

    idf(t) = ln(1 + (N - n_t + 0.5) / (n_t + 0.5)) for n_t of N documents, which is never negative
    (Robertson and Zaragoza 2009, in the form that Lucene uses).
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        vocabularies = [set(document_terms(document)) for document in documents]
        self._size = len(vocabularies)
        self._holding = Counter(term for vocabulary in vocabularies for term in vocabulary)

    def __call__(self, term: str) -> float:
        """The weight of one term; the highest for a term that no document holds."""
        holding = self._holding[term]
        return math.log(1 + (self._size - holding + 0.5) / (holding + 0.5))

    def total(self, some_terms: Iterable[str]) -> float:
        """The weights of distinct terms added up, in an order that does not depend on the hash seed."""
        return math.fsum(self(term) for term in set(some_terms))
