"""Runs of tournaments: when each began, how it ended, what it was of, and what it spent. None is ever deleted.

What a runner spends is added up in the transaction that keeps its results, so that not even a kill loses any. A run has
one runner, and only who asked for a result has it on the account: what was found in the store or imported is nobody's
spending, and what another run asked for is that one's.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Float,
    ForeignKey,
    Integer,
    String,
    Table,
    insert,
    select,
    update,
)

from arena.store.bulk import CHUNK, among, chunks, insert_rows
from arena.store.engine import patient
from arena.store.rows import METADATA, TOURNAMENT_ROWS, Result, encoded, has_table, tournament_number
from arena.store.runners import Runner, alive, now
from judges.types import Judgment
from retrieval_eval.agents.types import AgentReply, ReplyOrFailure

if TYPE_CHECKING:
    from arena.store.database import Database


Ending: TypeAlias = Literal["complete", "incomplete", "stopped", "failed"]


RUN_ROWS: Final = Table(
    "run",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("run_id", String, unique=True, nullable=False),
    Column("tournament_id", Integer, ForeignKey("tournament.tournament_id"), index=True, nullable=False),
    Column("runner_id", String, nullable=False),
    Column("host", String, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("begun", Float, nullable=False),
    Column("beat", Float, nullable=False),
    Column("ended", Float),
    Column("ending", String),
    Column("subject", String, nullable=False),
    Column("stages", String, nullable=False),
    Column("standings", String, nullable=False),
)
"""One run; ``beat`` is when its process last said that it is there, ``ending`` stays null where it is killed.

    Times are seconds since 1970; ``subject``, ``stages`` and ``standings`` are JSON, see ``Run``.
    """


class StoredRun(Struct, frozen=True):
    """One run as the store knows it.

    Attributes:
        state: ``running`` while its process says that it is there, else how it ended; ``killed`` where it did not.
        here: whether its process is, or was, one of this machine.
        begun, ended: seconds since 1970.
        subject: what was judged: settings, agents, and a digest of every query's text.
        stages: what became of each stage's wants, in the end; of the agents' queries also while they are asked.
        spent: what it asked for and what that took so far, by stage.
        standings: the leaderboard's lines, where there were ratings.
    """

    run_id: str
    state: Ending | Literal["running", "killed"]
    here: bool
    pid: int
    begun: float
    ended: float | None
    subject: Mapping[str, Any]
    stages: Mapping[str, Mapping[str, Any]]
    spent: ByStage
    standings: list[dict[str, Any]]


class Runs:
    """The runs of one tournament in an open store.

    Attributes:
        location: the store's.
    """

    def __init__(self, store: Database, tournament: str) -> None:
        self._store, self._tournament = store, tournament
        self.location = store.location

    def begin(self, runner: Runner, subject: Mapping[str, Any] | None = None) -> str:
        """A run begins; returns its id. What it is of may be known later (``describe``)."""
        run_id = uuid.uuid4().hex
        self._begin(run_id, runner, subject or {})
        return run_id

    @patient
    def _begin(self, run_id: str, runner: Runner, subject: Mapping[str, Any]) -> None:
        with self._store.writing(judged=False) as connection:
            if connection.execute(select(RUN_ROWS.c.number).where(RUN_ROWS.c.run_id == run_id)).first() is not None:
                return  # an earlier attempt, whose end was not heard of
            time = now(connection)
            row = {
                "run_id": run_id,
                "tournament_id": tournament_number(connection, self._tournament),
                "runner_id": runner.runner_id,
                "host": runner.host,
                "pid": runner.pid,
                "begun": time,
                "beat": time,
                "subject": encoded(subject),
                "stages": "{}",
                "standings": "[]",
            }
            connection.execute(insert(RUN_ROWS), row)

    @patient
    def describe(self, run_id: str, subject: Mapping[str, Any]) -> None:
        """Keep what a run is of; it is there."""
        with self._store.writing(judged=False) as connection:
            self._change(connection, run_id, subject=encoded(subject), beat=now(connection))

    @patient
    def tell(self, run_id: str, stages: Mapping[str, Any]) -> None:
        """Keep what is known of a run's stages while it goes on."""
        with self._store.writing(judged=False) as connection:
            self._change(connection, run_id, stages=encoded(stages))

    @patient
    def end(self, run_id: str, ending: Ending, stages: Mapping[str, Any]) -> None:
        """A run ends, and says what became of its wants."""
        with self._store.writing(judged=False) as connection:
            self._change(connection, run_id, ending=ending, ended=now(connection), stages=encoded(stages))

    @patient
    def keep_standings(self, run_id: str, standings: list[dict[str, Any]]) -> None:
        """Keep the leaderboard that a run has led to."""
        with self._store.writing(judged=False) as connection:
            self._change(connection, run_id, standings=json.dumps(standings, allow_nan=False))

    def all(self, most: int | None = None) -> list[StoredRun]:
        """Every run, or the ``most`` last ones, the latest first; none where the store does not know the tournament."""
        return self._found(most=most)

    def at_work(self) -> list[StoredRun]:
        """The runs that go on now, the latest first."""
        return [run for run in self._found(RUN_ROWS.c.ended.is_(None)) if run.state == "running"]

    @patient
    def last_subject(self) -> Mapping[str, Any]:
        """What the last run was of that came to know it; empty where none did."""
        runs = RUN_ROWS.c
        with self._store.reading() as connection:
            if not has_table(connection, RUN_ROWS):
                return {}
            number = tournament_number(connection, self._tournament)
            chosen = select(runs.subject).where(runs.tournament_id == number, runs.subject != "{}")
            found = connection.execute(chosen.order_by(runs.number.desc()).limit(1)).scalar()
        subject: Mapping[str, Any] = {} if found is None else json.loads(found)
        return subject

    @patient
    def others(self, runner: Runner) -> bool:
        """Whether the tournament has another run that is at work; of several that began together all but one see it."""
        runs = RUN_ROWS.c
        with self._store.reading() as connection:
            number, time = tournament_number(connection, self._tournament), now(connection)
            chosen = select(runs.host, runs.pid, runs.beat).where(runs.tournament_id == number, runs.ended.is_(None))
            found = connection.execute(chosen.where(runs.runner_id != runner.runner_id)).all()
        return any(alive(host, pid, time - beat, runner) for host, pid, beat in found)

    @patient
    def was_alone(self, run_id: str) -> bool:
        """Whether no other run of the tournament has done anything since this one began."""
        runs = RUN_ROWS.c
        begun = select(runs.begun).where(runs.run_id == run_id).scalar_subquery()
        with self._store.reading() as connection:
            number = tournament_number(connection, self._tournament)
            others = select(runs.number).where(runs.tournament_id == number, runs.run_id != run_id)
            return connection.execute(others.where((runs.beat >= begun) | (runs.ended >= begun))).first() is None

    @patient
    def _found(self, *which: ColumnElement[bool], most: int | None = None) -> list[StoredRun]:
        runs, tournaments = RUN_ROWS, TOURNAMENT_ROWS
        with self._store.reading() as connection:
            if not has_table(connection, RUN_ROWS):
                return []
            joined = runs.join(tournaments, runs.c.tournament_id == tournaments.c.tournament_id)
            mine = select(runs).select_from(joined).where(tournaments.c.name == self._tournament, *which)
            found = connection.execute(mine.order_by(runs.c.number.desc()).limit(most)).all()
            spent = spent_by(connection, [row.runner_id for row in found])
            time = now(connection)
        return [_run(row, time, spent.get(row.runner_id)) for row in found]

    def _change(self, connection: Connection, run_id: str, **values: Any) -> None:
        runs = RUN_ROWS
        connection.execute(update(runs).where(runs.c.run_id == run_id).values(**values))


