"""The ``ragleague`` command: one place where errors become exit statuses."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING

from arena.cli.commands import overview
from arena.cli.streams import guard_streams, output_problem

if TYPE_CHECKING:
    from judges.errors import RagleagueError

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; exit 0 done, 1 cannot go on, 2 wrong input or no usable store, 3 done but incomplete."""
    # Matrices here are small: threads of the linear algebra would spend more time on waiting for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Imports make many objects that stay: looking through them for garbage took a sixth of a short command's time.
    gc.set_threshold(200_000, 50, 50)
    atexit.register(gc.freeze)  # nor need they be looked through once more at the end
    # Pydantic would look for plugins of its own in every package that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    guard_streams()
    if os.getpid() == 1:  # of a container: the system ends process 1 only at signals that it handles
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    try:
        status = _status()
    except KeyboardInterrupt:  # before a command begins, or again while one ends
        status = _INTERRUPTED
    unwritten, reason = output_problem()
    if reason is not None:
        from arena.cli.console import errors

        errors.print(f"error: standard output: {reason}")
    sys.exit(status or unwritten)


def _status() -> int:
    """Run a command; returns its exit status."""
    if sys.argv[1:] == ["--help"]:
        sys.stdout.write(overview())
        return 0
    from arena.cli.app import app
    from arena.cli.console import INCOMPLETE, WHAT_IS_READ, errors
    from judges.errors import InputError, RagleagueError, StoreError, StoreGoneError, reason

    try:
        app()
    except StoreGoneError as error:
        return _failed(INCOMPLETE, error)
    except RagleagueError as error:
        return _failed(2 if isinstance(error, InputError | StoreError) else 1, error)
    except OSError as error:
        if error.filename is None:
            raise
        return _failed(2, InputError(f"{error.filename}: {reason(error)}"))
    except SystemExit as ending:
        if ending.code == _INTERRUPTED:  # typer makes this of a KeyboardInterrupt
            WHAT_IS_READ.forget()
            errors.print("stopped; what was judged is kept, run again to go on")
        return int(ending.code or 0)
    finally:
        WHAT_IS_READ.out()
    return 0


def _failed(status: int, error: RagleagueError) -> int:
    from arena.cli.console import WHAT_IS_READ, errors, near, printable

    WHAT_IS_READ.forget()
    errors.print(printable(near(f"error: {error}")))
    return status
