"""Nuggets of a tournament from its store: banks, assignments to answers and documents, and scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.judging import NuggetsSection
from arena.config.settings import StoredSettings
from arena.stages.nuggets.banks import (
    depth_of,
    importances_of,
    listed,
    listed_nuggets,
    recalled,
    retrieved_documents,
    settled_bank,
)
from arena.store import Result, Store, Wanted
from arena.store.subjects import AssignmentSubject, read_span
from judges.errors import to_be_asked
from judges.types import JudgeFailure, Judgment, Query, Task, conversations
from judges.writing import count_words
from retrieval_eval.nuggets.scores import ScoreTable, score_table
from retrieval_eval.nuggets.types import Assignment, NuggetBank, Support, make_nuggets
from retrieval_eval.stats.bootstrap import Clusters

NO_DOCUMENT = "no document with a label that counts"
NOT_IN_BANK = "no nuggets in the bank"

Outcomes = Sequence[tuple[Wanted, Result | None]]


class NuggetResults(Struct, frozen=True):
    """Nuggets and assignments made so far.

    Attributes:
        banks: finished banks by query, in the order of the data.
        without: for each query without a bank, the reason.
        assignments: the assignment of every answer to a query with a bank, if answers are assigned; a label that failed
            or does not exist yet is ``None``.
        passages: assignments by query and document, if documents are assigned.
        retrieved: assignments to the first documents of each agent, all of a query together, see ``banks.recalled``.
        depth: number of documents of each agent that count.
        clusters: the conversations of the queries.
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
        """Whether every query that can have a bank has one."""
        return all(reason in (NO_DOCUMENT, NOT_IN_BANK) for reason in self.without.values())


def nugget_results(store: Store, tournament: str) -> NuggetResults | None:
    """Read the nuggets of a tournament; ``None`` if it has no section ``nuggets``.

    Raises:
        InputError: there is no such tournament.
    """
    section = store.settings(tournament).nuggets
    if section is None:
        return None
    data = store.dataset(tournament)
    turns = _turns(store, tournament, section)
    importance = _by_query(store.outcomes(tournament, Task.IMPORTANCE))
    banks: dict[str, NuggetBank] = {}
    without: dict[str, str] = {}
    for query in data.queries.values():
        query_outcomes = turns.of(query.query_id), importance.get(query.query_id, [])
        if reason := turns.missing(query.query_id) or _missing_importance(*query_outcomes, section):
            without[query.query_id] = reason
        else:
            banks[query.query_id] = _bank(query, *query_outcomes, section)
    answers = {key: answer.text for key, answer in data.answers.items()} if "answers" in section.assign.texts else {}
    passages = {}
    if "documents" in section.assign.texts:
        rankings = retrieved_documents(data, section.assign).items()
        texts = {
            (query_id, doc_id): data.documents[doc_id].text for query_id, doc_ids in rankings for doc_id in doc_ids
        }
        passages = _assignments(texts, banks, store.outcomes(tournament, Task.PASSAGE_ASSIGNMENT))
    return NuggetResults(
        banks,
        without,
        list(_assignments(answers, banks, store.outcomes(tournament, Task.ASSIGNMENT)).values()),
        passages,
        recalled(data, section.assign, banks, passages) if passages else [],
        depth_of(section.assign),
        conversations(data.queries.values()),
    )


def _assignments(
    texts: Mapping[tuple[str, str], str], banks: Mapping[str, NuggetBank], outcomes: Outcomes
) -> dict[tuple[str, str], Assignment]:
    """The assignment of each text whose query has a bank, by query and name of the agent or document."""
    labels_by_text, assignments = _labels_by_text(outcomes), {}
    for (query_id, name), text in texts.items():
        if query_id in banks:
            bank, text_labels = banks[query_id], labels_by_text.get((query_id, name), {})
            labels = tuple(text_labels.get(number) for number in range(1, len(bank.nuggets) + 1))
            words = count_words(text)
            assignments[query_id, name] = Assignment(query_id, name, bank.nuggets, labels, words, text, bank.query)
    return assignments


def unedited_banks(store: Store, tournament: str) -> tuple[list[NuggetBank], dict[str, str]]:
    """Nuggets after the last turn, without importance, for people to edit; for other queries, why they have none."""
    section, data = nuggets_section(store.settings(tournament)), store.dataset(tournament)
    turns = _turns(store, tournament, section)
    banks, without = [], {}
    for query in data.queries.values():
        if reason := turns.missing(query.query_id):
            without[query.query_id] = reason
            continue
        texts = _texts(turns.of(query.query_id), section)
        banks.append(NuggetBank(query.query_id, query.text, make_nuggets(query.query_id, texts, [None] * len(texts))))
    return banks, without


def repetitions(store: Store, tournament: str) -> dict[str, list[str]]:
    """By query, the reasons that turns gave for nuggets left out as repetitions."""
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    if nuggets_section(store.settings(tournament)).create is not None:
        for want, result in store.outcomes(tournament, Task.NUGGETS):
            if isinstance(result, Judgment) and result.reason:
                reasons[want.query_id].append(result.reason)
    return dict(reasons)


def nuggets_section(settings: StoredSettings) -> NuggetsSection:
    """The stored section ``nuggets`` of a tournament that has one."""
    assert settings.nuggets is not None
    return settings.nuggets


