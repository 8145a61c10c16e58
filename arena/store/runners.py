"""Which processes judge for a store now, and what each of them is about to ask, so that nothing is asked twice."""

from __future__ import annotations

import os
import socket
import time as clock
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from msgspec import Struct, field
from sqlalchemy import ColumnElement, Connection, Table, delete, insert, select, text, update

from arena.store.bulk import CHUNK, among, chunks, delete_rows, insert_rows
from arena.store.rows import LEASE_ROWS, RUNNER_ROWS

Known = TypeVar("Known")

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


class Runner(Struct, frozen=True):
    """This process, as other ones see it in the store."""

    runner_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    host: str = field(default_factory=_host)
    pid: int = field(default_factory=os.getpid)


class Watch:
    """For how long other runners' beats have stood still, by this process's own clock.

    None of theirs is asked: one that jumps by a minute would make all that are alive look dead.
    """

    def __init__(self) -> None:
        self._heard: dict[str, tuple[float, float]] = {}

    def silent_s(self, runner_id: str, beat: float) -> float:
        """Seconds since this beat was first seen here, which is now if it is another one than the last time."""
        time = monotonic()
        if self._heard.get(runner_id, (None,))[0] != beat:
            self._heard[runner_id] = beat, time
        return time - self._heard[runner_id][1]


def beat(connection: Connection, runner: Runner, watch: Watch) -> bool:
    """Say that the runner is there; what dead ones were about to ask is free again.

    Returns:
        Whether it was there before. If not, other runners may hold what it has claimed.
    """
    runners, leases = RUNNER_ROWS, LEASE_ROWS
    time = now(connection)
    again = update(runners).where(runners.c.runner_id == runner.runner_id).values(beat=time)
    there = connection.execute(again).rowcount > 0
    if not there:
        row = {"runner_id": runner.runner_id, "host": runner.host, "pid": runner.pid, "beat": time}
        connection.execute(insert(RUNNER_ROWS), row)
    others = connection.execute(select(runners).where(runners.c.runner_id != runner.runner_id)).all()
    silent_s = {row.runner_id: watch.silent_s(row.runner_id, row.beat) for row in others}
    dead = [row.runner_id for row in others if not alive(row.host, row.pid, silent_s[row.runner_id], runner)]
    _delete_unlocked(connection, RUNNER_ROWS, runners.c.runner_id.in_(dead))
    _delete_unlocked(connection, LEASE_ROWS, leases.c.runner_id.not_in(select(runners.c.runner_id)))
    return there


def leave(connection: Connection, runner: Runner) -> None:
    """The runner ends; what it did not ask is free for others."""
    connection.execute(delete(LEASE_ROWS).where(LEASE_ROWS.c.runner_id == runner.runner_id))
    connection.execute(delete(RUNNER_ROWS).where(RUNNER_ROWS.c.runner_id == runner.runner_id))


def taken(connection: Connection, runner: Runner, judgment_ids: Sequence[str]) -> set[str]:
    """Those of these judgments that the runner has taken, and has neither saved nor given back."""
    return _leased(connection, judgment_ids, LEASE_ROWS.c.runner_id == runner.runner_id)


def lease(connection: Connection, runner: Runner, judgment_ids: Sequence[str]) -> set[str]:
    """Take these judgments for the runner, but for those that somebody else holds; returns what it then has."""
    rows = [{"judgment_id": ident, "runner_id": runner.runner_id} for ident in judgment_ids]
    if insert_rows(connection, LEASE_ROWS, rows, "DO NOTHING") == len(rows):
        return set(judgment_ids)
    return taken(connection, runner, judgment_ids)


def release(connection: Connection, judgment_ids: Sequence[str], runner: Runner | None = None) -> None:
    """The runner, or nobody, is about to ask for these judgments any more."""
    whose = {} if runner is None else {"runner_id": runner.runner_id}
    delete_rows(connection, LEASE_ROWS.c.judgment_id, judgment_ids, **whose)


def claim(
    connection: Connection,
    runner: Runner,
    idents: Sequence[str],
    look_up: Callable[[Sequence[str]], Mapping[str, Known]],
    *,
    to_be_asked: Callable[[Known | None], bool],
    tried: Callable[[str], bool] = lambda _: False,
) -> tuple[dict[str, Known], set[str]]:
    """Take for this runner what has to be asked and nobody else is asking.

    Args:
        connection: within a transaction.
        runner: who asks; it must have said that it is there (``beat``).
        idents: of judgments or agents' replies, each once.
        look_up: gives what is known of them.
        to_be_asked: by what is known, ``None`` where that is nothing, whether a call is needed.
        tried: whether a failure is of this run already. It is not taken again: nobody would ask, and others would wait
            for it.

    Returns:
        What is known, and the ids that another runner is asking for now.
    """
    known = dict(look_up(idents))
    asked = [ident for ident in idents if to_be_asked(known.get(ident))]
    left = {ident for ident in asked if ident in known and tried(ident)}
    elsewhere = _leased(connection, sorted(left), LEASE_ROWS.c.runner_id != runner.runner_id)
    mine = lease(connection, runner, sorted(set(asked) - left))
    elsewhere |= set(asked) - left - mine
    if connection.dialect.name != "sqlite":  # which has one writer
        # Another runner may have saved one between the look and the lease, and given it back with that.
        known |= look_up(sorted(mine))
        release(connection, sorted(ident for ident in mine if not to_be_asked(known.get(ident))), runner)
    return known, elsewhere


def _leased(connection: Connection, judgment_ids: Sequence[str], whose: ColumnElement[bool]) -> set[str]:
    ident = LEASE_ROWS.c.judgment_id
    found: set[str] = set()
    for chunk in chunks(judgment_ids, CHUNK):
        found |= set(connection.execute(select(ident).where(among(connection, ident, chunk), whose)).scalars())
    return found


def _delete_unlocked(connection: Connection, kind: Table, which: Any) -> None:
    (key,) = kind.primary_key
    unlocked = select(key).where(which).with_for_update(skip_locked=True)  # SQLite has one writer and no such lock
    connection.execute(delete(kind).where(key.in_(unlocked)))


def now(connection: Connection) -> float:
    """Seconds since 1970 by the clock that all runners share: this machine's, or the server's."""
    if connection.dialect.name == "sqlite":
        return clock.time()
    return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())


def alive(host: str, pid: int, silent_s: float, here: Runner) -> bool:
    """Whether a runner may still be at work. On this machine a process that is gone is known at once."""
    if silent_s > SILENT_S:
        return False
    if host != here.host or os.name == "nt":  # there, asking after a process would end it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True
