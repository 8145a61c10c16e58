"""What people say of a tournament's texts: verdicts, labels, grades, nuggets, flags. All of it is kept, in order.

Each person's word stands by itself. Where somebody says something else of the same thing later, that takes its place in
``latest`` and the earlier word stays in ``history``. A thing is known by its texts as well as its names, so that a
changed answer has no label of the old one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, func, insert, select

from arena.data.kinds import FLAG, Annotation
from arena.store.bulk import CHUNK, chunks
from arena.store.check import keep_checksums, require_as_written
from arena.store.rows import ANNOTATION_ROWS, tournament_number
from judges.errors import InputError

if TYPE_CHECKING:
    from arena.store.database import Database

_LONGEST_NAME = 80


_THING = ("kind", "annotator", "query_id", "item", "other", "texts")


class Annotations:
    """The annotations of one tournament in an open store.

    Args:
        store: opened to read or to write.
        tournament: its name.
    """

    def __init__(self, store: Database, tournament: str) -> None:
        self._store, self._tournament = store, tournament

    def add(self, said: Iterable[Annotation], check: Callable[[list[Annotation]], None] | None = None) -> int:
        """Keep what was said, in one transaction; what the annotator says of the thing already is not kept twice.

        Args:
            said: what to keep.
            check: given what these annotators say now of these queries, raises what nothing is to be kept for. Nobody
                else writes between this look and the keeping.

        Returns:
            How many were kept.

        Raises:
            InputError: no such tournament.
            StoreError: the store cannot be written.
        """
        # Annotations are counted by their own numbers, see Store.changes.
        with self._store.writing(alone=True, judged=False) as connection:
            number = tournament_number(connection, self._tournament)
            rows = [_row(one, number) for one in said]
            earlier = self._earlier(connection, rows)
            if check is not None:
                check([_annotation(row) for row in earlier.values()])
            last = {thing: row.value for thing, row in earlier.items()}
            before = connection.execute(select(func.max(ANNOTATION_ROWS.c.annotation_id))).scalar() or 0
            new = []
            for row in rows:
                thing = tuple(row[name] for name in _THING)
                if last.get(thing) != row["value"]:
                    last[thing] = row["value"]
                    new.append(row)
            if new:
                connection.execute(insert(ANNOTATION_ROWS), new)
                added = select(ANNOTATION_ROWS).where(ANNOTATION_ROWS.c.annotation_id > before)
                keep_checksums(connection, "annotation", {str(row[0]): row for row in connection.execute(added)})
        return len(new)

    def latest(self, kind: str | None = None, annotator: str | None = None) -> list[Annotation]:
        """What each annotator says of each thing now, skipped things included, oldest first.

        Args:
            kind: only of this kind.
            annotator: only by this person.
        """
        with self._store.reading() as connection:
            return self._now(connection, kind, annotator)

    def history(self, kind: str | None = None, annotator: str | None = None) -> list[Annotation]:
        """Everything that was ever said, oldest first."""
        with self._store.reading() as connection:
            return self._found(connection, self._chosen(kind, annotator))

    def news(self, kind: str, annotator: str, seen: int = 0) -> tuple[list[Annotation], int]:
        """What one person said after what was ``seen``, oldest first, and the number to come back with."""
        with self._store.reading() as connection:
            after = ANNOTATION_ROWS.c.annotation_id > seen
            rows = self._rows(connection, [*self._chosen(kind, annotator), after])
        return [_annotation(row) for row in rows], rows[-1].annotation_id if rows else seen

    def counts(self) -> dict[tuple[str, str], int]:
        """Things that each annotator judged, by kind and annotator; skipped things and flags do not count."""
        found: dict[tuple[str, str], int] = {}
        for said in self.latest():
            if said.value is not None and said.kind != FLAG.name:
                found[said.kind, said.annotator] = found.get((said.kind, said.annotator), 0) + 1
        return dict(sorted(found.items()))

    def _now(self, connection: Connection, kind: str | None, annotator: str | None) -> list[Annotation]:
        here = ANNOTATION_ROWS
        mine = here.c.tournament_id == tournament_number(connection, self._tournament)
        last = select(func.max(here.c.annotation_id)).where(mine, *self._chosen(kind, annotator))
        of_things = last.group_by(*(here.c[name] for name in _THING))
        return self._found(connection, [here.c.annotation_id.in_(of_things)])

    def _chosen(self, kind: str | None, annotator: str | None) -> list[Any]:
        here = ANNOTATION_ROWS.c
        of_kind = [] if kind is None else [here.kind == kind]
        return of_kind + ([] if annotator is None else [here.annotator == annotator])

    def _earlier(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> dict[tuple[str, ...], Row[Any]]:
        """What these annotators say already on the queries of these rows, oldest first."""
        here, found = ANNOTATION_ROWS.c, dict[tuple[str, ...], Row[Any]]()
        whose = here.annotator.in_({row["annotator"] for row in rows})
        for query_ids in chunks(sorted({row["query_id"] for row in rows}), CHUNK):
            for row in self._rows(connection, [whose, here.query_id.in_(query_ids)]):
                thing = tuple(getattr(row, name) for name in _THING)
                found.pop(thing, None)
                found[thing] = row
        return found

    def _found(self, connection: Connection, conditions: Sequence[Any]) -> list[Annotation]:
        return [_annotation(row) for row in self._rows(connection, conditions)]

    def _rows(self, connection: Connection, conditions: Sequence[Any]) -> Sequence[Row[Any]]:
        here = ANNOTATION_ROWS
        number = tournament_number(connection, self._tournament)
        chosen = select(here).where(here.c.tournament_id == number, *conditions).order_by(here.c.annotation_id)
        rows = connection.execute(chosen).all()
        require_as_written(connection, "annotation", {str(row[0]): row for row in rows})
        return rows


def annotator_name(given: str) -> str:
    """A person's name or initials as they are kept: on one line.

    Raises:
        InputError: it is empty or very long.
    """
    from judges.masking import storable

    name = storable(" ".join(given.split()))
    if not name or len(name) > _LONGEST_NAME:
        raise InputError(f"an annotator's name has 1 to {_LONGEST_NAME} characters, not {given[:_LONGEST_NAME]!r}")
    return name


def _row(said: Annotation, number: int) -> dict[str, Any]:
    return {
        "tournament_id": number,
        "kind": said.kind,
        "annotator": annotator_name(said.annotator),
        "query_id": said.query_id,
        "item": said.item,
        "other": said.other,
        "texts": said.texts,
        "value": json.dumps(said.value, sort_keys=True, allow_nan=False),
        "seconds": said.seconds,
        "at": said.at or datetime.now(UTC).isoformat(timespec="milliseconds"),
    }


def _annotation(row: Any) -> Annotation:
    return Annotation(
        row.kind,
        row.annotator,
        row.query_id,
        row.item,
        row.other,
        row.texts,
        json.loads(row.value),
        row.seconds,
        row.at,
    )
