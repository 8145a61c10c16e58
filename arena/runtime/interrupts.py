"""A run from its begin to its end, which may come by Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from judges.judge import Stop

Result = TypeVar("Result")


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run asynchronous work; of several problems in tasks that ran together it raises the first."""
    try:
        return asyncio.run(work)
    except BaseExceptionGroup as group:
        raise _first(group) from group


def _first(problem: BaseException) -> BaseException:
    return _first(problem.exceptions[0]) if isinstance(problem, BaseExceptionGroup) else problem


@contextlib.contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` at the end of the ``with`` in place of in the middle.

    For what would leave processes behind if it were broken off.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = threading.Event()
    before = signal.signal(signal.SIGINT, lambda _number, _frame: came.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came.is_set():
        raise KeyboardInterrupt


@contextlib.contextmanager
def stopping_on_ctrl_c(stop: Stop) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) finishes what is in flight, the second stops at once."""
    loop = asyncio.get_running_loop()
    handled: dict[signal.Signals, Any] = {}

    def first() -> None:
        stop.request()
        restore()

    def restore() -> None:
        # To what asyncio had set: it cancels the work, where Python's own would break into whatever runs at the moment,
        # a transaction for one.
        while handled:
            number, before = handled.popitem()
            loop.remove_signal_handler(number)
            signal.signal(number, before)

    if threading.current_thread() is threading.main_thread():
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C stops at once
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                loop.add_signal_handler(number, first)
                handled[number] = before
    try:
        yield
    finally:
        restore()
