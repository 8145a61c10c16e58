"""Runs against qrels: measures per query and over a topic set, thin over ir_measures.

Measures have the names that ir_measures gives them, such as ``nDCG@10`` or ``RR(rel=2)@5``.

A document that nobody meant to judge is unjudged: it counts as not relevant, and Judged@k shows how many there are. A
label that was asked for and is not there is *missing*. A query where one of the first k documents of a run lacks its
label so has no value for this run, by any measure, and bounds of 0 and 1. To count the document as not relevant would
score the run too low. To leave it out of the ranking (condensed lists: Sakai 2007, SIGIR, "Alternatives to bpref")
scores it by ideal rankings to which its own lost documents do not belong, and the two err in opposite directions where
the labels of one run are missing and those of another are not (Sakai 2008, CIKM, "Comparing metrics across TREC and
NTCIR: the robustness to system bias"). Which queries are left out does not depend on what their labels say. Other
runs, none of whose first k documents lacks a label, have the value by the labels there are, which is the most that it
can be; their lower bound counts the missing documents as relevant ones that they did not find.
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
from retrieval_eval.stats.arrays import Floats
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
from retrieval_eval.stats.means import mean_estimates
from retrieval_eval.stats.missing import Gaps

Labels: TypeAlias = Mapping[str, Mapping[str, int]]
"""Relevance labels by query_id and doc_id."""

Scores: TypeAlias = Mapping[str, Mapping[str, float]]
"""Scores of retrieved documents by query_id and doc_id."""


class RunCoverage(Struct, frozen=True):
    """What of a run could be scored.

    Attributes:
        missing: queries of the topic set for which the run has no documents; they score 0.
        unasked: those that nobody knows of, since its agent failed; they are in none of its scores.
        unlabelled: queries of the run that have no labels; they are left out.
        unknown: by measure, queries that have no value since labels are missing.
        missing_labels: labels of its documents that were asked for and are not there.
        judged: Judged@k by name, mean over the topics scored.
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
        topics: the queries scored, which are those with a label or a missing one, in the order of the qrels.
        unlabelled: how many of them have no label but missing ones; nobody has a value on these.
        without_relevant: those of them with no label above 0 and none missing; every run scores 0 on them in most
            measures.
        runs, measures: names, in the order given.
        values: per query, shape (runs, measures, topics); NaN where the run's agent failed, or labels are missing.
        bounds: the least and the most that each value can be, whatever the missing labels, shape (2, ...) as values;
            NaN where the run's agent failed.
        gaps: labels that were asked for of each run's documents, and those that are not there.
        counts: measures whose total over the topics is their value (NumRet, NumRel), where others have a mean.
        coverage: by run.
    """

    topics: tuple[str, ...]
    unlabelled: int
    without_relevant: tuple[str, ...]
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    values: Floats
    bounds: Floats
    gaps: Gaps
    counts: frozenset[str]
    coverage: Mapping[str, RunCoverage]

    def of_measure(self, measure: str) -> Floats:
        """Values of one measure, shape (runs, topics)."""
        return self.values[:, self.measures.index(measure)]

    def bounds_of(self, measure: str) -> Floats:
        """The least and the most that these values can be, shape (2, runs, topics)."""
        return self.bounds[:, :, self.measures.index(measure)]

    def value(self, run: str, measure: str) -> float:
        """Mean over the topics scored, or the total of what is counted; NaN without any."""
        place = self.runs.index(run)
        return float(self._over_topics(measure, np.ones((1, len(self.topics))))[0, place])

    def _over_topics(self, measure: str, weights: Floats) -> Floats:
        """The value of each run on resampled topics, shape (samples, topics) to (samples, runs)."""
        own = self.of_measure(measure)
        means = weighted_means(own, weights)
        return np.where(np.isnan(means), np.nan, weights @ np.nan_to_num(own).T) if measure in self.counts else means

    def intervals(self, samples: int, seed: int, clusters: Clusters = ALONE) -> dict[str, dict[str, Estimate]]:
        """Each run's value by measure with its 95 % interval over queries: of means as everywhere, of totals resampled.

        Args:
            samples: of the bootstrap, for totals alone.
            seed: of the samples.
            clusters: of queries that depend on each other.
        """
        unit = units_of(self.topics, clusters)
        found: dict[str, dict[str, Estimate]] = {run: {} for run in self.runs}
        for measure in self.measures:
            own = self.of_measure(measure)
            if measure in self.counts:
                values, drawn = [self.value(run, measure) for run in self.runs], unit_weights(unit, samples, seed)
                of_runs = estimates(values, self._over_topics(measure, drawn), units_with(~np.isnan(own), unit))
            else:
                of_runs = mean_estimates(own, unit)
            for run, estimate in zip(self.runs, of_runs, strict=True):
                found[run][measure] = estimate
        return found


def evaluate(
    labels: Labels,
    runs: Mapping[str, Scores],
    names: Iterable[str],
    unasked: Mapping[str, Collection[str]] | None = None,
    missing: Mapping[str, Collection[str]] | None = None,
) -> Metrics:
    """Score runs by qrels.

    The topic set is the queries with labels: one that a run lacks scores 0 and is counted, a run's query without labels
    is left out and counted. A document without a label counts as not relevant, which Judged@k shows.

    Args:
        labels: relevance labels; a query without any is not of the topic set.
        runs: scores by the run's name. Of documents with the same score trec_eval's measures take the higher doc_id
            first, as it does; those of ir_measures' own (reciprocal rank with a cutoff, Judged@k) take the lower.
        names: of the measures. Judged@k is always in the coverage: the ones asked for, and at the largest cutoff.
        unasked: by run, queries of which nobody knows what it would have found; they are in none of its scores.
        missing: by query, documents whose label was asked for and is not there; see the module.

    Raises:
        InputError: no labels, or a measure is unknown or cannot be computed on a run.
    """
    import ir_measures

    lost = {query_id: frozenset(own) for query_id, own in (missing or {}).items() if own}
    topics = tuple(query_id for query_id in dict.fromkeys([*labels, *lost]) if labels.get(query_id) or query_id in lost)
    if not topics:
        raise InputError("the qrels have no labels")
    measures = parse_measures(names)
    every = measures | judged_at(measures.values())
    known = {query_id: dict(labels.get(query_id, {})) for query_id in topics}
    top = max([1, *(label for own in known.values() for label in own.values())])
    relevant = {query_id: own | dict.fromkeys(lost.get(query_id, ()), top) for query_id, own in known.items()}
    evaluators = [ir_measures.evaluator({*every.values()}, own) for own in ([known, relevant] if lost else [known])]
    shape = (len(runs), len(measures), len(topics))
    tables, ends, coverage = np.zeros(shape), np.zeros((2, *shape)), {}
    counts = np.zeros((2, len(runs), len(topics)), np.int64)
    for number, (run, scores) in enumerate(runs.items()):
        answered = {query_id: dict(scores[query_id]) for query_id in topics if scores.get(query_id)}
        failed = set((unasked or {}).get(run, ()))
        nobody = np.array([query_id in failed for query_id in topics])
        values, *others = (_values(evaluator, answered, topics, every, run) for evaluator in evaluators)
        unknown = {name: _first_are_missing(answered, topics, lost, own) & ~nobody for name, own in every.items()}
        unscored = np.array([not own for own in known.values()])
        for place, (name, measure) in enumerate(measures.items()):
            lowest = values[name] if is_judged(measure) or not others else others[0][name]
            ends[:, number, place] = np.where(unknown[name], [[0.0], [1.0]], [lowest, values[name]])
        ends[:, number, :, nobody] = np.nan
        for name, own in values.items():
            own[nobody | unknown[name] | unscored] = np.nan
        tables[number] = [values[name] for name in measures]
        counts[:, number] = _label_counts(answered, known, lost)
        whole, there = [name for name, own in every.items() if is_judged(own)], answered.keys() | failed
        coverage[run] = RunCoverage(
            missing=tuple(query_id for query_id, own in known.items() if own and query_id not in there),
            unlabelled=tuple(query_id for query_id, own in scores.items() if own and query_id not in known),
            judged={
                name: float(weighted_means(values[name][np.newaxis], np.ones((1, len(topics))))[0, 0]) for name in whole
            },
            unasked=tuple(query_id for query_id in topics if query_id in failed),
            unknown={name: tuple(compress(topics, unknown[name])) for name in measures if unknown[name].any()},
            missing_labels=int(counts[1, number].sum()),
        )
    return Metrics(
        topics=topics,
        unlabelled=sum(not own for own in known.values()),
        without_relevant=tuple(
            query_id for query_id in topics if query_id not in lost and max(known[query_id].values()) <= 0
        ),
        runs=tuple(runs),
        measures=tuple(measures),
        values=tables,
        bounds=ends,
        gaps=Gaps(tuple(runs), topics, *counts),
        counts=frozenset(
            name for name, measure in measures.items() if isinstance(measure.aggregator(), ir_measures.SumAgg)
        ),
        coverage=coverage,
    )


def _label_counts(answered: Scores, known: Labels, lost: Mapping[str, frozenset[str]]) -> NDArray[np.int64]:
    """Labels asked for of a run's documents on each topic, and those that are missing, shape (2, topics)."""
    found = [
        (len(own.keys() & labels.keys()), len(own.keys() & lost.get(query_id, frozenset())))
        for query_id, labels in known.items()
        for own in [answered.get(query_id, {})]
    ]
    there, gone = np.array(found, np.int64).T
    return np.array([there + gone, gone])


