"""Records the runs of tournaments: when they start and end, their settings, and what they spend.

Runs are never deleted. Each run has one runner (its process). Spending is recorded in the transaction that saves the
results, so that a killed run loses none of it. It counts for the runner that asked for the result; results that were
read from the store or imported count for no runner.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from arena.store.bulk import CHUNK, among, chunks, insert_rows
from arena.store.engine import retrying
from arena.store.rows import Result, encoded, tournament_number
from arena.store.runners import Runner, alive, now
from arena.store.tables import RUN, SPENDING, TOURNAMENT
from judges.types import Judgment
from retrieval_eval.agents.types import AgentReply, ReplyOrFailure

if TYPE_CHECKING:
    from arena.store.database import Database


Ending: TypeAlias = Literal["complete", "incomplete", "stopped", "failed"]


class StoredRun(Struct, frozen=True):
    """One run, as recorded in the store.

    Attributes:
        state: ``running`` while its process is alive, then how the run ended; ``killed`` if the process died without
            recording an end.
        here: whether the run's process runs, or ran, on this machine.
        subject: what was run: the settings, the agents, and a digest of every query's text.
        stages: counts of results by stage, recorded at the end of the run; for the stage that asks the agents, also
            during the run.
        spent: results, calls, tokens and cost so far, by stage.
        standings: rows of the leaderboard at the end of the run; empty if there are no ratings.
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
    """The runs of one tournament in an open store."""

    def __init__(self, store: Database, tournament: str) -> None:
        self._store, self._tournament = store, tournament
        self.location = store.location

    def begin(self, runner: Runner, subject: Mapping[str, Any] | None = None) -> str:
        """Record the start of a run and return its id; ``describe`` can add the subject of the run later."""
        run_id = uuid.uuid4().hex
        self._begin(run_id, runner, subject or {})
        return run_id

    @retrying
    def _begin(self, run_id: str, runner: Runner, subject: Mapping[str, Any]) -> None:
        with self._store.writing(judged=False) as connection:
            if connection.execute(select(RUN.c.number).where(RUN.c.run_id == run_id)).first() is not None:
                return  # an earlier attempt was committed before the connection broke
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
            connection.execute(insert(RUN), row)

    def describe(self, run_id: str, subject: Mapping[str, Any]) -> None:
        self._change(run_id, "beat", subject=encoded(subject))

    def update_stages(self, run_id: str, stages: Mapping[str, Any]) -> None:
        self._change(run_id, stages=encoded(stages))

    def end(self, run_id: str, ending: Ending, stages: Mapping[str, Any]) -> None:
        self._change(run_id, "ended", ending=ending, stages=encoded(stages))

    def keep_standings(self, run_id: str, standings: list[dict[str, Any]]) -> None:
        self._change(run_id, standings=json.dumps(standings, allow_nan=False))

    @retrying
    def _change(self, /, run_id: str, *times: str, **values: Any) -> None:
        """Set columns of a run to ``values``, and the columns named in ``times`` to the present time."""
        with self._store.writing(judged=False) as connection:
            present = dict.fromkeys(times, now(connection)) if times else {}
            connection.execute(update(RUN).where(RUN.c.run_id == run_id).values(**values, **present))

    def all(self, most: int | None = None) -> list[StoredRun]:
        """Runs of the tournament, latest first; at most ``most`` of them. Empty if there is no such tournament."""
        return self._select(most=most)

    def at_work(self) -> list[StoredRun]:
        return [run for run in self._select(RUN.c.ended.is_(None)) if run.state == "running"]

    @retrying
    def last_end(self) -> float | None:
        """When the latest run ended, or began if it has no end; ``None`` if there is no run."""
        runs = RUN.c
        with self._store.reading() as connection:
            number = tournament_number(connection, self._tournament)
            times = select(func.coalesce(runs.ended, runs.begun)).where(runs.tournament_id == number)
            time: float | None = connection.execute(times.order_by(runs.number.desc()).limit(1)).scalar()
        return time

    @retrying
    def last_subject(self) -> Mapping[str, Any]:
        """Settings, agents and queries (see ``StoredRun``) of the latest run that recorded them; empty if none did."""
        runs = RUN.c
        with self._store.reading() as connection:
            number = tournament_number(connection, self._tournament)
            subjects = select(runs.subject).where(runs.tournament_id == number, runs.subject != "{}")
            text = connection.execute(subjects.order_by(runs.number.desc()).limit(1)).scalar()
        subject: Mapping[str, Any] = {} if text is None else json.loads(text)
        return subject

    @retrying
    def others(self, runner: Runner) -> bool:
        """Whether another runner runs the tournament now; if several start together, at most one gets ``False``."""
        runs = RUN.c
        with self._store.reading() as connection:
            number, time = tournament_number(connection, self._tournament), now(connection)
            unended = select(runs.host, runs.pid, runs.beat).where(runs.tournament_id == number, runs.ended.is_(None))
            rows = connection.execute(unended.where(runs.runner_id != runner.runner_id)).all()
        return any(alive(host, pid, time - beat, runner) for host, pid, beat in rows)

    @retrying
    def was_alone(self, run_id: str) -> bool:
        """Whether no other run of the tournament has been active since this run began."""
        runs = RUN.c
        begun = select(runs.begun).where(runs.run_id == run_id).scalar_subquery()
        with self._store.reading() as connection:
            number = tournament_number(connection, self._tournament)
            others = select(runs.number).where(runs.tournament_id == number, runs.run_id != run_id)
            return connection.execute(others.where((runs.beat >= begun) | (runs.ended >= begun))).first() is None

    @retrying
    def _select(self, *conditions: ColumnElement[bool], most: int | None = None) -> list[StoredRun]:
        with self._store.reading() as connection:
            joined = RUN.join(TOURNAMENT, RUN.c.tournament_id == TOURNAMENT.c.tournament_id)
            matching = select(RUN).select_from(joined).where(TOURNAMENT.c.name == self._tournament, *conditions)
            rows = connection.execute(matching.order_by(RUN.c.number.desc()).limit(most)).all()
            spent = spent_by(connection, [row.runner_id for row in rows])
            time = now(connection)
        return [_run(row, time, spent.get(row.runner_id, {})) for row in rows]


