"""Whether what a store holds is what was written: checksums, references, and what the database itself finds.

What has no column for its checksum has a row in a table of them: settings and data, what people say, what agents reply.
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
_SAID: Final[Sequence[tuple[Covered, Any]]] = (("annotation", ANNOTATION_ROWS), ("agent_reply", REPLY_ROWS))
"""Tables whose rows have their checksums in another one."""
_FETCHED: Final = 5_000
"""Rows that are in memory at once."""
_DAMAGED: Final = "damaged"
"""In place of the digest of a tournament's data: whoever begins it writes all of it anew."""


class Checked(Struct, frozen=True):
    """What a look at all of a store has shown.

    Attributes:
        judgments: how many it holds.
        uncovered: how many judgments and wants have no checksum, being of an earlier version.
        problems: what is wrong, a line each.
        damaged: ids of the judgments that are not what was written.
        tournaments: what is wrong with the settings, data or wants of each, by its number.
    """

    judgments: int
    uncovered: int
    problems: tuple[str, ...]
    damaged: tuple[str, ...]
    tournaments: Mapping[int, Sequence[str]]

    @property
    def lasting(self) -> tuple[str, ...]:
        """The problems that ``discard`` does not mend, nor a run after it."""
        mended = {problem for problems in self.tournaments.values() for problem in problems}
        return tuple(problem for problem in self.problems if problem not in mended)


def cover(connection: Connection, number: int, *, data: bool) -> None:
    """Remember the checksums of a tournament that has just been written; of its data too, if they were."""
    keep_checksums(connection, "settings", {str(number): _settings(connection, number)})
    if data or not kept_checksums(connection, "dataset", [str(number)]):
        keep_checksums(connection, "dataset", {str(number): _data(dataset(connection, number))})


def verify(connection: Connection, name: str, data: Dataset | None = None, also: Sequence[str] = ()) -> RowColumns:
    """See that all that a tournament is made of is what was written, and read its games in the same pass.

    Whoever calls this asks ``found_by_database`` too.

    Args:
        connection: to read.
        name: of the tournament.
        data: its data, where they have been read already.
        also: further columns of judgments to read, ``reason`` or ``model``.

    Returns:
        The verdicts wanted, a row for each sample, in no order. ``judge``, ``query``, the agents ``first`` and
        ``second`` as they are shown, ``outcome`` as JSON, ``cause`` of a failure, and what is asked for ``also``;
        ``position`` in the plan, ``sample``, and whether the verdict is that of two ``identical`` answers.

    Raises:
        Damage: something is not.
    """
    number = tournament_number(connection, name)
    for problem in _wrong_in_tournament(connection, number, name, data):
        raise Damage(problem)
    damaged: list[Sequence[Any]] = []
    said = ["outcome", "cause", *also]
    judgments, known = scan(connection, JUDGMENT_ROWS, partial(_as_said, said), (), damaged)
    _require_unwanted(connection, number, [str(row[0]) for row in damaged])
    here, damaged = WANTED_ROWS.c.tournament_id == number, []
    wants, sought = scan(connection, WANTED_ROWS, _as_shown, ("sample", "position"), damaged, here)
    for problem in _wanting_otherwise(name, damaged):
        raise Damage(problem)
    return _joined(wants, sought, judgments, known)


def _as_said(names: Sequence[str], block: ToArray) -> Mapping[str, pa.Array]:
    """What judges said of games."""
    return _of_games(block, {name: or_none(block(name)) if name != "reason" else block(name) for name in names})


def _as_shown(block: ToArray) -> Mapping[str, pa.Array]:
    """Who was to judge which games."""
    from pyarrow import compute

    turned, item, other = compute.equal(block("order"), scalar("ba")), block("item"), block("other")
    shown = {"first": compute.if_else(turned, other, item), "second": compute.if_else(turned, item, other)}
    return _of_games(block, {"judge": block("judge"), "query": block("query_id"), **shown})


