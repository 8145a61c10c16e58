"""The store: what was asked, what was replied, and the data it was asked about. The only package that speaks SQL.

Judgments are content-addressed and shared by every tournament in a store. A tournament is a snapshot of its data and
settings plus the list of what it wants judged; each wanted row points to its judgment once its prompt is known.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, TextClause, bindparam, func, inspect, text
from sqlalchemy.exc import DatabaseError, IntegrityError
from sqlmodel import SQLModel, delete, insert, select, update

from arena.dataset import Dataset
from arena.store import runners
from arena.store.agents import ANSWERED, AgentReplies, Asked
from arena.store.engine import open_engine, sqlite_path
from arena.store.migrations import bring_up_to_date
from arena.store.rows import (
    AnswerRow,
    DocumentRow,
    JudgmentRow,
    LabelRow,
    QueryRow,
    Result,
    RetrievedRow,
    StateRow,
    TournamentRow,
    Wanted,
    WantedRow,
    encoded,
    judgment_values,
    result_of,
    table,
    wanted_of,
    wanted_values,
)
from arena.store.runners import BEAT_S, Runner
from judges.errors import InputError, StoreError
from judges.types import Answer, Document, Query, Retrieved, Task

__all__ = [
    "ANSWERED",
    "BEAT_S",
    "IDENTICAL",
    "AgentReplies",
    "Asked",
    "Result",
    "Runner",
    "Store",
    "Wanted",
    "chunks",
    "sqlite_path",
]

SCHEMA_VERSION = 3
IDENTICAL = "identical-answers"
"""The judgment of every game between two equal answers: a tie, without a call."""

_CHUNK = 500
_DAMAGED = "damaged; restore a copy, or name a new store"
_PROBLEMS = {
    "no such table": "not a ragarena store",
    "no such column": "not a ragarena store",
    "not a database": "not a ragarena store, or damaged",
    "unsupported file format": "not a ragarena store, or damaged",
    "malformed": _DAMAGED,
    "decode": _DAMAGED,
    "locked": "another program keeps it locked; try again when it is done",
    "readonly": "cannot be written; mend its permissions, or name a store elsewhere",
    "unable to open": "cannot be opened; mend the permissions of the file and its folder, or name a store elsewhere",
    "disk is full": "the disk is full; make room and run again, what was kept before is whole",
    "disk I/O error": "the disk is full or fails; make room and run again, what was kept before is whole",
}
"""What SQLite says, in a user's terms."""
Item = TypeVar("Item")

_DATA = (QueryRow, DocumentRow, RetrievedRow, AnswerRow, LabelRow)
_NEEDED = [table(row).name for row in (TournamentRow, WantedRow, JudgmentRow, *_DATA) if row is not LabelRow]
"""Tables without which a store would seem to have been asked nothing yet; earlier versions had no people's labels."""


