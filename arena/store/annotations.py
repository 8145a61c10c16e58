"""People's annotations of a tournament: verdicts, labels, grades, nuggets and flags, in the order they were made.

Annotations are append-only. If an annotator changes a label, ``latest`` returns the new one and ``history`` both.
An item is identified by its texts as well as its names, so a changed answer does not inherit the label of the old
one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, func, insert, select

from arena.data.kinds import FLAG, KINDS, Annotation
from arena.store.bulk import CHUNK, chunks
from arena.store.rows import tournament_number, with_checksum
from arena.store.tables import ANNOTATION
from judges.errors import InputError, StoreError

if TYPE_CHECKING:
    from arena.store.database import Database

_LONGEST_NAME = 80


_KEY = ("kind", "annotator", "query_id", "item", "other", "texts")
"""Columns that identify an annotator's item; ``latest`` returns the last annotation with each key."""


class Annotations:
    """Reads and adds people's annotations of one tournament in an open store."""

    def __init__(self, store: Database, tournament: str) -> None:
        self._store, self._tournament = store, tournament

    def add(self, annotations: Iterable[Annotation], check: Callable[[list[Annotation]], None] | None = None) -> int:
        """Add annotations in one transaction, except those that repeat the annotator's latest value for the item.

        Args:
            check: called with the stored annotations of these annotators on these queries; if it raises, nothing is
                added. The transaction holds the write lock, so that nobody else writes between check and addition.

        Returns:
            Number of annotations added.

        Raises:
            InputError: the store has no such tournament.
            StoreError: the store cannot be written.
        """
        # No change is counted here: Store.version reads the highest annotation_id.
        with self._store.writing(alone=True, judged=False) as connection:
            number = tournament_number(connection, self._tournament)
            rows = [_row(annotation, number) for annotation in annotations]
            earlier = self._earlier(connection, rows)
            if check is not None:
                check([_annotation(row) for row in earlier.values()])
            last = {key: row.value for key, row in earlier.items()}
            before = connection.execute(select(func.max(ANNOTATION.c.annotation_id))).scalar() or 0
            new = []
            for row in rows:
                key = tuple(row[name] for name in _KEY)
                if last.get(key) != row["value"]:
                    last[key] = row["value"]
                    new.append(row)
            if new:
                numbered = ({"annotation_id": number, **row} for number, row in enumerate(new, before + 1))
                connection.execute(insert(ANNOTATION), list(map(with_checksum, numbered)))
        return len(new)

    def latest(self, kind: str | None = None, annotator: str | None = None) -> list[Annotation]:
        """Each annotator's latest annotation of each item, oldest first; also of items that the annotator skipped."""
        with self._store.reading() as connection:
            return self._latest(connection, kind, annotator)

    def history(self, kind: str | None = None, annotator: str | None = None) -> list[Annotation]:
        """All annotations, oldest first, with those that the annotator has replaced since."""
        with self._store.reading() as connection:
            return self._select(connection, self._filters(kind, annotator))

    def news(self, kind: str, annotator: str, seen: int = 0) -> tuple[list[Annotation], int]:
        """An annotator's annotations with ids above ``seen``, oldest first, and their highest id for the next call."""
        with self._store.reading() as connection:
            after = ANNOTATION.c.annotation_id > seen
            rows = self._rows(connection, [*self._filters(kind, annotator), after])
        return [_annotation(row) for row in rows], rows[-1].annotation_id if rows else seen

    def counts(self) -> dict[tuple[str, str], int]:
        """By kind and annotator, the number of annotated items; skipped items and flags do not count."""
        counts: dict[tuple[str, str], int] = {}
        for annotation in self.latest():
            if annotation.value is not None and annotation.kind != FLAG.name:
                key = annotation.kind, annotation.annotator
                counts[key] = counts.get(key, 0) + 1
        return dict(sorted(counts.items()))

    def _latest(self, connection: Connection, kind: str | None, annotator: str | None) -> list[Annotation]:
        columns = ANNOTATION.c
        in_tournament = columns.tournament_id == tournament_number(connection, self._tournament)
        last = select(func.max(columns.annotation_id)).where(in_tournament, *self._filters(kind, annotator))
        last_ids = last.group_by(*(columns[name] for name in _KEY))
        return self._select(connection, [columns.annotation_id.in_(last_ids)])

    def _filters(self, kind: str | None, annotator: str | None) -> list[Any]:
        columns = ANNOTATION.c
        of_kind = [] if kind is None else [columns.kind == kind]
        return of_kind + ([] if annotator is None else [columns.annotator == annotator])

    def _earlier(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> dict[tuple[str, ...], Row[Any]]:
        """The latest stored annotation with each ``_KEY``, by the annotators and on the queries in ``rows``."""
        columns, latest = ANNOTATION.c, dict[tuple[str, ...], Row[Any]]()
        by_annotators = columns.annotator.in_({row["annotator"] for row in rows})
        for query_ids in chunks(sorted({row["query_id"] for row in rows}), CHUNK):
            for row in self._rows(connection, [by_annotators, columns.query_id.in_(query_ids)]):
                key = tuple(getattr(row, name) for name in _KEY)
                latest.pop(key, None)
                latest[key] = row
        return latest

    def _select(self, connection: Connection, conditions: Sequence[Any]) -> list[Annotation]:
        return [_annotation(row) for row in self._rows(connection, conditions)]

    def _rows(self, connection: Connection, conditions: Sequence[Any]) -> Sequence[Row[Any]]:
        columns = ANNOTATION.c
        number = tournament_number(connection, self._tournament)
        matching = select(ANNOTATION).where(columns.tournament_id == number, *conditions)
        return connection.execute(matching.order_by(columns.annotation_id)).all()


def annotator_name(entry: str) -> str:
    """Normalise an annotator's name to one line without repeated spaces.

    Raises:
        InputError: the name is empty or longer than 80 characters.
    """
    from judges.masking import storable

    name = storable(" ".join(entry.split()))
    if not name or len(name) > _LONGEST_NAME:
        raise InputError(f"an annotator's name must have 1 to {_LONGEST_NAME} characters: {entry[:_LONGEST_NAME]!r}")
    return name


def _row(annotation: Annotation, number: int) -> dict[str, Any]:
    return {
        "tournament_id": number,
        "kind": annotation.kind,
        "annotator": annotator_name(annotation.annotator),
        "query_id": annotation.query_id,
        "item": annotation.item,
        "other": annotation.other,
        "texts": annotation.texts,
        "value": json.dumps(annotation.value, sort_keys=True, allow_nan=False),
        "seconds": None if annotation.seconds is None else float(annotation.seconds),
        "at": annotation.at or datetime.now(UTC).isoformat(timespec="milliseconds"),
    }


def _annotation(row: Any) -> Annotation:
    if row.kind not in KINDS:
        known = ", ".join(KINDS)
        raise StoreError(
            f"annotation {row.annotation_id} in the store is of the kind {row.kind!r}; known are {known}; "
            "install the package whose stage has it"
        )
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
