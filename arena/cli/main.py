"""The ``ragleague`` command: one app, one place where errors become exit statuses.

Standard output and standard error may be full, closed, or have no reader any more.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module, metadata
from typing import Annotated, Any, Final, TextIO

import typer
from typer.core import TyperGroup
from typer.main import get_group

from arena.cli.console import INCOMPLETE, errors, printable
from judges.errors import InputError, RagleagueError, StoreError, StoreGoneError

_MODULES: Final[Mapping[str, Sequence[str]]] = {
    "demo": ["tournament"],
    "init": ["tournament"],
    "plan": ["tournament"],
    "run": ["tournament"],
    "failures": ["failures"],
    "batches": ["batches"],
    "leaderboard": ["board"],
    "rate": ["board"],
    "queries": ["queries"],
    "report": ["report"],
    "metrics": ["metrics"],
    "pool": ["metrics"],
    "calibrate": ["calibrate"],
    "documents": ["documents"],
    "synth": ["synth"],
    "import": ["data"],
    "export": ["data"],
    "ui": ["page"],
    "doctor": ["page"],
    "qrels": ["metrics"],
    "nuggets": ["nuggets"],
    "exam": ["exam"],
    "bank": ["bank"],
    "agents": ["agents"],
    "votes": ["votes"],
    "store": ["stores"],
}
"""The modules of ``arena.cli`` that define each command, in the order of ``--help``."""

_TYPER: Final[Mapping[str, Any]] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


class _LateCommands(TyperGroup):
    """Commands whose modules are imported when they are named; ``--help`` imports all."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the interface's
        return list(_MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        names = [cmd_name] if cmd_name in _MODULES else _MODULES  # of a wrong name, all: the message suggests one
        modules = dict.fromkeys(module for name in names if name not in self.commands for module in _MODULES[name])
        if modules:
            late = typer.Typer(add_completion=False, **_TYPER)
            late.callback()(_no_options)  # without it, one command would be the whole program
            for module in modules:
                import_module(f"arena.cli.{module}").register(late)
            self.commands.update(get_group(late).commands)
        return super().get_command(ctx, cmd_name)


def _no_options() -> None:
    """Every command has its own options."""


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ragleague {metadata.version('ragleague')}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Decide which of your RAG systems is better, and whether the judge that says so can be trusted."""


app = typer.Typer(
    name="ragleague",
    cls=_LateCommands,
    help="Decide which of your RAG systems is better, and whether the judge that says so can be trusted.",
    no_args_is_help=True,
    **_TYPER,
)
app.callback()(_options)


_INTERRUPTED = 130


def main() -> None:
    """Run the command line; exit 0 done, 1 cannot go on, 2 wrong input or no usable store, 3 done but incomplete."""
    guard_streams()
    if os.getpid() == 1:  # of a container: the system ends process 1 only at signals that it handles
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    status = _status()
    unwritten, reason = output_problem()
    if reason is not None:
        errors.print(f"error: standard output: {reason}")
    sys.exit(status or unwritten)


def _status() -> int:
    """Run a command; returns its exit status."""
    try:
        app()
    except StoreGoneError as error:
        return _failed(INCOMPLETE, error)
    except (InputError, StoreError) as error:
        return _failed(2, error)
    except RagleagueError as error:
        return _failed(1, error)
    except SystemExit as ending:
        if ending.code == _INTERRUPTED:  # typer makes this of a KeyboardInterrupt
            errors.print("stopped; what was judged is kept, run again to go on")
        return int(ending.code or 0)
    return 0


def _failed(status: int, error: RagleagueError) -> int:
    errors.print(printable(f"error: {error}"))
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
