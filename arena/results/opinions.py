"""Opinions of judges and of people on a tournament, read from its store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np

from arena.calibration.votes import Level, Opinion, VoteAgreement, agreement_between
from arena.data.dataset import Dataset
from arena.results.annotations import texts_now
from arena.results.calibration import Spending
from arena.results.criteria import grades
from arena.results.games import GameTable
from arena.results.nuggets import nugget_results
from arena.results.opinion_tables import SUPPORT
from arena.results.samples import labels_by_judge, outcomes
from arena.results.support import checked
from arena.stages.support import SupportSubject
from arena.store import Store
from arena.store.annotations import Annotation, Annotations, Kind
from arena.store.subjects import AnswerSubject
from arena.store.wants import spent_by_judge
from judges.types import GAME_OUTCOMES, Judgment, Task, label_of
from retrieval_eval.nuggets.types import Support
from retrieval_eval.stats.arrays import Bools

_QRELS = "qrels"
"""The rater of labels that come from a file without raters."""


def peoples_opinions(
    store: Store, tournament: str, data: Callable[[], Dataset] | None = None
) -> tuple[dict[tuple[Level, str], list[Opinion]], int]:
    """All opinions of people by level, without items that they skipped.

    ``data`` is as in ``current_annotations``.

    Returns:
        The opinions, and the number of annotations left out because their texts have changed or are gone.

    Raises:
        InputError: there is no such tournament.
    """
    annotations, outdated = current_annotations(store, tournament, data=data)
    by_level: dict[tuple[Level, str], list[Opinion]] = {}
    for annotation in annotations:
        for level, opinion in _opinions_in(annotation):
            by_level.setdefault((level, ""), []).append(opinion)
    return by_level, outdated


def current_annotations(
    store: Store, tournament: str, kind: Kind | None = None, *, data: Callable[[], Dataset] | None = None
) -> tuple[list[Annotation], int]:
    """Each person's latest annotations whose texts have not changed, without skipped items.

    Without a ``kind``, all kinds except flags, which judge nothing. ``data`` returns the tournament's dataset; by
    default the store is read.

    Returns:
        The annotations, and the number of those left out because their texts have changed or are gone.

    Raises:
        InputError: there is no such tournament.
    """
    latest = Annotations(store, tournament).latest(kind)
    annotations = [
        annotation
        for annotation in latest
        if annotation.value is not None and (annotation.kind is kind or annotation.kind is not Kind.FLAG)
    ]
    if not annotations:
        return [], 0
    # A labelled document may be retrieved for no query, so labels need the whole dataset.
    labelled = any(annotation.kind is Kind.RELEVANCE for annotation in annotations)
    query_ids = () if labelled else sorted({annotation.query_id for annotation in annotations})
    dataset = store.dataset(tournament, *query_ids) if data is None else data()
    texts = nugget_texts(store, tournament) if any(annotation.kind is Kind.NUGGET for annotation in annotations) else {}
    nuggets = {nugget_id: text for (_, nugget_id), text in texts.items()}
    current = [annotation for annotation in annotations if texts_now(annotation, dataset, nuggets) == annotation.texts]
    return current, len(annotations) - len(current)


def _opinions_in(annotation: Annotation) -> Iterator[tuple[Level, Opinion]]:
    if annotation.kind is Kind.VERDICT:
        pair = tuple(sorted((annotation.item, annotation.other)))
        value = float(GAME_OUTCOMES[annotation.value])
        swapped = annotation.item != pair[0]
        yield (
            "verdicts",
            Opinion(annotation.query_id, pair, annotation.annotator, -value if swapped else value, swapped),
        )
    elif annotation.kind is Kind.RELEVANCE:
        yield "labels", Opinion(annotation.query_id, (annotation.item,), annotation.annotator, float(annotation.value))
    elif annotation.kind is Kind.NUGGET:
        label = SUPPORT[Support(annotation.value)]
        yield "nuggets", Opinion(annotation.query_id, (annotation.item, annotation.other), annotation.annotator, label)
    elif annotation.kind is Kind.SUPPORT:
        subject = SupportSubject.named(annotation.query_id, annotation.item, annotation.other)
        yield "support", _of_support(subject, annotation.annotator, annotation.value)
    else:
        for criterion, grade in annotation.value.items():
            yield (
                "criteria",
                Opinion(annotation.query_id, (annotation.item, criterion), annotation.annotator, float(grade)),
            )


def agreement_with_judges(
    store: Store, tournament: str, annotations: Sequence[Annotation], games: GameTable
) -> dict[str, VoteAgreement]:
    """How often a person and each judge agree on the same item, by judge.

    ``annotations`` are the person's, all of one kind.
    """
    leveled = [
        opinion for annotation in annotations if annotation.value is not None for opinion in _opinions_in(annotation)
    ]
    if not leveled:
        return {}
    (level,) = {level for level, _ in leveled}
    person_opinions = [opinion for _, opinion in leveled]
    rows = (
        games.of_pairs((opinion.query_id, opinion.item[0], opinion.item[1]) for opinion in person_opinions)
        if level == "verdicts"
        else None
    )
    judge_opinions = judges_opinions(store, tournament, games, {level}, rows).get((level, ""), [])
    by_judge: defaultdict[str, list[Opinion]] = defaultdict(list)
    for opinion in judge_opinions:
        by_judge[opinion.rater].append(opinion)
    agreements = {
        judge: agreement_between(judge_opinions, person_opinions) for judge, judge_opinions in sorted(by_judge.items())
    }
    return {judge: agreement for judge, agreement in agreements.items() if agreement.pairs}


def nugget_texts(store: Store, tournament: str) -> dict[tuple[str, str], str]:
    """The texts of a tournament's nuggets, by query and nugget id."""
    results = nugget_results(store, tournament)
    banks = {} if results is None else results.banks
    return {(query, nugget.nugget_id): nugget.text for query, bank in banks.items() for nugget in bank.nuggets}


