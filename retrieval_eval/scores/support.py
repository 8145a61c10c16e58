"""Support scores: whether cited documents support the sentences that cite them (Thakur et al. 2025, arXiv 2504.15205).

Support is the third axis of TREC RAG. A judged pair of a sentence and a document that it cites has weight 1 for full,
0.5 for partial and 0 for no support. An answer's weighted precision is the mean weight of its pairs. Its weighted
recall is the mean weight of its sentences: a sentence has the largest weight of its citations, or 0 without any. An
agent's score is the mean over its answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
from msgspec import Struct

from retrieval_eval.scores.citations import CitedSentence
from retrieval_eval.stats.bootstrap import ALONE, Clusters
from retrieval_eval.stats.scores import Scores, over_the_known

CitationsChecked: TypeAlias = Literal["first", "all"]
"""Whether to score only the first citation of each sentence, as TREC did, or all of them."""

WEIGHTS: Final = (0.0, 0.5, 1.0)
"""Weights of a sentence's support by a document: none, partial and full."""
_NAMES: Final = {"support_precision": "Precision", "support_recall": "Recall"}


class AnswerSupport(Struct, frozen=True):
    """Support scores of one answer.

    Attributes:
        precision: mean weight of the judged pairs; ``None`` without any.
        recall: mean weight of the sentences; ``None`` if no sentence can be scored, 0 for an empty answer.
        sentences: number of sentences.
        cited: number of sentences with a citation.
        pairs: number of pairs of a sentence and a cited document with no, partial and full support.
        invented: number of pairs whose citation matches no document; included in ``pairs`` as no support.
        unjudged: number of pairs without a judgment: it failed, is not made yet, or the document has no text. They are
            left out of the scores.
        missing: number of unjudged pairs whose judgment was requested. A sentence with a missing pair is left out of
            the recall, unless the recall does not depend on it: see ``over_the_known``.
        ends: lowest and highest possible precision, then recall, over all outcomes of the missing pairs.
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
    return sentence.citations[:1] if which == "first" else sentence.citations


def answer_support(
    sentences: Sequence[CitedSentence],
    which: CitationsChecked,
    judged: Callable[[int, str], int | None],
    missing: Callable[[int, str], bool] = lambda *_: False,
) -> AnswerSupport:
    """Compute the support scores of one answer.

    Args:
        sentences: the answer's sentences.
        which: which citations of a sentence are scored.
        judged: support of a sentence (its index) by a document: 0, 1 or 2; ``None`` if not judged.
        missing: whether the judgment of a sentence (its index) and a document was requested but is missing.
    """
    pairs, invented, unjudged, missing_total = [0, 0, 0], 0, 0, 0
    complete: list[float] = []
    lowest: list[float] = []
    highest: list[float] = []
    for place, sentence in enumerate(sentences):
        cited = counted_citations(sentence, which)
        supports = [0 if doc_id is None else judged(place, doc_id) for doc_id in cited]
        levels = [level for level in supports if level is not None]
        for level in levels:
            pairs[level] += 1
        missing_pairs = sum(doc_id is not None and missing(place, doc_id) for doc_id in cited)
        invented += cited.count(None)
        unjudged += len(supports) - len(levels)
        missing_total += missing_pairs
        if levels or missing_pairs or not cited:
            weight = max((WEIGHTS[level] for level in levels), default=0.0)
            complete += [] if missing_pairs else [weight]
            lowest.append(weight)
            highest.append(WEIGHTS[-1] if missing_pairs else weight)
    total = sum(pairs)
    weight = float(np.dot(pairs, WEIGHTS))
    precision = weight / total if total else None
    possible = total + missing_total
    recall, ends = None if sentences else 0.0, (None, None) if sentences else (0.0, 0.0)
    if lowest:
        ends = sum(lowest) / len(lowest), sum(highest) / len(highest)
        share = float(
            over_the_known(np.array(sum(complete) / len(complete) if complete else math.nan), *map(np.array, ends))
        )
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
        missing_total,
        ((weight / possible, (weight + missing_total) / possible) if possible else (None, None), ends),
    )


def support_scores(
    answers: Mapping[tuple[str, str], AnswerSupport], *, clusters: Clusters = ALONE
) -> tuple[Scores, Scores]:
    """Every agent's weighted precision and weighted recall; ``answers`` are by query and agent.

    A query is left out of a score that is undefined for the agent's answer.
    """
    agents, queries = (tuple(sorted({key[place] for key in answers})) for place in (1, 0))
    shape = (len(agents), len(queries))
    values, ends = np.full((2, *shape), np.nan), np.full((2, 2, *shape), np.nan)
    judgments = np.zeros((2, *shape), np.int64)
    row, column = ({name: at for at, name in enumerate(names)} for names in (agents, queries))
    for (query_id, agent), support in answers.items():
        at = row[agent], column[query_id]
        values[:, *at] = np.array([support.precision, support.recall], np.float64)
        ends[:, :, *at] = np.array(support.ends, np.float64)
        judgments[:, *at] = sum(support.pairs) + support.missing, support.missing
    precision, recall = (
        Scores(name, agents, queries, score, judgments, bounds, None, clusters, name, heading)
        for (name, heading), score, bounds in zip(_NAMES.items(), values, ends, strict=True)
    )
    return precision, recall
