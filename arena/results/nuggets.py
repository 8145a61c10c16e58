"""Reads a tournament's nuggets from its store: nugget banks, their assignments to answers and documents, and scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.judging import NuggetAssignmentSection, NuggetsSection
from arena.data.dataset import Dataset
from arena.results.outcomes import OutcomesOf, outcomes_of
from arena.stages.nuggets import QueryNuggets, depth_of, is_told_of, retrieved_documents
from arena.store import Store
from judges.errors import to_be_asked
from judges.types import NUGGET_TASKS, Query, Task, conversations
from judges.writing import count_words
from retrieval_eval.nuggets.scores import NuggetBoard, ScoreTable, score_table
from retrieval_eval.nuggets.types import Assignment, Importance, NuggetBank, Support, make_nuggets
from retrieval_eval.stats.bootstrap import Clusters

NO_DOCUMENT = "no document with a label that counts"
NOT_IN_BANK = "no nuggets in the bank"


class NuggetResults(Struct, frozen=True):
    """The nuggets of a tournament and their assignments to texts, as far as judges have made them.

    Attributes:
        banks: finished nugget banks by query id, in the order of the queries in the data.
        without: by id of each query without a finished bank, the reason why it has none.
        assignments: the nuggets assigned to each answer to a query with a bank; empty if answers are not assigned. A
            label that failed or does not exist yet is ``None``.
        passages: the nuggets assigned to each document, by (query_id, doc_id); empty if documents are not assigned.
        retrieved: for each query and agent, the nuggets assigned to the agent's top documents, combined: each nugget
            has its best label over these documents.
        depth: number of top documents of each agent that nuggets are assigned to.
    """

    banks: Mapping[str, NuggetBank]
    without: Mapping[str, str]
    assignments: Sequence[Assignment]
    passages: Mapping[tuple[str, str], Assignment]
    retrieved: Sequence[Assignment]
    depth: int
    clusters: Clusters = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        return all(reason in (NO_DOCUMENT, NOT_IN_BANK) for reason in self.without.values())


def nugget_results(store: Store, tournament: str, outcomes: OutcomesOf | None = None) -> NuggetResults | None:
    """Rebuild the nuggets of a tournament from stored judgments; ``None`` if it has no section ``nuggets``."""
    section = store.settings(tournament).nuggets
    if section is None:
        return None
    data, outcomes = store.dataset(tournament), outcomes or outcomes_of(store, tournament)
    made = replayed(section, outcomes)
    without = _without(made, section, data.queries, outcomes)
    banks = {
        query_id: _bank(query, made[query_id].settled)
        for query_id, query in data.queries.items()
        if query_id not in without
    }

    def assigned(task: Task, name: str, query_id: str, text: str) -> Assignment:
        labels, bank = made[query_id].labels.get((task, name), {}), banks[query_id]
        by_place = tuple(labels.get(place) for place in range(1, len(bank.nuggets) + 1))
        return Assignment(query_id, name, bank.nuggets, by_place, count_words(text), text, bank.query)

    answers = data.answers.items() if "answers" in section.assign.texts else ()
    documents = retrieved_documents(data, section.assign) if "documents" in section.assign.texts else {}
    passages = {
        (query_id, doc_id): assigned(Task.PASSAGE_ASSIGNMENT, doc_id, query_id, data.documents[doc_id].text)
        for query_id, doc_ids in documents.items()
        if query_id in banks and not is_told_of(made[query_id].texts)
        for doc_id in doc_ids
    }
    return NuggetResults(
        banks,
        without,
        [assigned(Task.ASSIGNMENT, agent, query, answer.text) for (query, agent), answer in answers if query in banks],
        passages,
        _recalled(data, section.assign, banks, passages) if passages else [],
        depth_of(section.assign),
        conversations(data.queries.values()),
    )


def replayed(section: NuggetsSection, outcomes: OutcomesOf) -> dict[str, QueryNuggets]:
    """The nuggets of each query with their importance and assignments, by query id, rebuilt from stored judgments."""
    made: dict[str, QueryNuggets] = {}
    for task in NUGGET_TASKS:
        for want, result in outcomes(task):
            made.setdefault(want.query_id, QueryNuggets(section)).take(want, result)
    return made


def _without(
    made: Mapping[str, QueryNuggets],
    section: NuggetsSection,
    queries: Iterable[str],
    outcomes: OutcomesOf,
    *,
    rated: bool = True,
) -> dict[str, str]:
    """By id of each query without finished nuggets, the reason; without ``rated``, nuggets need no importance."""
    labels = outcomes(Task.RELEVANCE) if section.create is not None else ()
    unlabelled = {want.query_id for want, result in labels if to_be_asked(result)}
    none_wanted = NOT_IN_BANK if section.create is None else NO_DOCUMENT
    reasons = {
        query_id: made[query_id].lacking(rated=rated)
        if query_id in made
        else "some of its documents have no label yet"
        if query_id in unlabelled
        else none_wanted
        for query_id in queries
    }
    return {query_id: reason for query_id, reason in reasons.items() if reason is not None}


def _bank(query: Query, nuggets: Sequence[tuple[str, Importance | None]]) -> NuggetBank:
    texts, labels = [text for text, _ in nuggets], [label for _, label in nuggets]
    return NuggetBank(query.query_id, query.text, make_nuggets(query.query_id, texts, labels))


def unedited_banks(store: Store, tournament: str) -> tuple[list[NuggetBank], dict[str, str]]:
    """Nuggets by query, without importance, for people to edit; and by query without nuggets, the reason."""
    section, queries = nuggets_section(store, tournament), store.queries(tournament)
    outcomes = outcomes_of(store, tournament)
    made = replayed(section, outcomes)
    without = _without(made, section, queries, outcomes, rated=False)
    banks = [
        _bank(queries[name], [(text, None) for text in made[name].texts]) for name in queries if name not in without
    ]
    return banks, without


def repetitions(store: Store, tournament: str) -> dict[str, list[str]]:
    made = replayed(nuggets_section(store, tournament), outcomes_of(store, tournament))
    return {query_id: each.repetitions for query_id, each in made.items() if each.repetitions}


def nuggets_section(store: Store, tournament: str) -> NuggetsSection:
    section = store.settings(tournament).nuggets
    assert section is not None
    return section


def _recalled(
    data: Dataset,
    section: NuggetAssignmentSection,
    banks: Mapping[str, NuggetBank],
    passages: Mapping[tuple[str, str], Assignment],
) -> list[Assignment]:
    """Combine the assignments of each agent's top documents: a nugget gets its best label over these documents."""
    recalls = []
    for (query_id, agent), ranking in data.rankings.items():
        if query_id in banks and not is_told_of([nugget.text for nugget in banks[query_id].nuggets]):
            assignments = [passages[query_id, doc_id] for doc_id in ranking[: depth_of(section)]]
            labels = tuple(
                _highest(nugget_labels) for nugget_labels in zip(*(each.labels for each in assignments), strict=True)
            )
            words, bank = sum(each.words for each in assignments), banks[query_id]
            recalls.append(Assignment(query_id, agent, bank.nuggets, labels, words, query=bank.query))
    return recalls


