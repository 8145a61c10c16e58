"""The ``ragleague`` command: runs a command and turns its errors into exit statuses."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from arena.cli.commands import COMMANDS, CommandGroup, overview
from arena.cli.streams import guard_streams, output_problem

if TYPE_CHECKING:
    from judges.errors import RagleagueError

_INTERRUPTED = 130


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
        status = _INTERRUPTED
    unwritten, reason = output_problem()
    if reason is not None:
        from arena.cli.console import errors

        errors.print(f"error: standard output: {reason}")
    sys.exit(status or unwritten)


def _status() -> int:
    """Run the command and return its exit status."""
    *name, last = sys.argv[1:] or [""]
    if last == "--help" and (not name or (len(name) == 1 and isinstance(COMMANDS.get(name[0]), CommandGroup))):
        sys.stdout.write(overview(*name))
        return 0
    from arena.cli.app import app
    from arena.cli.console import COLUMN_NOTES, INCOMPLETE, errors
    from judges.errors import InputError, RagleagueError, StoreError, StoreGoneError, reason

    try:
        with _explained_damage():
            app()
    except StoreGoneError as error:
        return _report_error(INCOMPLETE, error)
    except RagleagueError as error:
        return _report_error(2 if isinstance(error, InputError | StoreError) else 1, error)
    except OSError as error:
        if error.filename is None:
            raise
        return _report_error(2, InputError(f"{error.filename}: {reason(error)}"))
    except SystemExit as ending:
        if ending.code == _INTERRUPTED:  # typer turns a KeyboardInterrupt into this
            COLUMN_NOTES.clear()
            errors.print("stopped; what was judged is kept, run again to go on")
        return int(ending.code or 0)
    finally:
        COLUMN_NOTES.print_new()
    return 0


@contextmanager
def _explained_damage() -> Iterator[None]:
    """If damaged rows of a store led to an error in the block, raise an error that names the damaged store instead."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        from arena.store.check import damage_behind

        if (damage := damage_behind()) is None:
            raise
        raise damage from error


def _report_error(status: int, error: RagleagueError) -> int:
    from arena.cli.console import COLUMN_NOTES, errors, printable, short_paths

    COLUMN_NOTES.clear()
    errors.print(printable(short_paths(f"error: {error}")))
    return status
