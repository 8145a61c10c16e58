"""What the judges of a tournament said, and what the people beside them, from its store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from arena.calibration.opinions import Level, Opinion
from arena.leaderboard import game_verdicts, grades
from arena.nuggets.results import nugget_results
from arena.opinions.files import OUTCOME, SUPPORT
from arena.samples import labels_by_judge, outcomes
from arena.store import Store
from judges.pointwise import label_of
from judges.types import JudgeFailure, Judgment, Task

_QRELS = "qrels"
"""The one person whom the labels of a file are of."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What one judge's games took.

    Attributes:
        games: pairs of answers with a verdict, however many orders.
        failed: verdicts that failed, of ``wanted``.
        cost_usd: of all its verdicts, ``None`` where a price is not known.
    """

    games: int
    wanted: int
    failed: int
    cost_usd: float | None

    @property
    def per_thousand(self) -> float | None:
        """Dollars per 1000 games."""
        return None if self.cost_usd is None or not self.games else 1000 * self.cost_usd / self.games


def judges_opinions(store: Store, tournament: str) -> dict[tuple[Level, str], list[Opinion]]:
    """Everything judges said, by level; failures are no opinions."""
    found: dict[Level, list[Opinion]] = {
        "verdicts": list(_verdicts(store, tournament)),
        "labels": [
            Opinion(query_id, (doc_id,), judge, float(label_of(result.outcome)))
            for judge, own in labels_by_judge(store, tournament).items()
            for (query_id, doc_id), result in own.items()
            if isinstance(result, Judgment)
        ],
        "criteria": list(_criteria(store, tournament)),
        "nuggets": list(_nuggets(store, tournament)),
    }
    return {(level, ""): said for level, said in found.items() if said}


def peoples_labels(store: Store, tournament: str) -> list[Opinion]:
    """The relevance labels of people that came with the data."""
    labels = store.dataset(tournament).qrels
    return [
        Opinion(query_id, (doc_id,), _QRELS, float(label))
        for query_id, own in labels.items()
        for doc_id, label in own.items()
    ]


def spending(store: Store, tournament: str) -> dict[str, Spending]:
    """What each answer judge's games took, by judge."""
    rows: defaultdict[str, list[tuple[tuple[str, str, str], object, float | None]]] = defaultdict(list)
    for want, result in store.outcomes(tournament, Task.PAIRWISE):
        cost = result.cost_usd if isinstance(result, Judgment | JudgeFailure) else 0.0
        rows[want.judge].append(((want.query_id, want.item, want.other), result, cost))
    found = {}
    for judge, own in rows.items():
        costs = [cost for *_, cost in own]
        games = {game for game, result, _ in own if isinstance(result, Judgment)}
        failed = sum(isinstance(result, JudgeFailure) for _, result, _ in own)
        known = [cost for cost in costs if cost is not None]
        found[judge] = Spending(len(games), len(own), failed, sum(known) if len(known) == len(costs) else None)
    return found


def _verdicts(store: Store, tournament: str) -> Iterator[Opinion]:
    for verdict in game_verdicts(outcomes(store, tournament, Task.PAIRWISE)):
        pair = tuple(sorted((verdict.agent_a, verdict.agent_b)))
        swapped = verdict.agent_a != pair[0]
        value = OUTCOME[verdict.verdict]
        yield Opinion(verdict.query_id or "", pair, verdict.judge, -value if swapped else value, swapped)


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
