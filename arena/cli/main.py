"""The ``ragleague`` command: one place where errors become exit statuses.

Standard output and standard error may be full, closed, or have no reader any more.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Final, TextIO

from arena.cli.commands import overview

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
    from arena.cli.console import INCOMPLETE, errors
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
            errors.print("stopped; what was judged is kept, run again to go on")
        return int(ending.code or 0)
    return 0


def _failed(status: int, error: RagleagueError) -> int:
    from arena.cli.console import errors, near, printable

    errors.print(printable(near(f"error: {error}")))
    return status


_READER_GONE: Final = 141
"""Exit status of a command whose reader left (``ragleague ... | head``): 128 and SIGPIPE's number, as shells say it."""
_UNWRITTEN: Final = 1


def guard_streams() -> None:
    """Let a command do its work to the end where a standard stream cannot be written; ``output_problem`` says so then.

    Streams that somebody has put in the place of the process's own, such as a test, stay as they are.
    """
    for number in range(3):
        _reserve(number)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _Output(sys.stdout or _null(os.O_RDONLY))
    if sys.stderr is sys.__stderr__:
        sys.stderr = _Stream(sys.stderr or _null(os.O_WRONLY))


def output_problem() -> tuple[int, str | None]:
    """What became of standard output: an exit status, 0 where all is written, and what there is to say of it."""
    sys.stdout.flush()
    return sys.stdout.problem if isinstance(sys.stdout, _Output) else (0, None)


class _Stream:
    """A text stream that behaves as the one behind it, until that cannot be written: from there on nothing is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._failed(error)
            return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        try:
            self._stream.flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, _error: OSError) -> None:
        """Drop what is held back and all that will come, so that Python does not try again when it ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        self._stream.flush()


class _Output(_Stream):
    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.problem: tuple[int, str | None] = (0, None)
        self._terminal = stream.isatty()

    def _failed(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            self.problem = _READER_GONE, None
        elif not (error.errno == errno.EIO and self._terminal):  # a terminal that was closed reads nothing
            self.problem = _UNWRITTEN, "closed" if error.errno == errno.EBADF else error.strerror
        super()._failed(error)


def _null(mode: int) -> TextIO:
    """A stream for one that was closed: opened for reading, it cannot be written either."""
    return os.fdopen(os.open(os.devnull, mode), "w", encoding="utf-8")


def _reserve(number: int) -> None:
    """Put the null device in the place of a standard stream that is closed: the next file would get its number."""
    try:
        os.fstat(number)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDONLY if number < 2 else os.O_WRONLY), True)