def _first_are_missing(
    answered: Scores, topics: tuple[str, ...], lost: Mapping[str, Collection[str]], measure: Measure
) -> NDArray[np.bool_]:
    """On which topics one of the documents that a measure looks at lacks its label.

    Those with the score of the last one are among them. How much is judged is known anyway.
    """
    found = np.zeros(len(topics), np.bool_)
    for place, query_id in enumerate(topics if lost and not is_judged(measure) else ()):
        scores = answered.get(query_id, {})
        if query_id in lost and scores:
            ordered = sorted(scores.values(), reverse=True)
            last = ordered[min(measure.params.get("cutoff", len(ordered)), len(ordered)) - 1]
            found[place] = any(scores.get(doc_id, -math.inf) >= last for doc_id in lost[query_id])
    return found


def _values(
    evaluator: Measure, answered: Scores, topics: tuple[str, ...], measures: Mapping[str, Measure], run: str
) -> dict[str, Floats]:
    places = {query_id: place for place, query_id in enumerate(topics)}
    found = {measure: np.zeros(len(topics)) for measure in measures.values()}
    try:
        for metric in evaluator.iter_calc(answered):
            found[metric.measure][places[metric.query_id]] = metric.value
    except (ArithmeticError, CalledProcessError) as error:  # ERR@k is gdeval's, which takes numbered queries only
        raise InputError(f"{run}: one of {', '.join(measures)} cannot be computed on this run ({error})") from error
    return {name: found[measure] for name, measure in measures.items()}


