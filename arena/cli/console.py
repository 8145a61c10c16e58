"""Consoles for standard output and standard error, and functions by which all commands print to them."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from arena.cli.streams import visible
from arena.present.numbers import printable
from arena.present.table import json_text
from retrieval_eval.data.table_spec import READ

INCOMPLETE = 3
"""Exit status of a command that ended, but with failed or missing judgments, answers or files."""

WIDE = 10_000
"""Line width when the output is not a terminal: lines are not wrapped, so that they can be searched and compared."""


class _Console(Console):
    """A console that escapes control codes in all texts that it prints, as names from files may contain them."""

    @property
    def file(self) -> IO[str]:
        """The stream to write to, without the proxy that rich puts in front of the stream while it draws bars."""
        file: IO[str] = super().file
        return getattr(file, "rich_proxied_file", file)

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def print(self, *objects: Any, **options: Any) -> None:
        """Print the objects, but first the notes on how columns were read that have not been printed yet."""
        COLUMN_NOTES.print_new()
        super().print(*objects, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        parts = super().render(renderable, options)
        if not self.is_terminal:
            return parts
        return (part if part.control else Segment(visible(part.text), part.style) for part in parts)


class _ColumnNotes(logging.Handler):
    """Prints notes on how columns of tables were read: on standard error, before a command's other output.

    Each note is printed once, even if a table is read twice. A failing command prints none: its error stays one line.
    """

    def __init__(self) -> None:
        super().__init__()
        self._printed: dict[str, bool] = {}

    def listen(self, *, quiet: bool) -> None:
        """Start to collect the notes of a command; ``quiet`` drops them, for output that programs read."""
        READ.setLevel(logging.WARNING if quiet else logging.INFO)
        READ.addHandler(self)
        self.clear()

    def emit(self, record: logging.LogRecord) -> None:
        self._printed.setdefault(short_paths(record.getMessage()), False)

    def print_new(self) -> None:
        pending = [line for line, printed in self._printed.items() if not printed]
        self._printed |= dict.fromkeys(pending, True)
        for line in pending:
            say(f"read: {line}", errors)

    def clear(self) -> None:
        self._printed.clear()


COLUMN_NOTES: Final = _ColumnNotes()


def _console(number: int) -> _Console:
    width = None if os.isatty(number) else WIDE
    plain: Mapping[str, Any] = dict.fromkeys(("highlight", "markup", "emoji", "force_jupyter"), False)
    return _Console(stderr=number == 2, width=width, **plain)


output, errors = _console(1), _console(2)


def program() -> str:
    """Command that starts this program in the user's shell, to print in suggestions.

    It is ``ragleague``, or the program's path if the shell would find nothing or another program under that name.
    """
    path = Path(sys.argv[0])
    installed = shutil.which("ragleague")
    if path.stem != "ragleague" or (installed is not None and Path(installed).resolve() == path.resolve()):
        return "ragleague"
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def short_paths(text: str) -> str:
    """Shorten the paths in a text: those below the working directory become relative."""
    return text.replace(f"{Path.cwd()}{os.sep}", "") if Path.cwd() != Path.cwd().parent else text


def print_json(value: Any) -> None:
    print(json_text(value))


def tell(record: Mapping[str, Any], lines: Iterable[str], form: str) -> None:
    """Print a command's result: as JSON from ``record`` if ``form`` is ``json``, else the ``lines`` of text.

    Control codes in the lines are escaped.
    """
    if form == "json":
        print_json(record)
        return
    for line in lines:
        output.print(printable(line))


def say(text: str, console: Console = output) -> None:
    """Print a line of text; control codes in it are escaped, except a line break at its start."""
    console.print(("\n" if text.startswith("\n") else "") + printable(text.lstrip("\n")))
