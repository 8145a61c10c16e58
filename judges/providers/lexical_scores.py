"""Scores from words alone, for the offline baseline judge. Pure: texts in, numbers from 0 to 1 out.

Terms are lower-case English stems without function words. Nothing here knows what a text means: a paraphrase without a
shared word scores 0, and a text that says the opposite in the same words scores full.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

K1 = 1.2
B = 0.75
AVERAGE_LENGTH = 100
"""Content terms of a typical passage. Fixed, since a judge that sees one document at a time knows no collection."""
REFERENCE_TERMS = 80
"""How many of the heaviest reference terms an answer is expected to cover: about what a full paragraph holds."""
BETA = 2
"""Recall counts so many times as much as precision in ``AnswerScores.overall``."""

_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_FUNCTION_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both but by
    can could did do does doing don down during each few for from further had has have having he her here hers him his
    how i if in into is it its itself just ll me more most my no nor not now of off on once only or other our ours out
    over own re s same she should so some such t than that the their theirs them then there these they this those
    through to too under until up ve very was we were what when where which while who whom why will with would you your
    yours""".split()  # noqa: SIM905 - a paragraph is easier to read than a list
)


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """What the words of an answer say about it, each from 0 to 1.

    Attributes:
        query: share of the question's terms that the answer uses.
        recall: weight of the reference terms that the answer covers.
        precision: share of the answer's terms that some reference document holds.
        overall: F-measure of recall and precision with beta 2; without references ``query``.
    """

    query: float
    recall: float
    precision: float
    overall: float


@lru_cache(maxsize=4096)
def content_terms(text: str) -> tuple[str, ...]:
    """The terms of a text, in its order; all its words where it has function words only."""
    words = _WORD.findall(text.lower())
    kept = [word for word in words if word not in _FUNCTION_WORDS] or words
    return tuple(_stemmer().stemWords(kept))


def bm25_share(query: str, document: str) -> float:
    """BM25 with equal weights for all query terms, as a share of what infinitely many occurrences would reach.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), equation 3.15, with k1 1.2, b 0.75 and the
    average length above. Each query term once in a passage of average length gives 0.45, twice 0.63.
    """
    wanted, terms = set(content_terms(query)), content_terms(document)
    if not wanted:
        return 0.0
    frequency = Counter(terms)
    saturation = K1 * (1 - B + B * len(terms) / AVERAGE_LENGTH)
    return sum(frequency[term] / (frequency[term] + saturation) for term in sorted(wanted)) / len(wanted)


def item_share(item: str, text: str) -> float:
    """Share of an item's terms, each counted once, that a text uses; 0 for an item without any."""
    wanted = set(content_terms(item))
    return len(wanted & set(content_terms(text))) / len(wanted) if wanted else 0.0


def answer_scores(query: str, references: Sequence[str], answer: str) -> AnswerScores:
    """Score one answer by itself; a verdict compares two such scores, so it cannot depend on the order shown.

    Args:
        query: the question.
        references: texts of the reference documents; may be empty.
        answer: the answer.
    """
    wanted, said = set(content_terms(query)), set(content_terms(answer))
    covered = len(wanted & said) / len(wanted) if wanted else 0.0
    if not references:
        return AnswerScores(covered, covered, covered, covered)
    weights, known = _reference_terms(query, tuple(references))
    recall = sum(weight for term, weight in weights.items() if term in said)
    precision = len(said & known) / len(said) if said else 0.0
    weighted = BETA**2 * precision + recall
    return AnswerScores(covered, recall, precision, (1 + BETA**2) * precision * recall / weighted if weighted else 0.0)


@lru_cache(maxsize=256)
def _reference_terms(query: str, references: tuple[str, ...]) -> tuple[Mapping[str, float], frozenset[str]]:
    """The heaviest terms of the references, weights summing to 1, and all their terms.

    A term gains, from every sentence that holds it, the number of the question's terms in that sentence: what stands
    near the question's words is what an answer should say.
    """
    wanted = set(content_terms(query))
    weights: defaultdict[str, int] = defaultdict(int)
    known: set[str] = set()
    for text in references:
        for sentence in _SENTENCE_END.split(text):
            terms = set(content_terms(sentence))
            known |= terms
            if near := len(terms & wanted):
                for term in sorted(terms):
                    weights[term] += near
    heaviest = sorted(weights.items(), key=lambda entry: (-entry[1], entry[0]))[:REFERENCE_TERMS]
    total = sum(weight for _, weight in heaviest)
    return {term: weight / total for term, weight in heaviest}, frozenset(known)


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")
