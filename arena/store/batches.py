"""Keeps the batches sent to providers and the requests in each, so that no request is paid for twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, delete, func, select, update

from arena.store.bulk import CHUNK, among, chunks, delete_rows, insert_rows
from arena.store.engine import retrying
from arena.store.tables import BATCH, BATCH_LINE

if TYPE_CHECKING:
    from arena.store.database import Database
    from judges.batch_servers import Batch


class OpenBatch(Struct, frozen=True):
    """A batch sent to a provider whose judgments are not all in the store yet.

    Attributes:
        open: number of its requests without a stored judgment.
    """

    batch: Batch
    judge: str
    provider: str
    model: str
    open: int


class StoredBook(Struct, frozen=True):
    """Keeps the batches of one judge in a store; implements ``Book`` of ``judges.batch_servers``."""

    store: Database
    judge: str
    provider: str
    model: str

    @property
    def location(self) -> str:
        return self.store.location

    @retrying
    def place(self, batch: Batch, lines: Mapping[str, str]) -> dict[str, Batch]:
        """Store a batch with its requests, except those that another batch has; returns each request's batch."""
        row = {"judge": self.judge, "provider": self.provider, "model": self.model, **asdict(batch)}
        with self.store.writing(judged=False) as connection:
            insert_rows(connection, BATCH, [row], "DO NOTHING")
            rows = [
                {"custom_id": custom_id, "judgment_id": ident, "marker": batch.marker}
                for custom_id, ident in sorted(lines.items())
            ]
            insert_rows(connection, BATCH_LINE, rows, "DO NOTHING")
            placed = _placed(connection, list(lines))
            _set_size(connection, batch.marker, sum(marker == batch.marker for marker in placed.values()))
            batches = {row.marker: _batch(row) for row in connection.execute(select(BATCH))}
            _delete_empty(connection)
        return {custom_id: batches[marker] for custom_id, marker in placed.items()}

    @retrying
    def custom_ids(self, marker: str) -> set[str]:
        lines = BATCH_LINE.c
        with self.store.reading() as connection:
            return set(connection.execute(select(lines.custom_id).where(lines.marker == marker)).scalars())

    @retrying
    def submitted(self, marker: str, remote_id: str) -> None:
        with self.store.writing(judged=False) as connection:
            connection.execute(update(BATCH).where(BATCH.c.marker == marker).values(remote_id=remote_id))

    @retrying
    def free(self, custom_ids: Sequence[str]) -> None:
        with self.store.writing(judged=False) as connection:
            delete_rows(connection, BATCH_LINE.c.custom_id, custom_ids)
            _delete_empty(connection)

    def drop(self, marker: str) -> None:
        drop(self.store, marker)


@retrying
def open_batches(store: Database) -> list[OpenBatch]:
    """All batches that still have requests without a stored judgment, oldest first."""
    batches, lines = BATCH, BATCH_LINE
    with store.reading() as connection:
        statement = (
            select(batches, func.count(lines.c.custom_id))
            .join(lines, lines.c.marker == batches.c.marker)
            .group_by(*batches.c)
            .order_by(batches.c.made_at)
        )
        return [
            OpenBatch(_batch(row), row.judge, row.provider, row.model, row[-1]) for row in connection.execute(statement)
        ]


@retrying
def waiting(store: Database, judgment_ids: Sequence[str]) -> set[str]:
    """Those of these judgment ids that are requested in an open batch."""
    ident = BATCH_LINE.c.judgment_id
    waiting_ids: set[str] = set()
    with store.reading() as connection:
        for chunk in chunks(judgment_ids, CHUNK):
            waiting_ids.update(connection.execute(select(ident).where(among(connection, ident, chunk))).scalars())
    return waiting_ids


@retrying
def drop(store: Database, marker: str) -> None:
    """Delete a batch and its requests from the store; the provider's copy is not touched."""
    with store.writing(judged=False) as connection:
        connection.execute(delete(BATCH_LINE).where(BATCH_LINE.c.marker == marker))
        connection.execute(delete(BATCH).where(BATCH.c.marker == marker))


def settle(connection: Connection, judgment_ids: Sequence[str]) -> None:
    if delete_rows(connection, BATCH_LINE.c.judgment_id, judgment_ids):
        _delete_empty(connection)


def _placed(connection: Connection, custom_ids: Sequence[str]) -> dict[str, str]:
    lines = BATCH_LINE.c
    placed: dict[str, str] = {}
    for chunk in chunks(custom_ids, CHUNK):
        in_chunk = among(connection, lines.custom_id, chunk)
        rows = connection.execute(select(lines.custom_id, lines.marker).where(in_chunk))
        placed.update((row.custom_id, row.marker) for row in rows)
    return placed


def _set_size(connection: Connection, marker: str, requests: int) -> None:
    connection.execute(update(BATCH).where(BATCH.c.marker == marker).values(requests=requests))


def _delete_empty(connection: Connection) -> None:
    batches, lines = BATCH, BATCH_LINE
    connection.execute(delete(BATCH).where(batches.c.marker.not_in(select(lines.c.marker))))


def _batch(row: Any) -> Batch:
    from judges.batch_servers import Batch

    return Batch(row.marker, row.made_at, row.requests, row.remote_id)
