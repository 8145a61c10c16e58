"""What each agent retrieved and cites is worth, by the judges' labels and by people's, and how far the two agree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from arena.config.settings import StoredSettings
from arena.data.dataset import SHARED, Dataset
from arena.results import samples
from arena.store import Result, Store, Wanted
from arena.store.outcomes import combined, document_labels, of_each_judge
from judges.errors import InputError
from judges.types import Judgment, Retrieved, conversations, details_of, label_of
from retrieval_eval.scores.metrics import (
    Labels,
    Metrics,
    default_measures,
    evaluate,
    is_judged,
    judged_at,
    parse_measures,
)
from retrieval_eval.scores.relevance import (
    LabelDistribution,
    MeanLabel,
    label_distribution,
    mean_label,
    results_by_agent,
    results_by_query,
)
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from retrieval_eval.scores.citations import CitationScores
    from retrieval_eval.scores.run_comparison import RankingAgreement
    from retrieval_eval.stats.agreement import LabelAgreement, RaterAgreement


LabelSource: TypeAlias = Literal["judge", "people"]
"""Whose labels: of all relevance judges together, or people's."""

Results: TypeAlias = Mapping[tuple[str, str], Result | None]
"""By (query_id, doc_id): a relevance judgment, a failure, or ``None`` where nothing is known yet."""


class LabelScores(Struct, frozen=True):
    """All agents that retrieved documents by one set of labels.

    Attributes:
        metrics: of every query with labels; its runs are the agents.
        labels: how many there are.
        measures: by agent and name, over the queries.
    """

    metrics: Metrics
    labels: int
    measures: Mapping[str, Mapping[str, Estimate]]


class JudgeLabels(Struct, frozen=True):
    """One relevance judge's labels: how they are distributed, and how far they agree with people's where known."""

    distribution: LabelDistribution
    agreement: LabelAgreement | None


class RetrievalBoard(Struct, frozen=True):
    """Retrieval in a tournament.

    Attributes:
        measures: by ir_measures' names; at least one is Judged.
        queries: of the tournament.
        scores: by whose labels; nothing is there without labels, or without an agent that retrieved documents.
        mean_labels: by agent, over its documents that the judges labelled; a failed one is left out and counted.
        distributions: by agent, of the judges' labels of its documents.
        without_documents: agents that came with answers alone.
        judges: each relevance judge by itself.
        between_judges: with several judges, how far they agree.
        agreement: of the judges' labels with people's, where both are there.
        rankings: by measure, whether both rank the agents alike.
    """

    measures: tuple[str, ...]
    queries: int
    scores: Mapping[LabelSource, LabelScores]
    mean_labels: Mapping[str, MeanLabel]
    distributions: Mapping[str, LabelDistribution]
    without_documents: tuple[str, ...]
    judges: Mapping[str, JudgeLabels]
    between_judges: RaterAgreement | None
    agreement: LabelAgreement | None
    rankings: Mapping[str, RankingAgreement]

    @property
    def lacking(self) -> bool:
        """Whether some query has no score because labels are missing."""
        return any(own.unknown for scores in self.scores.values() for own in scores.metrics.coverage.values())

    @property
    def failing(self) -> bool:
        """Whether an agent failed on a query that others are scored on."""
        return any(own.unasked for scores in self.scores.values() for own in scores.metrics.coverage.values())


