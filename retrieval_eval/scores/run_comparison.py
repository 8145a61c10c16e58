"""Runs: by several sets of labels side by side, and the pool of what they give to judge.

TREC judges the pool and nothing else (Voorhees and Harman, TREC: Experiment and Evaluation in Information Retrieval,
2005, chapter 2): what no run ranks high is not looked at, and Judged@k shows how much that is. Pools have millions of
pairs, so a query is its ids and one array of ranks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from judges.errors import InputError
from retrieval_eval.scores.metrics import Labels, Metrics, Scores, evaluate
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import ALONE, Clusters, estimates, unit_weights, units_of, weighted_means, whole
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.rank import kendall_taus, spearmans
from retrieval_eval.stats.significance import RunComparison, compare

if TYPE_CHECKING:
    from retrieval_eval.data.runs import Run
    from retrieval_eval.data.trec import Qrels

_DIGITS = 12
"""Means that differ beyond this many decimals differ by rounding alone."""


class RankingAgreement(Struct, frozen=True):
    """Two rankings of the same runs by one measure.

    Attributes:
        topics: queries with labels in both sets; both rankings are of these alone.
        kendall_tau: tau-b, which takes account of ties.
        spearman: with mean ranks for ties.
        swapped: pairs of runs that the two rank the other way round, the better by the first set in front.
    """

    measure: str
    topics: int
    kendall_tau: Estimate
    spearman: Estimate
    swapped: tuple[tuple[str, str], ...]


def ranking_agreement(
    first: Metrics, second: Metrics, measure: str, *, samples: int = 1000, seed: int = 0, clusters: Clusters = ALONE
) -> RankingAgreement:
    """Compare how two sets of labels rank the same runs, on the queries that both label, drawn in ``clusters``.

    Both rankings are drawn anew from the same resampled queries, so the interval says how the agreement would move had
    other queries been asked.

    Raises:
        ValueError: the two are of different runs.
    """
    if first.runs != second.runs:
        raise ValueError("the two sets of scores are of different runs")
    known = [
        {own.topics[place] for place in np.flatnonzero(~np.isnan(own.of_measure(measure)).all(axis=0)).tolist()}
        for own in (first, second)
    ]
    places = {query_id: place for place, query_id in enumerate(second.topics) if query_id in known[1]}
    ours = [place for place, query_id in enumerate(first.topics) if query_id in places and query_id in known[0]]
    theirs = [places[first.topics[place]] for place in ours]
    topics = len(ours)
    unit = units_of((first.topics[place] for place in ours), clusters)
    weights = np.vstack([np.ones(topics), unit_weights(unit, samples, seed)])
    one = weighted_means(first.of_measure(measure)[:, ours], weights)
    other = weighted_means(second.of_measure(measure)[:, theirs], weights)
    ranked = np.flatnonzero(whole(one[:1].T, other[:1].T))
    tau, rho = Estimate(None), Estimate(None)
    if ranked.size > 1:
        sides = one[:, ranked], other[:, ranked]
        drawn = [side[whole(*sides)] for side in sides]
        coefficients = np.stack([kendall_taus(*drawn), spearmans(*drawn)], axis=1)
        tau, rho = estimates(coefficients[0], coefficients[1:], np.unique(unit).size, centred=True)
    swapped = tuple(
        (first.runs[better], first.runs[worse])
        for better, worse in permutations(ranked.tolist(), 2)
        if _above(one[0], better, worse) and _above(other[0], worse, better)
    )
    return RankingAgreement(measure, topics, tau, rho, swapped)


def _above(scores: Floats, better: int, worse: int) -> bool:
    return bool(np.round(scores[better], _DIGITS) > np.round(scores[worse], _DIGITS))


class QrelsScores(Struct, frozen=True):
    """Runs by one set of labels.

    Attributes:
        metrics: per query and over the topic set.
        intervals: by run and measure.
        comparisons: by measure, of the pairs of runs.
        rankings: by measure, whether these labels rank the runs as the reference does; the reference has none.
    """

    metrics: Metrics
    intervals: Mapping[str, Mapping[str, Estimate]]
    comparisons: Mapping[str, tuple[RunComparison, ...]]
    rankings: Mapping[str, RankingAgreement]


def score_runs(
    qrels: Mapping[str, Labels],
    runs: Mapping[str, Scores],
    measures: Iterable[str],
    *,
    baseline: str | None = None,
    samples: int = 1000,
    seed: int = 0,
    clusters: Clusters = ALONE,
    missing: Mapping[str, Mapping[str, Collection[str]]] | None = None,
) -> dict[str, QrelsScores]:
    """Score the runs by each set of labels, on the topic set of each, and compare.

    Args:
        qrels: labels by their name; the first are the reference.
        runs: scores by the run's name.
        measures: see ``evaluate``.
        baseline: the run that all others are compared with; without one, every two runs are.
        samples: bootstrap samples of the intervals.
        seed: of the samples and of the permutation test.
        clusters: what queries are drawn and tested in.
        missing: by the labels' name, documents whose label is missing, see ``evaluate``. Pairs of runs are compared on
            the queries that every run has a value on.

    Raises:
        InputError: no such baseline, or what ``evaluate`` refuses.
    """
    if baseline is not None and baseline not in runs:
        raise InputError(f"no run is called {baseline!r}, only {', '.join(runs)}")
    names = list(measures)
    drawn: dict[str, Any] = {"samples": samples, "seed": seed}
    lost = missing or {}
    metrics = {name: evaluate(labels, runs, names, missing=lost.get(name)) for name, labels in qrels.items()}
    reference = next(iter(metrics.values()))
    return {
        name: QrelsScores(
            own,
            own.intervals(samples, seed, clusters),
            {
                measure: compare(
                    own.of_measure(measure)[:, known],
                    own.runs,
                    baseline=baseline,
                    unit=units_of((own.topics[place] for place in known), clusters),
                    seed=seed,
                )
                for measure in own.measures
                for known in [np.flatnonzero(~np.isnan(own.of_measure(measure)).any(axis=0))]
            },
            {
                measure: ranking_agreement(reference, own, measure, clusters=clusters, **drawn)
                for measure in own.measures
                if own is not reference and len(own.runs) > 1
            },
        )
        for name, own in metrics.items()
    }


Pair = tuple[str, str]
"""(query_id, doc_id)."""


class PooledQuery(Struct, frozen=True):
    """The documents of one query.

    Attributes:
        doc_ids: each once, by their best rank, on equal ranks in the order of the runs.
        ranks: int32, documents x runs: the rank in the run from 1, or 0 where it is not among the run's first.
    """

    doc_ids: tuple[str, ...]
    ranks: NDArray[np.int32]


class PoolShare(Struct, frozen=True):
    """What one run gave to the pool.

    Attributes:
        queries: on which it retrieved anything.
        documents: pairs that it has among its first ``depth``.
        alone: those of them that no other run has.
        labelled: those of them that have a label; ``None`` without qrels.
    """

    queries: int
    documents: int
    alone: int
    labelled: int | None = None


class Pool(Struct, frozen=True):
    """Who contributed what.

    Attributes:
        depth: documents taken of each run and query.
        runs: names, in the order of the columns of ``PooledQuery.ranks``.
        queries: by query_id, in the order in which the runs bring them up.
    """

    depth: int
    runs: tuple[str, ...]
    queries: Mapping[str, PooledQuery]

    def __len__(self) -> int:
        """(Query, document) pairs."""
        return sum(len(query.doc_ids) for query in self.queries.values())

    def contributors(self, query_id: str) -> Iterator[tuple[str, dict[str, int]]]:
        """The documents of one query, each with its rank by name of the runs that have it."""
        query = self.queries[query_id]
        for doc_id, ranks in zip(query.doc_ids, query.ranks.tolist(), strict=True):
            yield doc_id, {run: rank for run, rank in zip(self.runs, ranks, strict=True) if rank}

    def unlabelled(self, qrels: Qrels) -> Iterator[Pair]:
        """Pairs without a label: what is left to judge."""
        for query_id, query in self.queries.items():
            labelled = qrels.labels.get(query_id, {})
            yield from ((query_id, doc_id) for doc_id in query.doc_ids if doc_id not in labelled)

    def shares(self, qrels: Qrels | None = None) -> dict[str, PoolShare]:
        """What each run gave, by name."""
        queries, documents, alone, labelled = np.zeros((4, len(self.runs)), dtype=np.int64)
        for query_id, query in self.queries.items():
            has = query.ranks > 0
            queries += has.any(axis=0)
            documents += has.sum(axis=0)
            alone += has[has.sum(axis=1) == 1].sum(axis=0)
            if qrels is not None:
                known = qrels.labels.get(query_id, {})
                labelled += has[[doc_id in known for doc_id in query.doc_ids]].sum(axis=0)
        counts = zip(*(count.tolist() for count in (queries, documents, alone, labelled)), strict=True)
        return {
            run: PoolShare(asked, found, own, known if qrels is not None else None)
            for run, (asked, found, own, known) in zip(self.runs, counts, strict=True)
        }


def pool_runs(runs: Sequence[Run], depth: int) -> Pool:
    """The pool of several runs.

    Args:
        runs: of retrieval files (``read_runs``) and of agents (``runs_of``), with different names.
        depth: how many documents of each run and query are taken, at least 1.

    Raises:
        InputError: two runs have the same name, or the depth is less than 1.
    """
    if depth < 1:
        raise InputError(f"the depth of a pool is at least 1, not {depth}")
    names = tuple(run.name for run in runs)
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two runs of the pool are called {repeated[0]!r}")
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
