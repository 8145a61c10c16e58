"""Scores runs by several sets of labels side by side, and pools their documents for judging.

TREC judges only the pool (Voorhees and Harman, TREC: Experiment and Evaluation in Information Retrieval, 2005,
chapter 2): documents that no run ranks high stay unjudged, and Judged@k shows how many. A pool can have millions of
pairs, so each query stores its ids and one array of ranks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from judges.errors import InputError
from retrieval_eval.scores.metrics import Labels, Metrics, RetrievedScores, evaluate
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import (
    ALONE,
    Clusters,
    estimates,
    unit_weights,
    units_of,
    weighted_means,
    without_nan,
)
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.paired import RunComparison, compare
from retrieval_eval.stats.rank import kendall_taus, spearmans

if TYPE_CHECKING:
    from retrieval_eval.data.runs import Run
    from retrieval_eval.data.trec import Qrels

_DIGITS = 12
"""Decimals to which means are compared; smaller differences are rounding errors."""


class RankingAgreement(Struct, frozen=True):
    """Agreement between two rankings of the same runs by one measure.

    Attributes:
        topics: number of queries with labels in both sets; both rankings use only these.
        kendall_tau: tau-b, which accounts for ties.
        spearman: Spearman's rho; tied runs share their mean rank.
        swapped: pairs of runs that the two sets of labels rank in opposite order; each pair begins with the run that
            the first set ranks higher.
    """

    measure: str
    topics: int
    kendall_tau: Estimate
    spearman: Estimate
    swapped: tuple[tuple[str, str], ...]


def ranking_agreement(
    first: Metrics, second: Metrics, measure: str, *, samples: int = 1000, seed: int = 0
) -> RankingAgreement:
    """Compare how two sets of labels rank the same runs, on the queries labelled in both.

    The bootstrap draws queries (or conversations) and recomputes both rankings on the same sample, so the interval
    shows how the agreement varies with the choice of queries.
    """
    sides = [each.scores[measure] for each in (first, second)]
    columns = [dict(zip(scores.queries, scores.values.T, strict=True)) for scores in sides]
    queries = [
        query_id
        for query_id in columns[0]
        if query_id in columns[1] and not any(np.isnan(side[query_id]).all() for side in columns)
    ]
    topics = len(queries)
    unit = units_of(queries, sides[0].clusters)
    weights = np.vstack([np.ones(topics), unit_weights(unit, samples, seed)])
    first_means, second_means = (
        weighted_means(np.array([side[query_id] for query_id in queries]).reshape(topics, -1).T, weights)
        for side in columns
    )
    ranked = np.flatnonzero(without_nan(first_means[:1].T, second_means[:1].T))
    tau, rho = Estimate(None), Estimate(None)
    if ranked.size > 1:
        means = first_means[:, ranked], second_means[:, ranked]
        defined = [side[without_nan(*means)] for side in means]
        coefficients = np.stack([kendall_taus(*defined), spearmans(*defined)], axis=1)
        tau, rho = estimates(coefficients[0], coefficients[1:], np.unique(unit).size, centred=True)
    swapped = tuple(
        (first.runs[better], first.runs[worse])
        for better, worse in permutations(ranked.tolist(), 2)
        if _above(first_means[0], better, worse) and _above(second_means[0], worse, better)
    )
    return RankingAgreement(measure, topics, tau, rho, swapped)


def _above(scores: Floats, better: int, worse: int) -> bool:
    return bool(np.round(scores[better], _DIGITS) > np.round(scores[worse], _DIGITS))


class QrelsScores(Struct, frozen=True):
    """Scores of the runs by one set of labels, with comparisons of pairs of runs, by measure.

    ``rankings`` is the agreement with the reference's ranking of the runs, by measure; empty for the reference.
    """

    metrics: Metrics
    comparisons: Mapping[str, tuple[RunComparison, ...]]
    rankings: Mapping[str, RankingAgreement]


def score_runs(
    qrels: Mapping[str, Labels],
    runs: Mapping[str, RetrievedScores],
    measures: Iterable[str],
    *,
    baseline: str | None = None,
    samples: int = 1000,
    seed: int = 0,
    clusters: Clusters = ALONE,
    missing: Mapping[str, Mapping[str, Collection[str]]] | None = None,
) -> dict[str, QrelsScores]:
    """Score the runs by each set of labels on its topic set, and compare runs and rankings.

    Args:
        qrels: labels by name; the first set is the reference.
        runs: scores by run name.
        measures: see ``evaluate``.
        baseline: the run to compare all others with; without it, all pairs of runs are compared.
        samples: number of bootstrap samples for the intervals.
        seed: seed of the bootstrap and of the permutation test.
        clusters: groups of queries that are resampled and tested together.
        missing: documents with a missing label by name of the labels. Runs are compared only on queries where every run
            has a value.

    Raises:
        InputError: no run is called ``baseline``, or ``evaluate`` raises it.
    """
    if baseline is not None and baseline not in runs:
        raise InputError(f"no run is called {baseline!r}; the runs are {', '.join(runs)}")
    names = list(measures)
    bootstrap: dict[str, Any] = {"samples": samples, "seed": seed}
    missing_docs = missing or {}
    metrics = {
        name: evaluate(labels, runs, names, missing=missing_docs.get(name), clusters=clusters, **bootstrap)
        for name, labels in qrels.items()
    }
    reference = next(iter(metrics.values()))
    return {
        name: QrelsScores(
            run_metrics,
            {
                measure: compare(
                    scores.values[:, everywhere],
                    scores.agents,
                    baseline=baseline,
                    unit=units_of(compress(scores.queries, everywhere), clusters),
                    seed=seed,
                )
                for measure, scores in run_metrics.scores.items()
                for everywhere in [np.asarray(scores.seen().all(axis=0))]
            },
            {
                measure: ranking_agreement(reference, run_metrics, measure, **bootstrap)
                for measure in run_metrics.measures
                if run_metrics is not reference and len(run_metrics.runs) > 1
            },
        )
        for name, run_metrics in metrics.items()
    }


class PooledQuery(Struct, frozen=True):
    """The pooled documents of one query.

    Attributes:
        doc_ids: distinct ids in the order of their best rank; ties are in the order of the runs.
        ranks: rank of each document in each run, from 1; 0 if the run did not contribute it. Shape (documents, runs).
    """

    doc_ids: tuple[str, ...]
    ranks: NDArray[np.int32]


class PoolShare(Struct, frozen=True):
    """One run's contribution to the pool; documents are (query, document) pairs.

    Attributes:
        queries: number of queries for which the run retrieved documents.
        documents: number of documents that the run contributed.
        alone: number of documents that only this run contributed.
        labelled: number of contributed documents with a label; ``None`` without qrels.
    """

    queries: int
    documents: int
    alone: int
    labelled: int | None = None


class Pool(Struct, frozen=True):
    """The first ``depth`` documents of several runs, by query, with the runs that contributed each document.

    ``runs`` is in the order of the columns of ``PooledQuery.ranks``.
    """

    depth: int
    runs: tuple[str, ...]
    queries: Mapping[str, PooledQuery]

    def __len__(self) -> int:
        return sum(len(query.doc_ids) for query in self.queries.values())

    def contributors(self, query_id: str) -> Iterator[tuple[str, dict[str, int]]]:
        """Yield each pooled document of a query, with its rank by the name of each run that contributed it."""
        query = self.queries[query_id]
        for doc_id, ranks in zip(query.doc_ids, query.ranks.tolist(), strict=True):
            yield doc_id, {run: rank for run, rank in zip(self.runs, ranks, strict=True) if rank}

    def unlabelled(self, qrels: Qrels) -> Iterator[tuple[str, str]]:
        """Yield (query_id, doc_id) of the pooled documents without a label, which remain to be judged."""
        for query_id, query in self.queries.items():
            labelled = qrels.labels.get(query_id, {})
            yield from ((query_id, doc_id) for doc_id in query.doc_ids if doc_id not in labelled)

    def shares(self, qrels: Qrels | None = None) -> dict[str, PoolShare]:
        queries, documents, alone, labelled = np.zeros((4, len(self.runs)), dtype=np.int64)
        for query_id, query in self.queries.items():
            has = query.ranks > 0
            queries += has.any(axis=0)
            documents += has.sum(axis=0)
            alone += has[has.sum(axis=1) == 1].sum(axis=0)
            if qrels is not None:
                judged = qrels.labels.get(query_id, {})
                labelled += has[[doc_id in judged for doc_id in query.doc_ids]].sum(axis=0)
        counts = zip(*(count.tolist() for count in (queries, documents, alone, labelled)), strict=True)
        return {
            run: PoolShare(asked, contributed, unique, judged if qrels is not None else None)
            for run, (asked, contributed, unique, judged) in zip(self.runs, counts, strict=True)
        }


def pool_runs(runs: Sequence[Run], depth: int) -> Pool:
    """Pool the first ``depth`` documents of several runs on each query.

    Raises:
        InputError: two runs have the same name, or the depth is less than 1.
    """
    if depth < 1:
        raise InputError(f"the depth of a pool must be at least 1, not {depth}")
    names = tuple(run.name for run in runs)
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two runs of the pool are called {repeated[0]!r}; rename one")
    query_ids = dict.fromkeys(query_id for run in runs for query_id in run.rankings)
    return Pool(depth, names, {query_id: _pooled(query_id, runs, depth) for query_id in query_ids})


def _pooled(query_id: str, runs: Sequence[Run], depth: int) -> PooledQuery:
    tops = [run.rankings[query_id].doc_ids[:depth] if query_id in run.rankings else () for run in runs]
    places: dict[str, int] = {}
    for rank in range(max(map(len, tops), default=0)):
        for top in tops:
            if rank < len(top):
                places.setdefault(top[rank], len(places))
    ranks = np.zeros((len(places), len(runs)), dtype=np.int32)
    for column, top in enumerate(tops):
        ranks[[places[doc_id] for doc_id in top], column] = np.arange(1, len(top) + 1)
    return PooledQuery(tuple(places), ranks)
