"""Batches that servers work off for this store, and which request is in which, so that none is paid for twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Column, Connection, Float, Integer, String, Table, delete, func, select, update

from arena.store.bulk import CHUNK, among, chunks, delete_rows, insert_rows
from arena.store.engine import patient
from arena.store.rows import METADATA, has_table

if TYPE_CHECKING:
    from arena.store.database import Database
    from judges.batches import Batch


BATCH_ROWS: Final = Table(
    "batch",
    METADATA,
    Column("marker", String, primary_key=True),
    Column("made_at", Float, nullable=False),
    Column("requests", Integer, nullable=False),
    Column("remote_id", String),
    Column("judge", String, nullable=False),
    Column("provider", String, nullable=False),
    Column("model", String, nullable=False),
)
"""A batch that was handed in, or was about to be where ``remote_id`` is null; ``made_at`` in seconds since 1970."""


BATCH_LINE_ROWS: Final = Table(
    "batch_line",
    METADATA,
    Column("custom_id", String, primary_key=True),
    Column("judgment_id", String, index=True, nullable=False),
    Column("marker", String, index=True, nullable=False),
)
"""A request in a batch whose judgment is not in the store yet."""


class OpenBatch(Struct, frozen=True):
    """A batch with requests whose judgments are not in the store yet.

    Attributes:
        batch: as it was handed in.
        open: how many of its requests these are.
    """

    batch: Batch
    judge: str
    provider: str
    model: str
    open: int


class StoredBook(Struct, frozen=True):
    """The batches of one judge: the ``Book`` of ``judges.batches``."""

    store: Database
    judge: str
    provider: str
    model: str

    @property
    def location(self) -> str:
        """The store's, as it may be printed."""
        return self.store.location

    @patient
    def place(self, batch: Batch, lines: Mapping[str, str]) -> dict[str, Batch]:
        """Remember a batch with those of its requests that are in no other one; returns the batch of each."""
        row = {"judge": self.judge, "provider": self.provider, "model": self.model, **asdict(batch)}
        with self.store.writing(judged=False) as connection:
            insert_rows(connection, BATCH_ROWS, [row], "DO NOTHING")
            rows = [
                {"custom_id": custom_id, "judgment_id": ident, "marker": batch.marker}
                for custom_id, ident in sorted(lines.items())
            ]
            insert_rows(connection, BATCH_LINE_ROWS, rows, "DO NOTHING")
            placed = _placed(connection, list(lines))
            _count(connection, batch.marker, sum(marker == batch.marker for marker in placed.values()))
            found = {row.marker: _batch(row) for row in connection.execute(select(BATCH_ROWS))}
            _forget_empty(connection)
        return {custom_id: found[marker] for custom_id, marker in placed.items()}

    @patient
    def custom_ids(self, marker: str) -> set[str]:
        """The requests of a batch."""
        here = BATCH_LINE_ROWS.c
        with self.store.reading() as connection:
            return set(connection.execute(select(here.custom_id).where(here.marker == marker)).scalars())

    @patient
    def submitted(self, marker: str, remote_id: str) -> None:
        """The server has taken a batch."""
        here = BATCH_ROWS
        with self.store.writing(judged=False) as connection:
            connection.execute(update(here).where(here.c.marker == marker).values(remote_id=remote_id))

    @patient
    def free(self, custom_ids: Sequence[str]) -> None:
        """These requests may go into another batch."""
        with self.store.writing(judged=False) as connection:
            delete_rows(connection, BATCH_LINE_ROWS.c.custom_id, custom_ids)
            _forget_empty(connection)

    def drop(self, marker: str) -> None:
        """The server does not have this batch."""
        drop(self.store, marker)


@patient
def open_batches(store: Database) -> list[OpenBatch]:
    """The batches whose replies are not all in the store, oldest first."""
    batches, lines = BATCH_ROWS, BATCH_LINE_ROWS
    with store.reading() as connection:
        if not has_table(connection, BATCH_ROWS):
            return []
        statement = (
            select(batches, func.count(lines.c.custom_id))
            .join(lines, lines.c.marker == batches.c.marker)
            .group_by(*batches.c)
            .order_by(batches.c.made_at)
        )
        return [
            OpenBatch(_batch(row), row.judge, row.provider, row.model, row[-1]) for row in connection.execute(statement)
        ]


@patient
def waiting(store: Database, judgment_ids: Sequence[str]) -> set[str]:
    """Those of these judgments that have a request in a batch."""
    ident = BATCH_LINE_ROWS.c.judgment_id
    found: set[str] = set()
    with store.reading() as connection:
        if has_table(connection, BATCH_LINE_ROWS):
            for chunk in chunks(judgment_ids, CHUNK):
                found.update(connection.execute(select(ident).where(among(connection, ident, chunk))).scalars())
    return found


@patient
def drop(store: Database, marker: str) -> None:
    """Forget a batch, whatever the server does with it."""
    with store.writing(judged=False) as connection:
        connection.execute(delete(BATCH_LINE_ROWS).where(BATCH_LINE_ROWS.c.marker == marker))
        connection.execute(delete(BATCH_ROWS).where(BATCH_ROWS.c.marker == marker))


def settle(connection: Connection, judgment_ids: Sequence[str]) -> None:
    """These judgments have their results: nobody looks for their requests any more."""
    if delete_rows(connection, BATCH_LINE_ROWS.c.judgment_id, judgment_ids):
        _forget_empty(connection)


def _placed(connection: Connection, custom_ids: Sequence[str]) -> dict[str, str]:
    here = BATCH_LINE_ROWS.c
    placed: dict[str, str] = {}
    for chunk in chunks(custom_ids, CHUNK):
        rows = connection.execute(select(here.custom_id, here.marker).where(among(connection, here.custom_id, chunk)))
        placed.update((row.custom_id, row.marker) for row in rows)
    return placed


def _count(connection: Connection, marker: str, requests: int) -> None:
    """A batch holds only what was in no other one."""
    here = BATCH_ROWS
    connection.execute(update(here).where(here.c.marker == marker).values(requests=requests))


def _forget_empty(connection: Connection) -> None:
    batches, lines = BATCH_ROWS, BATCH_LINE_ROWS
    connection.execute(delete(BATCH_ROWS).where(batches.c.marker.not_in(select(lines.c.marker))))


def _batch(row: Any) -> Batch:
    from judges.batches import Batch

    return Batch(row.marker, row.made_at, row.requests, row.remote_id)
