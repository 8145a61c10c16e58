"""A tournament's verdicts out of the database by the million: one by one, and what they took."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, case, func, select

from arena.store.bulk import stream
from arena.store.rows import JudgmentRow, WantedRow, table, tournament_number
from judges.types import Task

if TYPE_CHECKING:
    from arena.store import Store

_CHUNK: Final = 20_000


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
