"""Scores of retrieved and cited documents, by judges' and by people's labels, and the agreement of these labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from arena.config.judging import CriteriaSection, GameDocumentsSection
from arena.config.settings import StoredSettings
from arena.data.dataset import SHARED, Dataset
from arena.results.outcomes import labels_of
from arena.store import Result, Store, Wanted
from arena.store.outcomes import combined, document_labels, of_each_judge
from judges.errors import InputError
from judges.prompts.tasks import best_references, references
from judges.types import AnnotatedDocument, Judgment, Retrieved, conversations, details_of, label_of, repeat_of
from retrieval_eval.scores.metrics import (
    Labels,
    Metrics,
    default_measures,
    evaluate,
    is_judged,
    judged_at,
    parse_measures,
)

if TYPE_CHECKING:
    from retrieval_eval.scores.citations import CitationScores
    from retrieval_eval.scores.run_comparison import RankingAgreement
    from retrieval_eval.stats.agreement import LabelAgreement, RaterAgreement


LabelSource: TypeAlias = Literal["judge", "people"]

Results: TypeAlias = Mapping[tuple[str, str], Result | None]


def documents_shown(
    query_id: str, agents: Collection[str], data: Dataset, labels: Results, settings: StoredSettings, *, alone: bool
) -> list[str]:
    """Ids of the documents that judges read along with the answers of these agents, in the order shown.

    ``RelevanceLabels`` makes the same choice during a run.

    Args:
        query_id: the query.
        agents: the agents that gave the answers.
        data: the dataset with the query's documents.
        labels: the results of the relevance judges, by query and document.
        settings: the tournament's settings.
        alone: true if each answer was graded alone, by criteria; false if two answers were compared.
    """
    section = settings.criteria if alone else settings.pairwise
    if section is None:
        return []  # imported verdicts do not record what their judge saw
    own = isinstance(section, CriteriaSection) and section.own_documents
    documents = section.documents
    of_agents = own or (isinstance(documents, GameDocumentsSection) and documents.pool == "pair")
    ranks: dict[str, int] = {}
    for entry in data.retrieved.get(query_id, ()):
        in_depth = settings.depth is None or entry.rank <= settings.depth
        if in_depth and (not of_agents or entry.agent == SHARED or entry.agent in agents):
            ranks[entry.doc_id] = min(entry.rank, ranks.get(entry.doc_id, entry.rank))
    if own:
        return sorted(ranks, key=lambda doc_id: (ranks[doc_id], doc_id))
    annotated = []
    for doc_id in ranks:
        label = labels.get((query_id, doc_id))
        if settings.retrieval is None or isinstance(label, Judgment):
            known, reason = (label_of(label.outcome), label.reason) if isinstance(label, Judgment) else (None, "")
            annotated.append(AnnotatedDocument(data.documents[doc_id], known, reason))
    if isinstance(documents, GameDocumentsSection) and documents.pool == "query":
        annotated = best_references(annotated, documents.options(), ranks, documents.pool_tokens)
    return [entry.document.doc_id for entry in references(annotated, documents.options())]


class LabelDistribution(Struct, frozen=True):
    """Number of documents per relevance label, and of documents without one, which do not count in the mean.

    Attributes:
        counts: number of documents by label, ascending; labels without documents are absent.
        failed: number of documents whose judgment failed.
        left: number of documents that have not been judged yet.
    """

    counts: Mapping[int, int]
    failed: int
    left: int

    @property
    def mean(self) -> float | None:
        """The mean label (seed 003, section 3) without failed judgments, which the published code counts as -1."""
        total = sum(label * number for label, number in self.counts.items())
        return total / self.judged if self.judged else None

    @property
    def judged(self) -> int:
        return sum(self.counts.values())

    @property
    def wanted(self) -> int:
        return self.judged + self.failed + self.left

    def json(self) -> dict[str, float | None]:
        coverage = self.judged / self.wanted if self.wanted else 1.0
        return {"mean": self.mean, "judged": self.judged, "of": self.wanted, "coverage": coverage}


def label_distribution(results: Iterable[Result | None]) -> LabelDistribution:
    """Count the documents with each label, and the documents without a label."""
    results = list(results)
    counts = Counter(label_of(result.outcome) for result in results if isinstance(result, Judgment))
    left = sum(result is None for result in results)
    return LabelDistribution(dict(sorted(counts.items())), len(results) - left - counts.total(), left)


class JudgeLabels(Struct, frozen=True):
    distribution: LabelDistribution
    agreement: LabelAgreement | None


class RetrievalBoard(Struct, frozen=True):
    """Retrieval scores of a tournament.

    Attributes:
        measures: names of the measures in ir_measures' notation, among them at least one Judged@k.
        scores: retrieval scores by source of the labels; empty without labels, or if no agent retrieved documents.
        distributions: distribution of the judges' labels over each agent's documents.
        without_documents: agents that gave answers but retrieved no documents.
        between_judges: agreement between the judges; ``None`` if there is only one.
        agreement: agreement of the judges' labels with people's, if both exist.
        rankings: agreement of the rankings of agents by judges' and by people's labels, by measure.
    """

    measures: tuple[str, ...]
    queries: int
    scores: Mapping[LabelSource, Metrics]
    distributions: Mapping[str, LabelDistribution]
    without_documents: tuple[str, ...]
    judges: Mapping[str, JudgeLabels]
    between_judges: RaterAgreement | None
    agreement: LabelAgreement | None
    rankings: Mapping[str, RankingAgreement]

    @property
    def lacking(self) -> bool:
        """Whether some query has no score because its documents lack labels."""
        return any(coverage.unknown for scores in self.scores.values() for coverage in scores.coverage.values())

    @property
    def failing(self) -> bool:
        """Whether an agent did not answer a query on which other agents are scored."""
        return any(coverage.unasked for scores in self.scores.values() for coverage in scores.coverage.values())


def retrieval_board(
    data: Dataset, wanted: Iterable[tuple[Wanted, Result | None]], settings: StoredSettings
) -> RetrievalBoard | None:
    """Score the documents that the agents of a tournament retrieved; ``None`` if there are no labels.

    An agent's documents count down to rank ``retrieval.depth``. Queries without any label are left out. If an agent
    that the tournament asks did not answer a query, its documents for that query count as unknown. ``wanted`` has all
    relevance judgments of the plan, in its order, each with its result, if there is one.
    """
    from retrieval_eval.data.runs import runs_of  # imported late, because a cached board does not need it

    relevance_outcomes = list(wanted)
    by_people = labels_of_documents(data)
    if not relevance_outcomes and not by_people:
        return None
    combinations = settings.combinations
    results = document_labels(relevance_outcomes, combinations, settings.across_judges)
    judged = of_each_judge(combined(relevance_outcomes, combinations))
    by_judge = {judge: labels_in(data, judge_results) for judge, judge_results in judged.items()}
    missing: dict[str, set[str]] = {}
    for (query_id, doc_id), result in results.items():
        if not isinstance(result, Judgment):
            missing.setdefault(query_id, set()).add(doc_id)
    labels: dict[LabelSource, Labels] = {"judge": labels_in(data, results), "people": by_people}
    labels = {
        source: source_labels
        for source, source_labels in labels.items()
        if source_labels or (source == "judge" and missing)
    }
    entries = retrieved_by_agents(data, settings.depth)
    runs = {run.name: run.scores() for run in runs_of(entries)}
    names = _measures(settings, labels.values())
    failed: Mapping[str, Collection[str]] = {}
    if settings.agents:
        from arena.results.replies import unanswered

        failed = unanswered(data, settings)
    draws = {"samples": settings.ratings.bootstrap.samples, "seed": settings.ratings.seed}
    clusters = conversations(data.queries.values())
    metrics = {
        source: evaluate(
            source_labels, runs, names, failed, missing if source == "judge" else None, **draws, clusters=clusters
        )
        for source, source_labels in (labels.items() if runs else ())
    }
    people = labels.get("people", {})
    by_agent: dict[str, list[Result | None]] = {}
    for entry in entries if relevance_outcomes else ():
        by_agent.setdefault(repeat_of(entry.agent)[0], []).append(results.get((entry.query_id, entry.doc_id)))
    if people or len(by_judge) > 1:  # otherwise there is nothing to compare
        from retrieval_eval.stats.agreement import label_agreement, rater_agreement
    return RetrievalBoard(
        measures=tuple(names),
        queries=len(data.queries),
        scores=metrics,
        distributions={agent: label_distribution(agent_results) for agent, agent_results in sorted(by_agent.items())},
        without_documents=tuple(agent for agent in data.agents if agent not in runs),
        judges={
            judge: JudgeLabels(
                label_distribution(judged[judge].values()),
                label_agreement(people, judge_labels, clusters=clusters) if people else None,
            )
            for judge, judge_labels in by_judge.items()
        },
        between_judges=rater_agreement(list(by_judge.values()), clusters=clusters) if len(by_judge) > 1 else None,
        agreement=label_agreement(people, labels["judge"], clusters=clusters)
        if len(labels) > 1 and labels["judge"]
        else None,
        rankings=_rankings(metrics, draws),
    )


def check_measures(names: Iterable[str], data: Dataset) -> None:
    """Check that the measures can be computed for the dataset's queries; some measures need numbers as query ids."""
    try:
        labels = {query_id: {"document": 1} for query_id in data.queries}
        evaluate(labels, {"an agent's run": {query_id: {"document": 1.0} for query_id in data.queries}}, names)
    except InputError as error:
        raise InputError(f"retrieval.measures: {error}") from error


