"""What a tournament wants judged, and which judgment answers each want."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, TextClause, bindparam, func, text
from sqlmodel import delete, select, update

from arena.store.chunks import CHUNK, chunks
from arena.store.rows import JudgmentRow, Result, Wanted, WantedRow, result_of, table, wanted_of, wanted_values
from judges.types import Task

_KEYS = ("task", "judge", "query_id", "item", "other", "order", "sample")


def wanted(connection: Connection, number: int, task: Task | None) -> list[tuple[Wanted, str | None]]:
    """Everything a tournament wants, in the order of its plan, with the judgment's id where assigned."""
    here = table(WantedRow).c
    statement = select(WantedRow).where(here.tournament_id == number).order_by(here.position)
    if task is not None:
        statement = statement.where(here.task == task.value)
    return [(wanted_of(row), row.judgment_id) for row in connection.execute(statement)]


def outcomes(connection: Connection, number: int, task: Task) -> list[tuple[Wanted, Result | None]]:
    """Everything wanted of one task with its result; in one query, since there may be hundreds of thousands."""
    here, judged = table(WantedRow), table(JudgmentRow)
    columns = [here.c[key] for key in _KEYS if key != "task"]
    statement = (
        select(*columns, *judged.c)
        .select_from(here.outerjoin(judged, here.c.judgment_id == judged.c.judgment_id))
        .where(here.c.tournament_id == number, here.c.task == task.value)
        .order_by(here.c.position)
    )
    size = len(columns)
    return [
        (Wanted(task, *row[:size]), None if row[size] is None else result_of(row[size:]))
        for row in connection.execute(statement)
    ]


def extend(connection: Connection, number: int, added: Iterable[Wanted]) -> None:
    """Put further wants after those that are there; one that is there already stays as it is."""
    here = table(WantedRow).c
    last = connection.execute(select(func.max(here.position)).where(here.tournament_id == number)).scalar()
    start = 0 if last is None else last + 1
    rows = (wanted_values(number, position, want) for position, want in enumerate(added, start))
    for chunk in chunks(rows, CHUNK):
        connection.execute(_insert("DO NOTHING"), chunk)


def replace(connection: Connection, number: int, wants: Iterable[Wanted], *, keep_judgments: bool) -> None:
    """Put these wants in place of those that are there."""
    here = table(WantedRow)
    mine = here.c.tournament_id == number
    if keep_judgments:
        connection.execute(update(here).where(mine).values(position=-1 - here.c.position))
    else:
        connection.execute(delete(here).where(mine))
    rows = (wanted_values(number, position, want) for position, want in enumerate(wants))
    for chunk in chunks(rows, CHUNK):
        connection.execute(_insert("DO UPDATE SET position = excluded.position"), chunk)
    connection.execute(delete(here).where(mine, here.c.position < 0))  # what is not wanted any more


def assign(connection: Connection, number: int, judgments: Sequence[tuple[Wanted, str]]) -> None:
    """Note which judgment answers each want, in one order for all who do so at once: else two could wait for ever."""
    wants = table(WantedRow)
    statement = update(wants).where(
        wants.c.tournament_id == number, *(wants.c[key] == bindparam(f"at_{key}") for key in _KEYS)
    )
    rows: list[dict[str, Any]] = [
        {**{f"at_{key}": getattr(want, key) for key in _KEYS}, "found": found} for want, found in judgments
    ]
    rows.sort(key=itemgetter(*(f"at_{key}" for key in _KEYS)))
    connection.execute(statement.values(judgment_id=bindparam("found")), rows)


def _insert(if_there: str) -> TextClause:
    names = [column.name for column in table(WantedRow).columns]
    columns, values = ", ".join(f'"{name}"' for name in names), ", ".join(f":{name}" for name in names)
    keys = ", ".join(f'"{column.name}"' for column in table(WantedRow).primary_key)
    return text(f"INSERT INTO wanted ({columns}) VALUES ({values}) ON CONFLICT ({keys}) {if_there}")  # noqa: S608
