"""What a tournament wants judged, which judgment answers each want, and the judgments.

Judgments and failures are kept once for all tournaments of a store.
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
"""Rows that a server sends at once."""
_STREAMED: Final = 20_000
"""Verdicts that are read at once where there may be millions."""
_THING = ("query_id", "item", "other", "order", "sample")
_KEYS = ("task", "judge", *_THING)
_MOVED: Final = (
    "DO UPDATE SET position = excluded.position, checksum = wanted.checksum - wanted.position + excluded.position"
)


def wanted(connection: Connection, number: int, task: Task | None) -> list[tuple[Wanted, str | None]]:
    """Everything a tournament wants, in the order of its plan, with the judgment's id where assigned."""
    here = WANTED_ROWS.c
    statement = select(WANTED_ROWS).where(here.tournament_id == number).order_by(here.position)
    if task is not None:
        statement = statement.where(here.task == task.value)
    return [(wanted_of(row), row.judgment_id) for row in connection.execute(statement)]


def each_outcome(
    connection: Connection,
    number: int,
    task: Task,
    query_id: str | None = None,
    among: Collection[str] | None = None,
) -> Iterator[tuple[Wanted, Result | None]]:
    """Everything wanted of one task, or of one query, or of the games among some agents, with its result."""
    here, judged = WANTED_ROWS, JUDGMENT_ROWS
    columns = [here.c[key] for key in _KEYS if key != "task"]
    statement = (
        select(*columns, *judged.c)
        .select_from(_WITH_RESULTS)
        .where(here.c.tournament_id == number, here.c.task == task.value)
        .order_by(here.c.position)
    )
    if query_id is not None:
        statement = statement.where(here.c.query_id == query_id, here.c.judge.in_(_judges_of(number, task)))
    if among is not None:
        statement = statement.where(here.c.item.in_(among), here.c.other.in_(among))
    size = len(columns)
    with connection.execute(statement.execution_options(yield_per=_FETCHED)) as rows:
        for row in rows:
            yield Wanted(task, *row[:size]), None if row[size] is None else result_of(row[size:])


def _judges_of(number: int, task: Task) -> Select[Any]:
    """The judges of a task, each found by one step in the index, which has judges before queries."""
    here = WANTED_ROWS.c
    of_task = select(func.min(here.judge)).where(here.tournament_id == number, here.task == task.value)
    found = of_task.cte("judges", recursive=True, nesting=True)
    judge = found.c[0]
    found = found.union_all(select(of_task.where(here.judge > judge).scalar_subquery()).where(judge.is_not(None)))
    return select(found.c[0]).where(found.c[0].is_not(None))


def outcomes(
    connection: Connection,
    number: int,
    task: Task,
    query_id: str | None = None,
    among: Collection[str] | None = None,
) -> list[tuple[Wanted, Result | None]]:
    """The same at once."""
    return list(each_outcome(connection, number, task, query_id, among))


def extend(connection: Connection, number: int, added: Iterable[Wanted]) -> int:
    """Put further wants after those that are there, and say how many; one that is there already stays as it is."""
    here = WANTED_ROWS.c
    last = connection.execute(select(func.max(here.position)).where(here.tournament_id == number)).scalar()
    return _insert(connection, number, enumerate(added, 0 if last is None else last + 1), "DO NOTHING")


def replace(connection: Connection, number: int, wants: Iterable[Wanted], *, keep_judgments: bool) -> bool:
    """Put these wants in place of those that are there; returns whether they are others."""
    here = WANTED_ROWS
    mine = here.c.tournament_id == number
    wants = list(wants)
    if keep_judgments:
        if _are(connection, number, wants):
            return False
        aside = {"position": -1 - here.c.position, "checksum": here.c.checksum - 1 - 2 * here.c.position}
        connection.execute(update(here).where(mine).values(**aside))
    else:
        connection.execute(delete(here).where(mine))
    _insert(connection, number, enumerate(wants), _MOVED)
    connection.execute(delete(here).where(mine, here.c.position < 0))  # what is not wanted any more
    if connection.dialect.name != "sqlite":  # else a server takes the table for small, and reads all of it to assign
        connection.execute(text("ANALYZE wanted"))
    return True