def _of_games(block: ToArray, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array]:
    """The same, and null where a row is of no game."""
    import pyarrow as pa
    from pyarrow import compute

    games = compute.equal(block("task"), scalar(Task.PAIRWISE))
    return {name: compute.if_else(games, column, pa.NA) for name, column in columns.items()}


def _joined(wants: RowColumns, sought: Idents, judgments: RowColumns, known: Idents) -> RowColumns:
    """The wants of games with what became of them, by the ids of their judgments.

    Not by the database: it would look for each judgment by itself, which takes longer than to read all.
    """
    at = places(sought, known)
    said = {  # -1 takes the last row, which stands for none
        key: Texts([*own.names, None], np.append(own.codes, np.int32(len(own.names)))[at])
        for key, own in judgments.texts.items()
    }
    failed = np.array([outcome is None for outcome in said["outcome"].names], np.bool_)[said["outcome"].codes]
    identical = (sought == fingerprints(in_arrow([IDENTICAL.encode()]))) & ~failed
    rows = RowColumns({**wants.texts, **said}, {**wants.numbers, "identical": identical.astype(np.int32)})
    if None not in rows.texts["judge"].names:
        return rows
    games = np.array([judge is not None for judge in rows.texts["judge"].names])[rows.texts["judge"].codes]
    return rows.of(games)


def _require_unwanted(connection: Connection, number: int, damaged: Sequence[str]) -> None:
    here = WANTED_ROWS.c
    for chunk in chunks(damaged, CHUNK):
        mine = here.tournament_id == number, among(connection, here.judgment_id, chunk)
        if (ident := connection.execute(select(here.judgment_id).where(*mine).limit(1)).scalar()) is not None:
            raise Damage(f"judgment {ident}{f' (of {len(damaged)})' if len(damaged) > 1 else ''}")
    for problem in found_by_database(connection) if damaged else ():  # it may be the id that was changed
        raise Damage(f"the database ({problem})")


def check(store: Database) -> Checked:
    """Look at all of a store.

    Raises:
        StoreError: it cannot be read.
    """
    with store.reading() as connection:
        problems = [f"the database finds: {each}" for each in found_by_database(connection)]
        tournaments: defaultdict[int, list[str]] = defaultdict(list)
        for row in connection.execute(select(TOURNAMENT_ROWS)).all():
            wrong = list(_wrong_in_tournament(connection, row.tournament_id, row.name))
            here = WANTED_ROWS.c.tournament_id == row.tournament_id
            wrong += _wanting_otherwise(row.name, damaged_rows(connection, WANTED_ROWS, here))
            if wrong:
                tournaments[row.tournament_id] += wrong
        for number, problem in _dangling(connection):
            tournaments[number].append(problem)
        problems += [problem for wrong in tournaments.values() for problem in wrong]
        problems += [f"tournament number {number} is gone" for number in sorted(_gone(connection))]
        problems += [f"checksum of {name!r}: there is no kind {kind!r}" for kind, name in _of_no_kind(connection)]
        damaged = tuple(str(row[0]) for row in damaged_rows(connection, JUDGMENT_ROWS))
        problems += [f"judgment {ident} ({_wanted_for(connection, ident)})" for ident in damaged]
        problems += _wrong_elsewhere(connection)
        judged, wants = JUDGMENT_ROWS.c, WANTED_ROWS.c
        uncovered = [select(func.count()).where(here.checksum.is_(None)) for here in (judged, wants)]
        return Checked(
            int(connection.execute(select(func.count(judged.judgment_id))).scalar_one()),
            sum(int(connection.execute(each).scalar_one()) for each in uncovered),
            tuple(problems),
            damaged,
            tournaments,
        )


