"""Runners (processes that run judges for a store) and their claims, so that no judgment is paid for twice."""

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
from arena.store.tables import LEASE, RUNNER

Known = TypeVar("Known")

BEAT_S = 10.0
"""Seconds between two heartbeats of a runner."""
SILENT_S = 60.0
"""Seconds without a heartbeat after which a runner counts as dead."""


def _host() -> str:
    """The host name and, on Linux, the PID namespace, which differs between containers on one host."""
    try:
        return f"{socket.gethostname()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not Linux
        return socket.gethostname()


class Runner(Struct, frozen=True):
    """A process that runs judges and saves their judgments; by default the current process."""

    runner_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    host: str = field(default_factory=_host)
    pid: int = field(default_factory=os.getpid)


class Watch:
    """Measures how long ago each runner's heartbeat last changed, by the monotonic clock of this process.

    It does not compare times of different clocks: if a clock jumped by a minute, all live runners would look dead.
    """

    def __init__(self) -> None:
        self._last_beats: dict[str, tuple[float, float]] = {}

    def silent_s(self, runner_id: str, beat: float) -> float:
        """Seconds since this process first saw this heartbeat of the runner; 0 if the heartbeat is new."""
        time = monotonic()
        if self._last_beats.get(runner_id, (None,))[0] != beat:
            self._last_beats[runner_id] = beat, time
        return time - self._last_beats[runner_id][1]


def beat(connection: Connection, runner: Runner, watch: Watch) -> bool:
    """Record a heartbeat of the runner, and release the claims of dead runners.

    Returns:
        Whether the runner was registered before. If not, other runners may have taken over its claims.
    """
    runners, leases = RUNNER, LEASE
    time = now(connection)
    renewal = update(runners).where(runners.c.runner_id == runner.runner_id).values(beat=time)
    registered = connection.execute(renewal).rowcount > 0
    if not registered:
        row = {"runner_id": runner.runner_id, "host": runner.host, "pid": runner.pid, "beat": time}
        connection.execute(insert(RUNNER), row)
    others = connection.execute(select(runners).where(runners.c.runner_id != runner.runner_id)).all()
    silent_s = {row.runner_id: watch.silent_s(row.runner_id, row.beat) for row in others}
    dead = [row.runner_id for row in others if not alive(row.host, row.pid, silent_s[row.runner_id], runner)]
    _delete_unlocked(connection, RUNNER, runners.c.runner_id.in_(dead))
    _delete_unlocked(connection, LEASE, leases.c.runner_id.not_in(select(runners.c.runner_id)))
    return registered


def leave(connection: Connection, runner: Runner) -> None:
    connection.execute(delete(LEASE).where(LEASE.c.runner_id == runner.runner_id))
    connection.execute(delete(RUNNER).where(RUNNER.c.runner_id == runner.runner_id))


def taken(connection: Connection, runner: Runner, judgment_ids: Sequence[str]) -> set[str]:
    return _leased(connection, judgment_ids, LEASE.c.runner_id == runner.runner_id)


def lease(connection: Connection, runner: Runner, judgment_ids: Sequence[str]) -> set[str]:
    """Claim judgments for the runner, except those that other runners have claimed; returns the claimed ids."""
    rows = [{"judgment_id": ident, "runner_id": runner.runner_id} for ident in judgment_ids]
    if insert_rows(connection, LEASE, rows, "DO NOTHING") == len(rows):
        return set(judgment_ids)
    return taken(connection, runner, judgment_ids)


def release(connection: Connection, judgment_ids: Sequence[str], runner: Runner | None = None) -> None:
    """Release one runner's claims on these judgments, or every runner's if ``runner`` is ``None``."""
    holder = {} if runner is None else {"runner_id": runner.runner_id}
    delete_rows(connection, LEASE.c.judgment_id, judgment_ids, **holder)


def claim(
    connection: Connection,
    runner: Runner,
    idents: Sequence[str],
    look_up: Callable[[Sequence[str]], Mapping[str, Known]],
    *,
    to_be_asked: Callable[[Known | None], bool],
    tried: Callable[[str], bool] = lambda _: False,
) -> tuple[dict[str, Known], set[str]]:
    """Claim judgments or agents' replies that need a call and that no other runner has claimed.

    Args:
        runner: the runner that claims them; it must be registered (``beat``).
        idents: ids of judgments or of agents' replies, without duplicates.
        look_up: returns the known results by id.
        to_be_asked: returns whether an id needs a call, given its known result or ``None``.
        tried: returns whether this run itself stored the known failure of an id. Such ids are not claimed: this run
            does not ask for them again, and other runners would wait in vain.

    Returns:
        The known results by id, and the ids that other runners have claimed.
    """
    known = dict(look_up(idents))
    asked = [ident for ident in idents if to_be_asked(known.get(ident))]
    skipped = {ident for ident in asked if ident in known and tried(ident)}
    elsewhere = _leased(connection, sorted(skipped), LEASE.c.runner_id != runner.runner_id)
    claimed = lease(connection, runner, sorted(set(asked) - skipped))
    elsewhere |= set(asked) - skipped - claimed
    if connection.dialect.name != "sqlite":  # SQLite has one writer at a time
        # Between the lookup and the claim, another runner may have saved a result and released its claim.
        known |= look_up(sorted(claimed))
        release(connection, sorted(ident for ident in claimed if not to_be_asked(known.get(ident))), runner)
    return known, elsewhere


def _leased(connection: Connection, judgment_ids: Sequence[str], holder: ColumnElement[bool]) -> set[str]:
    ident = LEASE.c.judgment_id
    leased: set[str] = set()
    for chunk in chunks(judgment_ids, CHUNK):
        leased |= set(connection.execute(select(ident).where(among(connection, ident, chunk), holder)).scalars())
    return leased


def _delete_unlocked(connection: Connection, table: Table, condition: Any) -> None:
    """Delete the rows that meet a condition, except rows that another transaction has locked."""
    (key,) = table.primary_key
    unlocked = select(key).where(condition).with_for_update(skip_locked=True)  # SQLite ignores this
    connection.execute(delete(table).where(key.in_(unlocked)))


def now(connection: Connection) -> float:
    """Seconds since 1970 by the clock that a store's runners share: this machine's for SQLite, else the server's."""
    if connection.dialect.name == "sqlite":
        return clock.time()
    return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())


def alive(host: str, pid: int, silent_s: float, current: Runner) -> bool:
    """Whether a runner may still be running: it had a recent heartbeat and, on this host, its process exists."""
    if silent_s > SILENT_S:
        return False
    if host != current.host or os.name == "nt":  # on Windows os.kill(pid, 0) would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        return True
    return True
