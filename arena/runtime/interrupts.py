"""Ctrl-C and SIGTERM during a run."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

from judges.judge import Stop


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
