"""Support: does a document say what the sentence that cites it claims (Thakur et al. 2025, arXiv 2504.15205).

The third axis of TREC RAG. Each judged pair of a sentence and a document that it cites weighs 1 for full, 0.5 for
partial and 0 for no support. An answer's weighted precision is the mean weight of its pairs; its weighted recall is the
weight of its sentences over their number, where a sentence without a citation weighs 0, and one with several the most
that one of them gives it. An agent has the mean over its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
from msgspec import Struct

from retrieval_eval.citations import CitedSentence
from retrieval_eval.stats.bootstrap import ALONE, Clusters, mean_estimates, units_of
from retrieval_eval.stats.estimate import Estimate

Citations: TypeAlias = Literal["first", "all"]
"""Which citations of a sentence count; that track judged the first one."""

WEIGHTS: Final = (0.0, 0.5, 1.0)
"""Of no, partial and full support."""


class AnswerSupport(Struct, frozen=True):
    """How far the documents that one answer cites say what it claims.

    Attributes:
        precision: mean weight of its pairs, ``None`` where none is judged.
        recall: weight of its sentences over their number, ``None`` where no sentence counts. 0 for an empty answer.
        sentences: how many it has.
        cited: those of them that cite anything.
        pairs: how many have no, partial and full support.
        invented: pairs whose number stands for no document; they are among those without support.
        unjudged: pairs that failed or wait, or whose document has no text. They are in no score, nor is a sentence that
            has no other pair.
    """

    precision: float | None
    recall: float | None
    sentences: int
    cited: int
    pairs: tuple[int, int, int]
    invented: int
    unjudged: int


def counted_citations(sentence: CitedSentence, which: Citations) -> tuple[str | None, ...]:
    """Those of a sentence that count."""
    return sentence.citations[:1] if which == "first" else sentence.citations


def answer_support(
    sentences: Sequence[CitedSentence], which: Citations, judged: Callable[[int, str], int | None]
) -> AnswerSupport:
    """Score one answer.

    Args:
        sentences: of the answer.
        which: of a sentence's citations.
        judged: the support of a sentence, by its place from 0, and a document: 0, 1 or 2; ``None`` where not known.
    """
    weights: list[float] = []
    pairs, invented, unjudged = [0, 0, 0], 0, 0
    for place, sentence in enumerate(sentences):
        cited = counted_citations(sentence, which)
        known = [0 if doc_id is None else judged(place, doc_id) for doc_id in cited]
        levels = [level for level in known if level is not None]
        for level in levels:
            pairs[level] += 1
        invented += cited.count(None)
        unjudged += len(known) - len(levels)
        if levels or not cited:
            weights.append(max((WEIGHTS[level] for level in levels), default=0.0))
    total = sum(pairs)
    precision = sum(number * weight for number, weight in zip(pairs, WEIGHTS, strict=True)) / total if total else None
    recall = sum(weights) / len(weights) if weights else None if sentences else 0.0
    none, partial, full = pairs
    cites = sum(bool(sentence.citations) for sentence in sentences)
    return AnswerSupport(precision, recall, len(sentences), cites, (none, partial, full), invented, unjudged)


class SupportScores(Struct, frozen=True):
    """All agents' support.

    Attributes:
        agents, queries: of the rows and columns.
        precision, recall: shape (agents, queries), NaN where there is none.
        of_agents: the means over queries with 95 % intervals from one set of draws, precision and recall of each agent.
    """

    agents: tuple[str, ...]
    queries: tuple[str, ...]
    precision: np.ndarray
    recall: np.ndarray
    of_agents: Mapping[str, tuple[Estimate, Estimate]]


def support_scores(
    answers: Mapping[tuple[str, str], AnswerSupport],
    *,
    samples: int = 1000,
    seed: int = 0,
    clusters: Clusters = ALONE,
) -> SupportScores:
    """Means over the queries where a score is defined.

    Args:
        answers: by query and agent.
        samples: of the bootstrap over queries; 0 for no intervals.
        seed: of the samples.
        clusters: what queries are drawn in.
    """
    agents, queries = (tuple(sorted({key[place] for key in answers})) for place in (1, 0))
    values = np.full((2, len(agents), len(queries)), np.nan)
    for (query_id, agent), own in answers.items():
        scores = [np.nan if score is None else score for score in (own.precision, own.recall)]
        values[:, agents.index(agent), queries.index(query_id)] = scores
    precision, recall = (mean_estimates(own, units_of(queries, clusters), samples, seed) for own in values)
    of_agents = dict(zip(agents, zip(precision, recall, strict=True), strict=True))
    return SupportScores(agents, queries, values[0], values[1], of_agents)
