"""Integrity checks of a store: checksums, references, and the database's own check.

Judgments and wants have a checksum column. Settings, data, annotations and agents' replies have theirs in a table.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, String, Table, cast, delete, func, select, true, tuple_, update

from arena.data.dataset import Dataset
from arena.store.bulk import CHUNK, RowColumns, among, chunks, delete_rows, insert_rows
from arena.store.checksums import (
    ADDED,
    Idents,
    ToArray,
    damaged_rows,
    fingerprints,
    in_arrow,
    or_none,
    places,
    scalar,
    scan,
    with_checksum,
)
from arena.store.data import dataset
from arena.store.rows import (
    ANNOTATION_ROWS,
    ANSWER_ROWS,
    CHECKSUM_ROWS,
    DOCUMENT_ROWS,
    IDENTICAL,
    JUDGMENT_ROWS,
    LABEL_ROWS,
    NOT_BEGUN,
    QUERY_ROWS,
    REPLY_ROWS,
    RETRIEVED_ROWS,
    TOURNAMENT_ROWS,
    WANTED_ROWS,
    Damage,
    checksum,
    has_table,
    tournament_number,
    wanted_of,
)
from arena.store.subjects import NAMES_PASSAGE
from judges.types import Task
from retrieval_eval.data.columns import Texts

if TYPE_CHECKING:
    import pyarrow as pa

    from arena.store.database import Database

Covered: TypeAlias = Literal["settings", "dataset", "annotation", "agent_reply"]
_COVERED_TABLES: Final[Sequence[tuple[Covered, Any]]] = (("annotation", ANNOTATION_ROWS), ("agent_reply", REPLY_ROWS))
"""Tables whose rows have their checksums in the checksum table."""
_FETCHED: Final = 5_000
"""Rows in memory at a time."""
_DAMAGED: Final = "damaged"
"""Stored as the digest of a damaged tournament's data, so that the next run writes the data again."""


class Checked(Struct, frozen=True):
    """The result of checking a whole store.

    Attributes:
        judgments: number of judgments in the store.
        uncovered: number of judgments and wants without a checksum, written by an earlier version.
        problems: one line for each problem.
        damaged: ids of the judgments whose checksum does not match.
        tournaments: problems with the settings, data or wants of a tournament, by its number.
    """

    judgments: int
    uncovered: int
    problems: tuple[str, ...]
    damaged: tuple[str, ...]
    tournaments: Mapping[int, Sequence[str]]

    @property
    def lasting(self) -> tuple[str, ...]:
        """The problems that neither ``discard`` nor the next run repairs."""
        repaired = {problem for problems in self.tournaments.values() for problem in problems}
        return tuple(problem for problem in self.problems if problem not in repaired)


def cover(connection: Connection, number: int, *, data: bool) -> None:
    """Store the checksum of a tournament's settings; of its data too, if they were written or have none yet."""
    store_checksums(connection, "settings", {str(number): _settings(connection, number)})
    if data or not stored_checksums(connection, "dataset", [str(number)]):
        store_checksums(connection, "dataset", {str(number): _data(dataset(connection, number))})


def verify(connection: Connection, name: str, data: Dataset | None = None, also: Sequence[str] = ()) -> RowColumns:
    """Check everything that belongs to a tournament, and read its games in the same pass.

    It does not check the database itself: callers also call ``database_problems``.

    Args:
        connection: open for reading.
        name: the tournament's name.
        data: the tournament's data, if the caller has read them already.
        also: further columns of judgments to read, ``reason`` or ``model``.

    Returns:
        The wanted verdicts, one row per sample, in no order. Texts: ``judge``, ``query``, the agents ``first`` and
        ``second`` in the order shown, ``outcome`` as JSON, the ``cause`` of a failure, and the columns in ``also``.
        Numbers: ``position`` in the plan, ``sample``, and ``identical``, 1 for a tie between two identical answers.

    Raises:
        Damage: a checksum does not match.
    """
    number = tournament_number(connection, name)
    for problem in _tournament_problems(connection, number, name, data):
        raise Damage(problem)
    damaged: list[Sequence[Any]] = []
    columns = ["outcome", "cause", *also]
    judgments, judgment_ids = scan(connection, JUDGMENT_ROWS, partial(_outcome_columns, columns), (), damaged)
    _require_unwanted(connection, number, [str(row[0]) for row in damaged])
    in_tournament, damaged = WANTED_ROWS.c.tournament_id == number, []
    wants, wanted_ids = scan(connection, WANTED_ROWS, _game_columns, ("sample", "position"), damaged, in_tournament)
    for problem in _want_problems(name, damaged):
        raise Damage(problem)
    return _joined(wants, wanted_ids, judgments, judgment_ids)


