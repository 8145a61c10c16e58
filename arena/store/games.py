"""Games without their texts: what the judge said in each order, of hundreds of thousands."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, case, func
from sqlmodel import select

from arena.store.rows import JudgmentRow, WantedRow, table
from judges.types import Task


def sampled(connection: Connection, number: int) -> bool:
    """Whether a judge is to be asked about the same game more than once."""
    here = table(WantedRow).c
    mine = here.tournament_id == number, here.task == Task.PAIRWISE.value
    return bool(connection.execute(select(func.max(here.sample)).where(*mine)).scalar())


def rows(connection: Connection, number: int) -> list[Any]:
    """Judge, query, the agents as they are shown, judgment's id and outcome as JSON, and the cause of a failure."""
    here, judged = table(WantedRow), table(JudgmentRow)
    asked, turned = here.c, here.c.order == "ba"
    shown = [case((turned, one), else_=two) for one, two in ((asked.other, asked.item), (asked.item, asked.other))]
    columns: list[Any] = [asked.judge, asked.query_id, *shown, asked.judgment_id, judged.c.outcome, judged.c.cause]
    statement = (
        select(*columns)
        .select_from(here.outerjoin(judged, here.c.judgment_id == judged.c.judgment_id))
        .where(here.c.tournament_id == number, here.c.task == Task.PAIRWISE.value)
        .order_by(here.c.position)
    )
    return list(connection.execute(statement))
