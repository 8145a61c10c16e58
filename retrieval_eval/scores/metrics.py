"""Scores runs by qrels with ir_measures: values per query and over a topic set.

Measures have the names of ir_measures, such as ``nDCG@10`` or ``RR(rel=2)@5``.

A document that nobody asked a judge about is *unjudged*: it counts as not relevant, and Judged@k shows how many there
are. A label that was requested but failed is *missing*. If one of a run's first k documents has a missing label, the
run has no value on this query, and its bounds are 0 and 1. To count the document as not relevant would score the run
too low. To drop it from the ranking (condensed lists: Sakai 2007, SIGIR, "Alternatives to bpref") would score the run
against ideal rankings without its missing documents. These two errors have opposite signs if the missing labels belong
to one run only (Sakai 2008, CIKM, "Comparing metrics across TREC and NTCIR: the robustness to system bias"). Which
queries are left out does not depend on the values of their labels.

The value of a run without missing labels among its first k documents uses the available labels. It is also the run's
upper bound; its lower bound counts the missing documents as relevant documents that it did not retrieve.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import math
from collections.abc import Collection, Iterable, Mapping
from itertools import compress
from subprocess import CalledProcessError
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from judges.errors import InputError
from judges.types import repeat_of
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import (
    ALONE,
    Clusters,
    estimates,
    unit_weights,
    units_of,
    units_with,
    weighted_means,
)
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.repeats import averaged
from retrieval_eval.stats.scores import Scores

Labels: TypeAlias = Mapping[str, Mapping[str, int]]
"""Relevance labels by query_id and doc_id."""

RetrievedScores: TypeAlias = Mapping[str, Mapping[str, float]]
"""Scores of retrieved documents by query_id and doc_id."""


class RunCoverage(Struct, frozen=True):
    """Which queries a run has a score on.

    Attributes:
        missing: queries of the topic set for which the run has no documents; they score 0.
        unlabelled: queries of the run without labels; they are left out of its scores.
        judged: Judged@k by name, mean over the scored topics.
        unasked: queries on which the run's agent failed; they are left out of its scores.
        unknown: queries without a value because labels are missing, by measure.
        missing_labels: number of missing labels of the run's documents.
    """

    missing: tuple[str, ...]
    unlabelled: tuple[str, ...]
    judged: Mapping[str, float]
    unasked: tuple[str, ...] = ()
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing_labels: int = 0


class Metrics(Struct, frozen=True, eq=False):
    """Scores of runs by one set of qrels.

    Attributes:
        topics: the scored queries, which have a label or a missing label, in the order of the qrels.
        labels: number of labels.
        unlabelled: number of topics that have only missing labels; no run has a value on these.
        without_relevant: topics with no label above 0 and no missing label; every run scores 0 on them in most
            measures.
        scores: scores of the runs on each topic, by measure; NaN if the run's agent failed or labels are missing.
        estimates: mean over the topics with its interval, by run and measure; for measures that count (NumRet, NumRel)
            the sum. The value is ``None`` if no topic has one.
        coverage: coverage by run.
    """

    topics: tuple[str, ...]
    labels: int
    unlabelled: int
    without_relevant: tuple[str, ...]
    scores: Mapping[str, Scores]
    estimates: Mapping[str, Mapping[str, Estimate]]
    coverage: Mapping[str, RunCoverage]

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(self.coverage)

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(self.scores)


def evaluate(
    labels: Labels,
    runs: Mapping[str, RetrievedScores],
    names: Iterable[str],
    unasked: Mapping[str, Collection[str]] | None = None,
    missing: Mapping[str, Collection[str]] | None = None,
    *,
    samples: int = 1000,
    seed: int = 0,
    clusters: Clusters = ALONE,
) -> Metrics:
    """Score runs by qrels.

    The topic set is all queries with labels. A run scores 0 on topics for which it has no documents; its queries
    outside the topic set are left out. A document without a label counts as not relevant. On equal scores the measures
    of trec_eval rank the higher doc_id first, as trec_eval does; measures that ir_measures computes itself (reciprocal
    rank with a cutoff, Judged@k) rank the lower doc_id first.

    Args:
        labels: relevance labels.
        runs: scores by run name.
        names: names of the measures. The coverage always has Judged@k, for each k in ``names`` and for the largest
            cutoff.
        unasked: queries on which the run's agent failed, by run; they are left out of its scores.
        missing: documents with a missing label, by query; see the module's docstring.
        samples: number of bootstrap samples for the intervals of sums.
        seed: seed of the bootstrap.
        clusters: groups of queries that depend on each other.

    Raises:
        InputError: there are no labels, or a measure is unknown or cannot be computed on a run.
    """
    import ir_measures

    missing_docs = {query_id: frozenset(doc_ids) for query_id, doc_ids in (missing or {}).items() if doc_ids}
    topic_labels = {
        query_id: dict(labels.get(query_id, {}))
        for query_id in dict.fromkeys([*labels, *missing_docs])
        if labels.get(query_id) or query_id in missing_docs
    }
    topics = tuple(topic_labels)
    if not topics:
        raise InputError("the qrels have no labels; add at least one")
    measures = parse_measures(names)
    every = measures | judged_at(measures.values())
    top = max([1, *(label for query_labels in topic_labels.values() for label in query_labels.values())])
    relevant = {
        query_id: query_labels | dict.fromkeys(missing_docs.get(query_id, ()), top)
        for query_id, query_labels in topic_labels.items()
    }
    evaluators = [
        ir_measures.evaluator({*every.values()}, qrels)
        for qrels in ([topic_labels, relevant] if missing_docs else [topic_labels])
    ]
    is_unlabelled = np.array([not query_labels for query_labels in topic_labels.values()])
    shape = (len(measures), len(runs), len(topics))
    tables, ends, coverage = np.zeros(shape), np.zeros((2, *shape)), {}
    counts = np.zeros((2, len(runs), len(topics)), np.int64)
    for number, (run, scores) in enumerate(runs.items()):
        answered = {query_id: dict(scores[query_id]) for query_id in topics if scores.get(query_id)}
        failed = set((unasked or {}).get(run, ()))
        is_failed = np.array([query_id in failed for query_id in topics])
        values, *others = (_values(evaluator, answered, topics, every, run) for evaluator in evaluators)
        unknown = {
            name: _lacks_label(answered, topics, missing_docs, measure) & ~is_failed for name, measure in every.items()
        }
        for place, (name, measure) in enumerate(measures.items()):
            lowest = values[name] if is_judged(measure) or not others else others[0][name]
            ends[:, place, number] = np.where(unknown[name], [[0.0], [1.0]], [lowest, values[name]])
        ends[:, :, number, is_failed] = np.nan
        for name, topic_values in values.items():
            topic_values[is_failed | unknown[name] | is_unlabelled] = np.nan
        tables[:, number] = [values[name] for name in measures]
        counts[:, number] = _label_counts(answered, topic_labels, missing_docs)
        accounted = answered.keys() | failed
        coverage[run] = RunCoverage(
            missing=tuple(
                topic for topic, query_labels in topic_labels.items() if query_labels and topic not in accounted
            ),
            unlabelled=tuple(
                query_id for query_id, ranked in scores.items() if ranked and query_id not in topic_labels
            ),
            judged={
                name: float(weighted_means(values[name][np.newaxis], np.ones((1, len(topics))))[0, 0])
                for name, measure in every.items()
                if is_judged(measure)
            },
            unasked=tuple(query_id for query_id in topics if query_id in failed),
            unknown={name: tuple(compress(topics, unknown[name])) for name in measures if unknown[name].any()},
            missing_labels=int(counts[1, number].sum()),
        )
    present = np.array([[bool(scores.get(topic)) for topic in topics] for scores in runs.values()]).reshape(shape[1:])
    by_measure = {
        name: averaged(
            Scores(name, tuple(runs), topics, tables[place], counts, ends[:, place], None, clusters), present
        )
        for place, name in enumerate(measures)
    }
    of_runs: dict[str, RunCoverage] = {}
    for run in sorted(coverage, key=lambda name: repeat_of(name)[1]):
        of_runs.setdefault(repeat_of(run)[0], coverage[run])
    means = {
        name: _sums(by_measure[name], samples, seed)
        if isinstance(measure.aggregator(), ir_measures.SumAgg)
        else by_measure[name].means
        for name, measure in measures.items()
    }
    return Metrics(
        topics=topics,
        labels=sum(map(len, topic_labels.values())),
        unlabelled=int(is_unlabelled.sum()),
        without_relevant=tuple(
            query_id
            for query_id, query_labels in topic_labels.items()
            if query_id not in missing_docs and max(query_labels.values()) <= 0
        ),
        scores=by_measure,
        estimates={run: {name: estimates_of_runs[run] for name, estimates_of_runs in means.items()} for run in of_runs},
        coverage=of_runs,
    )


def _sums(scores: Scores, samples: int, seed: int) -> dict[str, Estimate]:
    """Each run's sum of its scores over the topics, with a bootstrap interval; undefined if the run has no score."""
    unit = units_of(scores.queries, scores.clusters)
    weights = np.vstack([np.ones(unit.size), unit_weights(unit, samples, seed)])
    sums = np.where(np.isnan(scores.drawn(weights)), np.nan, weights @ np.nan_to_num(scores.values).T)
    return dict(zip(scores.agents, estimates(sums[0], sums[1:], units_with(scores.seen(), unit)), strict=True))