def labels_in(data: Dataset, results: Results) -> dict[str, dict[str, int]]:
    """The labels in relevance judgments, by query_id and doc_id, in the order of the queries; no failed judgments."""
    labels: dict[str, dict[str, int]] = {query_id: {} for query_id in data.queries}
    for (query_id, doc_id), result in results.items():
        if isinstance(result, Judgment):
            labels[query_id][doc_id] = label_of(result.outcome)
    return {query_id: by_doc for query_id, by_doc in labels.items() if by_doc}


def retrieved_by_agents(data: Dataset, depth: int | None) -> list[Retrieved]:
    return [
        entry
        for entries in data.retrieved.values()
        for entry in entries
        if entry.agent != SHARED and (depth is None or entry.rank <= depth)
    ]


def _measures(settings: StoredSettings, labels: Iterable[Labels]) -> list[str]:
    names = None if settings.retrieval is None else settings.retrieval.measures
    if names is None:
        values = (label for source_labels in labels for by_doc in source_labels.values() for label in by_doc.values())
        names = default_measures(max(values, default=1))
    parsed = parse_measures(names)
    if not any(map(is_judged, parsed.values())):
        parsed |= judged_at(parsed.values())
    return list(parsed)


def _rankings(metrics: Mapping[LabelSource, Metrics], draws: Mapping[str, int]) -> dict[str, RankingAgreement]:
    if len(metrics) < 2 or len(metrics["people"].runs) < 2:
        return {}
    from retrieval_eval.scores.run_comparison import ranking_agreement

    return {
        name: ranking_agreement(metrics["people"], metrics["judge"], name, **draws)
        for name, measure in parse_measures(metrics["people"].measures).items()
        if not is_judged(measure)
    }


