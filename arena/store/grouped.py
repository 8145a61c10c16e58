"""A tournament's verdicts out of the database by the million: grouped there without a text, or one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, Connection, Select, Text, and_, case, cast, func, literal, select

from arena.store.bulk import stream
from arena.store.rows import IDENTICAL, JudgmentRow, Result, Wanted, WantedRow, table, tournament_number
from judges.types import JudgeFailure, Judgment, Task

if TYPE_CHECKING:
    from arena.store import Store

_CHUNK: Final = 20_000


def grouped_verdicts(store: Store, tournament: str) -> Iterator[tuple[Wanted, Result | None, list[str]]]:
    """All verdicts wanted, those that differ in nothing but their query together, in no order.

    There are as many as judges, pairs, orders, samples and outcomes make, however many verdicts that is.

    Yields:
        What was asked, the query left out; the result without id and texts; the ids of the queries, in no order.

    Raises:
        InputError: no such tournament.
    """
    with store._read() as connection:
        if connection.dialect.name != "sqlite":  # it expects far more groups than there are, and would sort all rows
            connection.exec_driver_sql("SET LOCAL enable_sort = off")
        chosen = _grouped(connection, tournament_number(connection, tournament))
        for part in stream(connection, chosen, 1):
            for judge, item, other, order, sample, *known, queries in part:
                yield Wanted(Task.PAIRWISE, judge, "", item, other, order, sample), _result(*known), json.loads(queries)


def verdict_rows(store: Store, tournament: str) -> Iterator[list[tuple[Any, ...]]]:
    """All verdicts, samples by themselves, in chunks and in no order.

    Yields:
        Lists of query_id, item, other, order, judge, sample, the verdict as JSON, and its reason.

    Raises:
        InputError: no such tournament.
    """
    here, judged = table(WantedRow).c, table(JudgmentRow).c
    asked = [here[name] for name in ("query_id", "item", "other", "order", "judge", "sample")]
    with store._read() as connection:
        mine = here.tournament_id == tournament_number(connection, tournament), here.task == Task.PAIRWISE.value
        chosen = select(*asked, judged.outcome, judged.reason).where(
            *mine, here.judgment_id == judged.judgment_id, judged.outcome.is_not(None)
        )
        yield from stream(connection, chosen, _CHUNK)


def spent_by_judge(store: Store, tournament: str) -> list[tuple[str, int, int, int, int, float]]:
    """What the verdicts of each answer judge took, samples counted one by one.

    Returns:
        Rows of judge, games with a verdict, verdicts wanted, those that failed, those whose price is not known, and the
        dollars of the others.

    Raises:
        InputError: no such tournament.
    """
    here, judged = table(WantedRow), table(JudgmentRow).c
    failed = and_(judged.judgment_id.is_not(None), judged.outcome.is_(None))
    unpriced = and_(judged.judgment_id.is_not(None), judged.cost_usd.is_(None))
    figures = [
        func.max(case((judged.outcome.is_not(None), 1), else_=0)).label("played"),
        func.count().label("wanted"),
        func.sum(case((failed, 1), else_=0)).label("failed"),
        func.sum(case((unpriced, 1), else_=0)).label("unpriced"),
        func.coalesce(func.sum(judged.cost_usd), 0.0).label("cost"),
    ]
    game = (here.c.judge, here.c.query_id, here.c.item, here.c.other)
    with store._read() as connection:
        number = tournament_number(connection, tournament)
        by_game = (
            select(here.c.judge, *figures)
            .select_from(here.outerjoin(table(JudgmentRow), here.c.judgment_id == judged.judgment_id))
            .where(here.c.tournament_id == number, here.c.task == Task.PAIRWISE.value)
            .group_by(*game)
            .subquery()
        )
        sums = [func.sum(by_game.c[own.name]) for own in figures]
        rows = connection.execute(select(by_game.c.judge, *sums).group_by(by_game.c.judge).order_by(by_game.c.judge))
        return [(judge, *map(int, counts), float(cost)) for judge, *counts, cost in rows]


def _grouped(connection: Connection, number: int) -> Select[Any]:
    here, judged = table(WantedRow), table(JudgmentRow)
    identical = case((and_(here.c.judgment_id == IDENTICAL, judged.c.outcome.is_not(None)), 1), else_=0)
    asked = [here.c[name] for name in ("judge", "item", "other", "order", "sample")]
    alike = (*asked, judged.c.outcome, judged.c.cause, identical)
    return (
        select(*alike, _as_json(connection, here.c.query_id))
        .select_from(here.outerjoin(judged, here.c.judgment_id == judged.c.judgment_id))
        .where(here.c.tournament_id == number, here.c.task == Task.PAIRWISE.value)
        .group_by(*alike)
    )


def _result(outcome: str | None, cause: str | None, identical: int) -> Result | None:
    if outcome is not None:
        return Judgment(IDENTICAL if identical else "", json.loads(outcome), "", "", "")
    return None if cause is None else JudgeFailure("", cause, "")


def _as_json(connection: Connection, column: ColumnElement[str]) -> ColumnElement[str]:
    """All of a group's texts as a JSON array. A server's own takes one processor and many times the memory."""
    if connection.dialect.name == "sqlite":
        return func.json_group_array(column, type_=Text)
    texts = func.string_agg(cast(func.to_json(column), Text), ",")
    return literal("[") + texts + literal("]")
