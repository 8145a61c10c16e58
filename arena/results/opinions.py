"""Reads the opinions of a tournament's judges and of its human annotators from the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np

from arena.calibration import Opinion
from arena.calibration.votes import Level, VoteAgreement, agreement_between
from arena.data.dataset import Dataset
from arena.data.kinds import (
    CRITERIA,
    FLAG,
    KINDS,
    NUGGETS,
    RELEVANCE,
    SUPPORT,
    VERDICT,
    Annotation,
    JudgedKind,
    kind_of,
    texts_now,
)
from arena.results.criteria import grades
from arena.results.games import GameTable
from arena.results.nuggets import nugget_results
from arena.results.outcomes import outcomes
from arena.store import Store
from arena.store.annotations import Annotations
from judges.types import Judgment
from retrieval_eval.stats import Bools

_QRELS = "qrels"
"""Name of the rater for labels from qrels, which name no rater."""


def peoples_opinions(
    store: Store, tournament: str, data: Callable[[], Dataset] | None = None
) -> tuple[dict[tuple[Level, str], list[Opinion]], int]:
    """All opinions of human annotators by kind, such as verdicts or grades; items that they skipped are left out.

    ``data`` returns the tournament's dataset; by default it is read from the store.

    Returns:
        The opinions, and the number of annotations left out because an annotated text has changed or is gone.
    """
    annotations, outdated = current_annotations(store, tournament, data=data)
    by_level: dict[tuple[Level, str], list[Opinion]] = {}
    for annotation in annotations:
        kind = KINDS[annotation.kind]
        by_level.setdefault((kind.level, ""), []).extend(kind.opinions(annotation))
    return by_level, outdated


def current_annotations(
    store: Store, tournament: str, kind: str | None = None, *, data: Callable[[], Dataset] | None = None
) -> tuple[list[Annotation], int]:
    """The latest annotation of each item by each annotator, if its texts are unchanged; skipped items are left out.

    If ``kind`` is ``None``, annotations of all kinds except flags, which are no judgments. ``data`` returns the
    tournament's dataset; by default it is read from the store.

    Returns:
        The annotations, and the number of those left out because an annotated text has changed or is gone.
    """
    latest = Annotations(store, tournament).latest(kind)
    annotations = [
        annotation
        for annotation in latest
        if annotation.value is not None and (annotation.kind == kind or annotation.kind != FLAG.name)
    ]
    if not annotations:
        return [], 0
    # A labelled document may be retrieved for no query, so labels need the whole dataset.
    labelled = any(annotation.kind == RELEVANCE.name for annotation in annotations)
    query_ids = () if labelled else sorted({annotation.query_id for annotation in annotations})
    dataset = store.dataset(tournament, *query_ids) if data is None else data()
    texts = (
        nugget_texts(store, tournament) if any(annotation.kind == NUGGETS.name for annotation in annotations) else {}
    )
    nuggets = {nugget_id: text for (_, nugget_id), text in texts.items()}
    current = [annotation for annotation in annotations if texts_now(annotation, dataset, nuggets) == annotation.texts]
    return current, len(annotations) - len(current)


def agreement_with_judges(
    store: Store, tournament: str, annotations: Sequence[Annotation], games: GameTable
) -> dict[str, VoteAgreement]:
    """By judge, how often one annotator and the judge agree on the items that both judged.

    ``annotations`` must come from this one annotator and be of one kind, such as verdicts.
    """
    answered = [annotation for annotation in annotations if annotation.value is not None]
    if not answered:
        return {}
    kind = KINDS[answered[0].kind]
    person_opinions = [opinion for annotation in answered for opinion in kind.opinions(annotation)]
    rows = (
        games.of_pairs((opinion.query_id, opinion.item[0], opinion.item[1]) for opinion in person_opinions)
        if kind is VERDICT
        else None
    )
    judge_opinions = judges_opinions(store, tournament, games, {kind.level}, rows).get((kind.level, ""), [])
    by_judge: defaultdict[str, list[Opinion]] = defaultdict(list)
    for opinion in judge_opinions:
        by_judge[opinion.rater].append(opinion)
    agreements = {
        judge: agreement_between(judge_opinions, person_opinions) for judge, judge_opinions in sorted(by_judge.items())
    }
    return {judge: agreement for judge, agreement in agreements.items() if agreement.pairs}


def nugget_texts(store: Store, tournament: str) -> dict[tuple[str, str], str]:
    results = nugget_results(store, tournament)
    banks = {} if results is None else results.banks
    return {(query, nugget.nugget_id): nugget.text for query, bank in banks.items() for nugget in bank.nuggets}


def labels_with_data(data: Dataset) -> list[Opinion]:
    return [
        Opinion(query_id, (doc_id,), _QRELS, float(label))
        for query_id, labels in data.qrels.items()
        for doc_id, label in labels.items()
    ]


def judges_opinions(
    store: Store, tournament: str, games: GameTable, levels: Collection[Level], of: Bools | None = None
) -> dict[tuple[Level, str], list[Opinion]]:
    """The judges' opinions of the kinds in ``levels``, without failed judgments.

    ``of`` is a mask that selects the games whose verdicts count; by default all games.
    """
    opinions = {level: list(_opinions_on(store, tournament, games, kind_of(level), of)) for level in sorted(levels)}
    return {(level, ""): level_opinions for level, level_opinions in opinions.items() if level_opinions}


def _opinions_on(
    store: Store, tournament: str, games: GameTable, kind: JudgedKind, of: Bools | None
) -> Iterable[Opinion]:
    if kind is VERDICT:
        return verdict_opinions(games, of)
    if kind is NUGGETS:
        return _nuggets(store, tournament)
    return (opinion for judgment in judgments_of(store, tournament, kind.name) for opinion in kind.opinions(judgment))


def judgments_of(store: Store, tournament: str, name: str) -> list[Annotation]:
    """The judges' successful judgments of one kind, as annotations like those of people."""
    settings, kind = store.settings(tournament), KINDS[name]
    return [
        Annotation(name, want.judge, want.query_id, want.item, want.other, "", value)
        for want, result in outcomes(store, tournament, kind.task)
        if isinstance(result, Judgment)
        for value in [grades(want, result, settings) if kind is CRITERIA else result.outcome]
    ]


def verdict_opinions(games: GameTable, of: Bools | None = None) -> list[Opinion]:
    """One opinion for each judge's verdict on the games that the mask ``of`` selects; by default on all games.

    An opinion's item is the pair of agents, sorted by name.
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
