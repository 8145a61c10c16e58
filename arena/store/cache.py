"""A cache of results that are slow to compute, valid until the store changes; it may be emptied at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, delete, insert, select

from arena.store.engine import retrying
from arena.store.rows import tournament_number, with_checksum
from arena.store.tables import FIGURES, STATE, TOURNAMENT

if TYPE_CHECKING:
    from arena.store.database import Database


_PATIENCE_S: Final = 0.5
"""Seconds to wait for a lock when storing results; short, because they can be computed again."""


class FigureCache:
    """The cached results of one tournament, as bytes; callers serialise them.

    Args:
        made_by: a key such as the program's version; results stored under another key are ignored.
    """

    def __init__(self, store: Database, tournament: str, made_by: str) -> None:
        self._store, self._tournament, self._made_by = store, tournament, made_by
        self.location = store.location

    @retrying
    def get(self, kind: str) -> bytes | None:
        """The cached results of a kind; ``None`` if there are none."""
        columns = FIGURES.c
        with self._store.reading() as connection:
            number = tournament_number(connection, self._tournament)
            key = columns.tournament_id == number, columns.kind == kind, columns.made_by == self._made_by
            stored = connection.execute(select(columns.content).where(*key)).scalar()
        return None if stored is None else bytes(stored)

    @retrying
    def keep(self, figures: dict[str, bytes], *, seen: int) -> bool:
        """Cache results by kind, replacing earlier ones of the same kinds; returns whether they were stored.

        Args:
            seen: the store's change counter, read before the results were computed. If the store has changed since, the
                results are out of date and are not stored.
        """
        table = FIGURES
        with self._store.writing(alone=True, judged=False, patience_s=_PATIENCE_S) as connection:
            changes = connection.execute(select(STATE.c.changes)).scalar_one()
            if changes != seen:
                return False
            number = tournament_number(connection, self._tournament)
            connection.execute(delete(table).where(table.c.tournament_id == number, table.c.kind.in_(figures)))
            rows = [(number, kind, self._made_by, content) for kind, content in figures.items()]
            names = [column.name for column in table.columns][:-1]
            connection.execute(insert(table), [with_checksum(dict(zip(names, row, strict=True))) for row in rows])
        return True


def number_of(connection: Connection, tournament: str, kind: str, made_by: str) -> int | None:
    """The number of a tournament if results of this kind are cached for it, else ``None``."""
    figures, tournaments = FIGURES.c, TOURNAMENT.c
    key = tournaments.name == tournament, figures.kind == kind, figures.made_by == made_by
    statement = select(figures.tournament_id).where(figures.tournament_id == tournaments.tournament_id, *key)
    return connection.execute(statement).scalar()
