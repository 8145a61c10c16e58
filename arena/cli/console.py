"""Consoles and small formats shared by the commands."""

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
from arena.present.numbers import printable as printable  # noqa: PLC0414 - offered here to all commands
from arena.present.table import json_text
from retrieval_eval.data.column_report import READ

INCOMPLETE = 3
"""Exit status: done as far as possible, but something is missing or failed."""

WIDE = 10_000
"""Columns of an output that is no terminal: lines stay whole, so that they can be searched and compared."""


class _Console(Console):
    """Commands a terminal itself and lets no text do so: not a name in a sentence, a table or the label of a bar."""

    @property
    def file(self) -> IO[str]:
        """What is written to; while bars are drawn, rich puts a stream of its own in front of ours."""
        file: IO[str] = super().file
        return getattr(file, "rich_proxied_file", file)

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def print(self, *objects: Any, **how: Any) -> None:
        """Print, behind what was read."""
        WHAT_IS_READ.out()
        super().print(*objects, **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is written, in parts."""
        parts = super().render(renderable, options)
        if not self.is_terminal:
            return parts
        return (part if part.control else Segment(visible(part.text), part.style) for part in parts)


class _WhatIsRead(logging.Handler):
    """Which columns of tables were read as what, on standard error in front of all else that a command says.

    A table that is read twice is said once. Nothing is said where a command ends in an error: that is one line.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, bool] = {}

    def begin(self, *, aloud: bool) -> None:
        """Listen to a command; not ``aloud`` where its output is for programs."""
        READ.setLevel(logging.INFO if aloud else logging.WARNING)
        READ.addHandler(self)
        self.forget()

    def emit(self, record: logging.LogRecord) -> None:
        self._said.setdefault(near(record.getMessage()), False)

    def out(self) -> None:
        """Print what has not been printed yet."""
        waiting = [line for line, printed in self._said.items() if not printed]
        self._said |= dict.fromkeys(waiting, True)
        for line in waiting:
            say(f"read: {line}", errors)

    def forget(self) -> None:
        """Print nothing of what was read until now."""
        self._said.clear()


WHAT_IS_READ: Final = _WhatIsRead()


def _console(number: int) -> _Console:
    width = None if os.isatty(number) else WIDE
    plain: Mapping[str, Any] = dict.fromkeys(("highlight", "markup", "emoji", "force_jupyter"), False)
    return _Console(stderr=number == 2, width=width, **plain)


output, errors = _console(1), _console(2)


def program() -> str:
    """This command as the reader's shell finds it: its name, or its path where the name leads elsewhere or nowhere."""
    started = Path(sys.argv[0])
    named = shutil.which("ragleague")
    if started.stem != "ragleague" or (named is not None and Path(named).resolve() == started.resolve()):
        return "ragleague"
    return os.path.relpath(started) if started.is_relative_to(Path.cwd()) else str(started)


def near(text: str) -> str:
    """The same, with files below the working directory named as they are called from there."""
    return text.replace(f"{Path.cwd()}{os.sep}", "") if Path.cwd() != Path.cwd().parent else text


def print_json(value: Any) -> None:
    """Machine output."""
    print(json_text(value))


def tell(told: Mapping[str, Any], lines: Iterable[str], form: str) -> None:
    """What a command did: for machines, or as lines for people, whose names come from outside."""
    if form == "json":
        print_json(told)
        return
    for line in lines:
        output.print(printable(line))


def say(text: str, console: Console = output) -> None:
    """Print a line that holds names; a line break in front of it stays one."""
    console.print(("\n" if text.startswith("\n") else "") + printable(text.lstrip("\n")))