def discard(store: Database, checked: Checked) -> None:
    """Take out what is damaged, so that a run asks for judgments and replies again and writes tournaments anew.

    What a person said is gone then. Indexes are built anew as well. Nothing else changes.
    """
    with store.writing(alone=True) as connection:
        delete_rows(connection, JUDGMENT_ROWS.c.judgment_id, checked.damaged)
        here = TOURNAMENT_ROWS
        for number in checked.tournaments:
            mine = here.c.tournament_id == number
            if not connection.execute(update(here).where(mine).values(data_digest=_DAMAGED)).rowcount:
                for each in _OF_TOURNAMENTS:
                    connection.execute(delete(each).where(each.c.tournament_id == number))
        for kind, row in _SAID:
            rows, named = _others(connection)[kind], row.primary_key.columns[0]
            for name in list(_wrong_of(connection, kind, rows)):
                connection.execute(delete(row).where(cast(named, String) == name))
                drop_checksum(connection, kind, name)
        for lost in _gone(connection):
            drop_checksum(connection, "settings", lost)
            drop_checksum(connection, "dataset", lost)
        for of, name in _of_no_kind(connection):
            drop_checksum(connection, of, name)
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("REINDEX")


def add(store: Database) -> None:
    """Give a checksum to all that has none: what is there now counts as what was written."""
    with store.writing(alone=True, judged=False) as connection:
        for kind, key in ((JUDGMENT_ROWS, ("judgment_id",)), (WANTED_ROWS, _WANT)):
            chosen = with_checksum(kind).where(kind.c.checksum.is_(None))
            while rows := connection.execute(chosen.limit(_FETCHED)).all():
                for row in rows:
                    same = [kind.c[name] == getattr(row, name) for name in key]
                    summed = checksum(tuple(row[:-1])) + ADDED[kind.name]
                    connection.execute(update(kind).where(*same).values(checksum=summed))
        for number in _numbers(connection):
            cover(connection, number, data=False)
        for other, others in _others(connection).items():
            missing = others.keys() - kept_checksums(connection, other).keys()
            keep_checksums(connection, other, {name: others[name] for name in missing})


_WANT: Final = tuple(column.name for column in WANTED_ROWS.primary_key)


def _wanting_otherwise(name: str, damaged: Iterable[Sequence[Any]]) -> list[str]:
    return [f"what tournament {name!r} wants ({', '.join(map(str, row[1:8]))})" for row in damaged]


def _numbers(connection: Connection) -> list[int]:
    here = TOURNAMENT_ROWS.c
    return list(connection.execute(select(here.tournament_id).where(here.data_digest != NOT_BEGUN)).scalars())


def _gone(connection: Connection) -> set[str]:
    """The numbers of tournaments of which only checksums are there."""
    covered = kept_checksums(connection, "settings").keys() | kept_checksums(connection, "dataset").keys()
    return covered - set(map(str, _numbers(connection)))


def _of_no_kind(connection: Connection) -> list[tuple[str, str]]:
    """Checksums whose kind is none that there is."""
    here = CHECKSUM_ROWS.c
    if not has_table(connection, CHECKSUM_ROWS):
        return []
    chosen = select(here.kind, here.name).where(here.kind.not_in(get_args(Covered)))
    return [(row.kind, row.name) for row in connection.execute(chosen)]


def _settings(connection: Connection, number: int) -> tuple[Any, ...]:
    here = TOURNAMENT_ROWS
    return tuple(connection.execute(select(here).where(here.c.tournament_id == number)).one())


def _data(data: Dataset) -> tuple[int]:
    """A running checksum of what was read, in the order of the reading: a tenth of the work of a digest."""
    kinds: tuple[Iterable[Any], ...] = (
        ((each.query_id, each.text, each.columns) for each in data.queries.values()),
        ((each.doc_id, each.text, each.metadata) for each in data.documents.values()),
        ((*key, each.text, each.metadata) for key, each in data.answers.items()),
        (
            (each.query_id, each.doc_id, each.agent, each.rank, each.score)
            for own in data.retrieved.values()
            for each in own
        ),
        data.qrels.items(),
    )
    found = 0
    for kind in kinds:
        for part in kind:
            found = zlib.crc32(repr(part).encode("utf-8", "surrogatepass"), found)
    return (found,)