Measure: TypeAlias = Any
"""A measure of ir_measures, which has no types."""

DEFAULT_MEASURES = ("nDCG@10", "RR(rel=1)@5", "RR(rel=2)@5", "AP", "P@5", "Judged@10")
"""Reciprocal rank counts a document from "somewhat" (1) and from "very" relevant (2) on."""

_EXAMPLES = "measures are written as nDCG@10, RR(rel=2)@5, P@5, AP, Rprec, R@100"

_DEEPEST = 1_000_000
"""A cutoff beyond this is a slip; the library would take memory for it."""


def parse_measures(names: Iterable[str]) -> dict[str, Measure]:
    """The measures of these names, in the order given, each name once.

    Raises:
        InputError: a name is no measure, has a parameter that the measure does not take, or no installed library
            computes it.
    """
    return {name: _parsed(name) for name in (given.strip() for given in names)}


def default_measures(highest: int) -> list[str]:
    """Measures for labels from 0 to ``highest``; reciprocal rank from 1 on, and from the upper half of the scale on.

    On three labels that is "somewhat" and "very", on UMBRELA's four "related" and "partly answers", TREC's own line.
    """
    thresholds = dict.fromkeys((1, highest // 2 + 1))
    return ["nDCG@10", *(f"RR(rel={threshold})@5" for threshold in thresholds), "Judged@10"]


def is_judged(measure: Measure) -> bool:
    """Whether the measure says how many documents have a label, and nothing of how good they are."""
    return bool(measure.NAME == "Judged")


def judged_at(measures: Iterable[Measure]) -> dict[str, Measure]:
    """Judged@k at the largest cutoff of the measures; of the whole ranking where none has a cutoff."""
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
        raise InputError(f"{name!r} is not how a measure is written; {_EXAMPLES}") from None
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
    """The measure written as ``Name(key=value)@cutoff``; the library's own reader needs what Python 3.14 has not."""
    import ir_measures

    node: ast.expr = ast.parse(name, mode="eval").body
    given, at = {}, None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        at, node = ast.literal_eval(node.right), node.left
    if isinstance(node, ast.Call):
        if node.args:
            raise ValueError("parameters have names")
        given = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
        node = node.func
    if not isinstance(node, ast.Name):
        raise ValueError("no name")
    if node.id not in ir_measures.measures.registry:
        raise NameError(node.id)
    measure = ir_measures.measures.registry[node.id]
    return measure(**given if at is None else {**given, measure.AT_PARAM: at})


def _check_parameters(name: str, measure: Measure) -> None:
    known = measure.SUPPORTED_PARAMS
    for parameter, value in measure.params.items():
        if parameter not in known:
            raise InputError(f"{name}: {measure.NAME} takes no {parameter!r}, only {', '.join(known) or 'its name'}")
        if not known[parameter].validate(value):
            raise InputError(f"{name}: {parameter} cannot be {value!r}")
    if missing := [parameter for parameter, info in known.items() if info.required and parameter not in measure.params]:
        raise InputError(f"{name}: {measure.NAME} needs {' and '.join(missing)}, as in {measure.NAME}({missing[0]}=10)")
    cutoff = measure.params.get("cutoff", 1)
    if isinstance(cutoff, bool) or not 1 <= cutoff <= _DEEPEST:
        raise InputError(f"{name}: the cutoff must be a whole number from 1 to {_DEEPEST:,}")


def _hint(name: str) -> str:
    """What may be meant: a name of trec_eval's (map, ndcg_cut_10), or one that is nearly right."""
    import ir_measures
    from pytrec_eval import supported_nicknames

    meant: list[str] = []
    if name not in supported_nicknames:  # the library would print what it skips of these
        with contextlib.suppress(ValueError):
            meant = [str(measure) for measure in ir_measures.parse_trec_measure(name)]
    base = name.partition("@")[0].partition("(")[0]
    folded = {measure.casefold(): measure for measure in reversed(ir_measures.measures.registry)}
    near = difflib.get_close_matches(base.casefold(), folded, n=3)
    meant = meant[:3] or [name.replace(base, folded[found], 1) for found in near]
    return f"is it {' or '.join(meant)}?" if meant else _EXAMPLES
