"""Which processes judge for a store now, and what each of them is about to ask, so that nothing is asked twice."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, text
from sqlmodel import delete, insert, select, update

from arena.store.rows import LeaseRow, RunnerRow, table

BEAT_S = 10.0
"""How often a runner says that it is there."""
SILENT_S = 60.0
"""A runner that has said nothing for so long is taken for dead."""


def _host() -> str:
    """The machine and, in containers that share its name, the space in which process numbers are counted."""
    try:
        return f"{socket.gethostname()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not Linux
        return socket.gethostname()


@dataclass(frozen=True, slots=True)
class Runner:
    """This process, as other ones see it in the store."""

    runner_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    host: str = field(default_factory=_host)
    pid: int = field(default_factory=os.getpid)


def beat(connection: Connection, runner: Runner) -> None:
    """Say that the runner is there; what dead ones were about to ask is free again."""
    runners, leases = table(RunnerRow), table(LeaseRow)
    now = _now(connection)
    there = update(runners).where(runners.c.runner_id == runner.runner_id).values(beat=now)
    if not connection.execute(there).rowcount:
        row = {"runner_id": runner.runner_id, "host": runner.host, "pid": runner.pid, "beat": now}
        connection.execute(insert(RunnerRow), row)
    others = connection.execute(select(runners).where(runners.c.runner_id != runner.runner_id)).all()
    dead = [row.runner_id for row in others if not _alive(row, runner, now)]
    connection.execute(delete(RunnerRow).where(runners.c.runner_id.in_(dead)))
    connection.execute(delete(LeaseRow).where(leases.c.runner_id.not_in(select(runners.c.runner_id))))


def leave(connection: Connection, runner: Runner) -> None:
    """The runner ends; what it did not ask is free for others."""
    connection.execute(delete(LeaseRow).where(table(LeaseRow).c.runner_id == runner.runner_id))
    connection.execute(delete(RunnerRow).where(table(RunnerRow).c.runner_id == runner.runner_id))


def held(connection: Connection, runner: Runner, judgment_ids: Sequence[str]) -> set[str]:
    """Those of these judgments that another runner has taken."""
    leases = table(LeaseRow)
    taken = select(leases.c.judgment_id).where(
        leases.c.judgment_id.in_(bindparam("asked", expanding=True)), leases.c.runner_id != runner.runner_id
    )
    return set(connection.execute(taken, {"asked": list(judgment_ids)}).scalars())


def lease(connection: Connection, runner: Runner, judgment_ids: Sequence[str]) -> set[str]:
    """Take these judgments for the runner, but for those that somebody else holds; returns what it then has."""
    if not judgment_ids:
        return set()
    statement = "INSERT INTO lease (judgment_id, runner_id) VALUES (:judgment_id, :runner_id) ON CONFLICT DO NOTHING"
    rows = [{"judgment_id": ident, "runner_id": runner.runner_id} for ident in judgment_ids]
    connection.execute(text(statement), rows)
    leases = table(LeaseRow)
    asked = leases.c.judgment_id.in_(bindparam("asked", expanding=True))
    mine = select(leases.c.judgment_id).where(asked, leases.c.runner_id == runner.runner_id)
    return set(connection.execute(mine, {"asked": list(judgment_ids)}).scalars())


def release(connection: Connection, judgment_ids: Sequence[str]) -> None:
    """Nobody is about to ask for these judgments any more."""
    if judgment_ids:
        statement = delete(LeaseRow).where(table(LeaseRow).c.judgment_id == bindparam("done"))
        connection.execute(statement, [{"done": ident} for ident in judgment_ids])


def _now(connection: Connection) -> float:
    """Seconds since 1970 by the clock that all runners share: this machine's, or the server's."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())


def _alive(row: Any, here: Runner, now: float) -> bool:
    """Whether a runner may still be at work. On this machine a process that is gone is known at once."""
    if now - row.beat > SILENT_S:
        return False
    if row.host != here.host or os.name == "nt":  # there, asking after a process would end it
        return True
    try:
        os.kill(row.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True
