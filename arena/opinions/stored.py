"""What the judges of a tournament said, and what the people beside them, from its store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import numpy as np

from arena.boards.results import grades
from arena.calibration.calibrated import Spending
from arena.calibration.opinions import Level, Opinion
from arena.data.dataset import Dataset
from arena.games.table import GameTable
from arena.opinions.files import SUPPORT
from arena.stages.nuggets.results import nugget_results
from arena.stages.samples import labels_by_judge, outcomes
from arena.store import Store
from arena.store.grouped import spent_by_judge
from judges.types import Judgment, Task, label_of

_QRELS = "qrels"
"""The one person whom the labels of a file are of."""


def judges_opinions(
    store: Store, tournament: str, games: GameTable, levels: Collection[Level]
) -> dict[tuple[Level, str], list[Opinion]]:
    """Everything judges said on some levels; failures are no opinions."""
    said: dict[Level, Callable[[], Iterable[Opinion]]] = {
        "verdicts": lambda: verdict_opinions(games),
        "labels": lambda: _labels(store, tournament),
        "criteria": lambda: _criteria(store, tournament),
        "nuggets": lambda: _nuggets(store, tournament),
    }
    found = {level: list(read()) for level, read in said.items() if level in levels}
    return {(level, ""): own for level, own in found.items() if own}


def verdict_opinions(games: GameTable) -> list[Opinion]:
    """Every verdict on every game; agents' numbers go by their names, so that ``a`` is the first of a thing."""
    rows, second = np.nonzero(games.judged)
    queries, agents, judges = games.queries, games.agents, games.judges
    columns = (games.query[rows], games.a[rows], games.b[rows], games.judge[rows], games.said[rows, second], second > 0)
    return [
        Opinion(queries[query], (agents[a], agents[b]), judges[judge], float(said), swapped)
        for query, a, b, judge, said, swapped in zip(*(column.tolist() for column in columns), strict=True)
    ]


def labels_with_data(data: Dataset) -> list[Opinion]:
    """The relevance labels of people that came with the data."""
    return [
        Opinion(query_id, (doc_id,), _QRELS, float(label))
        for query_id, own in data.qrels.items()
        for doc_id, label in own.items()
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
            for criterion, grade in grades(result, settings).items():
                yield Opinion(want.query_id, (want.item, criterion), want.judge, grade)


def _nuggets(store: Store, tournament: str) -> Iterator[Opinion]:
    results = nugget_results(store, tournament)
    if results is None:
        return
    judge = store.settings(tournament)["nuggets"]["judge"]
    for own in results.assignments:
        for nugget, label in zip(own.nuggets, own.labels, strict=True):
            if label is not None:
                yield Opinion(own.query_id, (own.run, nugget.nugget_id), judge, SUPPORT[label])