def _are(connection: Connection, number: int, wants: Sequence[Wanted]) -> bool:
    """Whether these are the wants that are there, so that they need not be written, and what they came to stays.

    Behind them may be what judgments led to, as long as each want has its result: then the same would follow again.
    """
    here = WANTED_ROWS.c
    mine = here.tournament_id == number
    chosen = select(*(here[key] for key in _KEYS)).where(mine).order_by(here.position)
    with connection.execute(chosen.execution_options(yield_per=CHUNK)) as there:
        if any(given != tuple(next(there, ())) for given in map(attrgetter(*_KEYS), wants)):
            return False
        if next(there, None) is None:
            return True
    lacking = select(here.position).select_from(_WITH_RESULTS).where(mine, JUDGMENT_ROWS.c.judgment_id.is_(None))
    return connection.execute(lacking.limit(1)).first() is None


def assign(connection: Connection, number: int, judgments: Sequence[tuple[Wanted, str]]) -> int:
    """Note which judgment answers each want, where that is not noted yet; returns for how many it was not."""
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
    """For PostgreSQL. All who assign at once lock wants in one order: else two could wait for each other for ever."""
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
    """For SQLite, which has one writer at a time and no journey to a server."""
    equal = " AND ".join(f'"{key}" = :{key}' for key in _KEYS)
    here = f"tournament_id = :number AND {equal} AND judgment_id IS NOT :judgment_id"
    noted = "judgment_id = :judgment_id, checksum = :checksum + position"
    return f"UPDATE wanted SET {noted} WHERE {here}"  # noqa: S608


def _insert(connection: Connection, number: int, placed: Iterable[tuple[int, Wanted]], if_there: str) -> int:
    keys = ", ".join(f'"{column.name}"' for column in WANTED_ROWS.primary_key)
    inserted = 0
    for chunk in chunks(placed, CHUNK):
        once = {want: wanted_values(number, position, want) for position, want in chunk}
        inserted += insert_rows(connection, WANTED_ROWS, list(once.values()), f"({keys}) {if_there}")
    return inserted


def save(connection: Connection, results: Sequence[tuple[Task, str, Result]]) -> int:
    """Keep results and say how many were not there so; a judgment stays, a failure gives way to what comes after it."""
    rows: dict[str, dict[str, Any]] = {}
    for entry in results:
        row = judgment_values(*entry)
        if (there := rows.get(row["judgment_id"])) is None or there["outcome"] is None:
            rows[row["judgment_id"]] = row
    return insert_rows(connection, JUDGMENT_ROWS, [rows[ident] for ident in sorted(rows)], _IF_THERE)


def judged_ids(connection: Connection, number: int, wants: Sequence[Wanted]) -> dict[Wanted, str]:
    """The ids that those of these wants were assigned whose judgment is there, and no failure."""
    here, judged = WANTED_ROWS.c, JUDGMENT_ROWS.c
    columns = [here[key] for key in _THING]
    chosen = select(*columns, here.judgment_id).where(here.judgment_id == judged.judgment_id)
    found: dict[Wanted, str] = {}
    thing_of = attrgetter(*_THING)
    for task, judge in dict.fromkeys((want.task, want.judge) for want in wants):
        alike = {thing_of(want): want for want in wants if want.task is task and want.judge == judge}
        near = (among(connection, own, list({key[at] for key in alike})) for at, own in enumerate(columns[:2]))
        mine = here.tournament_id == number, here.task == task.value, here.judge == judge
        rows = connection.execute(chosen.where(*mine, *near, judged.outcome.is_not(None))).fetchall()
        found |= {alike[key]: ident for *thing, ident in rows if (key := tuple(thing)) in alike}
    return found


def results(connection: Connection, judgment_ids: Sequence[str]) -> dict[str, Result]:
    """The results known for these ids."""
    found: dict[str, Result] = {}
    ident = JUDGMENT_ROWS.c.judgment_id
    for chunk in chunks(judgment_ids, CHUNK):
        rows = connection.execute(select(JUDGMENT_ROWS).where(among(connection, ident, chunk)))
        found.update((row.judgment_id, result_of(row)) for row in rows)
    return found


def verdict_rows(store: Database, tournament: str) -> Iterator[list[tuple[Any, ...]]]:
    """All verdicts, samples by themselves, in chunks and in no order.

    Yields:
        Lists of query_id, item, other, order, judge, sample, the verdict as JSON, and its reason.

    Raises:
        InputError: no such tournament.
    """
    here, judged = WANTED_ROWS.c, JUDGMENT_ROWS.c
    asked = [here[name] for name in ("query_id", "item", "other", "order", "judge", "sample")]
    with store.reading() as connection:
        mine = here.tournament_id == tournament_number(connection, tournament), here.task == Task.PAIRWISE.value
        chosen = select(*asked, judged.outcome, judged.reason).where(
            *mine, here.judgment_id == judged.judgment_id, judged.outcome.is_not(None)
        )
        yield from stream(connection, chosen, _STREAMED)


