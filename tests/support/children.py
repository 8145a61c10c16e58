"""The real command line in a process of its own, under whatever hardship a test puts it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.conftest import ROOT, Ended

_MAIN = "from arena.cli.main import main; main()"
_DROP_CAPABILITY, _OVERRIDE_PERMISSIONS = 24, 1
"""``PR_CAPBSET_DROP`` and ``CAP_DAC_OVERRIDE`` of Linux' headers."""


def command(*arguments: object, before: str = "") -> list[str]:
    """What starts the command line; ``before`` is Python that runs ahead of it in the same process."""
    return [sys.executable, "-c", f"{before}\n{_MAIN}", *map(str, arguments)]


def start(
    started: Sequence[str],
    folder: Path,
    keys: Mapping[str, str] | None = None,
    hardship: Callable[[], object] | None = None,
) -> subprocess.Popen[str]:
    """Start a command in a folder, without any key but those given; ``hardship`` is done to the process first."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.Popen(
        started,
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT), "JUDGE_KEY": "none"} | dict(keys or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hardship,  # noqa: PLW1509 - a system call or two, which take no lock
    )


def ended(process: subprocess.Popen[str], timeout_s: float = 300) -> Ended:
    """Wait for the end."""
    out, err = process.communicate(timeout=timeout_s)
    return Ended(process.returncode, out, err)


def ragleague(folder: Path, *arguments: object, hardship: Callable[[], object] | None = None) -> Ended:
    """Run the command line to its end."""
    return ended(start(command(*arguments), folder, hardship=hardship))


def bound_by_permissions() -> None:
    """Give up root's right to write where permissions forbid it; others have none."""
    ctypes.CDLL(None).prctl(_DROP_CAPABILITY, _OVERRIDE_PERMISSIONS, 0, 0, 0)


def files_at_most(size: int) -> Callable[[], None]:
    """No file may grow beyond ``size`` bytes: writes fail as on a disk that is full."""
    import resource

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


_AT_ONCE = """
import os
children = [os.fork() or sys.exit(act(who)) for who in sys.argv[2:]]
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


def at_once(script: str, place: str, names: Sequence[str]) -> None:
    """One process for each name, which all do ``act(name)`` of a script at the same time.

    They are copies of one that has imported what the script does: ten imports take longer than what they are for.

    Args:
        script: imports ``sys``, and defines ``act``, which finds ``place`` in ``sys.argv[1]``.
        place: of the store that they share.
        names: what each is called.

    Raises:
        AssertionError: one of them failed, or wrote to its standard error.
    """
    done = subprocess.run(
        [sys.executable, "-c", script + _AT_ONCE, place, *names],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