def _highest(labels: Sequence[Support | None]) -> Support | None:
    if Support.FULL in labels:
        return Support.FULL
    if None in labels:  # a missing label may have been any
        return None
    return Support.PARTIAL if Support.PARTIAL in labels else Support.NONE


def nugget_board(results: NuggetResults) -> NuggetBoard:
    """Compute the nugget scores of each agent, for its answers and for its top documents."""
    answers, documents = (
        score_table(assignments, list(results.banks), results.clusters, prefix)
        for assignments, prefix in ((results.assignments, "nuggets"), (results.retrieved, "nuggets_documents"))
    )
    return NuggetBoard(answers, documents, results.depth, results.without)


def carried(assignments: Iterable[Assignment], banks: Mapping[str, NuggetBank]) -> list[Assignment]:
    """Reuse labels that nuggets had before people edited them.

    A nugget keeps its label if its text is unchanged, whatever its importance or position. New and changed nuggets have
    the label ``None`` until a judge assigns them; if the answer is empty, they count as not supported.

    Args:
        assignments: assignments of the nuggets before editing.
        banks: the edited nugget banks by query; assignments of other queries stay unchanged.
    """
    return [
        _carried(assignment, banks[assignment.query_id]) if assignment.query_id in banks else assignment
        for assignment in assignments
    ]


def preview(assignments: Sequence[Assignment], banks: Mapping[str, NuggetBank]) -> tuple[ScoreTable, ScoreTable]:
    """Nugget scores of every agent before and after people edited the nuggets; see ``carried``.

    After editing, the bounds of each score allow for every possible value of the labels that are missing.
    """
    return score_table(assignments), score_table(carried(assignments, banks))


def _carried(assignment: Assignment, bank: NuggetBank) -> Assignment:
    known = {nugget.text.strip(): label for nugget, label in zip(assignment.nuggets, assignment.labels, strict=True)}
    unknown = Support.NONE if assignment.words == 0 else None
    labels = tuple(known.get(nugget.text.strip(), unknown) for nugget in bank.nuggets)
    return replace(assignment, nuggets=bank.nuggets, labels=labels, label_details=())
