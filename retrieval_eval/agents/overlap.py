"""A weak but honest baseline retriever: count shared words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judges.types import Document
from retrieval_eval.agents.ranking import Hit, best_first
from retrieval_eval.agents.text import document_terms, terms


@dataclass(frozen=True, slots=True)
class OverlapRetriever:
    """Ranks by the number of distinct question terms in title and text; all terms count the same."""

    documents: Sequence[Document]

    def retrieve(self, question: str, depth: int) -> list[Hit]:
        """At most ``depth`` passages that share a term with the question, best first."""
        wanted = set(terms(question))
        shared = ((document, len(wanted.intersection(document_terms(document)))) for document in self.documents)
        return best_first([Hit(document, float(count)) for document, count in shared if count], depth)
