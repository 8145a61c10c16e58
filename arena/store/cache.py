"""Figures that took long to compute, kept until the store changes: a cache, of which nothing else depends."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, delete, insert, select

from arena.store.engine import patient
from arena.store.rows import FIGURES_ROWS, STATE_ROWS, TOURNAMENT_ROWS, has_table, tournament_number

if TYPE_CHECKING:
    from arena.store.database import Database


_DIGEST_BYTES: Final = 16
_PATIENCE_S: Final = 0.5
"""How long a reader who has computed figures waits for a lock: computing them again is no loss to others."""


class FigureCache:
    """The kept figures of one tournament, as bytes that their makers read and write.

    Args:
        store: where they are kept.
        tournament: its name.
        made_by: what has to be the same for figures to be still good, such as a version of the program.

    Attributes:
        location: the store's.
    """

    def __init__(self, store: Database, tournament: str, made_by: str) -> None:
        self._store, self._tournament, self._made_by = store, tournament, made_by
        self.location = store.location

    @patient
    def get(self, kind: str) -> bytes | None:
        """The figures, if they are kept and hold for the store as it is."""
        here = FIGURES_ROWS.c
        with self._store.reading() as connection:
            if not has_table(connection, FIGURES_ROWS):
                return None
            number = tournament_number(connection, self._tournament)
            mine = here.tournament_id == number, here.kind == kind, here.made_by == self._made_by
            found = connection.execute(select(here.content).where(*mine)).scalar()
        if found is None:
            return None
        digest, content = bytes(found)[:_DIGEST_BYTES], bytes(found)[_DIGEST_BYTES:]
        return content if digest == _digest(content) else None  # what is damaged is computed anew

    @patient
    def keep(self, figures: dict[str, bytes], *, seen: int) -> bool:
        """Keep figures in place of earlier ones of these kinds.

        Args:
            figures: by kind.
            seen: the store's number of changes before what they are made of was read. If it has changed since, they
                are old already and not kept.

        Raises:
            StoreError: the store cannot be written.
        """
        here = FIGURES_ROWS
        with self._store.writing(alone=True, judged=False, patience_s=_PATIENCE_S) as connection:
            changes = connection.execute(select(STATE_ROWS.c.changes)).scalar_one()
            if changes != seen or not has_table(connection, FIGURES_ROWS):
                return False
            number = tournament_number(connection, self._tournament)
            connection.execute(delete(here).where(here.c.tournament_id == number, here.c.kind.in_(figures)))
            mine = {"tournament_id": number, "made_by": self._made_by}
            connection.execute(
                insert(here), [{**mine, "kind": kind, "content": _digest(own) + own} for kind, own in figures.items()]
            )
        return True


def number_of(connection: Connection, tournament: str, kind: str, made_by: str) -> int | None:
    """The number of a tournament of which such figures are kept, whatever they are."""
    here, tournaments = FIGURES_ROWS.c, TOURNAMENT_ROWS.c
    mine = tournaments.name == tournament, here.kind == kind, here.made_by == made_by
    chosen = select(here.tournament_id).where(here.tournament_id == tournaments.tournament_id, *mine)
    return connection.execute(chosen).scalar() if has_table(connection, FIGURES_ROWS) else None


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
