"""Start, watch and stop runs from the pages. Each run is a separate ``ragleague run`` process and outlives the pages.

Pages can run only the configuration that they were started with, and only editors start or stop runs. The store
records a run's progress, so that pages show it after a reload or a restart; the run's output goes to a log beside the
YAML file.
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
"""Number of bytes that are shown from the end of a run's log."""
_REFRESH_FACTOR: Final = 10
"""Minimum time between two counts of the progress, as a multiple of the duration of the last count."""


class _SharedState(Struct):
    """State that all sessions of the server share.

    Attributes:
        lock: held while a run is started.
        processes: processes that these pages started, by configuration.
        asked: ids of processes that somebody has asked to stop.
        counting: held while progress is counted.
        counted: time, duration and result of the last progress count, by store and tournament.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    processes: dict[Path, subprocess.Popen[bytes]] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    counting: threading.Lock = field(default_factory=threading.Lock)
    counted: dict[tuple[str, str], tuple[float, float, TournamentProgress | None]] = field(default_factory=dict)


@st.cache_resource
def _state() -> _SharedState:
    return _SharedState()


def log_file(session: Session) -> Path:
    """Log of the last run that the pages started: ``tournament.run.log`` beside the YAML file."""
    return session.path.with_suffix(".run.log")


def log_tail(session: Session) -> str:
    """The end of the log of the last run; empty if there is no log."""
    try:
        with log_file(session).open("rb") as log:
            log.seek(max(0, log_file(session).stat().st_size - _TAIL))
            return log.read().decode("utf-8", "replace")
    except OSError:
        return ""


def latest(location: str, tournament: str, most: int | None = None) -> list[StoredRun]:
    """The runs of a tournament, the latest first; empty if the store does not have the tournament yet."""
    for process in list(_state().processes.values()):
        process.poll()  # otherwise a killed process stays a zombie that looks alive
    with shared(location) as store:
        return Runs(store, tournament).all(most)


def active(location: str, tournament: str) -> list[StoredRun]:
    """The runs of a tournament that are in progress, the latest first."""
    with shared(location) as store:
        return Runs(store, tournament).at_work()


def current_progress(location: str, tournament: str) -> TournamentProgress:
    """Progress of a tournament, shared by all viewers.

    It is counted again only after ``_REFRESH_FACTOR`` times the duration of the last count, so that counting takes at
    most a tenth of a core.
    """
    counts = _state().counted
    with _state().counting:  # others wait for this count
        counted_at, duration, latest_progress = counts.get((location, tournament), (-math.inf, 0.0, None))
        if latest_progress is None or time.monotonic() - counted_at > _REFRESH_FACTOR * duration:
            start_time = time.monotonic()
            with shared(location) as store:
                latest_progress = progress(store, tournament)
            counts[location, tournament] = time.monotonic(), time.monotonic() - start_time, latest_progress
    return latest_progress


def is_alive(session: Session) -> bool:
    """Whether a process that these pages started is alive, even if it has not recorded its run in the store yet."""
    process = _state().processes.get(session.path)
    return process is not None and process.poll() is None


def failed_to_start(session: Session, last: StoredRun | None) -> bool:
    """Whether the last process that these pages started failed before it recorded a run in the store.

    Args:
        session: the configuration that the process runs.
        last: the last run in the store.
    """
    process = _state().processes.get(session.path)
    return process is not None and bool(process.poll()) and (last is None or last.pid != process.pid)


def start(session: Session, *, retry_failed: bool = False) -> None:
    """Start ``ragleague run`` on the configuration.

    Raises:
        InputError: the viewer may not start runs, or the tournament is running already.
        DataError: the log cannot be written.
    """
    check()
    with _state().lock:
        runs = latest(session.config.store, session.config.name, 1)
        if is_alive(session) or (runs and runs[0].state == "running"):
            raise InputError("this tournament is already running; wait until the run ends, or stop it")
        log = log_file(session)
        try:
            log.unlink(missing_ok=True)
            log_descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise DataError(log, f"cannot be written: {reason(error)}") from error
        command = [sys.executable, "-m", "ragleague", "run", str(session.path), *(["--retry-failed"] * retry_failed)]
        try:
            # In a new session, so that Ctrl-C in the terminal of the pages does not reach it.
            _state().processes[session.path] = subprocess.Popen(  # noqa: S603 - a fixed command
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log_descriptor,
                start_new_session=True,
            )
        finally:
            os.close(log_descriptor)


def stop(session: Session, run: StoredRun | None) -> None:
    """Interrupt a run like Ctrl-C: the first time the run finishes calls in flight, the second time it stops at once.

    Args:
        session: the configuration; if these pages started a process for it, that process is stopped.
        run: the run whose process is stopped if these pages started none.

    Raises:
        InputError: the viewer may not stop runs, or the run is on another machine or belongs to another user.
    """
    check()
    process = _state().processes.get(session.path)
    if process is not None and process.poll() is None:
        process.send_signal(signal.SIGINT)
        _state().asked.add(process.pid)
    elif run is not None and run.state == "running" and run.here:
        try:
            os.kill(run.pid, signal.SIGINT)
        except PermissionError:
            raise InputError("the run is another user's process: press Ctrl-C where it was started") from None
        except ProcessLookupError:
            return  # it has just ended
        _state().asked.add(run.pid)
    elif run is not None and run.state == "running":
        raise InputError("the run is on another machine: press Ctrl-C there")


def stopping(session: Session, run: StoredRun | None) -> bool:
    """Whether somebody has asked the current run to stop on these pages."""
    process = _state().processes.get(session.path)
    pids = {None if process is None else process.pid, None if run is None else run.pid}
    return bool(_state().asked & pids)
