"""What a command took: time, CPU and memory of its process, and of the database server that worked for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from sqlalchemy import make_url

from arena.store import sqlite_path

_EVERY_S = 0.2


@dataclass
class Used:
    """Seconds on the clock, seconds of CPU, the largest memory in MB, and what was printed."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    output: str = ""


COMMAND = "from arena.cli.main import main; main()"


def run(*words: str, python: str = COMMAND) -> Used:
    """Run ``ragleague`` in a process of its own.

    Args:
        words: of the command line.
        python: how it is started.

    Raises:
        RuntimeError: it failed.
    """
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as printed:
        command = [sys.executable, "-c", python, *words]
        process = subprocess.Popen(command, stdout=printed)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{' '.join(words)}: exit status {process.returncode}")
        printed.seek(0)
        seconds = time.perf_counter() - started
        return Used(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, printed.read())


@contextmanager
def server_used(location: str) -> Iterator[Used]:
    """What a store's server uses meanwhile, filled in at the end; zeros where there is none, or not on this machine."""
    used, server = Used(), _server(location)
    if server is None:
        yield used
        return
    done = threading.Event()
    sampling = threading.Thread(target=_sample, args=(server, used, done))
    before = _cpu_s(server)
    sampling.start()
    try:
        yield used
    finally:
        done.set()
        sampling.join()
    used.cpu_s = _cpu_s(server) - before


def _server(location: str) -> psutil.Process | None:
    if sqlite_path(location) is not None:
        return None
    url = make_url(location).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    with suppress(OSError, psutil.NoSuchProcess):
        return psutil.Process(int(Path(str(row and row[0]), "postmaster.pid").read_text().split()[0]))
    return None


def _cpu_s(server: psutil.Process) -> float:
    """Of the server and of its processes that have ended, as the one that works for a connection does with it."""
    time.sleep(_EVERY_S)
    times = server.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def _sample(server: psutil.Process, used: Used, done: threading.Event) -> None:
    while not done.wait(_EVERY_S):
        memory = 0
        for process in (server, *server.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                memory += process.memory_full_info().pss  # what processes share is shared out among them
        used.peak_mb = max(used.peak_mb, memory / 1e6)