class Store:
    """Open with ``Store.create`` to run a tournament, with ``Store.open`` to read one."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._writing = threading.Lock()
        self._begun: dict[str, tuple[str, str]] = {}

    @classmethod
    def create(cls, location: str) -> Store:
        """Open a store for writing; made if it is not there.

        Args:
            location: a path, or a database URL.

        Raises:
            StoreError: it cannot be opened, or was written by another version.
        """
        path = sqlite_path(location)
        if path is not None and path.is_file():
            there = cls(open_engine(location), location)
            there._check_version(to_write=True)  # another program's database is left as it is
            there.close()
        store = cls(open_engine(location, write_ahead=True), location)
        with store._write() as connection:
            bring_up_to_date(connection)
            SQLModel.metadata.create_all(connection)
            if connection.execute(select(StateRow.schema_version)).scalar() is None:
                connection.execute(insert(StateRow), {"only": 1, "schema_version": SCHEMA_VERSION, "changes": 0})
        store._check_version()
        return store

    @classmethod
    def open(cls, location: str) -> Store:
        """Open a store that exists.

        Raises:
            InputError: there is none.
            StoreError: it cannot be read, or was written by another version.
        """
        path = sqlite_path(location)
        if path is not None and not path.is_file():
            raise InputError(f"{location}: no store there; 'ragarena run' makes one")
        store = cls(open_engine(location), location)
        store._check_version()
        return store

    def close(self) -> None:
        """Give up all connections."""
        self._engine.dispose()

    def begin(self, name: str, settings: Mapping[str, Any], data: Dataset, wanted: Iterable[Wanted]) -> None:
        """Put a tournament's settings, data and wants in place of its earlier ones, in one transaction.

        No judgment is touched. Where neither settings nor data changed, wants keep theirs, so that whoever reads
        meanwhile sees no gap; else they find them again through ``assign``.
        """
        digest = data.digest()
        with self._write() as connection:
            row = connection.execute(select(table(TournamentRow)).where(TournamentRow.name == name)).first()
            values = {"name": name, "settings": encoded(settings), "data_digest": digest}
            if row is None:
                connection.execute(insert(TournamentRow), values)
            else:
                here = table(TournamentRow)
                connection.execute(update(here).where(here.c.name == name).values(**values))
            number = _tournament_id(connection, name)
            if row is None or row.data_digest != digest:
                _replace_data(connection, number, data)
            same = row is not None and (row.settings, row.data_digest) == (values["settings"], digest)
            _replace_wants(connection, number, wanted, keep_judgments=same)
        self._begun[name] = values["settings"], digest

    def extend(self, name: str, wanted: Iterable[Wanted]) -> None:
        """Put further wants after those that a tournament has; one that is there already stays as it is."""
        here = table(WantedRow)
        with self._write() as connection:
            number = self._begun_id(connection, name)
            last = connection.execute(select(func.max(here.c.position)).where(here.c.tournament_id == number)).scalar()
            start = 0 if last is None else last + 1
            rows = (wanted_values(number, position, want) for position, want in enumerate(wanted, start))
            for chunk in chunks(rows, _CHUNK):
                connection.execute(_insert_wants("DO NOTHING"), chunk)

    def assign(self, name: str, judgments: Sequence[tuple[Wanted, str]]) -> None:
        """Note which judgment answers each want."""
        if judgments:
            with self._write() as connection:
                _assign(connection, self._begun_id(connection, name), judgments)

    def claim(
        self,
        name: str,
        judgments: Sequence[tuple[Wanted, str]],
        runner: Runner,
        to_be_asked: Callable[[Result | None], bool],
        tried: Callable[[str], bool] = lambda _: False,
    ) -> tuple[dict[str, Result], set[str]]:
        """Note which judgment answers each want, and take for this runner those that have to be asked for.

        Args:
            name: the tournament.
            judgments: wants with their judgment's id.
            runner: who asks; it must have said that it is there (``beat``).
            to_be_asked: by what the store knows of a judgment, whether it needs a call.
            tried: whether a judgment's failure is of this run already. It is not taken again: nobody would ask, and
                others would wait for it.

        Returns:
            The results known, and the ids that another runner is asking for now.
        """
        if not judgments:
            return {}, set()
        idents = [ident for _, ident in judgments]
        with self._write() as connection:
            _assign(connection, self._begun_id(connection, name), judgments)
            known = _results(connection, idents)
            asked = [ident for ident in dict.fromkeys(idents) if to_be_asked(known.get(ident))]
            elsewhere = runners.held(connection, runner, asked)
            free = [ident for ident in asked if ident not in elsewhere and not (ident in known and tried(ident))]
            runners.lease(connection, runner, free)
            return known, elsewhere

    def beat(self, runner: Runner) -> None:
        """Say that a runner is at work, every ``BEAT_S`` seconds."""
        with self._write() as connection:
            runners.beat(connection, runner)

    def give_back(self, judgment_ids: Sequence[str]) -> None:
        """A runner will not ask for these judgments after all."""
        if judgment_ids:
            with self._write() as connection:
                runners.release(connection, judgment_ids)

    def leave(self, runner: Runner) -> None:
        """A runner ends, and claims nothing any more."""
        with self._write() as connection:
            runners.leave(connection, runner)

    def save(self, results: Sequence[tuple[Task, str, Result]]) -> None:
        """Keep results: task, prompt name with version, and the judgment or failure. A judgment stays.

        Nobody is about to ask for them any more.
        """
        rows = [judgment_values(*entry) for entry in results]
        names = [column.name for column in table(JudgmentRow).columns]
        columns, values = ", ".join(names), ", ".join(f":{name}" for name in names)
        changed = ", ".join(f"{name} = excluded.{name}" for name in names if name != "judgment_id")
        statement = text(
            f"INSERT INTO judgment ({columns}) VALUES ({values}) "  # noqa: S608 - names come from the table itself
            f"ON CONFLICT (judgment_id) DO UPDATE SET {changed} WHERE judgment.outcome IS NULL"
        )
        with self._write() as connection:
            connection.execute(statement, rows)
            runners.release(connection, [row["judgment_id"] for row in rows])

    def results(self, judgment_ids: Sequence[str]) -> dict[str, Result]:
        """The results known for these ids."""
        with self._read() as connection:
            return _results(connection, judgment_ids)

    def wanted(self, name: str, task: Task | None = None) -> list[tuple[Wanted, str | None]]:
        """Everything a tournament wants, in the order of its plan, with the judgment's id where assigned."""
        statement = select(WantedRow).order_by(table(WantedRow).c.position)
        if task is not None:
            statement = statement.where(WantedRow.task == task.value)
        with self._read() as connection:
            number = _tournament_id(connection, name)
            rows = connection.execute(statement.where(WantedRow.tournament_id == number))
            return [(wanted_of(row), row.judgment_id) for row in rows]

    def outcomes(self, name: str, task: Task) -> list[tuple[Wanted, Result | None]]:
        """Everything wanted of one task with its result; ``None`` where there is none yet."""
        wanted = self.wanted(name, task)
        known = self.results(sorted({found for _, found in wanted if found is not None}))
        return [(want, known.get(found) if found is not None else None) for want, found in wanted]

    def tournaments(self) -> list[str]:
        """Names of the tournaments, oldest first."""
        with self._read() as connection:
            names = connection.execute(select(TournamentRow.name).order_by(table(TournamentRow).c.tournament_id))
            return [str(name) for name in names.scalars()]

    def settings(self, name: str) -> dict[str, Any]:
        """The settings a tournament was last begun with."""
        with self._read() as connection:
            stored = connection.execute(select(TournamentRow.settings).where(TournamentRow.name == name)).scalar()
            loaded: dict[str, Any] | None = None if stored is None else json.loads(stored)
        if loaded is None:
            raise InputError(
                f"{self._name}: no tournament named {name!r}; there are {', '.join(self.tournaments()) or 'none'}"
            )
        return loaded

    def dataset(self, name: str) -> Dataset:
        """The data a tournament was last begun with."""
        with self._read() as connection:
            number = _tournament_id(connection, name)

            def rows(kind: type[SQLModel], *order: str) -> Iterator[Any]:
                columns = table(kind).c
                statement = select(table(kind)).where(columns.tournament_id == number)
                return iter(connection.execute(statement.order_by(*(columns[column] for column in order))))

            retrieved: dict[str, list[Retrieved]] = {}
            for row in rows(RetrievedRow, "query_id", "agent", "rank"):
                entry = Retrieved(row.query_id, row.doc_id, row.agent, row.rank, row.score)
                retrieved.setdefault(row.query_id, []).append(entry)
            labels: dict[str, dict[str, int]] = {}
            for row in rows(LabelRow, "query_id", "doc_id"):
                labels.setdefault(row.query_id, {})[row.doc_id] = row.label
            return Dataset(
                {
                    row.query_id: Query(row.query_id, row.text, json.loads(row.extra))
                    for row in rows(QueryRow, "position")
                },
                {
                    row.doc_id: Document(row.doc_id, row.text, json.loads(row.extra))
                    for row in rows(DocumentRow, "doc_id")
                },
                {
                    (row.query_id, row.agent): Answer(row.query_id, row.agent, row.text, json.loads(row.extra))
                    for row in rows(AnswerRow, "query_id", "agent")
                },
                {query_id: tuple(entries) for query_id, entries in retrieved.items()},
                labels,
            )

    def changes(self) -> int:
        """A number that grows with every change, so that readers know when to look again."""
        with self._read() as connection:
            return int(connection.execute(select(StateRow.changes)).scalar_one())

    def _begun_id(self, connection: Connection, name: str) -> int:
        """The number of a tournament as it was begun here: a run with other settings would link other judgments.

        Raises:
            StoreError: another run has begun it anew meanwhile.
        """
        here = table(TournamentRow).c
        row = connection.execute(select(here.settings, here.data_digest).where(here.name == name)).first()
        if row is not None and self._begun.get(name, tuple(row)) != tuple(row):
            raise StoreError(
                f"{self._name}: another run has begun {name!r} with other settings or data; "
                "what was judged is kept; give one of the two another 'name'"
            )
        return _tournament_id(connection, name)

    def _check_version(self, *, to_write: bool = False) -> None:
        """Whether this version can read the store; one that is written to may be empty or older."""
        with self._read() as connection:
            there = inspect(connection).get_table_names()
            if to_write and not there:
                return
            found = connection.execute(select(StateRow.schema_version)).scalar()
        older = isinstance(found, int) and 0 < found < SCHEMA_VERSION
        if older and not to_write:
            raise StoreError(
                f"{self._name}: written by an earlier version of ragarena; 'ragarena run' brings it up to date"
            )
        if found != SCHEMA_VERSION and not older:
            raise StoreError(
                f"{self._name}: written by another version of ragarena (schema {found}, not {SCHEMA_VERSION})"
            )
        if lost := [name for name in _NEEDED if name not in there]:
            raise StoreError(f"{self._name}: {_DAMAGED} (the table {lost[0]!r} is gone)")

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        try:
            with self._told(), self._engine.connect() as connection:
                yield connection
        except (ValueError, TypeError) as error:  # bytes that this project never wrote
            raise StoreError(f"{self._name}: {_DAMAGED}") from error

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        # One thread of this process at a time: SQLite's own way to wait for another one is to sleep and try again.
        with self._writing, self._told(), self._engine.execution_options(writes=True).begin() as connection:
            yield connection
            state = table(StateRow)
            connection.execute(update(state).values(changes=state.c.changes + 1))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Database errors as one line that names the store."""
        try:
            yield
        except IntegrityError:
            raise
        except DatabaseError as error:
            problem = " ".join(str(error.orig).split())
            told = next((words for sign, words in _PROBLEMS.items() if sign in problem), problem)
            raise StoreError(f"{self._name}: {told}") from error


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of at most ``size``."""
    chunk: list[Item] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _replace_wants(connection: Connection, number: int, wanted: Iterable[Wanted], *, keep_judgments: bool) -> None:
    here = table(WantedRow)
    mine = here.c.tournament_id == number
    if keep_judgments:
        connection.execute(update(here).where(mine).values(position=-1 - here.c.position))
    else:
        connection.execute(delete(here).where(mine))
    rows = (wanted_values(number, position, want) for position, want in enumerate(wanted))
    for chunk in chunks(rows, _CHUNK):
        connection.execute(_insert_wants("DO UPDATE SET position = excluded.position"), chunk)
    connection.execute(delete(here).where(mine, here.c.position < 0))  # what is not wanted any more


