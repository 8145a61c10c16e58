"""Judgments and failures, kept once for all tournaments of a store."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, text
from sqlmodel import select

from arena.store.chunks import CHUNK, chunks
from arena.store.rows import JudgmentRow, Result, judgment_values, result_of, table
from judges.types import Task


def save(connection: Connection, results: Sequence[tuple[Task, str, Result]]) -> None:
    """Keep results; a judgment stays, a failure gives way to what comes after it."""
    rows = sorted((judgment_values(*entry) for entry in results), key=lambda row: row["judgment_id"])
    names = [column.name for column in table(JudgmentRow).columns]
    columns, values = ", ".join(names), ", ".join(f":{name}" for name in names)
    changed = ", ".join(f"{name} = excluded.{name}" for name in names if name != "judgment_id")
    statement = text(
        f"INSERT INTO judgment ({columns}) VALUES ({values}) "  # noqa: S608 - names come from the table itself
        f"ON CONFLICT (judgment_id) DO UPDATE SET {changed} WHERE judgment.outcome IS NULL"
    )
    connection.execute(statement, rows)


def results(connection: Connection, judgment_ids: Sequence[str]) -> dict[str, Result]:
    """The results known for these ids."""
    found: dict[str, Result] = {}
    for chunk in chunks(judgment_ids, CHUNK):
        rows = connection.execute(select(JudgmentRow).where(table(JudgmentRow).c.judgment_id.in_(chunk)))
        found.update((row.judgment_id, result_of(row)) for row in rows)
    return found
