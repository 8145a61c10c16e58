"""What a store knows of a tournament's nuggets: banks, what each answer states of them, and the scores of that."""

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
from arena.store.subjects import AssignmentSubject, NuggetSubject, TurnSubject
from judges.errors import to_be_asked
from judges.types import JudgeFailure, Judgment, Query, Task, conversations
from judges.writing import count_words
from retrieval_eval.nuggets.scores import RunScores, ScoreTable, score_runs, score_table
from retrieval_eval.nuggets.types import Assignment, NuggetBank, Support, make_nuggets
from retrieval_eval.stats.bootstrap import ALONE, Clusters
from retrieval_eval.stats.missing import Gaps

NO_DOCUMENT = "no document with a label that counts"
NOT_IN_BANK = "no nuggets in the bank"

Outcomes = Sequence[tuple[Wanted, Result | None]]


class NuggetResults(Struct, frozen=True):
    """Nuggets as far as they have come.

    Attributes:
        banks: by query, of the queries whose nuggets are settled, in the order of the data.
        without: why each other query has none, by query.
        assignments: of every answer to a query with a bank, where answers are held against nuggets; a label that failed
            or is not there yet is ``None``.
        passages: likewise, by query and document, where documents are.
        retrieved: what each agent's documents state together, see ``documents.recalled``.
        depth: how many of them count.
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
        """Whether every query has the nuggets that it can have."""
        return all(why in (NO_DOCUMENT, NOT_IN_BANK) for why in self.without.values())


def nugget_results(store: Store, tournament: str) -> NuggetResults | None:
    """The nuggets of a tournament, ``None`` where it asks for none.

    Raises:
        InputError: no such tournament.
    """
    section = store.settings(tournament).nuggets
    if section is None:
        return None
    data = store.dataset(tournament)
    turns = _turns(store, tournament, section)
    labels = _by_query(store.outcomes(tournament, Task.IMPORTANCE))
    banks: dict[str, NuggetBank] = {}
    without: dict[str, str] = {}
    for query in data.queries.values():
        own = turns.of(query.query_id), labels.get(query.query_id, [])
        if why := turns.missing(query.query_id) or _missing_importance(*own, section):
            without[query.query_id] = why
        else:
            banks[query.query_id] = _bank(query, *own, section)
    answers = {key: answer.text for key, answer in data.answers.items()} if "answers" in section.assign.texts else {}
    passages = {}
    if "documents" in section.assign.texts:
        held = retrieved_documents(data, section.assign).items()
        texts = {(query_id, doc_id): data.documents[doc_id].text for query_id, own in held for doc_id in own}
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
    """What each text states, by query and the name of agent or document; of the queries with a bank."""
    said, found = _labels_by_text(outcomes), {}
    for (query_id, name), text in texts.items():
        if query_id in banks:
            bank, own = banks[query_id], said.get((query_id, name), {})
            labels = tuple(own.get(place) for place in range(1, len(bank.nuggets) + 1))
            words = count_words(text)
            found[query_id, name] = Assignment(query_id, name, bank.nuggets, labels, words, text, bank.query)
    return found


def unedited_banks(store: Store, tournament: str) -> tuple[list[NuggetBank], dict[str, str]]:
    """The lists as they are after the last turn, without importance, for people to edit; and why queries have none."""
    section, data = nuggets_section(store.settings(tournament)), store.dataset(tournament)
    turns = _turns(store, tournament, section)
    banks, without = [], {}
    for query in data.queries.values():
        if why := turns.missing(query.query_id):
            without[query.query_id] = why
            continue
        texts = _texts(turns.of(query.query_id), section)
        banks.append(NuggetBank(query.query_id, query.text, make_nuggets(query.query_id, texts, [None] * len(texts))))
    return banks, without


def repetitions(store: Store, tournament: str) -> dict[str, list[str]]:
    """By query, what its turns left out since it repeats another nugget of the same list."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    if nuggets_section(store.settings(tournament)).create is not None:
        for want, result in store.outcomes(tournament, Task.NUGGETS):
            if isinstance(result, Judgment) and result.reason:
                found[want.query_id].append(result.reason)
    return dict(found)


def nuggets_section(settings: StoredSettings) -> NuggetsSection:
    """The section as it was stored with the tournament, which has nuggets."""
    assert settings.nuggets is not None
    return settings.nuggets


def _by_query(outcomes: Outcomes) -> dict[str, list[tuple[Wanted, Result | None]]]:
    found: defaultdict[str, list[tuple[Wanted, Result | None]]] = defaultdict(list)
    for want, result in outcomes:
        found[want.query_id].append((want, result))
    return {query_id: sorted(results, key=_place) for query_id, results in found.items()}


def _place(entry: tuple[Wanted, Result | None]) -> int:
    """Of a turn, or of the first of nuggets whose importance was asked together."""
    want, _ = entry
    return TurnSubject.of(want).number if want.task is Task.NUGGETS else NuggetSubject.of(want).places.start


def _missing_importance(turns: Outcomes, labels: Outcomes, section: NuggetsSection) -> str | None:
    """Why a list that is made is no bank yet, ``None`` if it is one."""
    if any(isinstance(result, JudgeFailure) for _, result in labels):
        return "the importance of its nuggets failed"
    covered = sum(len(listed(result)) for _, result in labels if isinstance(result, Judgment))
    return None if covered == len(_texts(turns, section)) else "the importance of its nuggets is not judged yet"


