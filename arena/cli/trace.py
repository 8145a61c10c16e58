"""While judges and agents are asked: progress bars, and ``run --log-json``, one line per call without what was said."""

from __future__ import annotations

import io
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from arena.cli.console import errors, printable
from arena.present.numbers import MONEY
from judges.errors import DataError, reason
from judges.types import CallTrace

if TYPE_CHECKING:
    from arena.run.ledger import Kind

Trace = Callable[[CallTrace], None]


class _Lines(logging.Handler):
    """What takes time before anything is done, a line each: a model that is loaded."""

    def emit(self, record: logging.LogRecord) -> None:
        errors.print(printable(record.getMessage()))


class _Rate(ProgressColumn):
    """Wants settled a second. It is computed when it is drawn, since that goes through the last thousand."""

    def render(self, task: Task) -> Text:
        """The rate as text."""
        return Text("-/s" if task.speed is None else f"{task.speed:.1f}/s")


_DRAWN_S = 0.05
"""How often bars move: a hundred thousand wants that are known are counted in less than a second."""


class _Cost(ProgressColumn):
    """Dollars so far, written when they are drawn."""

    def render(self, task: Task) -> Text:
        """The dollars as text."""
        return Text(MONEY.write(task.fields["cost"]))


class Bars:
    """Progress bars of a run on standard error: done, failed, rate, cost, time left; above them what it waits for."""

    def __init__(self, *, shown: bool) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]} failed"),
            _Rate(),
            _Cost(),
            TimeRemainingColumn(),
            console=errors,
            disable=not shown,
        )
        self._lines = _Lines()
        self._bars: dict[str, Task] = {}
        self._counted: dict[str, int] = {}
        self._drawn = 0.0

    def __enter__(self) -> Bars:
        from judges.errors import PROGRESS

        self._progress.start()
        PROGRESS.addHandler(self._lines)
        PROGRESS.setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        from judges.errors import PROGRESS

        PROGRESS.removeHandler(self._lines)
        self._draw()
        self._progress.stop()

    def begin(self, task: str, wanted: int) -> None:
        """A stage, or an agent's turn, begins."""
        self._progress.add_task(printable(str(task)), total=wanted, failed=0, cost=0.0)
        self._bars[task] = self._progress.tasks[-1]

    def more(self, task: str, wanted: int) -> None:
        """More wants than were known when it began."""
        bar = self._bars[task]
        self._progress.update(bar.id, total=(bar.total or 0) + wanted)

    def count(self, task: str, kind: Kind, cost_usd: float | None) -> None:
        """One more want is settled."""
        bar = self._bars[task]
        bar.fields["failed"] += kind == "failed"
        bar.fields["cost"] += cost_usd or 0.0
        self._counted[task] = self._counted.get(task, 0) + 1
        if time.monotonic() > self._drawn + _DRAWN_S:
            self._draw()

    def _draw(self) -> None:
        for task, number in self._counted.items():
            self._progress.advance(self._bars[task].id, number)
        self._counted.clear()
        self._drawn = time.monotonic()


@contextmanager
def traced_to(path: Path | None) -> Iterator[Trace | None]:
    """A trace that adds lines to a file, ``None`` without one.

    Raises:
        DataError: the file cannot be written, or holds something else.
    """
    if path is None:
        yield None
        return
    with _written(path):
        holds = path.open("rb") if path.is_file() else io.BytesIO()
        with holds:
            if holds.read(1) not in {b"", b"{"}:
                raise DataError(path, "holds no lines of a log; name another file, or one that is not there")
    with _written(path):
        file = os.fdopen(_at_once(path), "ab", buffering=0)

    def add(call: CallTrace) -> None:
        with _written(path):
            file.write(f"{json.dumps(_line(call))}\n".encode("ascii"))

    with file:
        yield add


@contextmanager
def asking(log: Path | None = None) -> Iterator[tuple[Bars, Trace | None]]:
    """Bars on a terminal, and the trace, while judges or agents are asked."""
    with traced_to(log) as trace, Bars(shown=errors.is_terminal) as bars:
        yield bars, trace


def _at_once(path: Path) -> int:
    """Open a file for adding to it; a pipe that nobody reads is an error then, which would be waited for."""
    opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
    os.set_blocking(opened, True)
    return opened


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(path, f"cannot be written: {reason(error)}") from error


def _line(call: CallTrace) -> dict[str, Any]:
    return {
        "at": datetime.fromtimestamp(call.at, UTC).isoformat(timespec="milliseconds"),
        "judge": call.judge,
        "model": call.model,
        "task": call.task.value,
        "judgment": call.judgment_id,
        "call": call.call,
        "reask": call.reask,
        "latency_s": round(call.latency_s, 4),
        "finish": call.finish,
        "error": call.cause,
        "input_tokens": call.usage.input_tokens,
        "cached_input_tokens": call.usage.cached_input_tokens,
        "output_tokens": call.usage.output_tokens,
        "cost_usd": call.cost_usd,
        "allowed_at_once": call.allowed,
    }
