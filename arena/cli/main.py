"""The ``ragleague`` command: runs a command and turns its errors into exit statuses."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from importlib import import_module

from arena.cli.commands import COMMANDS, INTERRUPTED, Command, CommandGroup, overview
from arena.cli.streams import guard_streams, output_problem


def main() -> None:
    """Run the command line; exit status 0: done, 1: failed, 2: wrong input or no usable store, 3: incomplete."""
    # The matrices are small: several linear algebra threads would mostly wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Imports create many long-lived objects: collecting garbage among them took a sixth of a short command's time.
    gc.set_threshold(200_000, 50, 50)
    atexit.register(gc.freeze)  # so that the interpreter does not scan them once more at exit
    # Otherwise pydantic searches every installed package for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    guard_streams()
    if os.getpid() == 1:  # in a container: process 1 ignores signals that it has no handler for
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    try:
        status = _status()
    except KeyboardInterrupt:  # before a command starts, or a second time while it stops
        status = INTERRUPTED
    unwritten, reason = output_problem()
    if reason is not None:
        from arena.cli.console import errors

        errors.print(f"error: standard output: {reason}")
    sys.exit(status or unwritten)


def _status() -> int:
    """Print help from the table of commands if the user asks only for it, else run the command; return the status."""
    *name, last = words = sys.argv[1:] or [""]
    if last == "--help" and (not name or (len(name) == 1 and isinstance(COMMANDS.get(name[0]), CommandGroup))):
        sys.stdout.write(overview(*name))
        return 0
    entry = COMMANDS.get(words[0])
    if isinstance(entry, CommandGroup) and name:
        entry = entry.commands.get(words[1])
    # From here: imported deeper in the stack, they make CPython 3.11 map and unmap memory for frames 2,000 times.
    import_module("numpy")
    if isinstance(entry, Command):
        import_module(f"arena.cli.{entry.module}")
    from arena.cli.app import run_app  # late: the help texts above need none of its imports

    return run_app()
