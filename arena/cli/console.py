"""Consoles, progress bars and small formats shared by the commands."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from arena.present.numbers import MONEY
from arena.present.numbers import printable as printable  # noqa: PLC0414 - offered here to all commands
from arena.present.plain import json_text

if TYPE_CHECKING:
    from arena.run.ledger import Kind

INCOMPLETE = 3
"""Exit status: done as far as possible, but something is missing or failed."""

WIDE = 10_000
"""Columns of an output that is no terminal: lines stay whole, so that they can be searched and compared."""

output = Console(highlight=False, markup=False, emoji=False, force_jupyter=False, width=None if os.isatty(1) else WIDE)
errors = Console(
    stderr=True, highlight=False, markup=False, emoji=False, force_jupyter=False, width=None if os.isatty(2) else WIDE
)


def program() -> str:
    """This command as the reader's shell finds it: its name, or its path where the name leads elsewhere or nowhere."""
    started = Path(sys.argv[0])
    named = shutil.which("ragleague")
    if started.stem != "ragleague" or (named is not None and Path(named).resolve() == started.resolve()):
        return "ragleague"
    return os.path.relpath(started) if started.is_relative_to(Path.cwd()) else str(started)


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


class _Lines(logging.Handler):
    """What takes time before anything is done, a line each: a model that is loaded."""

    def emit(self, record: logging.LogRecord) -> None:
        errors.print(printable(record.getMessage()))


def say(text: str, console: Console = output) -> None:
    """Print a line that holds names; a line break in front of it stays one."""
    console.print(("\n" if text.startswith("\n") else "") + printable(text.lstrip("\n")))


class _Rate(ProgressColumn):
    """Wants settled a second. It is computed when it is drawn, since that goes through the last thousand."""

    def render(self, task: Task) -> Text:
        """The rate as text."""
        return Text("-/s" if task.speed is None else f"{task.speed:.1f}/s")


class Bars:
    """Progress bars of a run on standard error: done, failed, rate, cost, time left; above them what it waits for."""

    def __init__(self, *, shown: bool) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]} failed"),
            _Rate(),
            TextColumn("{task.fields[cost]}"),
            TimeRemainingColumn(),
            console=errors,
            disable=not shown,
        )
        self._lines = _Lines()
        self._ids: dict[str, TaskID] = {}
        self._failed: dict[str, int] = {}
        self._cost: dict[str, float] = {}

    def __enter__(self) -> Bars:
        from judges.errors import PROGRESS

        self._progress.start()
        PROGRESS.addHandler(self._lines)
        PROGRESS.setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        from judges.errors import PROGRESS

        PROGRESS.removeHandler(self._lines)
        self._progress.stop()

    def begin(self, task: str, wanted: int) -> None:
        """A stage, or an agent's turn, begins."""
        self._failed[task], self._cost[task] = 0, 0.0
        self._ids[task] = self._progress.add_task(printable(str(task)), total=wanted, failed=0, cost=MONEY.write(0))

    def more(self, task: str, wanted: int) -> None:
        """More wants than were known when it began."""
        ident = self._ids[task]
        self._progress.update(ident, total=(self._progress.tasks[ident].total or 0) + wanted)

    def count(self, task: str, kind: Kind, cost_usd: float | None) -> None:
        """One more want is settled."""
        self._failed[task] += kind == "failed"
        self._cost[task] += cost_usd or 0.0
        self._progress.update(self._ids[task], advance=1, failed=self._failed[task], cost=MONEY.write(self._cost[task]))
