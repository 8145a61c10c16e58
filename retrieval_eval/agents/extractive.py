"""Generators that write nothing of their own: they pick sentences of the retrieved passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judges.types import Document
from retrieval_eval.agents.text import InverseDocumentFrequency, terms
from retrieval_eval.documents.sentences import sentences


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence, its terms, and how well it fits the question."""

    place: tuple[int, int]
    text: str
    terms: frozenset[str]
    relevance: float


@dataclass(frozen=True, slots=True)
class ExtractiveGenerator:
    """Picks sentences by maximal marginal relevance (Carbonell and Goldstein 1998, equation 1).

    A sentence is relevant by the question's terms that it holds, and to a lesser degree by those that its title and
    neighbours hold, each weighted by rarity; a sentence that says again what was picked before loses. The
    sentences are given in reading order: by the rank of their passage, then as in the passage.

    Attributes:
        idf: weight of each term, from the collection.
        max_sentences: length of an answer.
        relevance_share: the lambda of the equation; 1 ignores redundancy.
        context_share: how much of a sentence's relevance comes from its surroundings.
        cutoff: a sentence below this share of the best sentence's relevance is never picked.
    """

    idf: InverseDocumentFrequency
    max_sentences: int = 3
    relevance_share: float = 0.7
    context_share: float = 0.4
    cutoff: float = 0.35

    def generate(self, question: str, passages: Sequence[Document]) -> str:
        """The picked sentences, separated by spaces; empty without passages."""
        remaining = self._candidates(frozenset(terms(question)), passages)
        least = self.cutoff * max((candidate.relevance for candidate in remaining), default=0.0)
        remaining = [candidate for candidate in remaining if candidate.relevance >= least]
        picked: list[_Candidate] = []
        while remaining and len(picked) < self.max_sentences:
            best = max(remaining, key=lambda candidate: (self._marginal(candidate, picked), _earliest(candidate)))
            remaining.remove(best)
            picked.append(best)
        return " ".join(candidate.text for candidate in sorted(picked, key=lambda candidate: candidate.place))

    def _candidates(self, wanted: frozenset[str], passages: Sequence[Document]) -> list[_Candidate]:
        found: list[_Candidate] = []
        for rank, passage in enumerate(passages):
            texts = sentences(passage.text)
            held = [frozenset(terms(text)) for text in texts]
            title = frozenset(terms(passage.metadata.get("title", "")))
            for position, text in enumerate(texts):
                if text.endswith(":"):  # announces a list and says nothing without it
                    continue
                around = title.union(*held[max(0, position - 1) : position + 2])
                relevance = self._relevance(wanted, held[position], around)
                found.append(_Candidate((rank, position), text, held[position], relevance))
        return found

    def _relevance(self, wanted: frozenset[str], held: frozenset[str], around: frozenset[str]) -> float:
        """Share of the question's weight in the sentence and, discounted, in its surroundings."""
        total = self.idf.total(wanted)
        if total == 0:
            return 0.0
        own, context = self.idf.total(wanted & held), self.idf.total(wanted & around)
        return _rounded(((1 - self.context_share) * own + self.context_share * context) / total)

    def _marginal(self, candidate: _Candidate, picked: Sequence[_Candidate]) -> float:
        redundancy = max((self._similarity(candidate.terms, other.terms) for other in picked), default=0.0)
        return _rounded(self.relevance_share * candidate.relevance - (1 - self.relevance_share) * redundancy)

    def _similarity(self, left: frozenset[str], right: frozenset[str]) -> float:
        """Weighted Jaccard index of two sentences' terms."""
        union = self.idf.total(left | right)
        return self.idf.total(left & right) / union if union else 0.0


def _rounded(value: float) -> float:
    """Without the last bits, which differ between machines and would decide between equal sentences."""
    return round(value, 9)


def _earliest(candidate: _Candidate) -> tuple[int, int]:
    """A key by which the earlier of two equally good sentences is the greater."""
    return (-candidate.place[0], -candidate.place[1])


@dataclass(frozen=True, slots=True)
class LeadGenerator:
    """Gives the first sentences of the best passage, whatever was asked: a baseline known from summarisation."""

    max_sentences: int = 2

    def generate(self, question: str, passages: Sequence[Document]) -> str:  # noqa: ARG002 the question is ignored on purpose
        """The first sentences; empty without passages."""
        return " ".join(sentences(passages[0].text)[: self.max_sentences]) if passages else ""