def found_by_database(connection: Connection, name: str | None = None, games: int = 0) -> list[str]:
    """What SQLite says of its own pages and indexes; a server looks after its own.

    Args:
        connection: to read.
        name: of the tournament that is read, if it is only one.
        games: how many wants of games it was seen to have. Where it has no others, all wants and judgments have been
            read and none was looked up: then their indexes, which take longest, are passed over.
    """
    if connection.dialect.name != "sqlite":
        return []
    looks = ["integrity_check"]
    if name is not None and _wanted_by_index(connection, name) == games:
        tables = set(connection.exec_driver_sql("SELECT name FROM sqlite_schema WHERE type = 'table'").scalars())
        looks = ["quick_check", *(f"integrity_check({each})" for each in sorted(tables - _READ_WHOLE))]
    found = (row for look in looks for row in connection.exec_driver_sql(f"PRAGMA {look}"))
    return [str(row[0]) for row in found if row[0] != "ok"]


_READ_WHOLE: Final = {JUDGMENT_ROWS.name, WANTED_ROWS.name}


def _wanted_by_index(connection: Connection, name: str) -> int:
    known = "SELECT count(*) FROM wanted WHERE tournament_id = ?"
    return int(connection.exec_driver_sql(known, (tournament_number(connection, name),)).scalar_one())


def _wrong_in_tournament(connection: Connection, number: int, name: str, data: Dataset | None = None) -> Iterator[str]:
    mine = str(number)
    covered = kept_checksums(connection, "settings")
    if mine in covered:
        for _ in not_as_written(connection, "settings", {mine: _settings(connection, number)}):
            yield f"the settings of tournament {name!r}"
    elif covered.keys() - map(str, _numbers(connection)):
        yield f"the number of tournament {name!r}"
    # Data that were read before this look at the store may since have given way to those of another run.
    given = data is not None and not any(not_as_written(connection, "dataset", {mine: _data(data)}))
    if given:
        return
    try:
        wrong = any(not_as_written(connection, "dataset", {mine: _data(dataset(connection, number))}))
    except (ValueError, TypeError):  # they cannot even be read
        wrong = True
    if wrong:
        yield f"the data of tournament {name!r}"


def _wanted_for(connection: Connection, ident: str) -> str:
    """What a judgment is of, as far as that is known."""
    here, named = WANTED_ROWS, TOURNAMENT_ROWS.c
    of = select(here, named.name).join(TOURNAMENT_ROWS, named.tournament_id == here.c.tournament_id)
    found = connection.execute(of.where(here.c.judgment_id == ident).limit(1)).first()
    if found is None:
        return "no tournament wants it"
    want = wanted_of(found)
    things = " and ".join(filter(None, (want.item, want.other)))
    return f"{want.task} of {things} on query {want.query_id!r} by {want.judge!r} in {found.name!r}"


def _others(connection: Connection) -> dict[Covered, dict[str, tuple[Any, ...]]]:
    found: dict[Covered, dict[str, tuple[Any, ...]]] = {}
    for kind, row in _SAID:
        rows = connection.execute(select(row)).all() if has_table(connection, row) else []
        found[kind] = {str(each[0]): tuple(each) for each in rows}
    return found


def _wrong_elsewhere(connection: Connection) -> Iterator[str]:
    for kind, rows in _others(connection).items():
        for name in _wrong_of(connection, kind, rows):
            yield f"{kind.replace('_', ' ')} {name}{'' if name in rows else ' is gone'}"


def _wrong_of(connection: Connection, kind: Covered, rows: Mapping[str, Iterable[Any]]) -> Iterator[str]:
    """The names of those that are not what was written, or gone."""
    for name, summed in kept_checksums(connection, kind).items():
        if name not in rows or summed != checksum(rows[name]):
            yield name


_OF_TOURNAMENTS: Final = (WANTED_ROWS, ANSWER_ROWS, RETRIEVED_ROWS, DOCUMENT_ROWS, QUERY_ROWS, LABEL_ROWS)