def _by_query(outcomes: Outcomes) -> dict[str, list[tuple[Wanted, Result | None]]]:
    by_query: defaultdict[str, list[tuple[Wanted, Result | None]]] = defaultdict(list)
    for want, result in outcomes:
        by_query[want.query_id].append((want, result))
    return {query_id: sorted(results, key=_place) for query_id, results in by_query.items()}


def _place(entry: tuple[Wanted, Result | None]) -> int:
    """Index of a turn, or of the first nugget in a call for importance."""
    want, _ = entry
    return int(want.item) if want.task is Task.NUGGETS else read_span(want.item).start


def _missing_importance(turns: Outcomes, labels: Outcomes, section: NuggetsSection) -> str | None:
    """The reason why a finished list of nuggets is not a bank yet; ``None`` if it is a bank."""
    if any(isinstance(result, JudgeFailure) for _, result in labels):
        return "the importance of its nuggets failed"
    covered = sum(len(listed(result)) for _, result in labels if isinstance(result, Judgment))
    return None if covered == len(_texts(turns, section)) else "the importance of its nuggets is not judged yet"


class _Turns(Struct, frozen=True):
    """The turns that made each query's nuggets.

    ``unlabelled`` are queries with documents that still need a label; ``from_bank`` means that a file has the nuggets.
    """

    by_query: Mapping[str, Outcomes]
    unlabelled: frozenset[str]
    from_bank: bool

    def of(self, query_id: str) -> Outcomes:
        return self.by_query.get(query_id, ())

    def missing(self, query_id: str) -> str | None:
        """The reason why a query has no list of nuggets; ``None`` if it has a list."""
        results = [result for _, result in self.of(query_id)]
        if any(isinstance(result, JudgeFailure) for result in results):
            return "a turn of making its nuggets failed"
        if None in results:
            return "its nuggets are not made yet"
        if results:
            return None
        if self.from_bank:
            return NOT_IN_BANK
        return "some of its documents have no label yet" if query_id in self.unlabelled else NO_DOCUMENT


def _turns(store: Store, tournament: str, section: NuggetsSection) -> _Turns:
    labels = store.outcomes(tournament, Task.RELEVANCE) if section.create is not None else []
    unlabelled = frozenset(want.query_id for want, result in labels if to_be_asked(result))
    turns = _by_query(store.outcomes(tournament, Task.NUGGETS))
    return _Turns(turns, unlabelled, from_bank=section.create is None)


def _texts(turns: Outcomes, section: NuggetsSection) -> tuple[str, ...]:
    last = turns[-1][1]
    assert isinstance(last, Judgment)
    return listed_nuggets(listed(last), section)


def _bank(query: Query, turns: Outcomes, labels: Outcomes, section: NuggetsSection) -> NuggetBank:
    importance = [label for _, result in labels if isinstance(result, Judgment) for label in listed(result)]
    return settled_bank(query.query_id, query.text, _texts(turns, section), importances_of(importance), section)


def _labels_by_text(outcomes: Outcomes) -> dict[tuple[str, str], dict[int, Support]]:
    by_text: defaultdict[tuple[str, str], dict[int, Support]] = defaultdict(dict)
    for want, result in outcomes:
        if isinstance(result, Judgment):
            subject = AssignmentSubject.of(want)
            labels = zip(subject.places, map(Support, listed(result)), strict=False)
            by_text[want.query_id, subject.target].update(labels)
    return by_text


class NuggetBoard(Struct, frozen=True):
    """Nugget scores over the queries that have nuggets.

    Attributes:
        answers: scores of answers; it has no runs if answers are not assigned.
        documents: nugget recall: scores of the first documents of each ranking, all of a query together.
        depth: number of documents of each ranking that count.
        without: for each query without nuggets, the reason; the means leave these queries out.
    """

    answers: ScoreTable
    documents: ScoreTable
    depth: int
    without: Mapping[str, str]


def nugget_board(results: NuggetResults) -> NuggetBoard:
    """Score the answers and the documents of every agent."""
    answers, documents = (
        score_table(assignments, list(results.banks), results.clusters, prefix)
        for assignments, prefix in ((results.assignments, "nuggets"), (results.retrieved, "nuggets_documents"))
    )
    return NuggetBoard(answers, documents, results.depth, results.without)


def carried(assignments: Iterable[Assignment], banks: Mapping[str, NuggetBank]) -> list[Assignment]:
    """Transfer assignments to edited nuggets.

    A label is kept for a nugget with the same text, whatever its importance or position. Other nuggets get ``None``
    until they are assigned; for an empty answer they get no support.

    Args:
        assignments: assignments of the nuggets before editing.
        banks: the edited nuggets by query; assignments of other queries stay unchanged.
    """
    return [
        _carried(assignment, banks[assignment.query_id]) if assignment.query_id in banks else assignment
        for assignment in assignments
    ]


def preview(assignments: Sequence[Assignment], banks: Mapping[str, NuggetBank]) -> tuple[ScoreTable, ScoreTable]:
    """Scores of every agent before and after editing; see ``carried``.

    Where labels are missing after editing, the bounds allow for every possible label.
    """
    return score_table(assignments), score_table(carried(assignments, banks))


def _carried(assignment: Assignment, bank: NuggetBank) -> Assignment:
    known = {nugget.text.strip(): label for nugget, label in zip(assignment.nuggets, assignment.labels, strict=True)}
    unknown = Support.NONE if assignment.words == 0 else None
    labels = tuple(known.get(nugget.text.strip(), unknown) for nugget in bank.nuggets)
    return replace(assignment, nuggets=bank.nuggets, labels=labels, label_details=())
