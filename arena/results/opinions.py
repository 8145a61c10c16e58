"""What judges said of a tournament, and what people said beside them, as opinions: from its store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np

from arena.calibration.votes import Level, Opinion, VoteAgreement, agreement_between
from arena.data.dataset import Dataset
from arena.results.annotations import texts_now
from arena.results.calibration import Spending
from arena.results.games import GameTable
from arena.results.nuggets import nugget_results
from arena.results.opinion_tables import OUTCOME, SUPPORT
from arena.results.ratings import grades
from arena.results.samples import labels_by_judge, outcomes
from arena.results.support import checked
from arena.stages.support import SupportSubject
from arena.store import Store
from arena.store.annotations import Annotation, Annotations, Kind
from arena.store.subjects import AnswerSubject
from arena.store.wants import spent_by_judge
from judges.types import Judgment, Task, Verdict, label_of
from retrieval_eval.nuggets.types import Support
from retrieval_eval.stats.arrays import Bools

_QRELS = "qrels"
"""The one person whom the labels of a file are of."""


def peoples_opinions(
    store: Store, tournament: str, data: Callable[[], Dataset] | None = None
) -> tuple[dict[tuple[Level, str], list[Opinion]], int]:
    """Everything people said, by level; what they skipped is no opinion.

    ``data`` is as for ``current_annotations``.

    Returns:
        Also how many annotations are of texts that have changed since, or are gone; they are left out.

    Raises:
        InputError: no such tournament.
    """
    said, outdated = current_annotations(store, tournament, data=data)
    by_level: dict[tuple[Level, str], list[Opinion]] = {}
    for one in said:
        for level, opinion in _opinions_in(one):
            by_level.setdefault((level, ""), []).append(opinion)
    return by_level, outdated


def current_annotations(
    store: Store, tournament: str, kind: Kind | None = None, *, data: Callable[[], Dataset] | None = None
) -> tuple[list[Annotation], int]:
    """Everybody's latest annotations, skipped ones aside, of texts that are as they were.

    Without a ``kind`` those of all kinds but flags, which judge nothing; ``data`` reads the tournament's, in place of
    the store.

    Returns:
        Also how many are of texts that have changed since, or are gone.

    Raises:
        InputError: no such tournament.
    """
    latest = Annotations(store, tournament).latest(kind)
    said = [one for one in latest if one.value is not None and (one.kind is kind or one.kind is not Kind.FLAG)]
    if not said:
        return [], 0
    # A document that somebody labelled may be retrieved for no query.
    labelled = any(one.kind is Kind.RELEVANCE for one in said)
    some = () if labelled else sorted({one.query_id for one in said})
    known = store.dataset(tournament, *some) if data is None else data()
    texts = nugget_texts(store, tournament) if any(one.kind is Kind.NUGGET for one in said) else {}
    nuggets = {nugget_id: text for (_, nugget_id), text in texts.items()}
    current = [one for one in said if texts_now(one, known, nuggets) == one.texts]
    return current, len(said) - len(current)


def _opinions_in(said: Annotation) -> Iterator[tuple[Level, Opinion]]:
    if said.kind is Kind.VERDICT:
        pair = tuple(sorted((said.item, said.other)))
        value = OUTCOME[Verdict(said.value)]
        swapped = said.item != pair[0]
        yield "verdicts", Opinion(said.query_id, pair, said.annotator, -value if swapped else value, swapped)
    elif said.kind is Kind.RELEVANCE:
        yield "labels", Opinion(said.query_id, (said.item,), said.annotator, float(said.value))
    elif said.kind is Kind.NUGGET:
        label = SUPPORT[Support(said.value)]
        yield "nuggets", Opinion(said.query_id, (said.item, said.other), said.annotator, label)
    elif said.kind is Kind.SUPPORT:
        subject = SupportSubject.named(said.query_id, said.item, said.other)
        yield "support", _of_support(subject, said.annotator, said.value)
    else:
        for criterion, grade in said.value.items():
            yield "criteria", Opinion(said.query_id, (said.item, criterion), said.annotator, float(grade))


def agreement_with_judges(
    store: Store, tournament: str, said: Sequence[Annotation], games: GameTable
) -> dict[str, VoteAgreement]:
    """How often one person says what a judge says of the same thing, by judge.

    ``said`` is all of one kind.
    """
    own = [one for each in said if each.value is not None for one in _opinions_in(each)]
    if not own:
        return {}
    (level,) = {level for level, _ in own}
    mine = [opinion for _, opinion in own]
    of = games.of_pairs((one.query_id, one.item[0], one.item[1]) for one in mine) if level == "verdicts" else None
    judged = judges_opinions(store, tournament, games, {level}, of).get((level, ""), [])
    by_judge: defaultdict[str, list[Opinion]] = defaultdict(list)
    for one in judged:
        by_judge[one.rater].append(one)
    found = {judge: agreement_between(theirs, mine) for judge, theirs in sorted(by_judge.items())}
    return {judge: agreement for judge, agreement in found.items() if agreement.pairs}


def nugget_texts(store: Store, tournament: str) -> dict[tuple[str, str], str]:
    """Texts of a tournament's nuggets by query and id."""
    results = nugget_results(store, tournament)
    banks = {} if results is None else results.banks
    return {(query, nugget.nugget_id): nugget.text for query, bank in banks.items() for nugget in bank.nuggets}