def beat(connection: Connection, runner: Runner) -> None:
    """The runner is at work, and so is its run."""
    runs = RUN_ROWS
    mine = runs.c.runner_id == runner.runner_id, runs.c.ended.is_(None)
    connection.execute(update(runs).where(*mine).values(beat=now(connection)))


def _run(row: Any, time: float, spent: ByStage | None) -> StoredRun:
    here = Runner()
    state = row.ending
    if state is None:
        state = "running" if alive(row.host, row.pid, time - row.beat, here) else "killed"
    stages = json.loads(row.stages)
    return StoredRun(
        row.run_id,
        state,
        row.host == here.host,
        row.pid,
        row.begun,
        row.ended,
        json.loads(row.subject),
        stages,
        spent_as_told(stages) if spent is None else spent,
        json.loads(row.standings),
    )


AGENTS: Final = "agents"
"""The stage of answers; the others are called as their task is."""


SPENDING_ROWS: Final = Table(
    "spending",
    METADATA,
    Column("runner_id", String, primary_key=True),
    Column("stage", String, primary_key=True),
    Column("judged", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("tokens_unknown", Integer, nullable=False),
    Column("cost_usd", Float, nullable=False),
    Column("cost_unknown", Integer, nullable=False),
)
"""One runner's results of one stage, see ``Spent``."""


class Spent(Struct, frozen=True):
    """What came of asking, and what that took.

    Attributes:
        judged: judgments, or answers of agents.
        failed: results without one.
        calls: requests sent, attempts included.
        input_tokens, output_tokens: of the results of which both are known.
        tokens_unknown: the other results.
        cost_usd: as far as prices and tokens are known.
        cost_unknown: results without a known cost.
    """

    judged: int = 0
    failed: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tokens_unknown: int = 0
    cost_usd: float = 0.0
    cost_unknown: int = 0

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(*(getattr(self, name) + getattr(other, name) for name in _FIGURES))

    @property
    def results(self) -> int:
        """All that was asked for and came to an end."""
        return self.judged + self.failed

    @property
    def tokens_known(self) -> bool:
        """Whether the tokens are those of anything, or nothing took any."""
        return self.tokens_unknown < self.results or not self.results

    @property
    def cost_known(self) -> bool:
        """Whether the cost is that of anything, or nothing was asked for."""
        return self.cost_unknown < self.results or not self.results


ByStage: TypeAlias = Mapping[str, Spent]

_FIGURES: Final = Spent.__struct_fields__
_ADDED: Final = ", ".join(f"{name} = spending.{name} + excluded.{name}" for name in _FIGURES)


def add_spending(
    connection: Connection, runner: Runner, results: Iterable[tuple[str, Result | ReplyOrFailure]]
) -> None:
    """Put results, each with its stage, on a runner's account."""
    stages: dict[str, list[Sequence[float]]] = {}
    for stage, result in results:
        stages.setdefault(stage, []).append(_spent_on(result))
    rows = [
        {
            "runner_id": runner.runner_id,
            "stage": stage,
            **dict(zip(_FIGURES, map(sum, zip(*own, strict=True)), strict=True)),
        }
        for stage, own in sorted(stages.items())
    ]
    insert_rows(connection, SPENDING_ROWS, rows, f"(runner_id, stage) DO UPDATE SET {_ADDED}")


def spent_by(connection: Connection, runner_ids: Sequence[str]) -> dict[str, dict[str, Spent]]:
    """What these runners have spent by stage; none for one that has kept nothing, or did so before it was counted."""
    found: dict[str, dict[str, Spent]] = {}
    if has_table(connection, SPENDING_ROWS):
        accounts = SPENDING_ROWS
        for chunk in chunks(runner_ids, CHUNK):
            chosen = select(accounts).where(among(connection, accounts.c.runner_id, chunk)).order_by(accounts.c.stage)
            for row in connection.execute(chosen):
                found.setdefault(row.runner_id, {})[row.stage] = Spent(*row[2:])
    return found


def spent_as_told(stages: Mapping[str, Mapping[str, Any]]) -> dict[str, Spent]:
    """What a run said of its stages in the end, where nobody counted meanwhile.

    Tokens are not among it, and among the failures may be earlier ones.
    """
    names = ("judged", "failed", "calls", "cost_usd", "cost_unknown")
    asked = {stage: own for stage, own in stages.items() if own["calls"]}
    return {
        stage: Spent(tokens_unknown=own["judged"] + own["failed"], **{name: own[name] for name in names})
        for stage, own in asked.items()
    }


def _spent_on(result: Result | ReplyOrFailure) -> Sequence[float]:
    """The figures of ``Spent``."""
    good = isinstance(result, Judgment | AgentReply)
    sent, received, cost = result.usage.input_tokens, result.usage.output_tokens, result.cost_usd
    tokens = (0, 0, 1) if sent is None or received is None else (sent, received, 0)
    return int(good), int(not good), result.calls, *tokens, cost or 0.0, int(cost is None)
