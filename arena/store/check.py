"""``store check``: finds rows that differ from their checksums and references to missing rows, and runs SQLite's check.

The data of each tournament are compared with the digest in the tournament's row. No other command looks for damage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, true, tuple_, update

from arena.store.data import dataset
from arena.store.database import Database
from arena.store.rows import NAMES_PASSAGE, checksum, wanted_of
from arena.store.tables import (
    AGENT_REPLY,
    ANNOTATION,
    ANSWER,
    DOCUMENT,
    FIGURES,
    JUDGMENT,
    LABEL,
    NOT_BEGUN,
    QUERY,
    RETRIEVED,
    TOURNAMENT,
    WANTED,
)
from judges.errors import StoreError

_FETCHED: Final = 5_000
_DAMAGED: Final = "damaged"
"""Replaces the digest of a damaged tournament's data, so that the next run writes all these data again."""
_DISCARDED: Final = (JUDGMENT, ANNOTATION, AGENT_REPLY, FIGURES)
"""Tables whose damaged rows ``discard`` deletes; the next run rewrites the damaged rows of other tables."""
_OF_TOURNAMENTS: Final = (WANTED, ANSWER, RETRIEVED, DOCUMENT, QUERY, LABEL)


class Checked(Struct, frozen=True):
    """The damage that a check of a store found.

    Attributes:
        damaged: by table, the keys of the rows that ``discard`` deletes.
        tournaments: problems with a tournament's settings, data or planned judgments, by the tournament's number.
    """

    judgments: int
    problems: tuple[str, ...]
    damaged: Mapping[str, Sequence[tuple[Any, ...]]]
    tournaments: Mapping[int, Sequence[str]]

    @property
    def lasting(self) -> tuple[str, ...]:
        """The problems that neither ``discard`` nor the next run repairs."""
        repaired = {problem for problems in self.tournaments.values() for problem in problems}
        return tuple(problem for problem in self.problems if problem not in repaired)


def check(store: Database) -> Checked:
    """Look for damage in all rows of a store."""
    with store.reading() as connection:
        problems = [f"the database finds: {each}" for each in _database_problems(connection)]
        tournaments: defaultdict[int, list[str]] = defaultdict(list)
        rows = connection.execute(select(TOURNAMENT)).all()
        names = {row.tournament_id: row.name for row in rows}
        for row in rows:
            tournaments[row.tournament_id] += _tournament_problems(connection, row)
        for row in _damaged_rows(connection, WANTED):
            wanted = ", ".join(map(str, row[1:8]))
            name = names.get(row.tournament_id, row.tournament_id)
            tournaments[row.tournament_id].append(f"what tournament {name!r} wants ({wanted})")
        for number, problem in _dangling(connection):
            tournaments[number].append(problem)
        problems += [problem for of_tournament in tournaments.values() for problem in of_tournament]
        damaged = {}
        for table in _DISCARDED:
            keys = [
                tuple(getattr(row, key.name) for key in table.primary_key) for row in _damaged_rows(connection, table)
            ]
            damaged[table.name] = keys
            problems += [_described(connection, table, key) for key in keys]
        judgments = connection.execute(select(func.count()).select_from(JUDGMENT)).scalar_one()
        broken = {number: of_tournament for number, of_tournament in tournaments.items() if of_tournament}
        return Checked(int(judgments), tuple(problems), damaged, broken)


def damage_behind() -> StoreError | None:
    """Look for damage in this process's stores after an unexpected error; returns an error that reports it, if any.

    Reading a row does not compare its checksum, so a damaged row may cause any error later.
    """
    for store in list(Database.used):
        try:
            problems = check(store).problems
        except StoreError as unreadable:
            return unreadable
        if problems:
            return StoreError(
                f"{store.location}: damaged ({problems[0]}); 'ragleague store check' lists all damage; restore a copy, "
                "or delete the damaged rows with 'ragleague store check --discard'"
            )
    return None


def discard(store: Database, checked: Checked) -> None:
    """Delete damaged rows, so that the next run asks for these results again and rewrites damaged tournaments.

    Damaged annotations are lost. Indexes are rebuilt. Nothing else changes.
    """
    with store.writing(alone=True) as connection:
        for table in _DISCARDED:
            for key in checked.damaged[table.name]:
                same = (column == value for column, value in zip(table.primary_key, key, strict=True))
                connection.execute(delete(table).where(*same))
        for number in checked.tournaments:
            damaged = update(TOURNAMENT).where(TOURNAMENT.c.tournament_id == number)
            if not connection.execute(damaged.values(data_digest=_DAMAGED)).rowcount:
                for table in _OF_TOURNAMENTS:
                    connection.execute(delete(table).where(table.c.tournament_id == number))
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("REINDEX")