RELEVANT = 1
"""The lowest label by which a document counts as relevant, unless the settings for nuggets name another."""


class CitationBoard(Struct, frozen=True):
    """Citation scores of a tournament's agents.

    Attributes:
        relevant: the lowest label by which a document counts as relevant.
    """

    relevant: int
    scores: Mapping[LabelSource, Mapping[str, CitationScores]]


def citation_board(
    data: Dataset, wanted: Iterable[tuple[Wanted, Result | None]], settings: StoredSettings
) -> CitationBoard | None:
    """Score the documents that the answers cite; ``None`` if no answer cites a labelled document."""
    from retrieval_eval.scores.citations import citation_scores, cited_documents  # imported late, as above

    results = document_labels(wanted, settings.combinations, settings.across_judges)
    labels: dict[LabelSource, Mapping[str, Mapping[str, int]]] = {
        "judge": labels_in(data, results),
        "people": data.qrels,
    }
    clusters = conversations(data.queries.values())
    create = settings.nuggets and settings.nuggets.create
    relevant = create.from_label if create else RELEVANT
    rankings, scores = data.given, {}
    for source, source_labels in labels.items():
        if source_labels:
            cited = cited_documents(data.answers.values(), rankings, source_labels)
            agent_scores = citation_scores(cited, source_labels, relevant=relevant, clusters=clusters)
            if any(score.labelled for score in agent_scores.values()):
                scores[source] = agent_scores
    return CitationBoard(relevant, scores) if scores else None


def labels_of_documents(data: Dataset) -> dict[str, Mapping[str, int]]:
    """People's labels of documents, without labels of passages of answers, which only exams use.

    No agent could have retrieved a passage of an answer, so it must not be part of an ideal ranking.
    """
    labels_by_query = {
        query_id: {doc_id: label for doc_id, label in labels.items() if not _is_of_an_answer(data, doc_id)}
        for query_id, labels in data.qrels.items()
    }
    return {query_id: labels for query_id, labels in labels_by_query.items() if labels}


def _is_of_an_answer(data: Dataset, doc_id: str) -> bool:
    from retrieval_eval.exam.grades import origin_of

    origin = origin_of(doc_id)
    return origin is not None and origin[:2] in data.answers and doc_id not in data.documents


class QueryLabels(Struct, frozen=True):
    """Relevance labels of one query's documents.

    Attributes:
        label: distribution of the labels of the query's documents.
        parts: means of further numbers in the judges' replies, by name, such as the match score of the prompt
            ``search_quality``.
    """

    label: LabelDistribution
    parts: Mapping[str, float]


def query_labels(store: Store, tournament: str) -> dict[str, QueryLabels]:
    """Relevance labels of each query with documents to label, in the order of the queries."""
    by_query: dict[str, list[Result | None]] = {}
    for (query_id, _), result in labels_of(store, tournament).items():
        by_query.setdefault(query_id, []).append(result)
    labels_by_query = {}
    for query_id in store.queries(tournament):
        if query_id in by_query:
            results = by_query[query_id]
            details = [details_of(result.outcome) for result in results if isinstance(result, Judgment)]
            numbers: dict[str, list[float]] = {}
            for detail in details:
                for name, value in detail.items():
                    if not isinstance(value, str):
                        numbers.setdefault(name, []).append(value)
            parts = {name: fmean(values) for name, values in numbers.items()}
            labels_by_query[query_id] = QueryLabels(label_distribution(results), parts)
    return labels_by_query
