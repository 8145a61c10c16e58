"""Runs that the pages start and stop: processes of ``ragleague run`` of their own, which go on if the pages end.

Only the configuration that the pages were started with is run, and only an editor starts or stops anything. What a run
does is in the store, so that a reload, or pages started anew, see it; what it says is in a file beside the YAML file.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

import streamlit as st
from msgspec import Struct, field

from arena.store.runs import Runs, StoredRun
from arena.store.wants import TournamentProgress, progress
from judges.errors import DataError, InputError, reason
from ui.data import shared
from ui.editing import Session, check

_TAIL: Final = 16_384
"""Bytes of the end of a log that are shown."""
_SELDOM: Final = 10
"""So many times as long as a count takes it holds."""


class _Started(Struct):
    """What all sessions share.

    Attributes:
        lock: held by whoever starts one.
        processes: that these pages started, by configuration.
        asked: numbers of those that were asked to stop.
        counting: held by whoever counts.
        counted: when, in how long and with what result somebody last counted how far a tournament is.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    processes: dict[Path, subprocess.Popen[bytes]] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    counting: threading.Lock = field(default_factory=threading.Lock)
    counted: dict[tuple[str, str], tuple[float, float, TournamentProgress | None]] = field(default_factory=dict)


@st.cache_resource
def _started() -> _Started:
    return _Started()


def log_file(session: Session) -> Path:
    """Where the last run that the pages started says what it does: ``tournament.run.log`` beside the YAML file."""
    return session.path.with_suffix(".run.log")


def log_tail(session: Session) -> str:
    """The last lines of it, the empty string where there is none."""
    try:
        with log_file(session).open("rb") as log:
            log.seek(max(0, log_file(session).stat().st_size - _TAIL))
            return log.read().decode("utf-8", "replace")
    except OSError:
        return ""


def latest(location: str, tournament: str, most: int | None = None) -> list[StoredRun]:
    """The runs of a tournament, the latest first; none where the store does not know it yet."""
    for process in list(_started().processes.values()):
        process.poll()  # else one that was killed would stay in the system's table as if it were there
    with shared(location) as store:
        return Runs(store, tournament).all(most)


def at_work(location: str, tournament: str) -> list[StoredRun]:
    """The runs of it that go on now, the latest first."""
    with shared(location) as store:
        return Runs(store, tournament).at_work()


def how_far(location: str, tournament: str) -> TournamentProgress:
    """How far a tournament is; counted anew only as often as takes a tenth of a core, however many look."""
    counted = _started().counted
    with _started().counting:  # who comes meanwhile waits for the same count
        at, took, found = counted.get((location, tournament), (-math.inf, 0.0, None))
        if found is None or time.monotonic() - at > _SELDOM * took:
            begun = time.monotonic()
            with shared(location) as store:
                found = progress(store, tournament)
            counted[location, tournament] = time.monotonic(), time.monotonic() - begun, found
    return found


def begins(session: Session) -> bool:
    """Whether a process that these pages started is alive, be it that the store does not know of it yet."""
    process = _started().processes.get(session.path)
    return process is not None and process.poll() is None


def never_began(session: Session, last: StoredRun | None) -> bool:
    """Whether the last process that these pages started ended before it was a run.

    Args:
        session: whose process it is.
        last: the last run that the store knows.
    """
    process = _started().processes.get(session.path)
    return process is not None and bool(process.poll()) and (last is None or last.pid != process.pid)


def start(session: Session, *, retry_failed: bool = False) -> None:
    """Start ``ragleague run`` on the configuration.

    Raises:
        InputError: not allowed, or a run of it is at work.
        DataError: its log cannot be written.
    """
    check()
    with _started().lock:
        runs = latest(session.config.store, session.config.name, 1)
        if begins(session) or (runs and runs[0].state == "running"):
            raise InputError("a run of this tournament is at work already")
        log = log_file(session)
        try:
            log.unlink(missing_ok=True)
            said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise DataError(log, f"cannot be written: {reason(error)}") from error
        command = [sys.executable, "-m", "ragleague", "run", str(session.path), *(["--retry-failed"] * retry_failed)]
        try:
            # In a session of its own, so that Ctrl-C where the pages were started does not reach it.
            _started().processes[session.path] = subprocess.Popen(  # noqa: S603 - our own command
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
            )
        finally:
            os.close(said)


def stop(session: Session, run: StoredRun | None) -> None:
    """Do to a run what Ctrl-C does: the first time it finishes what is in flight, the second time it stops at once.

    Args:
        session: whose process is stopped, where these pages started it.
        run: else the process that the store says is at work.

    Raises:
        InputError: not allowed, or it is at work on another machine.
    """
    check()
    process = _started().processes.get(session.path)
    if process is not None and process.poll() is None:
        process.send_signal(signal.SIGINT)
        _started().asked.add(process.pid)
    elif run is not None and run.state == "running" and run.here:
        try:
            os.kill(run.pid, signal.SIGINT)
        except PermissionError:
            raise InputError("the run is somebody else's process: stop it where it was started with Ctrl-C") from None
        except ProcessLookupError:
            return  # it has just ended
        _started().asked.add(run.pid)
    elif run is not None and run.state == "running":
        raise InputError("the run is at work on another machine: stop it there with Ctrl-C")


def stopping(session: Session, run: StoredRun | None) -> bool:
    """Whether the run at work has been asked to stop."""
    process = _started().processes.get(session.path)
    pids = {None if process is None else process.pid, None if run is None else run.pid}
    return bool(_started().asked & pids)
