"""Checksums of what has no column for one: tournaments' settings and data, what people say, what agents reply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from sqlalchemy import Connection
from sqlmodel import delete, select

from arena.store.bulk import CHUNK, among, chunks, insert_rows
from arena.store.rows import ChecksumRow, Damage, checksum, has_table, table

Kind: TypeAlias = Literal["settings", "dataset", "annotation", "agent_reply"]
_IN_PLACE: Final = "(kind, name) DO UPDATE SET checksum = excluded.checksum"


def keep(connection: Connection, kind: Kind, rows: Mapping[str, Iterable[Any]]) -> None:
    """Remember what was written, by name; a store of an earlier version has no place for it until a run writes it."""
    if rows and has_table(connection, ChecksumRow):
        summed = [{"kind": kind, "name": name, "checksum": checksum(row)} for name, row in sorted(rows.items())]
        for chunk in chunks(summed, CHUNK):
            insert_rows(connection, ChecksumRow, chunk, _IN_PLACE)


def drop(connection: Connection, kind: Kind, name: str) -> None:
    """Remember nothing of it."""
    here = table(ChecksumRow).c
    connection.execute(delete(ChecksumRow).where(here.kind == kind, here.name == name))


def wrong(connection: Connection, kind: Kind, rows: Mapping[str, Iterable[Any]]) -> Iterator[str]:
    """The names of those that are not what was written."""
    there = kept(connection, kind, list(rows))
    yield from (name for name, summed in there.items() if summed != checksum(rows[name]))


def require(connection: Connection, kind: Kind, rows: Mapping[str, Iterable[Any]]) -> None:
    """See that these are what was written.

    Raises:
        Damage: one is not.
    """
    for name in wrong(connection, kind, rows):
        raise Damage(f"{kind.replace('_', ' ')} {name}")


def kept(connection: Connection, kind: Kind, names: Sequence[str] | None = None) -> dict[str, int]:
    """The checksums of these, or of all."""
    here = table(ChecksumRow).c
    if not has_table(connection, ChecksumRow):
        return {}
    chosen = select(here.name, here.checksum).where(here.kind == kind)
    if names is None:
        return {row.name: row.checksum for row in connection.execute(chosen)}
    found: dict[str, int] = {}
    for chunk in chunks(names, CHUNK):
        rows = connection.execute(chosen.where(among(connection, here.name, chunk)))
        found.update((row.name, row.checksum) for row in rows)
    return found