def labels_with_data(data: Dataset) -> list[Opinion]:
    """The relevance labels of people that came with the data."""
    return [
        Opinion(query_id, (doc_id,), _QRELS, float(label))
        for query_id, labels in data.qrels.items()
        for doc_id, label in labels.items()
    ]


def judges_opinions(
    store: Store, tournament: str, games: GameTable, levels: Collection[Level], of: Bools | None = None
) -> dict[tuple[Level, str], list[Opinion]]:
    """Everything judges said on some levels; failures are no opinions. ``of`` says which games, if not all."""
    said: dict[Level, Callable[[], Iterable[Opinion]]] = {
        "verdicts": lambda: verdict_opinions(games, of),
        "labels": lambda: _labels(store, tournament),
        "criteria": lambda: _criteria(store, tournament),
        "nuggets": lambda: _nuggets(store, tournament),
        "support": lambda: (_of_support(one, *said) for one, said in checked(store, tournament).items()),
    }
    found = {level: list(read()) for level, read in said.items() if level in levels}
    return {(level, ""): own for level, own in found.items() if own}


def verdict_opinions(games: GameTable, of: Bools | None = None) -> list[Opinion]:
    """Every verdict on every game, or on some; agents' numbers go by their names, so ``a`` is the first of a thing."""
    rows, second = np.nonzero(games.judged if of is None else games.judged & of[:, None])
    queries, agents, judges = games.queries, games.agents, games.judges
    columns = (games.query[rows], games.a[rows], games.b[rows], games.judge[rows], games.said[rows, second], second > 0)
    return [
        Opinion(queries[query], (agents[a], agents[b]), judges[judge], float(said), swapped)
        for query, a, b, judge, said, swapped in zip(*(column.tolist() for column in columns), strict=True)
    ]


def spending(store: Store, tournament: str) -> dict[str, Spending]:
    """What each answer judge's games took, by judge."""
    return {
        judge: Spending(games, wanted, failed, None if unpriced else cost)
        for judge, games, wanted, failed, unpriced, cost in spent_by_judge(store, tournament)
    }


def _labels(store: Store, tournament: str) -> Iterator[Opinion]:
    for judge, own in labels_by_judge(store, tournament).items():
        for (query_id, doc_id), result in own.items():
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
    for own in results.assignments:
        for nugget, label in zip(own.nuggets, own.labels, strict=True):
            if label is not None:
                yield Opinion(own.query_id, (own.run, nugget.nugget_id), section.judge, SUPPORT[label])
