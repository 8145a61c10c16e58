"""What a command took: time, CPU and memory of its process, and of the database server that worked for it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
from msgspec import Struct
from sqlalchemy import make_url

from arena.store import sqlite_path

_EVERY_S = 0.2


class Used(Struct):
    """Seconds on the clock, seconds of CPU, the largest memory in MB, and what was printed."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    output: str = ""


COMMAND = "from arena.cli.main import main; main()"
_LAUNCH = """
import os, resource, subprocess, sys, time
started = time.perf_counter()
status = subprocess.call(sys.argv[2:])
used, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - started
os.write(int(sys.argv[1]), f"{seconds} {used.ru_utime + used.ru_stime} {used.ru_maxrss}".encode())
sys.exit(status != 0)
"""
"""Starts the command from a small process, because the system counts the memory of the parent as the child's own."""


def run(*words: str, python: str = COMMAND) -> Used:
    """Run ``ragleague`` in a process of its own, started by the code ``python``; a ``RuntimeError`` if it fails."""
    told, tell = os.pipe()
    command = [sys.executable, "-c", python, *words]
    launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(tell), *command]
    # As installed: of a checkout where Python may write no bytecode, every start would compile all that it imports.
    around = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(launch, stdout=subprocess.PIPE, text=True, pass_fds=(tell,), check=False, env=around)
    os.close(tell)
    with os.fdopen(told) as said:
        figures = said.read().split()
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: it failed")
    seconds, cpu_s, peak_kb = map(float, figures)
    return Used(seconds, cpu_s, peak_kb * 1024 / 1e6, done.stdout)


@contextmanager
def server_used(location: str) -> Iterator[Used]:
    """Resources that the store's server uses in the block, filled in at its end; zeros without a server on this
    machine."""
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
    """CPU seconds of the server and of its ended processes: each connection has a process."""
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