def _label_counts(
    answered: RetrievedScores, topic_labels: Labels, missing_docs: Mapping[str, frozenset[str]]
) -> NDArray[np.int64]:
    """Numbers of requested and missing labels of a run's documents on each topic, shape (2, topics)."""
    counts = [
        (len(ranked.keys() & labels.keys()), len(ranked.keys() & missing_docs.get(query_id, frozenset())))
        for query_id, labels in topic_labels.items()
        for ranked in [answered.get(query_id, {})]
    ]
    labelled, missing = np.array(counts, np.int64).T
    return np.array([labelled + missing, missing])


def _lacks_label(
    answered: RetrievedScores, topics: tuple[str, ...], missing_docs: Mapping[str, Collection[str]], measure: Measure
) -> NDArray[np.bool_]:
    """For each topic, whether a document ranked within the measure's cutoff has a missing label; never for Judged@k.

    Documents that tie with the last one at the cutoff count too.
    """
    is_missing = np.zeros(len(topics), np.bool_)
    for place, query_id in enumerate(topics if missing_docs and not is_judged(measure) else ()):
        scores = answered.get(query_id, {})
        if query_id in missing_docs and scores:
            ordered = sorted(scores.values(), reverse=True)
            last = ordered[min(measure.params.get("cutoff", len(ordered)), len(ordered)) - 1]
            is_missing[place] = any(scores.get(doc_id, -math.inf) >= last for doc_id in missing_docs[query_id])
    return is_missing


