"""``run --log-json``: one line per call to a judge, without anything that was said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from arena.cli.console import Bars, errors
from judges.errors import DataError
from judges.types import CallTrace

Trace = Callable[[CallTrace], None]


@contextmanager
def traced_to(path: Path | None) -> Iterator[Trace | None]:
    """A trace that adds lines to a file, ``None`` without one.

    Raises:
        DataError: the file cannot be written.
    """
    if path is None:
        yield None
        return
    with _written(path):
        file = path.open("ab", buffering=0)

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


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(path, f"cannot be written: {error.strerror}") from error


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