def beat(connection: Connection, runner: Runner) -> None:
    in_progress = RUN.c.runner_id == runner.runner_id, RUN.c.ended.is_(None)
    connection.execute(update(RUN).where(*in_progress).values(beat=now(connection)))


def _run(row: Any, time: float, spent: ByStage) -> StoredRun:
    here = Runner()
    state = row.ending
    if state is None:
        state = "running" if alive(row.host, row.pid, time - row.beat, here) else "killed"
    return StoredRun(
        row.run_id,
        state,
        row.host == here.host,
        row.pid,
        row.begun,
        row.ended,
        json.loads(row.subject),
        json.loads(row.stages),
        spent,
        json.loads(row.standings),
    )


AGENTS: Final = "agents"
"""Name of the stage in which the agents answer the queries; each other stage is named after its task."""


class Spent(Struct, frozen=True):
    """Number of results in a stage, and the calls, tokens and cost that they took.

    Attributes:
        judged: number of judgments, or of agents' answers.
        calls: number of requests sent, including retries.
        input_tokens, output_tokens: sums over the results for which both are known.
        tokens_unknown: number of results for which a token count is unknown.
        cost_unknown: number of results without a known cost.
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
        return Spent(*(getattr(self, name) + getattr(other, name) for name in _FIGURES))

    @property
    def results(self) -> int:
        return self.judged + self.failed

    @property
    def tokens_known(self) -> bool:
        return self.tokens_unknown < self.results or not self.results

    @property
    def cost_known(self) -> bool:
        return self.cost_unknown < self.results or not self.results


ByStage: TypeAlias = Mapping[str, Spent]

_FIGURES: Final = Spent.__struct_fields__
_ADDED: Final = ", ".join(f"{name} = spending.{name} + excluded.{name}" for name in _FIGURES)


def add_spending(
    connection: Connection, runner: Runner, results: Iterable[tuple[str, Result | ReplyOrFailure]]
) -> None:
    stages: dict[str, list[Sequence[float]]] = {}
    for stage, result in results:
        stages.setdefault(stage, []).append(_spent_on(result))
    rows = [
        {
            "runner_id": runner.runner_id,
            "stage": stage,
            **dict(zip(_FIGURES, map(sum, zip(*figures, strict=True)), strict=True)),
        }
        for stage, figures in sorted(stages.items())
    ]
    insert_rows(connection, SPENDING, rows, f"(runner_id, stage) DO UPDATE SET {_ADDED}")


def spent_by(connection: Connection, runner_ids: Sequence[str]) -> dict[str, dict[str, Spent]]:
    """Spending of these runners, by runner and stage; runners without recorded spending are left out."""
    spent: dict[str, dict[str, Spent]] = {}
    table = SPENDING
    for chunk in chunks(runner_ids, CHUNK):
        matching = select(table).where(among(connection, table.c.runner_id, chunk)).order_by(table.c.stage)
        for row in connection.execute(matching):
            spent.setdefault(row.runner_id, {})[row.stage] = Spent(*row[2:])
    return spent


def _spent_on(result: Result | ReplyOrFailure) -> Sequence[float]:
    succeeded = isinstance(result, Judgment | AgentReply)
    sent, received, cost = result.usage.input_tokens, result.usage.output_tokens, result.cost_usd
    tokens = (0, 0, 1) if sent is None or received is None else (sent, received, 0)
    return int(succeeded), int(not succeeded), result.calls, *tokens, cost or 0.0, int(cost is None)
