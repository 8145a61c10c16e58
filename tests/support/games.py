"""Games of outcomes that stand in no store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np

from arena.boards.games import GameRecord, ShownOrder
from arena.ratings.games import GameVerdict, WinAndTie, reconcile, tabulate
from arena.results.games import GameTable, games_of
from arena.store import IDENTICAL, Result, Wanted
from arena.store.bulk import RowColumns
from arena.store.outcomes import game_verdicts
from judges.types import JudgeFailure, Judgment, Verdict


def game_table(outcomes: Sequence[tuple[Wanted, Result | None]]) -> GameTable:
    """Wanted games with their results, in this order."""
    texts = {
        "judge": [want.judge for want, _ in outcomes],
        "query": [want.query_id for want, _ in outcomes],
        "first": [want.other if want.order == "ba" else want.item for want, _ in outcomes],
        "second": [want.item if want.order == "ba" else want.other for want, _ in outcomes],
        "outcome": [json.dumps(result.outcome) if isinstance(result, Judgment) else None for _, result in outcomes],
        "cause": [result.cause if isinstance(result, JudgeFailure) else None for _, result in outcomes],
    }
    numbers = {
        "position": list(range(len(outcomes))),
        "sample": [want.sample for want, _ in outcomes],
        "identical": [result is not None and result.judgment_id == IDENTICAL for _, result in outcomes],
    }
    columns = RowColumns(
        texts,
        dict.fromkeys(texts, np.arange(len(outcomes), dtype=np.int32))
        | {name: np.array(values, np.int32) for name, values in numbers.items()},
    )
    return games_of(columns, {})


def game_records(outcomes: Sequence[tuple[Wanted, Result | None]], win_and_tie: WinAndTie) -> tuple[GameRecord, ...]:
    """Both orders of each query, judge and pair as one game, in the order of the plan; counted without the table."""
    orders: dict[tuple[str, str, str, str], list[ShownOrder]] = {}
    for want, result in outcomes:
        first, second = (want.item, want.other) if want.order == "ab" else (want.other, want.item)
        key = (want.judge, want.query_id, want.item, want.other)
        orders.setdefault(key, []).append(ShownOrder(first, second, result))
    scores = _scores(outcomes, win_and_tie)
    return tuple(
        GameRecord(query_id, a, b, judge, tuple(shown), scores.get((judge, query_id, a, b)))
        for (judge, query_id, a, b), shown in orders.items()
    )


def in_both_orders(
    query: str, first: str, second: str, verdict: Verdict, back: Verdict | None = None, judge: str = ""
) -> list[GameVerdict]:
    """A game in both orders; ``back`` is the verdict of the second, by default the same winner."""
    mirrored = {Verdict.A: Verdict.B, Verdict.B: Verdict.A}.get(verdict, Verdict.TIE)
    return [
        GameVerdict(query, first, second, verdict, judge),
        GameVerdict(query, second, first, back or mirrored, judge),
    ]


def _scores(outcomes: Iterable[tuple[Wanted, Result | None]], how: WinAndTie) -> dict[tuple[str, str, str, str], float]:
    """Score of the first agent of each rated game, by judge, query and the two agents in either order."""
    verdicts = list(game_verdicts(outcomes))
    scores = {}
    for judge in {verdict.judge for verdict in verdicts}:
        table = tabulate(verdict for verdict in verdicts if verdict.judge == judge)
        games = reconcile(table, win_and_tie=how)
        assert table.queries is not None
        assert games.cluster is not None
        for query, a, b, score in zip(games.cluster, games.a, games.b, games.score, strict=True):
            names = games.agents[a], games.agents[b]
            scores[judge, table.queries[query], *names] = float(score)
            scores[judge, table.queries[query], *reversed(names)] = 1.0 - float(score)
    return scores