def _insert_wants(if_there: str) -> TextClause:
    names = [column.name for column in table(WantedRow).columns]
    columns, values = ", ".join(f'"{name}"' for name in names), ", ".join(f":{name}" for name in names)
    keys = ", ".join(f'"{column.name}"' for column in table(WantedRow).primary_key)
    return text(f"INSERT INTO wanted ({columns}) VALUES ({values}) ON CONFLICT ({keys}) {if_there}")  # noqa: S608


def _assign(connection: Connection, number: int, judgments: Sequence[tuple[Wanted, str]]) -> None:
    wants = table(WantedRow)
    keys = ("task", "judge", "query_id", "item", "other", "order", "sample")
    statement = update(wants).where(
        wants.c.tournament_id == number, *(wants.c[key] == bindparam(f"at_{key}") for key in keys)
    )
    connection.execute(
        statement.values(judgment_id=bindparam("found")),
        [{**{f"at_{key}": getattr(want, key) for key in keys}, "found": found} for want, found in judgments],
    )


def _results(connection: Connection, judgment_ids: Sequence[str]) -> dict[str, Result]:
    found: dict[str, Result] = {}
    for chunk in chunks(judgment_ids, _CHUNK):
        rows = connection.execute(select(JudgmentRow).where(table(JudgmentRow).c.judgment_id.in_(chunk)))
        found.update((row.judgment_id, result_of(row)) for row in rows)
    return found