def _outcome_columns(names: Sequence[str], block: ToArray) -> Mapping[str, pa.Array]:
    """Columns of judgments of games, for ``scan``."""
    return _of_games(block, {name: or_none(block(name)) if name != "reason" else block(name) for name in names})


def _game_columns(block: ToArray) -> Mapping[str, pa.Array]:
    """The judge, query and agents of wanted games, for ``scan``; agents in the order shown."""
    from pyarrow import compute

    swapped, item, other = compute.equal(block("order"), scalar("ba")), block("item"), block("other")
    shown = {"first": compute.if_else(swapped, other, item), "second": compute.if_else(swapped, item, other)}
    return _of_games(block, {"judge": block("judge"), "query": block("query_id"), **shown})


def _of_games(block: ToArray, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array]:
    """The same columns, with null in rows that are no games."""
    import pyarrow as pa
    from pyarrow import compute

    games = compute.equal(block("task"), scalar(Task.PAIRWISE))
    return {name: compute.if_else(games, column, pa.NA) for name, column in columns.items()}


def _joined(wants: RowColumns, wanted_ids: Idents, judgments: RowColumns, judgment_ids: Idents) -> RowColumns:
    """Join the wants of games to their judgments by id.

    Not in the database: it would look up each judgment separately, which is slower than reading all of them.
    """
    at = places(wanted_ids, judgment_ids)
    outcomes = {  # place -1 takes the appended last row, None
        key: Texts([*column.names, None], np.append(column.codes, np.int32(len(column.names)))[at])
        for key, column in judgments.texts.items()
    }
    failed = np.array([outcome is None for outcome in outcomes["outcome"].names], np.bool_)[outcomes["outcome"].codes]
    identical = (wanted_ids == fingerprints(in_arrow([IDENTICAL.encode()]))) & ~failed
    rows = RowColumns({**wants.texts, **outcomes}, {**wants.numbers, "identical": identical.astype(np.int32)})
    if None not in rows.texts["judge"].names:
        return rows
    games = np.array([judge is not None for judge in rows.texts["judge"].names])[rows.texts["judge"].codes]
    return rows.of(games)


def _require_unwanted(connection: Connection, number: int, damaged: Sequence[str]) -> None:
    """Raise ``Damage`` if the tournament wants one of the damaged judgments."""
    wants = WANTED_ROWS.c
    for chunk in chunks(damaged, CHUNK):
        wanted = wants.tournament_id == number, among(connection, wants.judgment_id, chunk)
        if (ident := connection.execute(select(wants.judgment_id).where(*wanted).limit(1)).scalar()) is not None:
            raise Damage(f"judgment {ident}{f' (of {len(damaged)})' if len(damaged) > 1 else ''}")
    for problem in database_problems(connection) if damaged else ():  # the id itself may be damaged
        raise Damage(f"the database ({problem})")


def check(store: Database) -> Checked:
    """Check a whole store.

    Raises:
        StoreError: the store cannot be read.
    """
    with store.reading() as connection:
        problems = [f"the database finds: {each}" for each in database_problems(connection)]
        tournaments: defaultdict[int, list[str]] = defaultdict(list)
        for row in connection.execute(select(TOURNAMENT_ROWS)).all():
            of_tournament = list(_tournament_problems(connection, row.tournament_id, row.name))
            in_tournament = WANTED_ROWS.c.tournament_id == row.tournament_id
            of_tournament += _want_problems(row.name, damaged_rows(connection, WANTED_ROWS, in_tournament))
            if of_tournament:
                tournaments[row.tournament_id] += of_tournament
        for number, problem in _dangling(connection):
            tournaments[number].append(problem)
        problems += [problem for of_tournament in tournaments.values() for problem in of_tournament]
        problems += [f"tournament number {number} is gone" for number in sorted(_gone(connection))]
        problems += [f"checksum of {name!r}: there is no kind {kind!r}" for kind, name in _unknown_kinds(connection)]
        damaged = tuple(str(row[0]) for row in damaged_rows(connection, JUDGMENT_ROWS))
        problems += [f"judgment {ident} ({_describe_want(connection, ident)})" for ident in damaged]
        problems += _covered_problems(connection)
        judgments, wants = JUDGMENT_ROWS.c, WANTED_ROWS.c
        uncovered = [select(func.count()).where(columns.checksum.is_(None)) for columns in (judgments, wants)]
        return Checked(
            int(connection.execute(select(func.count(judgments.judgment_id))).scalar_one()),
            sum(int(connection.execute(each).scalar_one()) for each in uncovered),
            tuple(problems),
            damaged,
            tournaments,
        )


