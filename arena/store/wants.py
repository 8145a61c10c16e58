"""Wants of a tournament (the judgments that it needs), their links to judgments, and the judgments themselves.

Each judgment or failure is stored once and shared by all tournaments of the store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from sqlalchemy import Connection, Select, TextClause, and_, case, delete, func, select, text, update

from arena.store.bulk import (
    CHUNK,
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
    JUDGMENT_ROWS,
    WANTED_ROWS,
    Result,
    Wanted,
    judgment_values,
    result_of,
    tournament_number,
    want_checksum,
    wanted_of,
    wanted_values,
)
from judges.types import Task

if TYPE_CHECKING:
    from arena.store.database import Database


_IF_THERE: Final = replacing(JUDGMENT_ROWS, "judgment_id", where="judgment.outcome IS NULL")
_WITH_RESULTS: Final = WANTED_ROWS.outerjoin(JUDGMENT_ROWS, WANTED_ROWS.c.judgment_id == JUDGMENT_ROWS.c.judgment_id)
_FETCHED: Final = 2_000
"""Rows that a server sends at a time."""
_STREAMED: Final = 20_000
"""Verdicts per list in ``verdict_rows``, which may read millions."""
_SUBJECT_KEYS = ("query_id", "item", "other", "order", "sample")
_KEYS = ("task", "judge", *_SUBJECT_KEYS)
"""Columns that identify a want within its tournament."""
_MOVED: Final = (
    "DO UPDATE SET position = excluded.position, checksum = wanted.checksum - wanted.position + excluded.position"
)


def wanted(connection: Connection, number: int, task: Task | None) -> list[tuple[Wanted, str | None]]:
    """All wants of a tournament in plan order, each with the id of its judgment or ``None`` if not yet assigned."""
    wants = WANTED_ROWS.c
    statement = select(WANTED_ROWS).where(wants.tournament_id == number).order_by(wants.position)
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
    """Stream the wants of a task in plan order, each with its result or ``None``.

    Args:
        connection: open for reading.
        number: the tournament's number.
        task: the task.
        query_id: only the wants of this query.
        among: only the games between these agents.
    """
    wants = WANTED_ROWS.c
    columns = [wants[key] for key in _KEYS if key != "task"]
    statement = (
        select(*columns, *JUDGMENT_ROWS.c)
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
    """SQL for the judges of a task: a recursive query with one index lookup per judge.

    With the judges known, a filter by query can use the primary key, which has ``judge`` before ``query_id``.
    """
    wants = WANTED_ROWS.c
    next_judge = select(func.min(wants.judge)).where(wants.tournament_id == number, wants.task == task.value)
    judges = next_judge.cte("judges", recursive=True, nesting=True)
    judge = judges.c[0]
    following = select(next_judge.where(wants.judge > judge).scalar_subquery()).where(judge.is_not(None))
    judges = judges.union_all(following)
    return select(judges.c[0]).where(judges.c[0].is_not(None))


def outcomes(
    connection: Connection,
    number: int,
    task: Task,
    query_id: str | None = None,
    among: Collection[str] | None = None,
) -> list[tuple[Wanted, Result | None]]:
    """Like ``each_outcome``, as a list."""
    return list(each_outcome(connection, number, task, query_id, among))


def extend(connection: Connection, number: int, added: Iterable[Wanted]) -> int:
    """Append wants to a tournament, skipping those it has already; returns how many were added."""
    wants = WANTED_ROWS.c
    last = connection.execute(select(func.max(wants.position)).where(wants.tournament_id == number)).scalar()
    return _insert(connection, number, enumerate(added, 0 if last is None else last + 1), "DO NOTHING")


def replace(connection: Connection, number: int, wants: Iterable[Wanted], *, keep_judgments: bool) -> bool:
    """Replace a tournament's wants; returns whether they changed.

    Args:
        connection: in a write transaction.
        number: the tournament's number.
        wants: the new wants, in plan order.
        keep_judgments: whether wants that stay keep their links to judgments.
    """
    table, columns = WANTED_ROWS, WANTED_ROWS.c
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
    """Whether the store already has these wants, so that they need not be rewritten.

    It may have more behind them, which earlier results led to, but only if each want has its result: then a run would
    add the same ones again.
    """
    columns = WANTED_ROWS.c
    in_tournament = columns.tournament_id == number
    stored_keys = select(*(columns[key] for key in _KEYS)).where(in_tournament).order_by(columns.position)
    with connection.execute(stored_keys.execution_options(yield_per=CHUNK)) as stored:
        if any(key != tuple(next(stored, ())) for key in map(attrgetter(*_KEYS), wants)):
            return False
        if next(stored, None) is None:
            return True
    no_result = JUDGMENT_ROWS.c.judgment_id.is_(None)
    lacking = select(columns.position).select_from(_WITH_RESULTS).where(in_tournament, no_result)
    return connection.execute(lacking.limit(1)).first() is None


def assign(connection: Connection, number: int, judgments: Sequence[tuple[Wanted, str]]) -> int:
    """Link each want to the judgment that answers it; returns how many links are new."""
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
    return connection.execute(_assign_all(), {"number": number, **by_column(WANTED_ROWS, rows)}).rowcount


@cache
def _assign_all() -> TextClause:
    """The statement of ``assign`` for PostgreSQL; it locks wants in key order, so that no two runners deadlock."""
    names = ", ".join(f'"{name}"' for name in (*_KEYS, "judgment_id", "checksum"))
    keys = ", ".join(f'wanted."{key}"' for key in _KEYS)
    equal = " AND ".join(f'wanted."{key}" = given."{key}"' for key in _KEYS)
    given = f"{arrays(WANTED_ROWS, (*_KEYS, 'judgment_id', 'checksum'))} AS given ({names})"
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
    """The statement of ``assign`` for SQLite, run once for each want."""
    equal = " AND ".join(f'"{key}" = :{key}' for key in _KEYS)
    condition = f"tournament_id = :number AND {equal} AND judgment_id IS NOT :judgment_id"
    values = "judgment_id = :judgment_id, checksum = :checksum + position"
    return f"UPDATE wanted SET {values} WHERE {condition}"  # noqa: S608


def _insert(connection: Connection, number: int, placed: Iterable[tuple[int, Wanted]], if_there: str) -> int:
    keys = ", ".join(f'"{column.name}"' for column in WANTED_ROWS.primary_key)
    inserted = 0
    for chunk in chunks(placed, CHUNK):
        once = {want: wanted_values(number, position, want) for position, want in chunk}
        inserted += insert_rows(connection, WANTED_ROWS, list(once.values()), f"({keys}) {if_there}")
    return inserted


def save(connection: Connection, results: Sequence[tuple[Task, str, Result]]) -> int:
    """Save results; a stored judgment stays, a stored failure is replaced. Returns how many rows changed."""
    rows: dict[str, dict[str, Any]] = {}
    for entry in results:
        row = judgment_values(*entry)
        if (earlier := rows.get(row["judgment_id"])) is None or earlier["outcome"] is None:
            rows[row["judgment_id"]] = row
    return insert_rows(connection, JUDGMENT_ROWS, [rows[ident] for ident in sorted(rows)], _IF_THERE)


def judged_ids(connection: Connection, number: int, wants: Sequence[Wanted]) -> dict[Wanted, str]:
    """The assigned judgment ids of the wants whose judgment is stored and no failure."""
    columns, judged = WANTED_ROWS.c, JUDGMENT_ROWS.c
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
    """The stored results for these ids."""
    by_id: dict[str, Result] = {}
    ident = JUDGMENT_ROWS.c.judgment_id
    for chunk in chunks(judgment_ids, CHUNK):
        rows = connection.execute(select(JUDGMENT_ROWS).where(among(connection, ident, chunk)))
        by_id.update((row.judgment_id, result_of(row)) for row in rows)
    return by_id


def verdict_rows(store: Database, tournament: str) -> Iterator[list[tuple[Any, ...]]]:
    """Stream all verdicts of a tournament, one row per sample, in no order.

    Yields:
        Lists of rows: query_id, item, other, order, judge, sample, the verdict as JSON, and its reason.

    Raises:
        InputError: no such tournament.
    """
    wants, judged = WANTED_ROWS.c, JUDGMENT_ROWS.c
    key_columns = [wants[name] for name in ("query_id", "item", "other", "order", "judge", "sample")]
    with store.reading() as connection:
        games = wants.tournament_id == tournament_number(connection, tournament), wants.task == Task.PAIRWISE.value
        verdicts = select(*key_columns, judged.outcome, judged.reason).where(
            *games, wants.judgment_id == judged.judgment_id, judged.outcome.is_not(None)
        )
        yield from stream(connection, verdicts, _STREAMED)


def spent_by_judge(store: Database, tournament: str) -> list[tuple[str, int, int, int, int, float]]:
    """Verdicts and their cost by answer judge; every sample counts.

    Returns:
        Rows of judge, games with a verdict, verdicts wanted, verdicts failed, verdicts of unknown cost, and the total
        cost of the others in dollars.

    Raises:
        InputError: no such tournament.
    """
    wants, judged = WANTED_ROWS.c, JUDGMENT_ROWS.c
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
    """Counts of one stage's wants; every sample counts.

    Attributes:
        causes: number of failures by cause.
    """

    wanted: int
    judged: int
    causes: Mapping[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        """Number of wants whose result is a failure."""
        return sum(self.causes.values())

    @property
    def left(self) -> int:
        """Number of wants without a result."""
        return self.wanted - self.judged - self.failed


class TournamentProgress(Struct, frozen=True):
    """Progress of all stages of a tournament, and its cost.

    Attributes:
        stages: by task, in plan order.
        cost_usd: total of the known costs of the tournament's judgments; each judgment counts once.
        cost_unknown: number of judgments without a known cost.
    """

    stages: Mapping[Task, StageProgress]
    cost_usd: float
    cost_unknown: int


def progress(store: Database, tournament: str) -> TournamentProgress:
    """Count a tournament's wants by stage, and sum up their cost so far.

    Raises:
        InputError: no such tournament.
    """
    wants, judged = WANTED_ROWS, JUDGMENT_ROWS
    with store.reading() as connection:
        in_tournament = wants.c.tournament_id == tournament_number(connection, tournament)
        judged_count = func.sum(case((judged.c.outcome.is_not(None), 1), else_=0))
        counts = func.count(), judged_count, func.min(wants.c.position)
        by_cause = select(wants.c.task, judged.c.cause, *counts).select_from(_WITH_RESULTS).where(in_tournament)
        rows = connection.execute(by_cause.group_by(wants.c.task, judged.c.cause)).all()
        wanted = select(wants.c.task).where(in_tournament, wants.c.judgment_id == judged.c.judgment_id).exists()
        costs = select(func.coalesce(func.sum(judged.c.cost_usd), 0.0), func.count() - func.count(judged.c.cost_usd))
        cost, unknown = connection.execute(costs.select_from(judged).where(wanted)).one()
    return TournamentProgress(_stages(rows), float(cost), int(unknown))


def _stages(rows: Any) -> dict[Task, StageProgress]:
    stages: dict[Task, StageProgress] = {}
    for name in dict.fromkeys(row[0] for row in sorted(rows, key=itemgetter(-1))):
        task_rows = [row for row in rows if row[0] == name]
        causes = {str(row[1]): int(row[2]) for row in task_rows if row[1] is not None}
        wanted, judged = (sum(int(row[place]) for row in task_rows) for place in (2, 3))
        stages[Task(name)] = StageProgress(wanted, judged, causes)
    return stages