class _Turns(Struct, frozen=True):
    """The turns of making each query's nuggets; queries that are ``unlabelled``, and whether a bank was ``given``."""

    by_query: Mapping[str, Outcomes]
    unlabelled: frozenset[str]
    given: bool

    def of(self, query_id: str) -> Outcomes:
        return self.by_query.get(query_id, ())

    def missing(self, query_id: str) -> str | None:
        """Why a query has no list, ``None`` if it has one."""
        results = [result for _, result in self.of(query_id)]
        if any(isinstance(result, JudgeFailure) for result in results):
            return "a turn of making its nuggets failed"
        if None in results:
            return "its nuggets are not made yet"
        if results:
            return None
        if self.given:
            return NOT_IN_BANK
        return "some of its documents have no label yet" if query_id in self.unlabelled else NO_DOCUMENT


def _turns(store: Store, tournament: str, section: NuggetsSection) -> _Turns:
    labels = store.outcomes(tournament, Task.RELEVANCE) if section.create is not None else []
    unlabelled = frozenset(want.query_id for want, result in labels if to_be_asked(result))
    turns = _by_query(store.outcomes(tournament, Task.NUGGETS))
    return _Turns(turns, unlabelled, given=section.create is None)


def _texts(turns: Outcomes, section: NuggetsSection) -> tuple[str, ...]:
    last = turns[-1][1]
    assert isinstance(last, Judgment)
    return listed_nuggets(listed(last), section)


def _bank(query: Query, turns: Outcomes, labels: Outcomes, section: NuggetsSection) -> NuggetBank:
    said = [label for _, result in labels if isinstance(result, Judgment) for label in listed(result)]
    return settled_bank(query.query_id, query.text, _texts(turns, section), importances_of(said), section)


def _labels_by_text(outcomes: Outcomes) -> dict[tuple[str, str], dict[int, Support]]:
    found: defaultdict[tuple[str, str], dict[int, Support]] = defaultdict(dict)
    for want, result in outcomes:
        if isinstance(result, Judgment):
            subject = AssignmentSubject.of(want)
            labels = zip(subject.places, map(Support, listed(result)), strict=False)
            found[want.query_id, subject.target].update(labels)
    return found


class Scored(Struct, frozen=True):
    """Scores of what runs answered or retrieved, and what a reader must know who compares them.

    Attributes:
        runs: best Vital strict first.
        queries: in the topic set.
        unjudged: queries without an assignment of any run, which count 0 for all.
        differing: queries whose runs were held against different nuggets.
        left_out: assignments outside the topic set.
        partial: whether any label is partial support; without one, strict scores equal the others.
        gaps: labels that were wanted, and those that are missing.
    """

    runs: Sequence[RunScores]
    queries: int
    unjudged: Sequence[str]
    differing: Sequence[str]
    left_out: int
    partial: bool
    gaps: Gaps


class NuggetBoard(Struct, frozen=True):
    """Scores over the queries that have nuggets.

    Attributes:
        answers: scores of what agents answered; of no runs where answers are not held against nuggets.
        documents: scores of what they retrieved, all of a ranking's first documents taken together: nugget recall.
        depth: how many documents these are.
        without: why each other query has no nuggets; these are in nobody's mean.
    """

    answers: Scored
    documents: Scored
    depth: int
    without: Mapping[str, str]


def scored(table: ScoreTable, clusters: Clusters = ALONE) -> Scored:
    """Score every run; see ``run_scores.score_runs`` for the intervals."""
    partial = bool(table.counts[..., 1].any()) or not table.counts[..., :3].any()
    return Scored(
        score_runs(table, clusters),
        len(table.topics),
        table.unjudged_topics,
        table.differing_topics,
        table.left_out,
        partial,
        table.gaps,
    )


def nugget_board(results: NuggetResults) -> NuggetBoard:
    """Score every agent."""

    def of(assignments: Sequence[Assignment]) -> Scored:
        return scored(score_table(assignments, list(results.banks)), results.clusters)

    return NuggetBoard(of(results.assignments), of(results.retrieved), results.depth, results.without)


def carried(assignments: Iterable[Assignment], banks: Mapping[str, NuggetBank]) -> list[Assignment]:
    """Assignments of edited nuggets.

    A label holds for a nugget of the same text, whatever its importance or place. Nuggets of other words have ``None``
    until they are assigned, but for an empty answer, which states nothing.

    Args:
        assignments: of the nuggets before.
        banks: the edited nuggets, by query; other queries stay as they are.
    """
    return [_carried(own, banks[own.query_id]) if own.query_id in banks else own for own in assignments]


def preview(assignments: Sequence[Assignment], banks: Mapping[str, NuggetBank]) -> list[tuple[RunScores, RunScores]]:
    """Scores of every agent before and after, best first as they were before; see ``carried``.

    Where labels are open, the bounds of those after hold for any that they may come to.
    """
    after = {own.run: own for own in _scores(carried(assignments, banks))}
    return [(own, after[own.run]) for own in _scores(assignments)]


def _carried(own: Assignment, bank: NuggetBank) -> Assignment:
    known = {nugget.text.strip(): label for nugget, label in zip(own.nuggets, own.labels, strict=True)}
    unknown = Support.NONE if own.words == 0 else None
    labels = tuple(known.get(nugget.text.strip(), unknown) for nugget in bank.nuggets)
    return replace(own, nuggets=bank.nuggets, labels=labels, label_details=())


def _scores(assignments: Sequence[Assignment]) -> list[RunScores]:
    return score_runs(score_table(assignments))
