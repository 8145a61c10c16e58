"""A store as tournaments: begin them, claim and save their judgments, and read back what was wanted and judged.

Judgments are content-addressed and shared by every tournament in a store. A tournament is a snapshot of its data and
settings plus the list of what it wants judged; each wanted row points to its judgment once its prompt is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, func, insert, select, update

from arena.config.settings import StoredSettings
from arena.data.dataset import Dataset
from arena.store import check
from arena.store import data as datasets
from arena.store import wants as wishes
from arena.store.bulk import RowColumns
from arena.store.database import Database, count_change
from arena.store.engine import (
    judged_for,
    lacks_file,
    open_engine,
    outlasting,
    patient,
    shown,
)
from arena.store.rows import (
    ANNOTATION_ROWS,
    NOT_BEGUN,
    STATE_ROWS,
    TOURNAMENT_ROWS,
    Damage,
    Result,
    Wanted,
    encoded,
    tournament_number,
)
from judges.errors import InputError, StoreError
from judges.types import Query, Task

if TYPE_CHECKING:
    from arena.store.runners import Runner, Watch

Further = ParamSpec("Further")
Value = TypeVar("Value")

_ASSIGNED: Final = "assigned"


class Store(Database):
    """Open with ``Store.create`` to run a tournament, with ``Store.open`` to read one.

    Attributes:
        only: the queries that are read, ``None`` for all.
    """

    only: frozenset[str] | None = None

    def __init__(self, engine: Engine, location: str) -> None:
        super().__init__(engine, location)
        self._begun: dict[str, tuple[str, str]] = {}

    @cached_property
    def _watch(self) -> Watch:
        from arena.store.runners import Watch

        return Watch()

    @classmethod
    def create(cls, location: str, *, to_fill: bool = False) -> Store:
        """Open a store for writing; made if it is not there.

        Args:
            location: a path, or a database URL.
            to_fill: nobody else is there yet and all of it comes in one transaction, for which a file need no
                write-ahead log beside it as large as itself; the next who writes turns that on.

        Raises:
            StoreError: it cannot be opened, or was written by another version.
        """
        return outlasting(shown(location), lambda _: cls._created(location, to_fill=to_fill))

    @classmethod
    def _created(cls, location: str, *, to_fill: bool) -> Store:
        from arena.store.migrations import bring_up_to_date

        if not lacks_file(location):
            cls.open_existing(location, to_write=True).close()  # another program's database is left as it is
        store = cls(open_engine(location, to_make=True, write_ahead=not to_fill), shown(location))
        try:
            with store.writing(alone=True, judged=False) as connection:
                bring_up_to_date(connection)
            store.check_version()
        except BaseException:
            store.close()
            raise
        return store

    @patient
    def begin(self, name: str, settings: Mapping[str, Any], data: Dataset, wanted: Iterable[Wanted]) -> None:
        """Put a tournament's settings, data and wants in place of its earlier ones, in one transaction.

        No judgment is touched. Where neither settings nor data changed, wants keep theirs, so that whoever reads
        meanwhile sees no gap; else they find them again through ``assign``.
        """
        judged_for(self.location)
        digest = data.digest()
        with self.writing(alone=True, judged=False) as connection:
            row = connection.execute(select(TOURNAMENT_ROWS).where(TOURNAMENT_ROWS.c.name == name)).first()
            values = {"name": name, "settings": encoded(settings), "data_digest": digest}
            if row is None:
                connection.execute(insert(TOURNAMENT_ROWS), values)
            else:
                here = TOURNAMENT_ROWS
                connection.execute(update(here).where(here.c.name == name).values(**values))
            number = tournament_number(connection, name)
            if row is None or row.data_digest != digest:
                datasets.replace(connection, number, data)
            same = row is not None and (row.settings, row.data_digest) == (values["settings"], digest)
            changed = wishes.replace(connection, number, wanted, keep_judgments=same)
            check.cover(connection, number, data=row is None or row.data_digest != digest)
            if changed or not same:  # else what was computed of it stays
                count_change(connection)
        self._begun[name] = values["settings"], digest

    @patient
    def announce(self, name: str) -> None:
        """Let runs of a tournament be kept that has not begun: its agents are asked before its data are whole."""
        judged_for(self.location)
        with self.writing(alone=True, judged=False) as connection:
            if connection.execute(select(TOURNAMENT_ROWS.c.name).where(TOURNAMENT_ROWS.c.name == name)).first() is None:
                connection.execute(insert(TOURNAMENT_ROWS), {"name": name, "settings": "{}", "data_digest": NOT_BEGUN})

    @patient
    def extend(self, name: str, wanted: Iterable[Wanted]) -> None:
        """Put further wants after those that a tournament has; one that is there already stays as it is."""
        with self.writing(alone=True, judged=False) as connection:
            if wishes.extend(connection, self._begun_id(connection, name), wanted):
                count_change(connection)

    @patient
    def assign(self, name: str, judgments: Sequence[tuple[Wanted, str]]) -> None:
        """Note which judgment answers each want."""
        if judgments:
            with self.writing(judged=False) as connection:
                if wishes.assign(connection, self._begun_id(connection, name), judgments):
                    count_change(connection)

    @patient
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
        from arena.store import runners

        if not judgments:
            return {}, set()
        idents = list(dict.fromkeys(ident for _, ident in judgments))
        with self.writing(judged=False) as connection:
            linked = wishes.assign(connection, self._begun_id(connection, name), judgments)
            look_up = partial(wishes.results, connection)
            known, elsewhere = runners.claim(connection, runner, idents, look_up, to_be_asked=to_be_asked, tried=tried)
            if linked:  # mostly another runner has noted it all before
                count_change(connection)
            return known, elsewhere

    @patient
    def beat(self, runner: Runner) -> bool:
        """Say that a runner is at work, every ``BEAT_S`` seconds; whether others had it as that until now."""
        from arena.store import runners, runs

        with self.writing(judged=False) as connection:
            runs.beat(connection, runner)
            return runners.beat(connection, runner, self._watch)

    @patient
    def give_back(self, judgment_ids: Sequence[str], runner: Runner) -> None:
        """A runner will not ask for these judgments after all."""
        from arena.store import runners

        if judgment_ids:
            with self.writing(judged=False) as connection:
                runners.release(connection, sorted(judgment_ids), runner)

    @patient
    def leave(self, runner: Runner) -> None:
        """A runner ends, and claims nothing any more."""
        from arena.store import runners

        with self.writing(judged=False) as connection:
            runners.leave(connection, runner)

    def save(self, results: Sequence[tuple[Task, str, Result]], runner: Runner | None = None) -> None:
        """Keep results: task, prompt name with version, and the judgment or failure. A judgment stays.

        Nobody is about to ask for them any more.

        Args:
            results: any number.
            runner: who asked for them and has paid, if anybody.
        """
        from arena.store import batches, runners, runs

        saved = sorted(result.judgment_id for _, _, result in results)

        def save(again: bool) -> None:
            with self.writing(judged=False) as connection:
                saved_now = wishes.save(connection, results)
                if runner is not None:
                    paid = runners.taken(connection, runner, saved) if again else set(saved)
                    spent = [(task.value, result) for task, _, result in results if result.judgment_id in paid]
                    runs.add_spending(connection, runner, spent)
                batches.settle(connection, saved)
                runners.release(connection, saved, runner)
                if saved_now:
                    count_change(connection)

        if results:
            outlasting(self.location, save)

    @patient
    def judged_ids(self, name: str, made_from: str, wants: Sequence[Wanted]) -> dict[Wanted, str] | None:
        """The ids that those of these wants were assigned whose judgment is there; ``None`` if ids may be others now.

        They stand where a run has kept that they were ``made_from`` the same (``keep_assigned``), and nothing was
        judged or begun anew since.
        """
        from arena.store import cache

        with self.reading() as connection:
            number = cache.number_of(connection, name, _ASSIGNED, made_from)
            return None if number is None else wishes.judged_ids(connection, number, wants)

    def keep_assigned(self, name: str, made_from: str, *, seen: int) -> None:
        """Keep what all ids that wants are assigned were made from, if nothing has changed since ``seen``.

        A store that is locked just then keeps nothing, and the next run makes the ids anew.
        """
        from arena.store.cache import FigureCache

        with suppress(StoreError):
            FigureCache(self, name, made_from).keep({_ASSIGNED: b""}, seen=seen)

    @patient
    def results(self, judgment_ids: Sequence[str]) -> dict[str, Result]:
        """The results known for these ids."""
        with self.reading() as connection:
            return wishes.results(connection, judgment_ids)

    def wanted(self, name: str, task: Task | None = None) -> list[tuple[Wanted, str | None]]:
        """Everything a tournament wants, in the order of its plan, with the judgment's id where assigned."""
        return self._ask(name, wishes.wanted, task)

    def outcomes(
        self, name: str, task: Task, query_id: str | None = None, among: Collection[str] | None = None
    ) -> list[tuple[Wanted, Result | None]]:
        """Everything wanted of one task, or of one query, or of the games among some agents, with its result.

        That is ``None`` where there is none yet.
        """
        return self._ask(name, wishes.outcomes, task, query_id, among)

    def each_outcome(self, name: str, task: Task) -> Iterator[tuple[Wanted, Result | None]]:
        """The same as ``outcomes``, of all queries, one by one: however many there are, few are in memory."""
        with self.reading() as connection:
            yield from wishes.each_outcome(connection, tournament_number(connection, name), task)

    def of_games(
        self,
        name: str,
        make: Callable[[RowColumns], Value],
        data: Dataset | None = None,
        also: Sequence[str] = (),
    ) -> Value:
        """What is made of all verdicts wanted, if nothing is damaged: that is looked for in the same pass.

        Args:
            name: of the tournament.
            make: takes the verdicts as ``check.verify`` has them.
            data: its own, where they were read.
            also: as of ``check.verify``.

        Raises:
            StoreError: something is damaged.
        """
        from concurrent.futures import ThreadPoolExecutor

        columns = [self._verified(name, data, also)]
        # What SQLite says of its pages and indexes takes as long as a third of the reading, without Python's lock.
        with ThreadPoolExecutor(1) as beside:
            looking = beside.submit(self._require_sound, name, columns[0].numbers["position"].size)
            try:
                return make(columns.pop())  # whoever makes something of them may let go of them
            finally:
                looking.result()

    @patient
    def _verified(self, name: str, data: Dataset | None, also: Sequence[str]) -> RowColumns:
        with self.reading() as connection:
            return check.verify(connection, name, data, also)

    @patient
    def _require_sound(self, name: str, games: int) -> None:
        with self.reading() as connection:
            for problem in check.found_by_database(connection, name, games):
                raise Damage(f"the database ({problem})")

    @patient
    def tournaments(self) -> list[str]:
        """Names of the tournaments that have begun, oldest first."""
        with self.reading() as connection:
            here = TOURNAMENT_ROWS.c
            begun = select(here.name).where(here.data_digest != NOT_BEGUN).order_by(here.tournament_id)
            return [str(name) for name in connection.execute(begun).scalars()]

    def rated_tournaments(self) -> list[str]:
        """Names of the tournaments, oldest first, without those that synthetic queries are kept under."""
        return [name for name in self.tournaments() if self.settings(name).synth is None]

    def only_tournament(self) -> str:
        """The name of the store's one tournament.

        Raises:
            InputError: there is none, or more than one.
        """
        names = self.rated_tournaments()
        if not names:
            raise InputError("the store holds no tournament yet; 'ragleague run' fills it")
        if len(names) > 1:
            raise InputError(f"the store holds several tournaments, name one: {', '.join(names)}")
        return names[0]

    @patient
    def settings(self, name: str) -> StoredSettings:
        """The settings a tournament was last begun with."""
        with self.reading() as connection:
            here = TOURNAMENT_ROWS.c
            begun = select(here.settings).where(here.name == name, here.data_digest != NOT_BEGUN)
            stored = connection.execute(begun).scalar()
            settings = None if stored is None else StoredSettings.model_validate_json(stored)
        if settings is None:
            raise InputError(
                f"{self.location}: no tournament named {name!r}; there are {', '.join(self.tournaments()) or 'none'}"
            )
        return settings

    def dataset(self, name: str, *queries: str) -> Dataset:
        """The data a tournament was last begun with; or of some queries, with the documents found for them."""
        return self._ask(name, datasets.dataset, *queries)

    def queries(self, name: str) -> dict[str, Query]:
        """The queries alone, in their order."""
        return self._ask(name, datasets.queries)

    def is_labelled(self, name: str) -> bool:
        """Whether a tournament's data hold any person's label."""
        return self._ask(name, datasets.is_labelled)

    def answered(self, name: str) -> tuple[frozenset[tuple[str, str]], tuple[str, ...]]:
        """Query and agent of every answer; and all agents, sorted, also those that only retrieved."""
        return self._ask(name, datasets.answered)

    def verify(self, name: str, data: Dataset | None = None) -> None:
        """See that all that a tournament is made of is what was written, as ``of_games`` does.

        Raises:
            StoreError: something is damaged.
        """
        self.of_games(name, lambda _: None, data)

    def changes(self) -> int:
        """A number that grows with every change, so that readers know when to look again."""
        return sum(self.version())

    @patient
    def version(self) -> tuple[int, int]:
        """Two such numbers: one for what judges said and all that they judge, one for what people said."""
        with self.reading() as connection:
            said = connection.execute(select(func.max(ANNOTATION_ROWS.c.annotation_id))).scalar()
            return int(connection.execute(select(STATE_ROWS.c.changes)).scalar_one()), int(said or 0)

    @patient
    def judged(self, name: str) -> tuple[int, str]:
        """What changes with everything but what people say: a number that grows, and the digest of the data."""
        with self.reading() as connection:
            digest = select(TOURNAMENT_ROWS.c.data_digest).where(TOURNAMENT_ROWS.c.name == name)
            changes = connection.execute(select(STATE_ROWS.c.changes)).scalar_one()
            return int(changes), str(connection.execute(digest).scalar() or "")

    @patient
    def _ask(
        self,
        name: str,
        read: Callable[Concatenate[Connection, int, Further], Value],
        /,
        *given: Further.args,
        **named: Further.kwargs,
    ) -> Value:
        with self.reading() as connection:
            return read(connection, tournament_number(connection, name), *given, **named)

    def _begun_id(self, connection: Connection, name: str) -> int:
        """The number of a tournament as it was begun here: a run with other settings would link other judgments.

        Raises:
            StoreError: another run has begun it anew meanwhile.
        """
        here = TOURNAMENT_ROWS.c
        chosen = select(here.tournament_id, here.settings, here.data_digest).where(here.name == name)
        if (row := connection.execute(chosen).first()) is None:
            raise InputError(f"no tournament named {name!r} in this store")
        if self._begun.get(name, tuple(row[1:])) != tuple(row[1:]):
            raise StoreError(
                f"{self.location}: another run has begun {name!r} with other settings or data; "
                "what was judged is kept; give one of the two another 'name'"
            )
        return int(row.tournament_id)
