"""Runs asynchronous work that Ctrl-C, SIGTERM, SIGHUP or cancellation can end early."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeVar

from judges.judge import Stop

Result = TypeVar("Result")
_HANGUP: Final = getattr(signal, "SIGHUP", None)
"""The signal that a closing terminal sends; ``None`` on Windows, which has none."""


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a new event loop; if several tasks fail together, raise the first error."""
    try:
        with asyncio.Runner() as runner:
            return runner.run(work)
    except BaseExceptionGroup as group:
        raise _first(group) from group


def _first(problem: BaseException) -> BaseException:
    return _first(problem.exceptions[0]) if isinstance(problem, BaseExceptionGroup) else problem


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """Delay the handling of Ctrl-C, SIGTERM and SIGHUP to the end of the ``with`` block.

    Use it around code that would leave processes behind if interrupted. Processes started in the block never receive
    SIGHUP: a closing terminal sends it to all of them, and they must live while this process finishes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    with _handled_by(lambda number, _frame: received.append(number)), _sighup_blocked():
        yield
    for delayed in received:
        signal.raise_signal(delayed)


class Interruption:
    """Whether and how a run was interrupted; shared by all parts of the run, such as asking agents and judging.

    Attributes:
        requested: whether the run is to stop; no part then starts a new call.
        signal: the signal that interrupted the run; ``None`` if no signal did.
    """

    def __init__(self) -> None:
        self.requested = False
        self.signal: signal.Signals | None = None
        self._lock = threading.Lock()
        self._part: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any], Stop] | None = None

    def request(self, number: signal.Signals | None = None) -> None:
        """Let calls in flight finish and start no new one; a second request cancels the run at once. Thread-safe."""
        with self._lock:
            again = self.requested and number != _HANGUP
            self.requested, self.signal = True, self.signal or number
            if self._part is not None:
                loop, task, stop = self._part
                loop.call_soon_threadsafe(task.cancel if again else stop.request)

    @contextlib.contextmanager
    def stops(self, stop: Stop) -> Iterator[None]:
        """While the block executes, let this interruption stop the current task; at once if it was requested before."""
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
        """While the block executes, let signals interrupt a run that works in another thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, _frame: object) -> None:
            self.request(signal.Signals(number))

        with _handled_by(ask):
            yield

    def require_none(self) -> None:
        """Raise an error if the run was interrupted, since its results may be incomplete.

        Raises:
            KeyboardInterrupt: on Ctrl-C, unless this program's own handler of the signal raises something else.
            asyncio.CancelledError: the program cancelled the run.
        """
        if self.signal is not None:
            signal.raise_signal(self.signal)
            raise KeyboardInterrupt
        if self.requested:
            raise asyncio.CancelledError


_INTERRUPTION: Final[ContextVar[Interruption | None]] = ContextVar("interruption", default=None)


@contextlib.contextmanager
def interruptible() -> Iterator[Interruption]:
    """Yield the ``Interruption`` of the enclosing ``interruptible`` block; the outermost block creates it."""
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
    """While the block executes, let the first Ctrl-C or SIGTERM stop the run, and the second end it at once.

    SIGHUP never counts as the second signal: when a terminal closes, both the system and the shell send one.
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
        else:  # a second signal came before this loop handled the first
            signal.raise_signal(signal.SIGINT)

    def restore(*numbers: signal.Signals) -> None:
        # Restore asyncio's handler, which cancels the work: Python's default would interrupt whatever runs at the
        # moment, such as a transaction.
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


@contextlib.contextmanager
def _handled_by(handler: Callable[[int, Any], object]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _ends()}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _ends() -> list[signal.Signals]:
    """The signals that end this process; SIGHUP is not among them if the process ignores it, as under ``nohup``."""
    heeded = hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if heeded else [])]


@contextlib.contextmanager
def _sighup_blocked() -> Iterator[None]:
    """Keep SIGHUP from processes started in the block; this process handles a SIGHUP after the block."""
    if not hasattr(signal, "SIGHUP"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
