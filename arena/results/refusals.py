"""Reads refusals from the store: what each answer does, and whether it was right to answer or to decline.

A question can be answered from the documents, or it cannot; an answer is kept, or the agent declines by refusing or
asking back. With AK, AD, UK, UD the numbers of answerable (A) and unanswerable (U) questions that an agent kept (K) or
declined (D), Chen et al. (2024, arXiv 2409.16146) define

- risk UK / (AK + UK), the share of its answers that it should not have given,
- carefulness UD / (UD + UK),
- alignment (AK + UD) / (AK + AD + UK + UD),
- coverage (AK + UK) / (AK + AD + UK + UD).

Wrongly declined is AD / (AK + AD). Partly answerable and underspecified questions enter none of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

import numpy as np
from msgspec.structs import replace

from arena.results.outcomes import StageResults, outcomes
from arena.store import Store
from judges.refusals import REFUSALS
from judges.types import Answerability, Judgment, conversations
from retrieval_eval.stats.bootstrap import ALONE, Clusters
from retrieval_eval.stats.scores import Scores, scores_of

AnswerKey: TypeAlias = tuple[str, str]
"""An agent and a query's id."""
Counts: TypeAlias = Callable[[AnswerKey, bool], bool]
"""Whether an answer counts for a score, by its agent and query, and by whether the agent answered."""
_KEPT: Final = 0


class RefusalResults(StageResults, frozen=True, eq=False, kw_only=True):
    """What the agents' answers do.

    Attributes:
        reactions: the judge's value of each answer by agent and query id: 0 answers, 1 asks back, 2 refuses; ``None``
            if the judgment failed or does not exist.
        answerability: whether each query can be answered; only queries of which this is known.
    """

    reactions: Mapping[AnswerKey, int | None]
    answerability: Mapping[str, Answerability]


def results(store: Store, tournament: str) -> RefusalResults:
    queries = store.dataset(tournament).queries
    judged = {
        (want.item, want.query_id): result.outcome
        if isinstance(result, Judgment) and isinstance(result.outcome, int)
        else None
        for want, result in outcomes(store, tournament, REFUSALS)
    }
    known = {name: query.answerability for name, query in queries.items() if query.answerability is not None}
    scores = refusal_scores(judged, known, conversations(queries.values()))
    return RefusalResults(scores=scores, reactions=judged, answerability=known)


def refusal_scores(
    reactions: Mapping[AnswerKey, int | None], answerability: Mapping[str, Answerability], clusters: Clusters = ALONE
) -> tuple[Scores, ...]:
    """The agents' scores, alignment first; only the share declined if no judged query is known to be (un)answerable.

    ``reactions`` and ``answerability`` are as in ``RefusalResults``.
    """

    def among(*kinds: Answerability) -> dict[AnswerKey, int | None]:
        return {key: value for key, value in reactions.items() if answerability.get(key[1]) in kinds}

    def score(
        name: str, heading: str, over: Mapping[AnswerKey, int | None], counts: Counts, *, lower: bool = False
    ) -> Scores:
        values = {key: float(counts(key, value == _KEPT)) for key, value in over.items() if value is not None}
        scores = scores_of(name, values, over, clusters=clusters, column=name, heading=heading)
        return replace(scores, lower=lower, ranks=name == "alignment")

    answerable, unanswerable = among("answerable"), among("unanswerable")
    decided = answerable | unanswerable
    if not decided:
        return (score("declined", "Declined", reactions, lambda _, kept: not kept, lower=True),)
    scores = [score("alignment", "Refusal score", decided, lambda key, kept: kept is (key in answerable))]
    coverage = score("coverage", "Coverage", decided, lambda _, kept: kept)
    if unanswerable:
        scores += [_risk(coverage, {query_id for _, query_id in unanswerable})]
        scores += [score("carefulness", "Carefulness", unanswerable, lambda _, kept: not kept)]
    if answerable:
        scores += [score("wrongly_declined", "Wrongly declined", answerable, lambda _, kept: not kept, lower=True)]
    return (*scores, coverage)


def _risk(coverage: Scores, unanswerable: Collection[str]) -> Scores:
    """The share of unanswerable queries among those that the agent answered, by ``coverage``.

    A missing judgment can only raise it on an unanswerable query, and lower it on an answerable one.
    """
    assert coverage.judgments is not None
    wrong = np.array([float(query_id in unanswerable) for query_id in coverage.queries])
    values, missing = np.where(coverage.values == 1, wrong, np.nan), coverage.judgments[1] > 0
    ends = np.array([np.where(missing & (wrong == end), end, values) for end in (0, 1)])
    named = replace(coverage, name="risk", heading="Risk", column="risk", lower=True, conditional=True)
    return replace(named, values=values, ends=ends)