def discard(store: Database, checked: Checked) -> None:
    """Delete what is damaged, so that the next run asks for it again and rewrites damaged tournaments.

    Damaged annotations are lost. Indexes are rebuilt. Nothing else changes.
    """
    with store.writing(alone=True) as connection:
        delete_rows(connection, JUDGMENT_ROWS.c.judgment_id, checked.damaged)
        for number in checked.tournaments:
            damaged = update(TOURNAMENT_ROWS).where(TOURNAMENT_ROWS.c.tournament_id == number)
            if not connection.execute(damaged.values(data_digest=_DAMAGED)).rowcount:
                for table in _TOURNAMENT_TABLES:
                    connection.execute(delete(table).where(table.c.tournament_id == number))
        for kind, table in _COVERED_TABLES:
            rows, key = _covered_rows(connection)[kind], table.primary_key.columns[0]
            for name in list(_damaged_or_gone(connection, kind, rows)):
                connection.execute(delete(table).where(cast(key, String) == name))
                drop_checksum(connection, kind, name)
        for lost in _gone(connection):
            drop_checksum(connection, "settings", lost)
            drop_checksum(connection, "dataset", lost)
        for unknown_kind, name in _unknown_kinds(connection):
            drop_checksum(connection, unknown_kind, name)
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("REINDEX")


def add(store: Database) -> None:
    """Add the missing checksums; the present content of those rows counts as correct."""
    with store.writing(alone=True, judged=False) as connection:
        for table, key in ((JUDGMENT_ROWS, ("judgment_id",)), (WANTED_ROWS, _WANT_KEY)):
            uncovered = with_checksum(table).where(table.c.checksum.is_(None))
            while rows := connection.execute(uncovered.limit(_FETCHED)).all():
                for row in rows:
                    same = [table.c[name] == getattr(row, name) for name in key]
                    summed = checksum(tuple(row[:-1])) + ADDED[table.name]
                    connection.execute(update(table).where(*same).values(checksum=summed))
        for number in _numbers(connection):
            cover(connection, number, data=False)
        for kind, covered in _covered_rows(connection).items():
            missing = covered.keys() - stored_checksums(connection, kind).keys()
            store_checksums(connection, kind, {name: covered[name] for name in missing})


_WANT_KEY: Final = tuple(column.name for column in WANTED_ROWS.primary_key)


def _want_problems(name: str, damaged: Iterable[Sequence[Any]]) -> list[str]:
    return [f"what tournament {name!r} wants ({', '.join(map(str, row[1:8]))})" for row in damaged]


def _numbers(connection: Connection) -> list[int]:
    columns = TOURNAMENT_ROWS.c
    return list(connection.execute(select(columns.tournament_id).where(columns.data_digest != NOT_BEGUN)).scalars())


def _gone(connection: Connection) -> set[str]:
    """The numbers of tournaments that have checksums but no row."""
    covered = stored_checksums(connection, "settings").keys() | stored_checksums(connection, "dataset").keys()
    return covered - set(map(str, _numbers(connection)))


def _unknown_kinds(connection: Connection) -> list[tuple[str, str]]:
    """Kind and name of the checksums whose kind is not in ``Covered``."""
    columns = CHECKSUM_ROWS.c
    if not has_table(connection, CHECKSUM_ROWS):
        return []
    statement = select(columns.kind, columns.name).where(columns.kind.not_in(get_args(Covered)))
    return [(row.kind, row.name) for row in connection.execute(statement)]


def _settings(connection: Connection, number: int) -> tuple[Any, ...]:
    row = select(TOURNAMENT_ROWS).where(TOURNAMENT_ROWS.c.tournament_id == number)
    return tuple(connection.execute(row).one())


def _data(data: Dataset) -> tuple[int]:
    """CRC-32 of the data in the order read, as a row for ``checksum``; ten times faster than their digest."""
    kinds: tuple[Iterable[Any], ...] = (
        ((each.query_id, each.text, each.columns) for each in data.queries.values()),
        ((each.doc_id, each.text, each.metadata) for each in data.documents.values()),
        ((*key, each.text, each.metadata) for key, each in data.answers.items()),
        (
            (each.query_id, each.doc_id, each.agent, each.rank, each.score)
            for entries in data.retrieved.values()
            for each in entries
        ),
        data.qrels.items(),
    )
    crc = 0
    for kind in kinds:
        for part in kind:
            crc = zlib.crc32(repr(part).encode("utf-8", "surrogatepass"), crc)
    return (crc,)