def _dangling(connection: Connection) -> Iterator[tuple[int, str]]:
    """References to what is not there, each with the number of its tournament."""
    asked, documents, tournaments, wants = QUERY_ROWS, DOCUMENT_ROWS, TOURNAMENT_ROWS, WANTED_ROWS.c
    # Queries have no index by their ids: a look at all of them for each want would take minutes.
    known = select(asked.c.tournament_id, asked.c.query_id)
    for here in (WANTED_ROWS, ANSWER_ROWS, RETRIEVED_ROWS, LABEL_ROWS):
        if has_table(connection, here):
            which = wants.task.not_in(NAMES_PASSAGE) if here is WANTED_ROWS else true()
            lost = tuple_(here.c.tournament_id, here.c.query_id).not_in(known)
            yield from _lost(connection, here, which & lost, "a query")
    named: list[tuple[Table, Any, ColumnElement[bool]]] = [(RETRIEVED_ROWS, RETRIEVED_ROWS.c.doc_id, true())]
    named += [(WANTED_ROWS, wants[column], wants.task == task) for task, column in NAMES_PASSAGE.items()]
    for here, doc_id, chosen in named:
        same = documents.c.tournament_id == here.c.tournament_id, documents.c.doc_id == doc_id
        yield from _lost(connection, here, chosen & ~select(documents.c.doc_id).where(*same).exists(), "a document")
    for here in _OF_TOURNAMENTS:
        if has_table(connection, here):
            there = select(tournaments.c.name).where(tournaments.c.tournament_id == here.c.tournament_id).exists()
            yield from _lost(connection, here, ~there, "a tournament")


def _lost(connection: Connection, here: Table, condition: Any, what: str) -> Iterator[tuple[int, str]]:
    counted = select(here.c.tournament_id, func.count()).where(condition).group_by(here.c.tournament_id)
    for number, rows in connection.execute(counted):
        yield int(number), f"{rows} rows of {here.name!r} name {what} that is not there (tournament number {number})"


_IN_PLACE: Final = "(kind, name) DO UPDATE SET checksum = excluded.checksum"


def keep_checksums(connection: Connection, kind: Covered, rows: Mapping[str, Iterable[Any]]) -> None:
    """Remember what was written, by name; a store of an earlier version has no place for it until a run writes it."""
    if rows and has_table(connection, CHECKSUM_ROWS):
        summed = [{"kind": kind, "name": name, "checksum": checksum(row)} for name, row in sorted(rows.items())]
        for chunk in chunks(summed, CHUNK):
            insert_rows(connection, CHECKSUM_ROWS, chunk, _IN_PLACE)


def drop_checksum(connection: Connection, kind: str, name: str) -> None:
    """Remember nothing of it."""
    here = CHECKSUM_ROWS.c
    connection.execute(delete(CHECKSUM_ROWS).where(here.kind == kind, here.name == name))


def not_as_written(connection: Connection, kind: Covered, rows: Mapping[str, Iterable[Any]]) -> Iterator[str]:
    """The names of those that are not what was written."""
    there = kept_checksums(connection, kind, list(rows))
    yield from (name for name, summed in there.items() if summed != checksum(rows[name]))


def require_as_written(connection: Connection, kind: Covered, rows: Mapping[str, Iterable[Any]]) -> None:
    """See that these are what was written.

    Raises:
        Damage: one is not.
    """
    for name in not_as_written(connection, kind, rows):
        raise Damage(f"{kind.replace('_', ' ')} {name}")


def kept_checksums(connection: Connection, kind: Covered, names: Sequence[str] | None = None) -> dict[str, int]:
    """The checksums of these, or of all."""
    here = CHECKSUM_ROWS.c
    if not has_table(connection, CHECKSUM_ROWS):
        return {}
    chosen = select(here.name, here.checksum).where(here.kind == kind)
    if names is None:
        return {row.name: row.checksum for row in connection.execute(chosen)}
    found: dict[str, int] = {}
    for chunk in chunks(names, CHUNK):
        rows = connection.execute(chosen.where(among(connection, here.name, chunk)))
        found.update((row.name, row.checksum) for row in rows)
    return found
