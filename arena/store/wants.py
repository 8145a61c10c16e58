"""Reads and writes planned judgments (``Wanted``), their links to stored judgments, and the stored judgments.

Each judgment or failure is stored once and shared by all tournaments of the store.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Select, TextClause, and_, case, delete, func, select, text, update

from arena.store.bulk import (
    CHUNK,
    RowColumns,
    among,
    arrays,
    by_column,
    chunks,
    execute_each,
    insert_rows,
    replacing,
    stream,
)
from arena.store.rows import (
    IDENTICAL,
    Result,
    Wanted,
    judgment_values,
    result_of,
    tournament_number,
    want_checksum,
    wanted_of,
    wanted_values,
)
from arena.store.tables import JUDGMENT, WANTED
from judges.types import Task, Verdict

if TYPE_CHECKING:
    from arena.store.database import Database


_IF_THERE: Final = replacing(JUDGMENT, "judgment_id", where="judgment.outcome IS NULL")
_WITH_RESULTS: Final = WANTED.outerjoin(JUDGMENT, WANTED.c.judgment_id == JUDGMENT.c.judgment_id)
_FETCHED: Final = 2_000
_STREAMED: Final = 20_000
_CACHE_KB: Final = 1_000_000
_SUBJECT_KEYS = ("query_id", "item", "other", "order", "sample")
_KEYS = ("task", "judge", *_SUBJECT_KEYS)
"""Columns that identify a planned judgment within its tournament."""
_MOVED: Final = (
    "DO UPDATE SET position = excluded.position, checksum = wanted.checksum - wanted.position + excluded.position"
)


def wanted(connection: Connection, number: int, task: Task | None) -> list[tuple[Wanted, str | None]]:
    wants = WANTED.c
    statement = select(WANTED).where(wants.tournament_id == number).order_by(wants.position)
    if task is not None:
        statement = statement.where(wants.task == task.value)
    return [(wanted_of(row), row.judgment_id) for row in connection.execute(statement)]


def each_outcome(
    connection: Connection,
    number: int,
    task: Task,
    query_id: str | None = None,
    among: Collection[str] | None = None,
) -> Iterator[tuple[Wanted, Result | None]]:
    """Stream the planned judgments of a task in plan order, each with its result or ``None``.

    Args:
        among: names of agents; only games between two of them are yielded.
    """
    wants = WANTED.c
    columns = [wants[key] for key in _KEYS if key != "task"]
    statement = (
        select(*columns, *JUDGMENT.c)
        .select_from(_WITH_RESULTS)
        .where(wants.tournament_id == number, wants.task == task.value)
        .order_by(wants.position)
    )
    if query_id is not None:
        statement = statement.where(wants.query_id == query_id, wants.judge.in_(_judges_of(number, task)))
    if among is not None:
        statement = statement.where(wants.item.in_(among), wants.other.in_(among))
    size = len(columns)
    with connection.execute(statement.execution_options(yield_per=_FETCHED)) as rows:
        for row in rows:
            yield Wanted(task, *row[:size]), None if row[size] is None else result_of(row[size:])


def _judges_of(number: int, task: Task) -> Select[Any]:
    """SQL that selects the judges of a task: a recursive query with one index lookup per judge.

    The primary key has ``judge`` before ``query_id``, so a filter by query can use it only if the SQL names the judges.
    """
    wants = WANTED.c
    next_judge = select(func.min(wants.judge)).where(wants.tournament_id == number, wants.task == task.value)
    judges = next_judge.cte("judges", recursive=True, nesting=True)
    judge = judges.c[0]
    following = select(next_judge.where(wants.judge > judge).scalar_subquery()).where(judge.is_not(None))
    judges = judges.union_all(following)
    return select(judges.c[0]).where(judges.c[0].is_not(None))


def extend(connection: Connection, number: int, added: Iterable[Wanted]) -> int:
    wants = WANTED.c
    last = connection.execute(select(func.max(wants.position)).where(wants.tournament_id == number)).scalar()
    return _insert(connection, number, enumerate(added, 0 if last is None else last + 1), "DO NOTHING")


def replace(connection: Connection, number: int, wants: Iterable[Wanted], *, keep_judgments: bool) -> bool:
    """Replace a tournament's planned judgments; returns whether they changed.

    Args:
        keep_judgments: whether a planned judgment that is also in the new plan keeps its link to a stored judgment.
    """
    table, columns = WANTED, WANTED.c
    in_tournament = columns.tournament_id == number
    wants = list(wants)
    if keep_judgments:
        if _is_unchanged(connection, number, wants):
            return False
        # Positions turn negative, so that the new ones do not collide; what stays negative is not wanted any more.
        negative = {"position": -1 - columns.position, "checksum": columns.checksum - 1 - 2 * columns.position}
        connection.execute(update(table).where(in_tournament).values(**negative))
    else:
        connection.execute(delete(table).where(in_tournament))
    _insert(connection, number, enumerate(wants), _MOVED)
    connection.execute(delete(table).where(in_tournament, columns.position < 0))
    if connection.dialect.name != "sqlite":  # otherwise PostgreSQL assumes a small table, and scans it to assign
        connection.execute(text("ANALYZE wanted"))
    return True


def _is_unchanged(connection: Connection, number: int, wants: Sequence[Wanted]) -> bool:
    """Whether the store already has these planned judgments, so that they need not be written again.

    The store may have further planned judgments, which an earlier run added depending on its results. Only if every
    planned judgment in the store has a result is it certain that the new run would add the same ones; otherwise they
    count as changed.
    """
    columns = WANTED.c
    in_tournament = columns.tournament_id == number
    stored_keys = select(*(columns[key] for key in _KEYS)).where(in_tournament).order_by(columns.position)
    with connection.execute(stored_keys.execution_options(yield_per=CHUNK)) as stored:
        if any(key != tuple(next(stored, ())) for key in map(attrgetter(*_KEYS), wants)):
            return False
        if next(stored, None) is None:
            return True
    no_result = JUDGMENT.c.judgment_id.is_(None)
    lacking = select(columns.position).select_from(_WITH_RESULTS).where(in_tournament, no_result)
    return connection.execute(lacking.limit(1)).first() is None


def assign(connection: Connection, number: int, judgments: Sequence[tuple[Wanted, str]]) -> int:
    """Link each planned judgment to the judgment with the given id; returns how many links are new."""
    rows = [
        {
            **{key: getattr(want, key) for key in _KEYS},
            "judgment_id": ident,
            "checksum": want_checksum(number, want, ident),
        }
        for want, ident in dict(judgments).items()
    ]
    if connection.dialect.name == "sqlite":
        return execute_each(connection, _assign_each(), [{"number": number, **row} for row in rows])
    return connection.execute(_assign_all(), {"number": number, **by_column(WANTED, rows)}).rowcount


@cache
def _assign_all() -> TextClause:
    """The statement of ``assign`` for PostgreSQL; it locks rows in key order, so that two runners cannot deadlock."""
    names = ", ".join(f'"{name}"' for name in (*_KEYS, "judgment_id", "checksum"))
    keys = ", ".join(f'wanted."{key}"' for key in _KEYS)
    equal = " AND ".join(f'wanted."{key}" = given."{key}"' for key in _KEYS)
    given = f"{arrays(WANTED, (*_KEYS, 'judgment_id', 'checksum'))} AS given ({names})"
    noted = "given.judgment_id, given.checksum + wanted.position AS checksum"
    locked = (
        f"SELECT {keys}, {noted} FROM wanted JOIN {given} ON {equal} "  # noqa: S608 - names of our own table
        "WHERE wanted.tournament_id = :number AND wanted.judgment_id IS DISTINCT FROM given.judgment_id "
        f"ORDER BY {keys} FOR UPDATE OF wanted"
    )
    return text(
        f"UPDATE wanted SET judgment_id = given.judgment_id, checksum = given.checksum FROM ({locked}) AS given "  # noqa: S608
        f"WHERE wanted.tournament_id = :number AND {equal}"
    )


@cache
def _assign_each() -> str:
    equal = " AND ".join(f'"{key}" = :{key}' for key in _KEYS)
    condition = f"tournament_id = :number AND {equal} AND judgment_id IS NOT :judgment_id"
    values = "judgment_id = :judgment_id, checksum = :checksum + position"
    return f"UPDATE wanted SET {values} WHERE {condition}"  # noqa: S608


def _insert(connection: Connection, number: int, placed: Iterable[tuple[int, Wanted]], if_there: str) -> int:
    keys = ", ".join(f'"{column.name}"' for column in WANTED.primary_key)
    inserted = 0
    for chunk in chunks(placed, CHUNK):
        once = {want: wanted_values(number, position, want) for position, want in chunk}
        inserted += insert_rows(connection, WANTED, list(once.values()), f"({keys}) {if_there}")
    return inserted


def save(connection: Connection, results: Sequence[tuple[Task, str, Result]]) -> int:
    """Save results; a stored failure is replaced, a stored judgment is not. Returns the number of changed rows."""
    rows: dict[str, dict[str, Any]] = {}
    for entry in results:
        row = judgment_values(*entry)
        if (earlier := rows.get(row["judgment_id"])) is None or earlier["outcome"] is None:
            rows[row["judgment_id"]] = row
    return insert_rows(connection, JUDGMENT, [rows[ident] for ident in sorted(rows)], _IF_THERE)


def judged_ids(connection: Connection, number: int, wants: Sequence[Wanted]) -> dict[Wanted, str]:
    columns, judged = WANTED.c, JUDGMENT.c
    key_columns = [columns[key] for key in _SUBJECT_KEYS]
    linked = select(*key_columns, columns.judgment_id).where(columns.judgment_id == judged.judgment_id)
    ids: dict[Wanted, str] = {}
    key_of = attrgetter(*_SUBJECT_KEYS)
    for task, judge in dict.fromkeys((want.task, want.judge) for want in wants):
        by_key = {key_of(want): want for want in wants if want.task is task and want.judge == judge}
        # The query and the item narrow the rows down in SQL; the whole key is compared below.
        narrowing = (
            among(connection, column, list({key[at] for key in by_key})) for at, column in enumerate(key_columns[:2])
        )
        same = columns.tournament_id == number, columns.task == task.value, columns.judge == judge
        rows = connection.execute(linked.where(*same, *narrowing, judged.outcome.is_not(None))).fetchall()
        ids |= {by_key[key]: ident for *values, ident in rows if (key := tuple(values)) in by_key}
    return ids


def results(connection: Connection, judgment_ids: Sequence[str]) -> dict[str, Result]:
    by_id: dict[str, Result] = {}
    ident = JUDGMENT.c.judgment_id
    for chunk in chunks(judgment_ids, CHUNK):
        rows = connection.execute(select(JUDGMENT).where(among(connection, ident, chunk)))
        by_id.update((row.judgment_id, result_of(row)) for row in rows)
    return by_id


def results_named(connection: Connection, prefix: str) -> dict[str, Result]:
    """The results whose ids begin with ``prefix``."""
    ident = JUDGMENT.c.judgment_id
    statement = select(JUDGMENT).where(ident.startswith(prefix, autoescape=True))
    if connection.dialect.name == "sqlite":  # its LIKE ignores case, and so cannot use the index
        statement = statement.where(ident >= prefix, ident < f"{prefix}\U0010ffff")
    return {row.judgment_id: result_of(row) for row in connection.execute(statement)}


_VERDICTS: Final = {None, *(json.dumps(verdict.value) for verdict in Verdict)}


class _Numbering(dict[str | None, int]):
    """A dictionary that numbers distinct values from 0, in the order in which they are first looked up."""

    def __missing__(self, value: str | None) -> int:
        self[value] = len(self)
        return self[value]


def games(connection: Connection, number: int, also: Sequence[str] = ()) -> RowColumns:
    """The planned games of a tournament with their verdicts, one row per sample, in no particular order.

    Args:
        also: further columns of judgments to read, ``reason`` or ``model``.

    Returns:
        Columns of texts: ``judge``, ``query``, the agents ``first`` and ``second`` in the order shown, ``outcome`` as
        JSON, the ``cause`` of a failure, and the columns in ``also``. Columns of numbers: ``position`` in the plan,
        ``sample``, and ``identical``, 1 for a tie between two identical answers.

    Raises:
        ValueError: a stored outcome is no verdict.
    """
    wants, judged = WANTED.c, JUDGMENT.c
    shown = [
        case((wants.order == "ba", other), else_=one)
        for one, other in ((wants.item, wants.other), (wants.other, wants.item))
    ]
    texts = {"judge": wants.judge, "query": wants.query_id, "first": shown[0], "second": shown[1]}
    numbers = {"position": wants.position, "sample": wants.sample}
    of_tournament = wants.tournament_id == number, wants.task == Task.PAIRWISE.value
    rows, idents = _in_columns(connection, wants.judgment_id, texts, numbers, of_tournament)
    results = {name: judged[name] for name in ("outcome", "cause", *also)}
    judgments, known = _in_columns(connection, judged.judgment_id, results, {}, [judged.task == Task.PAIRWISE.value])
    if not _VERDICTS.issuperset(judgments.names["outcome"]):
        raise ValueError("a stored outcome is no verdict")
    # Joined here, not in the database: it would look up each judgment separately, which takes three times as long.
    at = _places(idents, known)
    names = {name: [*texts, None] for name, texts in judgments.names.items()}
    outcomes = {  # place -1 takes the appended last row, None
        name: np.append(judgments.numbers[name], np.int32(len(texts)))[at] for name, texts in judgments.names.items()
    }
    judged_rows = RowColumns(names, outcomes)
    identical = (idents == hash(IDENTICAL)) & judged_rows.mapped("outcome", lambda outcome: outcome is not None)
    return RowColumns({**rows.names, **names}, {**rows.numbers, **outcomes, "identical": identical.astype(np.int32)})


def _in_columns(
    connection: Connection,
    ident: ColumnElement[Any],
    texts: Mapping[str, ColumnElement[Any]],
    numbers: Mapping[str, ColumnElement[int]],
    where: Sequence[ColumnElement[bool]],
) -> tuple[RowColumns, NDArray[np.int64]]:
    """Read rows as columns, and the hashes of their judgment ids; the ids themselves would take most of the memory."""
    numberings = [_Numbering() for _ in texts]
    columns: list[list[NDArray[Any]]] = [[] for _ in (None, *texts, *numbers)]
    statement = select(ident, *texts.values(), *numbers.values()).where(*where)
    for rows in stream(connection, statement, _STREAMED):
        idents, *values = zip(*rows, strict=True)
        columns[0].append(np.fromiter(map(hash, idents), np.int64, len(rows)))
        for column, numbering, texts_of_column in zip(columns[1:], numberings, values, strict=False):
            column.append(np.fromiter(map(numbering.__getitem__, texts_of_column), np.int32, len(rows)))
        for column, integers in zip(columns[1 + len(texts) :], values[len(texts) :], strict=True):
            column.append(np.array(integers, np.int32))
    hashes, *whole = (np.concatenate([np.empty(0, np.int32), *parts]) for parts in columns)
    names = {name: [*each] for name, each in zip(texts, numberings, strict=True)}
    return RowColumns(names, dict(zip((*texts, *numbers), whole, strict=True))), hashes


def _places(sought: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.intp]:
    """For each hash in ``sought``, its index in ``known``, or -1 if it is not there."""
    order, ascending = np.argsort(known), np.argsort(sought)  # ascending searches use the processor's cache better
    at = np.minimum(np.searchsorted(known[order], sought[ascending]), known.size - 1)
    places = np.full(sought.size, -1)
    if known.size:
        places[ascending] = np.where(known[order[at]] == sought[ascending], order[at], -1)
    return places


def verdict_rows(store: Database, tournament: str) -> Iterator[list[tuple[Any, ...]]]:
    """Stream all verdicts of a tournament, one row per sample, in no particular order.

    Yields:
        Lists of rows: query_id, item, other, order, judge, sample, the verdict as JSON, and its reason.
    """
    wants, judged = WANTED.c, JUDGMENT.c
    key_columns = [wants[name] for name in ("query_id", "item", "other", "order", "judge", "sample")]
    with store.reading() as connection:
        games = wants.tournament_id == tournament_number(connection, tournament), wants.task == Task.PAIRWISE.value
        verdicts = select(*key_columns, judged.outcome, judged.reason).where(
            *games, wants.judgment_id == judged.judgment_id, judged.outcome.is_not(None)
        )
        if connection.dialect.name == "sqlite":  # a join of millions of rows looks up each row at a random place
            connection.exec_driver_sql(f"PRAGMA cache_size = -{_CACHE_KB}")
        yield from stream(connection, verdicts, _STREAMED)


def spent_by_judge(store: Database, tournament: str) -> list[tuple[str, int, int, int, int, float]]:
    """Counts and costs of verdicts, by judge of answers; repeated samples count separately.

    Returns:
        One row per judge: its name; the number of games with a verdict, of planned verdicts, of failures, and of
        results with unknown cost; and the total of the known costs in dollars.
    """
    wants, judged = WANTED.c, JUDGMENT.c
    failed = and_(judged.judgment_id.is_not(None), judged.outcome.is_(None))
    unpriced = and_(judged.judgment_id.is_not(None), judged.cost_usd.is_(None))
    figures = [
        func.max(case((judged.outcome.is_not(None), 1), else_=0)).label("played"),
        func.count().label("wanted"),
        func.sum(case((failed, 1), else_=0)).label("failed"),
        func.sum(case((unpriced, 1), else_=0)).label("unpriced"),
        func.coalesce(func.sum(judged.cost_usd), 0.0).label("cost"),
    ]
    game = (wants.judge, wants.query_id, wants.item, wants.other)
    with store.reading() as connection:
        number = tournament_number(connection, tournament)
        by_game = (
            select(wants.judge, *figures)
            .select_from(_WITH_RESULTS)
            .where(wants.tournament_id == number, wants.task == Task.PAIRWISE.value)
            .group_by(*game)
            .subquery()
        )
        sums = [func.sum(by_game.c[figure.name]) for figure in figures]
        rows = connection.execute(select(by_game.c.judge, *sums).group_by(by_game.c.judge).order_by(by_game.c.judge))
        return [(judge, *map(int, counts), float(cost)) for judge, *counts, cost in rows]


class StageProgress(Struct, frozen=True):
    """Counts of a stage's planned judgments, judgments and failures by cause; repeated samples count separately."""

    wanted: int
    judged: int
    causes: Mapping[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        return sum(self.causes.values())

    @property
    def left(self) -> int:
        return self.wanted - self.judged - self.failed


class TournamentProgress(Struct, frozen=True):
    """Progress of all stages of a tournament, and its cost.

    Attributes:
        cost_usd: total of the known costs in dollars of the tournament's judgments and failures; a result that several
            planned judgments share counts once.
        cost_unknown: number of judgments and failures without a known cost.
    """

    stages: Mapping[Task, StageProgress]
    cost_usd: float
    cost_unknown: int


def progress(store: Database, tournament: str) -> TournamentProgress:
    """Count a tournament's planned judgments by stage, and add up the cost of its results so far."""
    wants, judged = WANTED, JUDGMENT
    with store.reading() as connection:
        in_tournament = wants.c.tournament_id == tournament_number(connection, tournament)
        judged_count = func.sum(case((judged.c.outcome.is_not(None), 1), else_=0))
        counts = func.count(), judged_count, func.min(wants.c.position)
        by_cause = select(wants.c.task, judged.c.cause, *counts).select_from(_WITH_RESULTS).where(in_tournament)
        rows = connection.execute(by_cause.group_by(wants.c.task, judged.c.cause)).all()
        cost, unknown = _paid(connection, in_tournament)
    return TournamentProgress(_stages(rows), cost, unknown)


def paid(store: Database, tournament: str) -> float | None:
    """Total cost in dollars of a tournament's judgments and failures; ``None`` if one of the costs is not known."""
    with store.reading() as connection:
        cost, unknown = _paid(connection, WANTED.c.tournament_id == tournament_number(connection, tournament))
    return None if unknown else cost


def mean_costs(store: Database, tournament: str) -> dict[tuple[Task, str], float]:
    """Mean cost in dollars of a judgment by task and judge, of the tournament's judgments whose cost is known."""
    with store.reading() as connection:
        names = WANTED.c.task, WANTED.c.judge
        mean = func.avg(JUDGMENT.c.cost_usd)
        in_tournament = WANTED.c.tournament_id == tournament_number(connection, tournament)
        known = in_tournament & JUDGMENT.c.cost_usd.is_not(None)
        rows = connection.execute(select(*names, mean).select_from(_WITH_RESULTS).where(known).group_by(*names)).all()
    return {(Task(task), str(judge)): float(cost) for task, judge, cost in rows}


def _paid(connection: Connection, in_tournament: ColumnElement[bool]) -> tuple[float, int]:
    """The total of the known costs, and the number of unknown ones; a result that several wants share counts once."""
    judged, wanted = JUDGMENT.c, select(WANTED.c.judgment_id).where(in_tournament)
    costs = select(func.coalesce(func.sum(judged.cost_usd), 0.0), func.count() - func.count(judged.cost_usd))
    cost, unknown = connection.execute(costs.where(judged.judgment_id.in_(wanted))).one()
    return float(cost), int(unknown)


def _stages(rows: Any) -> dict[Task, StageProgress]:
    stages: dict[Task, StageProgress] = {}
    for name in dict.fromkeys(row[0] for row in sorted(rows, key=itemgetter(-1))):
        task_rows = [row for row in rows if row[0] == name]
        causes = {str(row[1]): int(row[2]) for row in task_rows if row[1] is not None}
        wanted, judged = (sum(int(row[place]) for row in task_rows) for place in (2, 3))
        stages[Task(name)] = StageProgress(wanted, judged, causes)
    return stages