def _database_problems(connection: Connection) -> list[str]:
    """Problems that SQLite finds in its pages and indexes; none for PostgreSQL, which checks itself."""
    if connection.dialect.name != "sqlite":
        return []
    return [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check") if row[0] != "ok"]


def _damaged_rows(connection: Connection, table: Table) -> list[Any]:
    rows = connection.execute(select(table).execution_options(yield_per=_FETCHED))
    return [row for row in rows if row.checksum != _summed(table, row)]


def _summed(table: Table, row: Any) -> int:
    *values, _ = row
    if table is WANTED:
        *key, position, judgment_id, _ = row
        return checksum((*key, judgment_id)) + int(position)
    return checksum(values[1:] if table is TOURNAMENT else values)


def _tournament_problems(connection: Connection, row: Any) -> Iterator[str]:
    if row.data_digest == _DAMAGED:
        yield f"tournament {row.name!r}, until its next run writes it again"
        return
    if row.checksum != _summed(TOURNAMENT, row):
        yield f"the settings of tournament {row.name!r}"
    if row.data_digest != NOT_BEGUN:
        try:
            damaged = dataset(connection, row.tournament_id).digest() != row.data_digest
        except (ValueError, TypeError):  # the stored data cannot be parsed
            damaged = True
        if damaged:
            yield f"the data of tournament {row.name!r}"


def _described(connection: Connection, table: Table, key: Sequence[Any]) -> str:
    line = f"{table.name.replace('_', ' ')} {' '.join(map(str, key))}"
    return f"{line} ({_describe_want(connection, key[0])})" if table is JUDGMENT else line


def _describe_want(connection: Connection, ident: str) -> str:
    """A line for the user about the planned judgment with this id, in one of the tournaments that plan it."""
    joined = select(WANTED, TOURNAMENT.c.name).join(TOURNAMENT, TOURNAMENT.c.tournament_id == WANTED.c.tournament_id)
    row = connection.execute(joined.where(WANTED.c.judgment_id == ident).limit(1)).first()
    if row is None:
        return "no tournament wants it"
    want = wanted_of(row)
    items = " and ".join(filter(None, (want.item, want.other)))
    return f"{want.task} of {items} on query {want.query_id!r} by {want.judge!r} in {row.name!r}"


def _dangling(connection: Connection) -> Iterator[tuple[int, str]]:
    """References to rows that do not exist: for each, the tournament's number and a line for the user."""
    wants = WANTED.c
    # A subquery rather than a lookup: queries have no index by id, and scanning them for each want takes minutes.
    query_keys = select(QUERY.c.tournament_id, QUERY.c.query_id)
    for table in (WANTED, ANSWER, RETRIEVED, LABEL):
        names_query = wants.task.not_in(NAMES_PASSAGE) if table is WANTED else true()
        no_query = tuple_(table.c.tournament_id, table.c.query_id).not_in(query_keys)
        yield from _lost(connection, table, names_query & no_query, "a query")
    references: list[tuple[Table, Any, ColumnElement[bool]]] = [(RETRIEVED, RETRIEVED.c.doc_id, true())]
    references += [(WANTED, wants[column], wants.task == task) for task, column in NAMES_PASSAGE.items()]
    for table, doc_id, condition in references:
        same = DOCUMENT.c.tournament_id == table.c.tournament_id, DOCUMENT.c.doc_id == doc_id
        yield from _lost(connection, table, condition & ~select(DOCUMENT.c.doc_id).where(*same).exists(), "a document")
    for table in _OF_TOURNAMENTS:
        exists = select(TOURNAMENT.c.name).where(TOURNAMENT.c.tournament_id == table.c.tournament_id).exists()
        yield from _lost(connection, table, ~exists, "a tournament")


def _lost(connection: Connection, table: Table, condition: Any, what: str) -> Iterator[tuple[int, str]]:
    counts = select(table.c.tournament_id, func.count()).where(condition).group_by(table.c.tournament_id)
    for number, rows in connection.execute(counts):
        yield int(number), f"{rows} rows of {table.name!r} name {what} that is not there (tournament number {number})"