def _values(
    evaluator: Measure, answered: RetrievedScores, topics: tuple[str, ...], measures: Mapping[str, Measure], run: str
) -> dict[str, Floats]:
    places = {query_id: place for place, query_id in enumerate(topics)}
    values = {measure: np.zeros(len(topics)) for measure in measures.values()}
    try:
        for metric in evaluator.iter_calc(answered):
            values[metric.measure][places[metric.query_id]] = metric.value
    except (ArithmeticError, CalledProcessError) as error:  # gdeval computes ERR@k, and only for numeric query ids
        raise InputError(
            f"{run}: one of {', '.join(measures)} cannot be computed on this run ({error}); leave it out"
        ) from error
    return {name: values[measure] for name, measure in measures.items()}


Measure: TypeAlias = Any
"""A measure of ir_measures, which has no type annotations."""

DEFAULT_MEASURES = ("nDCG@10", "RR(rel=1)@5", "RR(rel=2)@5", "AP", "P@5", "Judged@10")
"""Measures computed by default; reciprocal rank for labels from 1 ("somewhat relevant") and 2 ("very relevant")."""

_EXAMPLES = "measures are written as nDCG@10, RR(rel=2)@5, P@5, AP, Rprec, R@100"

_DEEPEST = 1_000_000
"""Highest cutoff of a measure; a larger one is a typing error and would make ir_measures use too much memory."""


def parse_measures(names: Iterable[str]) -> dict[str, Measure]:
    """Parse names of measures such as ``nDCG@10``; the result is in the order of the names, without duplicates.

    Raises:
        InputError: a name is not a measure, has a parameter that the measure does not accept, or no installed library
            computes it.
    """
    return {name: _parsed(name) for name in map(str.strip, names)}


