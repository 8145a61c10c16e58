"""Ctrl-C and SIGTERM during a run."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator

from judges.judge import Stop


@contextlib.contextmanager
def stopping_on_ctrl_c(stop: Stop) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) finishes what is in flight, the second stops at once."""
    loop = asyncio.get_running_loop()
    handled: list[signal.Signals] = []

    def first() -> None:
        stop.request()
        restore()

    def restore() -> None:
        while handled:
            loop.remove_signal_handler(handled.pop())

    if threading.current_thread() is threading.main_thread():
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C stops at once
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, first)
                handled.append(number)
    try:
        yield
    finally:
        restore()