def _tournament_id(connection: Connection, name: str) -> int:
    number = connection.execute(select(TournamentRow.tournament_id).where(TournamentRow.name == name)).scalar()
    if number is None:
        raise InputError(f"no tournament named {name!r} in this store")
    return int(number)


def _replace_data(connection: Connection, number: int, data: Dataset) -> None:
    for kind in _DATA:
        connection.execute(delete(kind).where(table(kind).c.tournament_id == number))
    here = {"tournament_id": number}
    rows: dict[Any, Iterable[dict[str, Any]]] = {
        QueryRow: (
            {**here, "position": position, "query_id": q.query_id, "text": q.text, "extra": encoded(q.metadata)}
            for position, q in enumerate(data.queries.values())
        ),
        DocumentRow: (
            {**here, "doc_id": d.doc_id, "text": d.text, "extra": encoded(d.metadata)} for d in data.documents.values()
        ),
        RetrievedRow: (
            {**here, "query_id": r.query_id, "agent": r.agent, "rank": r.rank, "doc_id": r.doc_id, "score": r.score}
            for entries in data.retrieved.values()
            for r in entries
        ),
        AnswerRow: (
            {**here, "query_id": a.query_id, "agent": a.agent, "text": a.text, "extra": encoded(a.metadata)}
            for a in data.answers.values()
        ),
        LabelRow: (
            {**here, "query_id": query_id, "doc_id": doc_id, "label": label}
            for query_id, labels in data.qrels.items()
            for doc_id, label in labels.items()
        ),
    }
    for kind, values in rows.items():
        for chunk in chunks(values, _CHUNK):
            connection.execute(insert(kind), chunk)
