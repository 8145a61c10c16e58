"""A run from its begin to its end, which may come by Ctrl-C, SIGTERM, SIGHUP, or a program that cancels it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeVar

from judges.judge import Stop

Result = TypeVar("Result")
_HANGUP: Final = getattr(signal, "SIGHUP", None)
"""Windows has none."""


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


class Interruption:
    """The early end of a run with all its parts.

    Attributes:
        requested: whether nothing new is to begin, in the part at hand or a later one.
        signal: the signal that asked for it; ``None`` without one.
    """

    def __init__(self) -> None:
        self.requested = False
        self.signal: signal.Signals | None = None
        self._lock = threading.Lock()
        self._part: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any], Stop] | None = None

    def request(self, number: signal.Signals | None = None) -> None:
        """Finish what is in flight and begin nothing new; a second time, end at once. From any thread."""
        with self._lock:
            again = self.requested and number != _HANGUP
            self.requested, self.signal = True, self.signal or number
            if self._part is not None:
                loop, task, stop = self._part
                loop.call_soon_threadsafe(task.cancel if again else stop.request)

    @contextlib.contextmanager
    def stops(self, stop: Stop) -> Iterator[None]:
        """Stop the part that is under way in this task, at once if the run is to end already."""
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            self._part = asyncio.get_running_loop(), task, stop
            requested = self.requested
        try:
            if requested:
                stop.request()
            yield
        finally:
            with self._lock:
                self._part = None

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let signals ask for it while the main thread waits for a run in another."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, _frame: object) -> None:
            self.request(signal.Signals(number))

        before = {number: signal.signal(number, ask) for number in _ends()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def require_none(self) -> None:
        """Go on only where no end was asked for: what there is may be a part of what was wanted.

        Raises:
            KeyboardInterrupt: Ctrl-C, or what this program's handler of the signal raises.
            asyncio.CancelledError: the program cancelled it.
        """
        if self.signal is not None:
            signal.raise_signal(self.signal)
            raise KeyboardInterrupt
        if self.requested:
            raise asyncio.CancelledError


_INTERRUPTION: Final[ContextVar[Interruption | None]] = ContextVar("interruption", default=None)


@contextlib.contextmanager
def interruptible() -> Iterator[Interruption]:
    """The early end of all that the block runs, which may be a part of a longer run."""
    if (outer := _INTERRUPTION.get()) is not None:
        yield outer
        return
    interruption = Interruption()
    token = _INTERRUPTION.set(interruption)
    try:
        yield interruption
    finally:
        _INTERRUPTION.reset(token)


@contextlib.contextmanager
def stopping_early(stop: Stop) -> Iterator[None]:
    """Stop where the run is to end early; the first Ctrl-C (or SIGTERM) asks for that, the second ends it at once.

    SIGHUP is never the second: where a terminal is closed, it comes from the system and from the shell.
    """
    with interruptible() as interruption, interruption.stops(stop), _signals_ask(stop, interruption):
        yield


@contextlib.contextmanager
def _signals_ask(stop: Stop, interruption: Interruption) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    handled: dict[signal.Signals, Any] = {}

    def handle(number: signal.Signals, act: Callable[[], None]) -> None:
        before = signal.getsignal(number)
        loop.add_signal_handler(number, act)
        handled[number] = before

    def ask(number: signal.Signals) -> None:
        interruption.requested, interruption.signal = True, number
        stop.request()

    def first(number: signal.Signals) -> None:
        ask(number)
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
                handle(number, partial(ask if number == _HANGUP else first, number))
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