def labels_with_data(data: Dataset) -> list[Opinion]:
    """People's relevance labels that came with the data."""
    return [
        Opinion(query_id, (doc_id,), _QRELS, float(label))
        for query_id, labels in data.qrels.items()
        for doc_id, label in labels.items()
    ]


def judges_opinions(
    store: Store, tournament: str, games: GameTable, levels: Collection[Level], of: Bools | None = None
) -> dict[tuple[Level, str], list[Opinion]]:
    """All opinions of judges at some levels, without failures; ``of`` selects games, by default all."""
    readers: dict[Level, Callable[[], Iterable[Opinion]]] = {
        "verdicts": lambda: verdict_opinions(games, of),
        "labels": lambda: _labels(store, tournament),
        "criteria": lambda: _criteria(store, tournament),
        "nuggets": lambda: _nuggets(store, tournament),
        "support": lambda: (_of_support(subject, *label) for subject, label in checked(store, tournament).items()),
    }
    opinions = {level: list(reader()) for level, reader in readers.items() if level in levels}
    return {(level, ""): level_opinions for level, level_opinions in opinions.items() if level_opinions}


def verdict_opinions(games: GameTable, of: Bools | None = None) -> list[Opinion]:
    """An opinion for each verdict on the games that ``of`` selects, by default all.

    The item is the pair of agents in the order of their names.
    """
    rows, second = np.nonzero(games.judged if of is None else games.judged & of[:, None])
    queries, agents, judges = games.queries, games.agents, games.judges
    columns = (
        games.query[rows],
        games.a[rows],
        games.b[rows],
        games.judge[rows],
        games.outcome[rows, second],
        second > 0,
    )
    return [
        Opinion(queries[query], (agents[a], agents[b]), judges[judge], float(outcome), swapped)
        for query, a, b, judge, outcome, swapped in zip(*(column.tolist() for column in columns), strict=True)
    ]


def spending(store: Store, tournament: str) -> dict[str, Spending]:
    """The games and costs of each answer judge."""
    return {
        judge: Spending(games, wanted, failed, None if unpriced else cost)
        for judge, games, wanted, failed, unpriced, cost in spent_by_judge(store, tournament)
    }


def _labels(store: Store, tournament: str) -> Iterator[Opinion]:
    for judge, labels in labels_by_judge(store, tournament).items():
        for (query_id, doc_id), result in labels.items():
            if isinstance(result, Judgment):
                yield Opinion(query_id, (doc_id,), judge, float(label_of(result.outcome)))


def _criteria(store: Store, tournament: str) -> Iterator[Opinion]:
    settings = store.settings(tournament)
    for want, result in outcomes(store, tournament, Task.CRITERIA):
        if isinstance(result, Judgment):
            for criterion, grade in grades(want, result, settings).items():
                yield Opinion(want.query_id, (AnswerSubject.of(want).agent, criterion), want.judge, grade)


def _of_support(subject: SupportSubject, rater: str, level: int) -> Opinion:
    item = subject.agent, str(subject.place), subject.doc_id
    return Opinion(subject.query_id, item, rater, float(level))


def _nuggets(store: Store, tournament: str) -> Iterator[Opinion]:
    results = nugget_results(store, tournament)
    if results is None:
        return
    section = store.settings(tournament).nuggets
    assert section is not None
    for assignment in results.assignments:
        for nugget, label in zip(assignment.nuggets, assignment.labels, strict=True):
            if label is not None:
                yield Opinion(assignment.query_id, (assignment.run, nugget.nugget_id), section.judge, SUPPORT[label])
