"""A run from its begin to its end, which may come by Ctrl-C, SIGTERM or SIGHUP."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from judges.judge import Stop

Result = TypeVar("Result")


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run asynchronous work; of several problems in tasks that ran together it raises the first.

    The loop is libuv's where there is one: a call takes a tenth less CPU, and calls wait for each other that much less.
    """
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(work)
    except BaseExceptionGroup as group:
        raise _first(group) from group


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop


def _first(problem: BaseException) -> BaseException:
    return _first(problem.exceptions[0]) if isinstance(problem, BaseExceptionGroup) else problem


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP take effect at the end of the ``with`` in place of in the middle.

    For what would leave processes behind if it were broken off. Those that it starts never get SIGHUP: a terminal that
    is closed tells all that were started from it, and they must live while this process finishes what is in flight.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _frame: came.append(number)) for number in _ends()}
    try:
        with _sighup_blocked():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for late in came:
        signal.raise_signal(late)


@contextlib.contextmanager
def stopping_on_signals(stop: Stop) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) finishes what is in flight, the second stops at once.

    SIGHUP is never the second: where a terminal is closed, it comes from the system and from the shell.
    """
    loop = asyncio.get_running_loop()
    handled: dict[signal.Signals, Any] = {}

    def handle(number: signal.Signals, act: Callable[[], None]) -> None:
        before = signal.getsignal(number)
        loop.add_signal_handler(number, act)
        handled[number] = before

    def first() -> None:
        stop.request()
        if signal.SIGINT in handled:
            restore(signal.SIGINT, signal.SIGTERM)
        else:  # the second came before this loop had time for the first
            signal.raise_signal(signal.SIGINT)

    def restore(*numbers: signal.Signals) -> None:
        # To what asyncio had set: it cancels the work, where Python's own would break into whatever runs at the moment,
        # a transaction for one.
        for number in numbers:
            before = handled.pop(number)
            loop.remove_signal_handler(number)
            signal.signal(number, before)

    if threading.current_thread() is threading.main_thread():
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C stops at once
            for number in _ends():
                handle(number, stop.request if number == getattr(signal, "SIGHUP", None) else first)
    try:
        yield
    finally:
        restore(*handled)


def _ends() -> list[signal.Signals]:
    """The signals that end a process here; SIGHUP does not where ``nohup`` started it."""
    heeded = hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if heeded else [])]


@contextlib.contextmanager
def _sighup_blocked() -> Iterator[None]:
    """Start processes that never get SIGHUP; one that comes to this process meanwhile waits."""
    if not hasattr(signal, "SIGHUP"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