def database_problems(connection: Connection, name: str | None = None, games: int = 0) -> list[str]:
    """Problems that SQLite's own check of its pages and indexes reports; none for PostgreSQL, which checks itself.

    Args:
        connection: open for reading.
        name: the tournament that was read, if the check may be limited to what it used.
        games: number of its wanted games that were read. If it wants nothing else, all wants and judgments were read
            without their indexes; then the check skips these indexes, which take longest.
    """
    if connection.dialect.name != "sqlite":
        return []
    pragmas = ["integrity_check"]
    if name is not None and _number_of_wants(connection, name) == games:
        tables = set(connection.exec_driver_sql("SELECT name FROM sqlite_schema WHERE type = 'table'").scalars())
        pragmas = ["quick_check", *(f"integrity_check({each})" for each in sorted(tables - _SCANNED))]
    rows = (row for pragma in pragmas for row in connection.exec_driver_sql(f"PRAGMA {pragma}"))
    return [str(row[0]) for row in rows if row[0] != "ok"]


_SCANNED: Final = {JUDGMENT_ROWS.name, WANTED_ROWS.name}
"""Tables that ``verify`` reads without their indexes."""


def _number_of_wants(connection: Connection, name: str) -> int:
    statement = "SELECT count(*) FROM wanted WHERE tournament_id = ?"
    return int(connection.exec_driver_sql(statement, (tournament_number(connection, name),)).scalar_one())


def _tournament_problems(connection: Connection, number: int, name: str, data: Dataset | None = None) -> Iterator[str]:
    key = str(number)
    covered = stored_checksums(connection, "settings")
    if key in covered:
        for _ in mismatched_rows(connection, "settings", {key: _settings(connection, number)}):
            yield f"the settings of tournament {name!r}"
    elif covered.keys() - map(str, _numbers(connection)):
        yield f"the number of tournament {name!r}"
    if data is not None and not any(mismatched_rows(connection, "dataset", {key: _data(data)})):
        return
    # The caller may have read its data before another run replaced them, so read them again.
    try:
        damaged = any(mismatched_rows(connection, "dataset", {key: _data(dataset(connection, number))}))
    except (ValueError, TypeError):  # the stored data cannot be parsed
        damaged = True
    if damaged:
        yield f"the data of tournament {name!r}"


def _describe_want(connection: Connection, ident: str) -> str:
    """A line on the want that a judgment answers; if several want it, on one of them."""
    wants, tournaments = WANTED_ROWS, TOURNAMENT_ROWS.c
    joined = select(wants, tournaments.name).join(TOURNAMENT_ROWS, tournaments.tournament_id == wants.c.tournament_id)
    row = connection.execute(joined.where(wants.c.judgment_id == ident).limit(1)).first()
    if row is None:
        return "no tournament wants it"
    want = wanted_of(row)
    items = " and ".join(filter(None, (want.item, want.other)))
    return f"{want.task} of {items} on query {want.query_id!r} by {want.judge!r} in {row.name!r}"


def _covered_rows(connection: Connection) -> dict[Covered, dict[str, tuple[Any, ...]]]:
    """All rows of ``_COVERED_TABLES``, by kind and key."""
    by_kind: dict[Covered, dict[str, tuple[Any, ...]]] = {}
    for kind, table in _COVERED_TABLES:
        rows = connection.execute(select(table)).all() if has_table(connection, table) else []
        by_kind[kind] = {str(row[0]): tuple(row) for row in rows}
    return by_kind


def _covered_problems(connection: Connection) -> Iterator[str]:
    for kind, rows in _covered_rows(connection).items():
        for name in _damaged_or_gone(connection, kind, rows):
            yield f"{kind.replace('_', ' ')} {name}{'' if name in rows else ' is gone'}"


def _damaged_or_gone(connection: Connection, kind: Covered, rows: Mapping[str, Iterable[Any]]) -> Iterator[str]:
    """The keys whose checksum does not match, or whose row is gone."""
    for name, summed in stored_checksums(connection, kind).items():
        if name not in rows or summed != checksum(rows[name]):
            yield name


