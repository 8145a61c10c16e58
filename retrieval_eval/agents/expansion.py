"""Query expansion by pseudo-relevance feedback: RM3 (Abdul-Jaleel et al. 2004, section 2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judges.types import Query
from retrieval_eval.agents.bm25 import Bm25Index, query_weights
from retrieval_eval.agents.meter import Meter
from retrieval_eval.agents.ranking import Hit
from retrieval_eval.agents.text import document_terms


def rm3(
    weights: Mapping[str, float], feedback: Sequence[Hit], *, expansion_terms: int = 10, original: float = 0.5
) -> dict[str, float]:
    """Mix a query with the words of the passages it found.

    The relevance model (Lavrenko and Croft 2001) gives a term the probability sum over d of P(term | d) P(d | query),
    where P(term | d) is its share of the passage's terms and P(d | query) the passage's share of the scores.

    Args:
        weights: the original query's terms and weights.
        feedback: passages taken for relevant, with positive scores.
        expansion_terms: how many of the most probable terms to keep; equal ones alphabetically.
        original: share of the original query in the result, from 0 to 1.

    Returns:
        Term weights that sum to 1; the normalised query itself where there is no feedback.
    """
    query = _normalised(weights)
    total = sum(hit.score for hit in feedback)
    model: defaultdict[str, float] = defaultdict(float)
    for hit in feedback:
        counts = Counter(document_terms(hit.document))
        for term, count in counts.items():
            model[term] += hit.score / total * count / counts.total()
    if not model:
        return query
    likeliest = sorted(model.items(), key=lambda entry: (-entry[1], entry[0]))[:expansion_terms]
    expansion = _normalised(dict(likeliest))
    return {
        term: original * query.get(term, 0.0) + (1 - original) * expansion.get(term, 0.0)
        for term in sorted({*query, *expansion})
    }


def _normalised(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()}


@dataclass(frozen=True, slots=True)
class FeedbackRetriever:
    """Searches twice: with the question, then with the question expanded from the first result.

    Attributes:
        index: what to search.
        feedback_passages: how many passages of the first search to take for relevant.
        expansion_terms: how many terms they may add.
        original: share of the original question in the second search.
    """

    index: Bm25Index
    feedback_passages: int = 3
    expansion_terms: int = 10
    original: float = 0.5

    def retrieve(self, question: str, depth: int) -> list[Hit]:
        """At most ``depth`` passages of the second search, best first."""
        weights = query_weights(question)
        feedback = self.index.search(weights, self.feedback_passages)
        if not feedback:
            return []
        expanded = rm3(weights, feedback, expansion_terms=self.expansion_terms, original=self.original)
        return self.index.search(expanded, depth)


@dataclass(frozen=True, slots=True)
class FeedbackRewriter:
    """Further queries without a model: the question with the telling words of one good passage each.

    Attributes:
        index: where the passages are found.
        number: how many queries, one for each of the first passages; fewer where fewer are found.
        expansion_terms: how many stems a passage may add.
    """

    index: Bm25Index
    number: int
    expansion_terms: int = 10

    async def queries(self, query: Query, meter: Meter) -> list[str]:
        """The question with further words, for each passage."""
        with meter.timed():
            weights = query_weights(query.text)
            return [self._query(query.text, weights, hit) for hit in self.index.search(weights, self.number)]

    def _query(self, question: str, weights: Mapping[str, float], hit: Hit) -> str:
        added = rm3(weights, [hit], expansion_terms=self.expansion_terms).keys() - weights.keys()
        return " ".join([question, *sorted(added)])