def retrieval_board(
    data: Dataset, wanted: Iterable[tuple[Wanted, Result | None]], settings: StoredSettings
) -> RetrievalBoard | None:
    """Score what the agents of a tournament retrieved; ``None`` where there are no labels to score it by.

    An agent's documents count down to ``retrieval.depth``, in its own order. Queries without any label are no topics.
    Where an agent that the tournament asks itself gave no answer, nobody knows what it would have retrieved. ``wanted``
    are all relevance wants with their results, in the order of the plan.

    Raises:
        InputError: a measure cannot be computed.
    """
    from retrieval_eval.data.runs import runs_of  # late, as a kept board is read without it

    each = list(wanted)
    by_people = labels_of_documents(data)
    if not each and not by_people:
        return None
    how = settings.combinations
    results = document_labels(each, how, settings.across_judges)
    judged = of_each_judge(combined(each, how))
    by_judge = {judge: labels_in(data, own) for judge, own in judged.items()}
    missing: dict[str, set[str]] = {}
    for (query_id, doc_id), result in results.items():
        if not isinstance(result, Judgment):
            missing.setdefault(query_id, set()).add(doc_id)
    labels: dict[LabelSource, Labels] = {"judge": labels_in(data, results), "people": by_people}
    labels = {source: own for source, own in labels.items() if own or (source == "judge" and missing)}
    entries = retrieved_by_agents(data, settings.depth)
    runs = {run.name: run.scores() for run in runs_of(entries)}
    names = _measures(settings, labels.values())
    failed = _unanswered(data, settings) if settings.agents else {}
    metrics = {
        source: evaluate(own, runs, names, failed, missing if source == "judge" else None)
        for source, own in (labels.items() if runs else ())
    }
    resampling = _resampling(settings, data)
    clusters = resampling["clusters"]
    people = labels.get("people", {})
    by_agent = results_by_agent(results, entries) if each else {}
    if people or len(by_judge) > 1:  # else there is nothing to agree
        from retrieval_eval.stats.agreement import label_agreement, rater_agreement
    return RetrievalBoard(
        measures=tuple(names),
        queries=len(data.queries),
        scores={
            source: LabelScores(found, sum(map(len, labels[source].values())), found.intervals(**resampling))
            for source, found in metrics.items()
        },
        mean_labels={agent: mean_label(own) for agent, own in sorted(by_agent.items())},
        distributions={agent: label_distribution(own) for agent, own in sorted(by_agent.items())},
        without_documents=tuple(agent for agent in data.agents if agent not in runs),
        judges={
            judge: JudgeLabels(
                label_distribution(judged[judge].values()),
                label_agreement(people, own, clusters=clusters) if people else None,
            )
            for judge, own in by_judge.items()
        },
        between_judges=rater_agreement(list(by_judge.values()), clusters=clusters) if len(by_judge) > 1 else None,
        agreement=label_agreement(people, labels["judge"], clusters=clusters)
        if len(labels) > 1 and labels["judge"]
        else None,
        rankings=_rankings(metrics, resampling),
    )


def _unanswered(data: Dataset, settings: StoredSettings) -> Mapping[str, Collection[str]]:
    from arena.results.replies import unanswered

    return unanswered(data, settings)


def check_measures(names: Iterable[str], data: Dataset) -> None:
    """See beforehand whether measures can be computed on these queries: some take numbered ones only.

    Raises:
        InputError: one cannot.
    """
    try:
        labels = {query_id: {"document": 1} for query_id in data.queries}
        evaluate(labels, {"an agent's run": {query_id: {"document": 1.0} for query_id in data.queries}}, names)
    except InputError as error:
        raise InputError(f"retrieval.measures: {error}") from error


def labels_in(data: Dataset, results: Results) -> dict[str, dict[str, int]]:
    """The labels among relevance results by query_id and doc_id, in the order of the queries; failures are none."""
    labels: dict[str, dict[str, int]] = {query_id: {} for query_id in data.queries}
    for (query_id, doc_id), result in results.items():
        if isinstance(result, Judgment):
            labels[query_id][doc_id] = label_of(result.outcome)
    return {query_id: own for query_id, own in labels.items() if own}


def retrieved_by_agents(data: Dataset, depth: int | None) -> list[Retrieved]:
    """What agents retrieved down to a rank; documents given to all of them alike are nobody's."""
    return [
        entry
        for entries in data.retrieved.values()
        for entry in entries
        if entry.agent != SHARED and (depth is None or entry.rank <= depth)
    ]


def _measures(settings: StoredSettings, labels: Iterable[Labels]) -> list[str]:
    """The ones asked for, with Judged@k; by the highest label where the tournament was begun without any."""
    named = None if settings.retrieval is None else settings.retrieval.measures
    if named is None:
        given = (label for own in labels for by_doc in own.values() for label in by_doc.values())
        named = default_measures(max(given, default=1))
    parsed = parse_measures(named)
    if not any(map(is_judged, parsed.values())):
        parsed |= judged_at(parsed.values())
    return list(parsed)


