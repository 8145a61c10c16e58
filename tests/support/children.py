"""The real command line in a process of its own, under whatever hardship a test puts it."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.conftest import ROOT, Ended

_MAIN = "from arena.cli.main import main; main()"


def command(*arguments: object, before: str = "") -> list[str]:
    """What starts the command line; ``before`` is Python that runs ahead of it in the same process."""
    return [sys.executable, "-c", f"{before}\n{_MAIN}", *map(str, arguments)]


class Child:
    """A process of its own that runs Python; what it says goes into two files.

    It is a copy of one that has imported what commands need: the imports of a hundred processes took longer than what
    they were for. It ends as any interpreter does, and shares nothing open with others.
    """

    def __init__(self, code: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.returncode: int | None = None
        self._said = [Path(name) for name in _new_files(2)]
        told = {"code": code, "arguments": arguments, "folder": str(folder), "environment": dict(environment)}
        self.pid = int(_told_nursery({**told, "said": [str(path) for path in self._said]}))

    def poll(self) -> int | None:
        """How it ended; ``None`` while it runs."""
        if self.returncode is None and (ending := _told_nursery({"ended": self.pid})) != "running":
            self.returncode = int(ending)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it is still there."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def out(self) -> str:
        """What it has said so far."""
        return self._said[0].read_text(encoding="utf-8")

    def communicate(self, timeout: float = 300) -> tuple[str, str]:
        """Wait for the end; what it said on standard output and error."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.01)
        out, err = (path.read_text(encoding="utf-8") for path in self._said)
        return out, err


_NURSERY = """
import gc, json, os, sys
import arena.cli.app, arena.cli.leaderboard, arena.cli.main, arena.cli.run, arena.cli.show
import arena.cli.progress, arena.results.cache, arena.run.judging
import anthropic, openai, judges.providers.hosted
import scipy.linalg, scipy.sparse.csgraph, scipy.special
gc.freeze()  # otherwise each copy looks through all of it when it ends, which took a second
for line in sys.stdin:
    told = json.loads(line)
    if "ended" in told:
        pid, ending = os.waitpid(told["ended"], os.WNOHANG)
        print(os.waitstatus_to_exitcode(ending) if pid else "running", flush=True)
    elif child := os.fork():
        print(child, flush=True)
    else:
        for number, path in enumerate([os.devnull, *told["said"]]):
            os.dup2(os.open(path, os.O_RDWR), number)
        os.closerange(3, 64)
        os.chdir(told["folder"])
        os.environ.clear()
        os.environ.update(told["environment"])
        sys.argv = ["-c", *told["arguments"]]
        sys.exit(exec(told["code"], {"__name__": "__main__"}))
"""


@cache
def _nursery() -> subprocess.Popen[str]:
    """Waits for words on what its next copy shall do, and ends with this process."""
    process = subprocess.Popen(
        [sys.executable, "-c", _NURSERY], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(process.communicate)
    return process


def _told_nursery(words: Mapping[str, object]) -> str:
    nursery = _nursery()
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    nursery.stdin.write(json.dumps(words) + "\n")
    nursery.stdin.flush()
    return nursery.stdout.readline().strip()


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="children")


def _new_files(count: int) -> list[str]:
    made = [tempfile.mkstemp(dir=_folder().name) for _ in range(count)]
    for number, _ in made:
        os.close(number)
    return [path for _, path in made]


def environment(keys: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, without any key but those given."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return kept | {"PYTHONPATH": str(ROOT), "JUDGE_KEY": "none"} | dict(keys or {})


def begin(*arguments: object, folder: Path, keys: Mapping[str, str] | None = None, before: str = "") -> Child:
    """Start the command line in a folder; ``before`` is Python that runs ahead of it in the same process."""
    return Child(f"{before}\n{_MAIN}", [str(argument) for argument in arguments], folder, environment(keys))


def start(started: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start a program in a folder."""
    return subprocess.Popen(
        started, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: Child | subprocess.Popen[str], timeout_s: float = 300) -> Ended:
    """Wait for the end."""
    out, err = process.communicate(timeout=timeout_s)
    assert process.returncode is not None
    return Ended(process.returncode, out, err)


def ragleague(folder: Path, *arguments: object, hardship: str = "") -> Ended:
    """Run the command line to its end; ``hardship`` is Python that the process does to itself first."""
    return ended(begin(*arguments, folder=folder, before=hardship))


BOUND_BY_PERMISSIONS = """
import ctypes
libc, head = ctypes.CDLL(None, use_errno=True), (ctypes.c_uint32 * 2)(0x20080522, 0)
held = (ctypes.c_uint32 * 6)()  # what is effective, permitted and inherited: of the first 32 rights, then of the rest
assert libc.capget(head, held) == 0
for place in (0, 1):
    held[place] &= ~(1 << 1)  # CAP_DAC_OVERRIDE
assert libc.capset(head, held) == 0
"""
"""Gives up root's right to write where permissions forbid it; others have none."""


def files_at_most(size: int) -> str:
    """No file may grow beyond ``size`` bytes: writes fail as on a disk that is full."""
    return f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
"""


def at_once(script: str, place: str, names: Sequence[str]) -> None:
    """One process for each name, which all do ``act(name)`` of a script at the same time.

    Args:
        script: imports ``sys``, and defines ``act``, which finds ``place`` in ``sys.argv[1]``.
        place: of the store that they share.
        names: what each is called.

    Raises:
        AssertionError: one of them failed, or wrote to its standard error.
    """
    children = [Child(f"{script}\nact(sys.argv[2])", [place, name], ROOT, environment()) for name in names]
    for child in children:
        assert ended(child, timeout_s=240) == Ended(0, "", "")
