"""The store of tournaments: begins them, claims and saves their judgments, and reads tournaments and judgments.

Judgments are content-addressed and shared by all tournaments in a store. A tournament is a snapshot of its data and
settings, plus its planned judgments (``Wanted``). Each planned judgment gets the id of its judgment once its prompt is
known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, func, insert, inspect, select, update

from arena.config.settings import StoredSettings
from arena.data.dataset import Dataset, Group
from arena.store import data as datasets
from arena.store import wants as want_rows
from arena.store.bulk import RowColumns
from arena.store.database import Database, count_change
from arena.store.engine import (
    lacks_file,
    open_engine,
    retry_while_away,
    retrying,
    shown,
    wait_for_server,
)
from arena.store.rows import Result, Wanted, encoded, tournament_number, with_checksum
from arena.store.tables import ANNOTATION, NOT_BEGUN, STATE, TOURNAMENT, create_all
from judges.errors import InputError, StoreError
from judges.types import Query, Task

if TYPE_CHECKING:
    from arena.store.runners import Runner, Watch

Further = ParamSpec("Further")
Value = TypeVar("Value")

_ASSIGNED: Final = "assigned"


class Store(Database):
    """The tournaments of one store. ``Store.create`` opens it for a run, ``Store.open`` for reading.

    Attributes:
        only: ids of the queries whose data and judgments are read; ``None`` for all queries.
        group: the group of queries that these are; ``None`` for all queries.
    """

    only: frozenset[str] | None = None
    group: Group | None = None

    def __init__(self, engine: Engine, location: str) -> None:
        super().__init__(engine, location)
        self._begun: dict[str, tuple[str, str]] = {}

    @cached_property
    def _watch(self) -> Watch:
        from arena.store.runners import Watch

        return Watch()

    @classmethod
    def create(cls, location: str, *, to_fill: bool = False) -> Store:
        """Open a store for writing; creates it if it does not exist.

        Args:
            to_fill: whether the caller fills a new store in one transaction before anybody else uses it. Then SQLite
                needs no write-ahead log, which would grow as large as the store; the next writer turns it on.

        Raises:
            StoreError: the store cannot be opened, or was written by another version.
        """
        return retry_while_away(shown(location), lambda _: cls._created(location, to_fill=to_fill))

    @classmethod
    def _created(cls, location: str, *, to_fill: bool) -> Store:
        if not lacks_file(location):
            cls.open_existing(location, to_write=True).close()  # another program's database is left as it is
        store = cls(open_engine(location, to_make=True, write_ahead=not to_fill), shown(location))
        try:
            with store.writing(alone=True, judged=False) as connection:
                if not inspect(connection).has_table(STATE.name):
                    create_all(connection)
            store.check_version()
        except BaseException:
            store.close()
            raise
        return store

    @retrying
    def begin(self, name: str, settings: Mapping[str, Any], data: Dataset, wanted: Iterable[Wanted]) -> None:
        """Begin a tournament: replace its settings, data and planned judgments, in one transaction.

        Stored judgments stay. If neither settings nor data changed, planned judgments stay linked to stored judgments,
        so that readers see no gap during the run; otherwise ``assign`` links them again.
        """
        wait_for_server(self.location)
        digest = data.digest()
        with self.writing(alone=True, judged=False) as connection:
            row = connection.execute(select(TOURNAMENT).where(TOURNAMENT.c.name == name)).first()
            values = with_checksum({"name": name, "settings": encoded(settings), "data_digest": digest})
            if row is None:
                connection.execute(insert(TOURNAMENT), values)
            else:
                table = TOURNAMENT
                connection.execute(update(table).where(table.c.name == name).values(**values))
            number = tournament_number(connection, name)
            if row is None or row.data_digest != digest:
                datasets.replace(connection, number, data)
            same = row is not None and (row.settings, row.data_digest) == (values["settings"], digest)
            changed = want_rows.replace(connection, number, wanted, keep_judgments=same)
            if changed or not same:  # otherwise cached figures stay valid
                count_change(connection)
        self._begun[name] = values["settings"], digest

    @retrying
    def announce(self, name: str) -> None:
        """Register a tournament before ``begin``, so that a run can be recorded while it still asks the agents."""
        wait_for_server(self.location)
        with self.writing(alone=True, judged=False) as connection:
            if connection.execute(select(TOURNAMENT.c.name).where(TOURNAMENT.c.name == name)).first() is None:
                row = with_checksum({"name": name, "settings": "{}", "data_digest": NOT_BEGUN})
                connection.execute(insert(TOURNAMENT), row)

    @retrying
    def extend(self, name: str, wanted: Iterable[Wanted]) -> None:
        with self.writing(alone=True, judged=False) as connection:
            if want_rows.extend(connection, self._begun_id(connection, name), wanted):
                count_change(connection)

    @retrying
    def assign(self, name: str, judgments: Sequence[tuple[Wanted, str]]) -> None:
        if judgments:
            with self.writing(judged=False) as connection:
                if want_rows.assign(connection, self._begun_id(connection, name), judgments):
                    count_change(connection)

    @retrying
    def claim(
        self,
        name: str,
        judgments: Sequence[tuple[Wanted, str]],
        runner: Runner,
        to_be_asked: Callable[[Result | None], bool],
        tried: Callable[[str], bool] = lambda _: False,
    ) -> tuple[dict[str, Result], set[str]]:
        """Link planned judgments to the given judgment ids, and claim those that need a call; see ``runners.claim``."""
        from arena.store import runners

        if not judgments:
            return {}, set()
        idents = list(dict.fromkeys(ident for _, ident in judgments))
        with self.writing(judged=False) as connection:
            linked = want_rows.assign(connection, self._begun_id(connection, name), judgments)
            look_up = partial(want_rows.results, connection)
            known, elsewhere = runners.claim(connection, runner, idents, look_up, to_be_asked=to_be_asked, tried=tried)
            if linked:  # often another runner linked all of them before
                count_change(connection)
            return known, elsewhere

    @retrying
    def beat(self, runner: Runner) -> bool:
        """Record a runner's heartbeat, due every ``BEAT_S`` seconds; returns whether it was registered before."""
        from arena.store import runners, runs

        with self.writing(judged=False) as connection:
            runs.beat(connection, runner)
            return runners.beat(connection, runner, self._watch)

    @retrying
    def give_back(self, judgment_ids: Sequence[str], runner: Runner) -> None:
        from arena.store import runners

        if judgment_ids:
            with self.writing(judged=False) as connection:
                runners.release(connection, sorted(judgment_ids), runner)

    @retrying
    def leave(self, runner: Runner) -> None:
        from arena.store import runners

        with self.writing(judged=False) as connection:
            runners.leave(connection, runner)

    def save(self, results: Sequence[tuple[Task, str, Result]], runner: Runner | None = None) -> None:
        """Save results and release their claims. A stored judgment stays; a stored failure is replaced.

        Args:
            results: for each result the task, the prompt (name and version), and the judgment or failure.
            runner: the runner that asked for the results, to whose spending their cost is added; ``None`` to record no
                spending.
        """
        from arena.store import batches, runners, runs

        idents = sorted(result.judgment_id for _, _, result in results)

        def save(again: bool) -> None:
            with self.writing(judged=False) as connection:
                changed_rows = want_rows.save(connection, results)
                if runner is not None:
                    paid = runners.taken(connection, runner, idents) if again else set(idents)
                    spent = [(task.value, result) for task, _, result in results if result.judgment_id in paid]
                    runs.add_spending(connection, runner, spent)
                batches.settle(connection, idents)
                runners.release(connection, idents, runner)
                if changed_rows:
                    count_change(connection)

        if results:
            retry_while_away(self.location, save)

    @retrying
    def judged_ids(self, name: str, made_from: str, wants: Sequence[Wanted]) -> dict[Wanted, str] | None:
        """Recorded judgment ids of those planned judgments that have a result; ``None`` if the ids may be outdated.

        The ids are up to date if ``keep_assigned`` recorded the same ``made_from``, a digest of everything that
        determines the ids, and the store has not changed since.
        """
        from arena.store import cache

        with self.reading() as connection:
            number = cache.number_of(connection, name, _ASSIGNED, made_from)
            return None if number is None else want_rows.judged_ids(connection, number, wants)

    def keep_assigned(self, name: str, made_from: str, *, seen: int) -> None:
        """Record the digest of everything that determines the judgment ids, unless the store changed after ``seen``.

        If the store is locked, it records nothing, and the next run computes the ids again.

        Args:
            made_from: the digest, see ``judged_ids``.
            seen: value of the store's change counter when the caller last read it.
        """
        from arena.store.cache import FigureCache

        with suppress(StoreError):
            FigureCache(self, name, made_from).keep({_ASSIGNED: b""}, seen=seen)

    @retrying
    def results(self, judgment_ids: Sequence[str]) -> dict[str, Result]:
        with self.reading() as connection:
            return want_rows.results(connection, judgment_ids)

    @retrying
    def results_named(self, prefix: str) -> dict[str, Result]:
        """All results whose ids begin with ``prefix``."""
        with self.reading() as connection:
            return want_rows.results_named(connection, prefix)

    def wanted(self, name: str, task: Task | None = None) -> list[tuple[Wanted, str | None]]:
        """All planned judgments in plan order, each with its judgment id, or ``None`` if the id is not yet known."""
        return self._ask(name, want_rows.wanted, task)

    def outcomes(
        self, name: str, task: Task, query_id: str | None = None, among: Collection[str] | None = None
    ) -> list[tuple[Wanted, Result | None]]:
        """The planned judgments of a task in plan order, each with its result or ``None``.

        Args:
            among: names of agents; only games between two of them are returned.
        """
        return self._ask(name, lambda *asked: list(want_rows.each_outcome(*asked)), task, query_id, among)

    def each_outcome(self, name: str, task: Task) -> Iterator[tuple[Wanted, Result | None]]:
        """Stream the planned judgments of a task with their results, like ``outcomes`` with few rows in memory."""
        with self.reading() as connection:
            yield from want_rows.each_outcome(connection, tournament_number(connection, name), task)

    def games(self, name: str, also: Sequence[str] = ()) -> RowColumns:
        """Planned games with their verdicts and the columns in ``also``, see ``arena.store.wants.games``."""
        return self._ask(name, want_rows.games, also)

    @retrying
    def tournaments(self) -> list[str]:
        with self.reading() as connection:
            rows = TOURNAMENT.c
            begun = select(rows.name).where(rows.data_digest != NOT_BEGUN).order_by(rows.tournament_id)
            return [str(name) for name in connection.execute(begun).scalars()]

    def rated_tournaments(self) -> list[str]:
        return [name for name in self.tournaments() if self.settings(name).synth is None]

    def only_tournament(self) -> str:
        """The name of the only tournament in the store; tournaments that generate queries do not count.

        Raises:
            InputError: there is none, or more than one.
        """
        names = self.rated_tournaments()
        if not names:
            raise InputError(f"{self.location}: the store holds no tournament yet; 'ragleague run' fills it")
        if len(names) > 1:
            raise InputError(
                f"{self.location}: the store holds several tournaments; "
                f"name one with --tournament (in Python: tournament=): {', '.join(names)}"
            )
        return names[0]

    @retrying
    def settings(self, name: str) -> StoredSettings:
        with self.reading() as connection:
            rows = TOURNAMENT.c
            begun = select(rows.settings).where(rows.name == name, rows.data_digest != NOT_BEGUN)
            stored = connection.execute(begun).scalar()
            settings = None if stored is None else StoredSettings.model_validate_json(stored)
        if settings is None:
            raise InputError(
                f"{self.location}: no tournament named {name!r}; there are {', '.join(self.tournaments()) or 'none'}"
            )
        return settings

    def dataset(self, name: str, *queries: str) -> Dataset:
        """A tournament's data; if ``queries`` are given, only their data, with the documents retrieved for them."""
        return self._ask(name, datasets.dataset, *queries)

    def queries(self, name: str) -> dict[str, Query]:
        return self._ask(name, datasets.queries)

    def is_labelled(self, name: str) -> bool:
        return self._ask(name, datasets.is_labelled)

    def answered(self, name: str) -> tuple[frozenset[tuple[str, str]], tuple[str, ...]]:
        """The (query_id, agent) pairs with an answer; and all agents, sorted, including those that only retrieve."""
        return self._ask(name, datasets.answered)

    def changes(self) -> int:
        """A counter that grows with every change to the store; readers reload when it has changed."""
        return sum(self.version())

    @retrying
    def version(self) -> tuple[int, int]:
        """Two change counters: one for judgments and tournaments, one for annotations."""
        with self.reading() as connection:
            last_annotation = connection.execute(select(func.max(ANNOTATION.c.annotation_id))).scalar()
            return int(connection.execute(select(STATE.c.changes)).scalar_one()), int(last_annotation or 0)

    @retrying
    def judged(self, name: str) -> tuple[int, str]:
        """The change counter of judgments, and the digest of a tournament's data; annotations change neither."""
        with self.reading() as connection:
            digest = select(TOURNAMENT.c.data_digest).where(TOURNAMENT.c.name == name)
            changes = connection.execute(select(STATE.c.changes)).scalar_one()
            return int(changes), str(connection.execute(digest).scalar() or "")

    @retrying
    def _ask(
        self,
        name: str,
        read: Callable[Concatenate[Connection, int, Further], Value],
        /,
        *args: Further.args,
        **kwargs: Further.kwargs,
    ) -> Value:
        with self.reading() as connection:
            return read(connection, tournament_number(connection, name), *args, **kwargs)

    def _begun_id(self, connection: Connection, name: str) -> int:
        """The ``tournament_id``, after a check that no other run has replaced the tournament's settings or data.

        Raises:
            InputError: the store has no such tournament.
            StoreError: another run has since begun the tournament with other settings or data.
        """
        rows = TOURNAMENT.c
        begun = select(rows.tournament_id, rows.settings, rows.data_digest).where(rows.name == name)
        if (row := connection.execute(begun).first()) is None:
            raise InputError(f"{self.location}: no tournament named {name!r} in this store; check its name")
        if self._begun.get(name, tuple(row[1:])) != tuple(row[1:]):
            raise StoreError(
                f"{self.location}: another run started tournament {name!r} with other settings or data; "
                "its results are kept; give one of the two another 'name'"
            )
        return int(row.tournament_id)


