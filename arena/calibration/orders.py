"""Verdicts in two orders: one outcome of each game, and whether the place of an answer sways the judge."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from arena.calibration.consensus import majority
from arena.calibration.votes import Opinion, Values, by_item, by_rater
from arena.ratings.games import Games, GameVerdict, Ints, VerdictTable, tabulate
from arena.ratings.health import both_orders
from arena.ratings.judges import JudgedGames, judged_games
from judges.types import Verdict
from retrieval_eval.stats.bootstrap import share_estimate
from retrieval_eval.stats.estimate import Estimate

_VERDICT = {1.0: Verdict.A, 0.0: Verdict.TIE, -1.0: Verdict.B}


@dataclass(frozen=True, slots=True)
class OrderHealth:
    """What one rater's verdicts say about places.

    Attributes:
        verdicts: how many.
        tie_rate: share of ties.
        both_orders: games judged in both orders.
        order_agreement: share of them with the same outcome in both; interval clustered by query, as all here.
        first_share: share of decided verdicts won by the answer shown first; 0.5 without a liking for places, where
            each agent is shown first as often as second.
    """

    verdicts: int
    tie_rate: float
    both_orders: int
    order_agreement: Estimate
    first_share: Estimate


def settled(said: Sequence[Opinion], *, verdicts: bool, ordered: bool = False) -> list[Opinion]:
    """One opinion of each rater on each thing: orders reconciled as for ratings; of other repeats the last one.

    Args:
        said: everything they said.
        verdicts: whether these are verdicts.
        ordered: each order of a game is a thing of its own; of several verdicts on one order most decide, as ever.
    """
    if not said:
        return []
    if verdicts and ordered:
        return [
            Opinion(query_id, item, rater, value)
            for rater in sorted({one.rater for one in said})
            for query_id, things in majority((one for one in said if one.rater == rater), mirrored=True).values.items()
            for item, value in things.items()
        ]
    if not verdicts:
        return [
            Opinion(query_id, item, rater, value)
            for rater, values in by_rater(said).items()
            for query_id, things in values.items()
            for item, value in things.items()
        ]
    games, names, raters, agents = _games(said)
    return [
        Opinion(query_id, (*further, agents[a], agents[b]), raters[rater], float(outcome))
        for (query_id, further), rater, a, b, outcome in zip(
            (names[query] for query in games.query), games.judge, games.a, games.b, games.outcome, strict=True
        )
    ]


def as_shown(said: Sequence[Opinion]) -> list[Opinion]:
    """Verdicts on games in the order shown, or written where nobody knows it: ``item`` names them so."""
    return [
        replace(one, item=(*one.item[:-2], one.item[-1], one.item[-2]), value=-one.value or 0.0, swapped=False)
        if one.swapped
        else one
        for one in said
    ]


def games_of(opinions: Sequence[Opinion]) -> tuple[Games, tuple[str, ...]]:
    """Verdicts, one of each rater on each game, as games; and the queries that their clusters number."""
    agents = tuple(sorted({name for one in opinions for name in one.item[-2:]}))
    place = {name: at for at, name in enumerate(agents)}
    queries = tuple(sorted({one.query_id for one in opinions}))
    number = {name: at for at, name in enumerate(queries)}
    games = Games(
        agents,
        np.array([place[one.item[-2]] for one in opinions], np.int32),
        np.array([place[one.item[-1]] for one in opinions], np.int32),
        np.array([(1 + one.value) / 2 for one in opinions]),
        np.array([number[one.query_id] for one in opinions], np.int32),
    )
    return games, queries


def values_of(settled_opinions: Sequence[Opinion]) -> Values:
    """One rater's opinions as values."""
    return {
        query_id: {item: own[0].value for item, own in things.items()}
        for query_id, things in by_item(settled_opinions).items()
    }


def order_health(said: Sequence[Opinion]) -> OrderHealth | None:
    """Places in these verdicts, whoever's; ``None`` where none is known of whose answer was shown first."""
    placed = [replace(one, rater="") for one in said if one.placed]
    if not placed:
        return None
    table = tabulate(map(_verdict, placed))
    _, unit = np.unique([query_id for query_id, _ in _things(table)], return_inverse=True)
    return table_health(table, unit.astype(np.int32))


def table_health(table: VerdictTable, unit: Ints | None = None) -> OrderHealth:
    """Places in the verdicts of one judge.

    Args:
        table: of that judge alone.
        unit: the independent unit of each of the table's queries, shape (queries,); each is its own if absent.
    """
    assert table.query is not None
    of_query = np.arange(len(table.queries or ())) if unit is None else unit
    decided = table.outcome != 0
    agree, query = both_orders(table)
    return OrderHealth(
        verdicts=len(table),
        tie_rate=1 - int(decided.sum()) / len(table),
        both_orders=agree.size,
        order_agreement=_share(agree, of_query[query]),
        first_share=_share(table.outcome[decided] > 0, of_query[table.query[decided]]),
    )


def _share(part: NDArray[np.bool_], unit: NDArray[np.integer]) -> Estimate:
    return share_estimate(np.bincount(unit, part), np.bincount(unit))


def _games(
    said: Sequence[Opinion],
) -> tuple[JudgedGames, list[tuple[str, tuple[str, ...]]], tuple[str, ...], tuple[str, ...]]:
    """Reconciled games, with the query and further columns, the rater and the agent behind each number."""
    table = tabulate(_verdict(one) for one in said)
    return judged_games(table), _things(table), table.judges, table.agents


def _things(table: VerdictTable) -> list[tuple[str, tuple[str, ...]]]:
    """The query and the further columns behind each number of a query."""
    named = (json.loads(name) for name in table.queries or ())
    return [(query_id, tuple(further)) for query_id, *further in named]


def _verdict(one: Opinion) -> GameVerdict:
    a, b = one.item[-2:]
    game = _game(one.query_id, one.item[:-2])
    if one.swapped:
        return GameVerdict(game, b, a, _VERDICT[-one.value], one.rater)
    return GameVerdict(game, a, b, _VERDICT[one.value], one.rater)


@lru_cache(maxsize=1 << 16)
def _game(query_id: str, further: tuple[str, ...]) -> str:
    """One name for both; asked for once for each verdict, of which there may be hundreds of thousands."""
    return json.dumps([query_id, *further])
