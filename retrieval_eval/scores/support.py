"""Support: does a document say what the sentence that cites it claims (Thakur et al. 2025, arXiv 2504.15205).

The third axis of TREC RAG. Each judged pair of a sentence and a document that it cites weighs 1 for full, 0.5 for
partial and 0 for no support. An answer's weighted precision is the mean weight of its pairs; its weighted recall is the
weight of its sentences over their number, where a sentence without a citation weighs 0, and one with several the most
that one of them gives it. An agent has the mean over its answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
from msgspec import Struct

from retrieval_eval.scores.citations import CitedSentence
from retrieval_eval.stats.bootstrap import ALONE, Clusters, units_of
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.means import mean_estimates
from retrieval_eval.stats.missing import Gaps, over_the_known

CitationsChecked: TypeAlias = Literal["first", "all"]
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
        unjudged: pairs that failed or wait, or whose document has no text. They are in no score.
        missing: those of them that a judge was to judge. A sentence that lacks such a pair is in no recall, unless its
            recall is certain all the same: see ``missing.over_the_known``.
        ends: the least and the most that precision, and recall, can be, whatever the missing pairs would say.
    """

    precision: float | None
    recall: float | None
    sentences: int
    cited: int
    pairs: tuple[int, int, int]
    invented: int
    unjudged: int
    missing: int = 0
    ends: tuple[tuple[float | None, float | None], tuple[float | None, float | None]] = ((None, None), (None, None))


def counted_citations(sentence: CitedSentence, which: CitationsChecked) -> tuple[str | None, ...]:
    """Those of a sentence that count."""
    return sentence.citations[:1] if which == "first" else sentence.citations


def answer_support(
    sentences: Sequence[CitedSentence],
    which: CitationsChecked,
    judged: Callable[[int, str], int | None],
    missing: Callable[[int, str], bool] = lambda *_: False,
) -> AnswerSupport:
    """Score one answer.

    Args:
        sentences: of the answer.
        which: of a sentence's citations.
        judged: the support of a sentence, by its place from 0, and a document: 0, 1 or 2; ``None`` where not known.
        missing: whether a judge was to say so and did not.
    """
    pairs, invented, unjudged, lost = [0, 0, 0], 0, 0, 0
    known: list[float] = []
    least: list[float] = []
    most: list[float] = []
    for place, sentence in enumerate(sentences):
        cited = counted_citations(sentence, which)
        said = [0 if doc_id is None else judged(place, doc_id) for doc_id in cited]
        levels = [level for level in said if level is not None]
        for level in levels:
            pairs[level] += 1
        gone = sum(doc_id is not None and missing(place, doc_id) for doc_id in cited)
        invented += cited.count(None)
        unjudged += len(said) - len(levels)
        lost += gone
        if levels or gone or not cited:
            weight = max((WEIGHTS[level] for level in levels), default=0.0)
            known += [] if gone else [weight]
            least.append(weight)
            most.append(WEIGHTS[-1] if gone else weight)
    total = sum(pairs)
    weight = float(np.dot(pairs, WEIGHTS))
    precision = weight / total if total else None
    of = total + lost
    recall, ends = None if sentences else 0.0, (None, None) if sentences else (0.0, 0.0)
    if least:
        ends = sum(least) / len(least), sum(most) / len(most)
        share = float(over_the_known(np.array(sum(known) / len(known) if known else math.nan), *map(np.array, ends)))
        recall = None if math.isnan(share) else share
    none, partial, full = pairs
    cites = sum(bool(sentence.citations) for sentence in sentences)
    return AnswerSupport(
        precision,
        recall,
        len(sentences),
        cites,
        (none, partial, full),
        invented,
        unjudged,
        lost,
        ((weight / of, (weight + lost) / of) if of else (None, None), ends),
    )


class SupportScores(Struct, frozen=True):
    """All agents' support.

    Attributes:
        agents, queries: of the rows and columns.
        precision, recall: shape (agents, queries), NaN where there is none.
        ends: the least and the most that they can be, shape (2 scores, 2 ends, agents, queries).
        gaps: pairs that were to be judged or need no judge, and those that are missing.
        of_agents: the means over queries with 95 % intervals from one set of draws, precision and recall of each agent.
    """

    agents: tuple[str, ...]
    queries: tuple[str, ...]
    precision: np.ndarray
    recall: np.ndarray
    ends: np.ndarray
    gaps: Gaps
    of_agents: Mapping[str, tuple[Estimate, Estimate]]


def support_scores(
    answers: Mapping[tuple[str, str], AnswerSupport],
    *,
    clusters: Clusters = ALONE,
) -> SupportScores:
    """Means over the queries where a score is defined.

    Args:
        answers: by query and agent.
        clusters: of queries that depend on each other.
    """
    agents, queries = (tuple(sorted({key[place] for key in answers})) for place in (1, 0))
    shape = (len(agents), len(queries))
    values, ends = np.full((2, *shape), np.nan), np.full((2, 2, *shape), np.nan)
    wanted, missing = np.zeros((2, *shape), np.int64)
    row, column = ({name: at for at, name in enumerate(names)} for names in (agents, queries))
    for (query_id, agent), own in answers.items():
        at = row[agent], column[query_id]
        values[:, *at] = np.array([own.precision, own.recall], np.float64)
        ends[:, :, *at] = np.array(own.ends, np.float64)
        wanted[at], missing[at] = sum(own.pairs) + own.missing, own.missing
    precision, recall = (mean_estimates(own, units_of(queries, clusters)) for own in values)
    of_agents = dict(zip(agents, zip(precision, recall, strict=True), strict=True))
    gaps = Gaps(agents, queries, wanted, missing)
    return SupportScores(agents, queries, values[0], values[1], ends, gaps, of_agents)
