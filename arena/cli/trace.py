"""Progress on standard error during a run, and ``run --log-json``: one line per call, without texts."""

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

from arena.cli.console import COLUMN_NOTES, errors, printable
from judges.errors import PROGRESS, DataError, reason
from judges.types import CallTrace

if TYPE_CHECKING:
    from arena.run.ledger import Progress, SettledKind

Trace = Callable[[CallTrace], None]


class _Lines(logging.Handler):
    """Prints messages of the libraries about their progress, such as that a model is being loaded."""

    def emit(self, record: logging.LogRecord) -> None:
        errors.print(printable(record.getMessage()))


class _NoProgress:
    """A progress object that shows nothing, for output that is not a terminal."""

    def begin(self, task: str, wanted: int) -> None: ...

    def more(self, task: str, wanted: int) -> None: ...

    def count(self, task: str, kind: SettledKind, cost_usd: float | None) -> None: ...


@contextmanager
def watching(*, shown: bool = True) -> Iterator[Progress]:
    """Show progress on standard error while the block runs: bars on a terminal, and messages of the libraries."""
    lines = _Lines()
    PROGRESS.addHandler(lines)
    PROGRESS.setLevel(logging.INFO)
    try:
        if shown and errors.is_terminal:
            from arena.cli.bars import Bars

            COLUMN_NOTES.print_new()
            with Bars() as bars:
                yield bars
        else:
            yield _NoProgress()
    finally:
        PROGRESS.removeHandler(lines)


@contextmanager
def traced_to(path: Path | None) -> Iterator[Trace | None]:
    """Open a log file; yields a function that appends a line per call to the file, or ``None`` without a file.

    Raises:
        DataError: the file cannot be written, or it is not a log.
    """
    if path is None:
        yield None
        return
    with _write_errors_of(path):
        existing = path.open("rb") if path.is_file() else io.BytesIO()
        with existing:
            if existing.read(1) not in {b"", b"{"}:
                raise DataError(path, "is not a JSON log; name another file, or a new one")
    with _write_errors_of(path):
        file = os.fdopen(_open_for_append(path), "ab", buffering=0)

    def add(call: CallTrace) -> None:
        with _write_errors_of(path):
            file.write(f"{json.dumps(_line(call))}\n".encode("ascii"))

    with file:
        yield add


@contextmanager
def asking(log: Path | None = None) -> Iterator[tuple[Progress, Trace | None]]:
    """Show progress and write the log while judges or agents are called."""
    with traced_to(log) as trace, watching() as progress:
        yield progress, trace


def _open_for_append(path: Path) -> int:
    """Open a file for appending, without waiting for a reader: a pipe without a reader is an error."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
    os.set_blocking(descriptor, True)
    return descriptor


@contextmanager
def _write_errors_of(path: Path) -> Iterator[None]:
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