def spent_by_judge(store: Database, tournament: str) -> list[tuple[str, int, int, int, int, float]]:
    """What the verdicts of each answer judge took, samples counted one by one.

    Returns:
        Rows of judge, games with a verdict, verdicts wanted, those that failed, those whose price is not known, and the
        dollars of the others.

    Raises:
        InputError: no such tournament.
    """
    here, judged = WANTED_ROWS, JUDGMENT_ROWS.c
    failed = and_(judged.judgment_id.is_not(None), judged.outcome.is_(None))
    unpriced = and_(judged.judgment_id.is_not(None), judged.cost_usd.is_(None))
    figures = [
        func.max(case((judged.outcome.is_not(None), 1), else_=0)).label("played"),
        func.count().label("wanted"),
        func.sum(case((failed, 1), else_=0)).label("failed"),
        func.sum(case((unpriced, 1), else_=0)).label("unpriced"),
        func.coalesce(func.sum(judged.cost_usd), 0.0).label("cost"),
    ]
    game = (here.c.judge, here.c.query_id, here.c.item, here.c.other)
    with store.reading() as connection:
        number = tournament_number(connection, tournament)
        by_game = (
            select(here.c.judge, *figures)
            .select_from(_WITH_RESULTS)
            .where(here.c.tournament_id == number, here.c.task == Task.PAIRWISE.value)
            .group_by(*game)
            .subquery()
        )
        sums = [func.sum(by_game.c[own.name]) for own in figures]
        rows = connection.execute(select(by_game.c.judge, *sums).group_by(by_game.c.judge).order_by(by_game.c.judge))
        return [(judge, *map(int, counts), float(cost)) for judge, *counts, cost in rows]


class StageProgress(Struct, frozen=True):
    """One stage's wants, every sample of a judgment one.

    Attributes:
        causes: how many failed for which cause.
    """

    wanted: int
    judged: int
    causes: Mapping[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        """Wants whose judgment is a failure."""
        return sum(self.causes.values())

    @property
    def left(self) -> int:
        """Not asked yet."""
        return self.wanted - self.judged - self.failed


class TournamentProgress(Struct, frozen=True):
    """How far all stages are.

    Attributes:
        stages: by task, in the order of the plan.
        cost_usd: of all judgments of the tournament, each once however often it is wanted, as far as it is known.
        cost_unknown: judgments whose cost is not known.
    """

    stages: Mapping[Task, StageProgress]
    cost_usd: float
    cost_unknown: int


def progress(store: Database, tournament: str) -> TournamentProgress:
    """Count a tournament's wants and what they cost so far.

    Raises:
        InputError: no such tournament.
    """
    wants, judged = WANTED_ROWS, JUDGMENT_ROWS
    with store.reading() as connection:
        mine = wants.c.tournament_id == tournament_number(connection, tournament)
        is_judged = func.sum(case((judged.c.outcome.is_not(None), 1), else_=0))
        counts = func.count(), is_judged, func.min(wants.c.position)
        kinds = select(wants.c.task, judged.c.cause, *counts).select_from(_WITH_RESULTS).where(mine)
        rows = connection.execute(kinds.group_by(wants.c.task, judged.c.cause)).all()
        wanted = select(wants.c.task).where(mine, wants.c.judgment_id == judged.c.judgment_id).exists()
        costs = select(func.coalesce(func.sum(judged.c.cost_usd), 0.0), func.count() - func.count(judged.c.cost_usd))
        cost, unknown = connection.execute(costs.select_from(judged).where(wanted)).one()
    return TournamentProgress(_stages(rows), float(cost), int(unknown))


def _stages(rows: Any) -> dict[Task, StageProgress]:
    found: dict[Task, StageProgress] = {}
    for name in dict.fromkeys(row[0] for row in sorted(rows, key=itemgetter(-1))):
        own = [row for row in rows if row[0] == name]
        causes = {str(row[1]): int(row[2]) for row in own if row[1] is not None}
        wanted, judged = (sum(int(row[place]) for row in own) for place in (2, 3))
        found[Task(name)] = StageProgress(wanted, judged, causes)
    return found