def default_measures(highest: int) -> list[str]:
    """Default measures for labels from 0 to ``highest``.

    Reciprocal rank is computed from label 1 and from the upper half of the scale. With three labels these are
    "somewhat" and "very" relevant; with UMBRELA's four, "related" and "partly answers", which is TREC's threshold.
    """
    thresholds = dict.fromkeys((1, highest // 2 + 1))
    return ["nDCG@10", *(f"RR(rel={threshold})@5" for threshold in thresholds), "Judged@10"]


def is_judged(measure: Measure) -> bool:
    """Whether the measure is Judged@k, which counts labelled documents and ignores their relevance."""
    return bool(measure.NAME == "Judged")


def judged_at(measures: Iterable[Measure]) -> dict[str, Measure]:
    """Judged@k at the largest cutoff of the measures; over the whole ranking if no measure has a cutoff."""
    from ir_measures import Judged

    cutoffs = [measure.params["cutoff"] for measure in measures if "cutoff" in measure.params]
    judged = Judged @ max(cutoffs) if cutoffs else Judged
    return {str(judged): judged}


def _parsed(name: str) -> Measure:
    import ir_measures

    try:
        measure = _written(name)
    except NameError:
        raise InputError(f"{name}: no such measure; {_hint(name)}") from None
    except (SyntaxError, ValueError, TypeError, AttributeError):
        raise InputError(f"{name!r} is not a valid measure; {_EXAMPLES}") from None
    _check_parameters(name, measure)
    try:
        ir_measures.evaluator([measure], {"query": {"document": 1}})
    except TypeError as error:
        raise InputError(f"{name}: {str(error)[:1].lower()}{str(error)[1:].rstrip('.')}") from None
    except ValueError as error:
        _, *libraries = str(error).splitlines()
        how = f"it needs {libraries[0].strip(' -')}" if libraries else "no library computes it with these parameters"
        raise InputError(f"{name}: cannot be computed here: {how}") from None
    return measure


def _written(name: str) -> Measure:
    """Parse ``Name(key=value)@cutoff``; the parser of ir_measures uses functions that Python 3.14 removed."""
    import ir_measures

    node: ast.expr = ast.parse(name, mode="eval").body
    parameters, cutoff = {}, None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        cutoff, node = ast.literal_eval(node.right), node.left
    if isinstance(node, ast.Call):
        if node.args:
            raise ValueError("a parameter needs a name")
        parameters = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
        node = node.func
    if not isinstance(node, ast.Name):
        raise ValueError("no name")
    if node.id not in ir_measures.measures.registry:
        raise NameError(node.id)
    measure = ir_measures.measures.registry[node.id]
    return measure(**parameters if cutoff is None else {**parameters, measure.AT_PARAM: cutoff})


def _check_parameters(name: str, measure: Measure) -> None:
    supported = measure.SUPPORTED_PARAMS
    for parameter, value in measure.params.items():
        if parameter not in supported:
            raise InputError(
                f"{name}: {measure.NAME} takes no {parameter!r}, only {', '.join(supported) or 'its name'}"
            )
        if not supported[parameter].validate(value):
            raise InputError(f"{name}: {parameter} cannot be {value!r}; give it another value")
    if missing := [
        parameter for parameter, info in supported.items() if info.required and parameter not in measure.params
    ]:
        raise InputError(f"{name}: {measure.NAME} needs {' and '.join(missing)}, as in {measure.NAME}({missing[0]}=10)")
    cutoff = measure.params.get("cutoff", 1)
    if isinstance(cutoff, bool) or not 1 <= cutoff <= _DEEPEST:
        raise InputError(f"{name}: the cutoff must be a whole number from 1 to {_DEEPEST:,}")


def _hint(name: str) -> str:
    """Suggest similar measures: for a trec_eval name (map, ndcg_cut_10) or a misspelt one."""
    import ir_measures
    from pytrec_eval import supported_nicknames

    suggestions: list[str] = []
    if name not in supported_nicknames:  # for a nickname the library would print every measure that it skips
        with contextlib.suppress(ValueError):
            suggestions = [str(measure) for measure in ir_measures.parse_trec_measure(name)]
    base = name.partition("@")[0].partition("(")[0]
    folded = {measure.casefold(): measure for measure in reversed(ir_measures.measures.registry)}
    near = difflib.get_close_matches(base.casefold(), folded, n=3)
    suggestions = suggestions[:3] or [name.replace(base, folded[measure], 1) for measure in near]
    return f"is it {' or '.join(suggestions)}?" if suggestions else _EXAMPLES
