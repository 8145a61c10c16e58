"""Judgments and failures, kept once for all tournaments of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection
from sqlmodel import select

from arena.store.bulk import CHUNK, among, chunks, insert_rows, replacing
from arena.store.rows import JudgmentRow, Result, judgment_values, result_of, table
from judges.types import Task

_IF_THERE: Final = replacing(JudgmentRow, "judgment_id", where="judgment.outcome IS NULL")


def save(connection: Connection, results: Sequence[tuple[Task, str, Result]]) -> None:
    """Keep results; a judgment stays, a failure gives way to what comes after it."""
    rows: dict[str, dict[str, Any]] = {}
    for entry in results:
        row = judgment_values(*entry)
        if (there := rows.get(row["judgment_id"])) is None or there["outcome"] is None:
            rows[row["judgment_id"]] = row
    insert_rows(connection, JudgmentRow, [rows[ident] for ident in sorted(rows)], _IF_THERE)


def results(connection: Connection, judgment_ids: Sequence[str]) -> dict[str, Result]:
    """The results known for these ids."""
    found: dict[str, Result] = {}
    ident = table(JudgmentRow).c.judgment_id
    for chunk in chunks(judgment_ids, CHUNK):
        rows = connection.execute(select(JudgmentRow).where(among(connection, ident, chunk)))
        found.update((row.judgment_id, result_of(row)) for row in rows)
    return found