class StoreSubset(Store):
    """A view of another store that reads the data and judgments of only some queries; both share their connections."""

    only: frozenset[str]

    def __init__(self, store: Store, queries: Collection[str], group: Group) -> None:
        super().__init__(store._engine, store.location)
        self.only, self.group = frozenset(queries), group

    def wanted(self, name: str, task: Task | None = None) -> list[tuple[Wanted, str | None]]:
        return [want for want in super().wanted(name, task) if want[0].query_id in self.only]

    def outcomes(
        self, name: str, task: Task, query_id: str | None = None, among: Collection[str] | None = None
    ) -> list[tuple[Wanted, Result | None]]:
        return [
            outcome for outcome in super().outcomes(name, task, query_id, among) if outcome[0].query_id in self.only
        ]

    def each_outcome(self, name: str, task: Task) -> Iterator[tuple[Wanted, Result | None]]:
        return (outcome for outcome in super().each_outcome(name, task) if outcome[0].query_id in self.only)

    def games(self, name: str, also: Sequence[str] = ()) -> RowColumns:
        rows = super().games(name, also)
        return rows.of(rows.mapped("query", self.only.__contains__))

    def dataset(self, name: str, *queries: str) -> Dataset:
        whole = super().dataset(name, *queries)
        return Dataset(
            self._select(whole.queries),
            whole.documents,
            {key: answer for key, answer in whole.answers.items() if key[0] in self.only},
            self._select(whole.retrieved),
            self._select(whole.qrels),
        )

    def queries(self, name: str) -> dict[str, Query]:
        return self._select(super().queries(name))

    def answered(self, name: str) -> tuple[frozenset[tuple[str, str]], tuple[str, ...]]:
        pairs, agents = super().answered(name)
        return frozenset(pair for pair in pairs if pair[0] in self.only), agents

    def _select(self, by_query: Mapping[str, Value]) -> dict[str, Value]:
        return {query_id: value for query_id, value in by_query.items() if query_id in self.only}
