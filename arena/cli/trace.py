"""While judges and agents are asked: progress, and ``run --log-json``, one line per call without what was said."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arena.cli.console import WHAT_IS_READ, errors, printable
from judges.errors import PROGRESS, DataError, reason
from judges.types import CallTrace

if TYPE_CHECKING:
    from arena.run.ledger import Progress, SettledKind

Trace = Callable[[CallTrace], None]


class _Lines(logging.Handler):
    """What takes time before anything is done, a line each: a model that is loaded."""

    def emit(self, record: logging.LogRecord) -> None:
        errors.print(printable(record.getMessage()))


class _Unseen:
    """Progress that nobody watches."""

    def begin(self, task: str, wanted: int) -> None:
        """A stage, or an agent's turn, begins."""

    def more(self, task: str, wanted: int) -> None:
        """More wants than were known when it began."""

    def count(self, task: str, kind: SettledKind, cost_usd: float | None) -> None:
        """One more want is settled."""


@contextmanager
def watching(*, shown: bool = True) -> Iterator[Progress]:
    """Progress on standard error: bars where it is a terminal, and a line for what a run waits for."""
    lines = _Lines()
    PROGRESS.addHandler(lines)
    PROGRESS.setLevel(logging.INFO)
    try:
        if shown and errors.is_terminal:
            from arena.cli.bars import Bars

            WHAT_IS_READ.out()
            with Bars() as bars:
                yield bars
        else:
            yield _Unseen()
    finally:
        PROGRESS.removeHandler(lines)


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
def asking(log: Path | None = None) -> Iterator[tuple[Progress, Trace | None]]:
    """Bars on a terminal, and the trace, while judges or agents are asked."""
    with traced_to(log) as trace, watching() as told:
        yield told, trace


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