def _resampling(settings: StoredSettings, data: Dataset) -> dict[str, Any]:
    clusters = conversations(data.queries.values())
    return {"samples": settings.ratings.bootstrap.samples, "seed": settings.ratings.seed, "clusters": clusters}


def _rankings(metrics: Mapping[LabelSource, Metrics], resampling: Mapping[str, Any]) -> dict[str, RankingAgreement]:
    if len(metrics) < 2 or len(metrics["people"].runs) < 2:
        return {}
    from retrieval_eval.scores.run_comparison import ranking_agreement

    return {
        name: ranking_agreement(metrics["people"], metrics["judge"], name, **resampling)
        for name, measure in parse_measures(metrics["people"].measures).items()
        if not is_judged(measure)
    }


RELEVANT = 1
"""The lowest label that counts as relevant where no nuggets say from which label on documents are read."""


class CitationBoard(Struct, frozen=True):
    """Citations of a tournament's agents.

    Attributes:
        relevant: the lowest label that counts as relevant.
        scores: by whose labels, and by agent.
    """

    relevant: int
    scores: Mapping[LabelSource, Mapping[str, CitationScores]]


def citation_board(
    data: Dataset, wanted: Iterable[tuple[Wanted, Result | None]], settings: StoredSettings
) -> CitationBoard | None:
    """Score what the answers cite; ``None`` where no answer cites a document that has a label."""
    from retrieval_eval.scores.citations import citation_scores, cited_documents  # late, as above

    results = document_labels(wanted, settings.combinations, settings.across_judges)
    labels: dict[LabelSource, Mapping[str, Mapping[str, int]]] = {
        "judge": labels_in(data, results),
        "people": data.qrels,
    }
    clusters = conversations(data.queries.values())
    create = settings.nuggets and settings.nuggets.create
    relevant = create.from_label if create else RELEVANT
    rankings, scores = data.given, {}
    for source, own in labels.items():
        if own:
            cited = cited_documents(data.answers.values(), rankings, own)
            found = citation_scores(cited, own, relevant=relevant, clusters=clusters)
            if any(agent.labelled for agent in found.values()):
                scores[source] = found
    return CitationBoard(relevant, scores) if scores else None


def labels_of_documents(data: Dataset) -> dict[str, Mapping[str, int]]:
    """People's labels of documents, without those of passages of the answers, which an exam is held against.

    Nobody could have retrieved such a passage, so it belongs into no ideal ranking.
    """
    found = {
        query_id: {doc_id: label for doc_id, label in labels.items() if not _is_of_an_answer(data, doc_id)}
        for query_id, labels in data.qrels.items()
    }
    return {query_id: labels for query_id, labels in found.items() if labels}


def _is_of_an_answer(data: Dataset, doc_id: str) -> bool:
    from retrieval_eval.exam.passages import origin_of

    origin = origin_of(doc_id)
    return origin is not None and origin[:2] in data.answers and doc_id not in data.documents


class QueryLabels(Struct, frozen=True):
    """One query's documents, judged one by one.

    Attributes:
        label: the mean, with how many documents it is of. A failed document is in no mean.
        parts: means of what else the prompt asked for in numbers, such as the match of a ``search_quality`` label.
    """

    label: MeanLabel
    parts: Mapping[str, float]


def query_labels(store: Store, tournament: str) -> dict[str, QueryLabels]:
    """By query_id, in the order of the queries; those without a document to label are left out.

    Raises:
        InputError: no such tournament.
    """
    by_query = results_by_query(samples.labels_of(store, tournament))
    found = {}
    for query_id in store.queries(tournament):
        if query_id in by_query:
            results = by_query[query_id]
            details = [details_of(result.outcome) for result in results if isinstance(result, Judgment)]
            numbers: dict[str, list[float]] = {}
            for one in details:
                for name, value in one.items():
                    if not isinstance(value, str):
                        numbers.setdefault(name, []).append(value)
            parts = {name: fmean(values) for name, values in numbers.items()}
            found[query_id] = QueryLabels(mean_label(results), parts)
    return found