_TOURNAMENT_TABLES: Final = (WANTED_ROWS, ANSWER_ROWS, RETRIEVED_ROWS, DOCUMENT_ROWS, QUERY_ROWS, LABEL_ROWS)


def _dangling(connection: Connection) -> Iterator[tuple[int, str]]:
    """References to rows that do not exist: the tournament's number, and a line."""
    queries, documents, tournaments, wants = QUERY_ROWS, DOCUMENT_ROWS, TOURNAMENT_ROWS, WANTED_ROWS.c
    # A subquery rather than a lookup: queries have no index by id, and scanning them for each want takes minutes.
    query_keys = select(queries.c.tournament_id, queries.c.query_id)
    for table in (WANTED_ROWS, ANSWER_ROWS, RETRIEVED_ROWS, LABEL_ROWS):
        if has_table(connection, table):
            names_query = wants.task.not_in(NAMES_PASSAGE) if table is WANTED_ROWS else true()
            no_query = tuple_(table.c.tournament_id, table.c.query_id).not_in(query_keys)
            yield from _lost(connection, table, names_query & no_query, "a query")
    references: list[tuple[Table, Any, ColumnElement[bool]]] = [(RETRIEVED_ROWS, RETRIEVED_ROWS.c.doc_id, true())]
    references += [(WANTED_ROWS, wants[column], wants.task == task) for task, column in NAMES_PASSAGE.items()]
    for table, doc_id, condition in references:
        same = documents.c.tournament_id == table.c.tournament_id, documents.c.doc_id == doc_id
        yield from _lost(connection, table, condition & ~select(documents.c.doc_id).where(*same).exists(), "a document")
    for table in _TOURNAMENT_TABLES:
        if has_table(connection, table):
            exists = select(tournaments.c.name).where(tournaments.c.tournament_id == table.c.tournament_id).exists()
            yield from _lost(connection, table, ~exists, "a tournament")


def _lost(connection: Connection, table: Table, condition: Any, what: str) -> Iterator[tuple[int, str]]:
    counts = select(table.c.tournament_id, func.count()).where(condition).group_by(table.c.tournament_id)
    for number, rows in connection.execute(counts):
        yield int(number), f"{rows} rows of {table.name!r} name {what} that is not there (tournament number {number})"


_REPLACE: Final = "(kind, name) DO UPDATE SET checksum = excluded.checksum"


def store_checksums(connection: Connection, kind: Covered, rows: Mapping[str, Iterable[Any]]) -> None:
    """Store the checksums of rows by name; does nothing in a store of an earlier version, which lacks the table."""
    if rows and has_table(connection, CHECKSUM_ROWS):
        summed = [{"kind": kind, "name": name, "checksum": checksum(row)} for name, row in sorted(rows.items())]
        for chunk in chunks(summed, CHUNK):
            insert_rows(connection, CHECKSUM_ROWS, chunk, _REPLACE)


def drop_checksum(connection: Connection, kind: str, name: str) -> None:
    """Delete one stored checksum."""
    columns = CHECKSUM_ROWS.c
    connection.execute(delete(CHECKSUM_ROWS).where(columns.kind == kind, columns.name == name))


def mismatched_rows(connection: Connection, kind: Covered, rows: Mapping[str, Iterable[Any]]) -> Iterator[str]:
    """The names of the rows whose checksum does not match; rows without one are skipped."""
    stored = stored_checksums(connection, kind, list(rows))
    yield from (name for name, summed in stored.items() if summed != checksum(rows[name]))


def require_checksums(connection: Connection, kind: Covered, rows: Mapping[str, Iterable[Any]]) -> None:
    """Require that the rows match their stored checksums.

    Raises:
        Damage: a row does not match; the message names the first.
    """
    for name in mismatched_rows(connection, kind, rows):
        raise Damage(f"{kind.replace('_', ' ')} {name}")


def stored_checksums(connection: Connection, kind: Covered, names: Sequence[str] | None = None) -> dict[str, int]:
    """The stored checksums of a kind, by name; all of them unless ``names`` are passed."""
    columns = CHECKSUM_ROWS.c
    if not has_table(connection, CHECKSUM_ROWS):
        return {}
    statement = select(columns.name, columns.checksum).where(columns.kind == kind)
    if names is None:
        return {row.name: row.checksum for row in connection.execute(statement)}
    stored: dict[str, int] = {}
    for chunk in chunks(names, CHUNK):
        rows = connection.execute(statement.where(among(connection, columns.name, chunk)))
        stored.update((row.name, row.checksum) for row in rows)
    return stored
