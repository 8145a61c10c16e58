"""Rate limits of one judge: concurrent calls, requests and tokens per minute, and the limits that the server reports.

The limit on concurrent calls follows additive increase and multiplicative decrease (Chiu and Jain 1989, as in TCP): an
answer 429 halves it, every round of good replies raises it by one, up to the declared concurrency.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from judges.errors import TransientError
from judges.types import Allowance

MINUTE_S = 60.0
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 60.0


def backoff_s(attempts: int, error: TransientError) -> float:
    """Seconds before the next attempt: exponential with full jitter, at least the wait that the server asked for."""
    longest_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempts - 1, 32))
    return max(error.retry_after_s or 0.0, random.uniform(0, longest_s))  # noqa: S311 - no secret


class _Entry(Struct):
    """When a call used a limit, and how many requests or tokens it used."""

    at: float
    amount: float


class MinuteWindow:
    """A sliding window that admits at most ``limit`` units in any sixty seconds."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._spent: deque[_Entry] = deque()
        self._total = 0.0

    def wait_s(self, now: float, amount: float) -> float:
        """Seconds until ``amount`` more units fit into the window; an amount above the limit fits once it is empty."""
        while self._spent and self._spent[0].at <= now - MINUTE_S:
            self._total -= self._spent.popleft().amount
        excess, until = self._total + amount - self.limit, now
        for entry in self._spent:
            if excess <= 0:
                break
            excess -= entry.amount
            until = entry.at + MINUTE_S
        return until - now

    def spend(self, now: float, amount: float) -> _Entry:
        entry = _Entry(now, amount)
        if math.isfinite(self.limit):
            self._spent.append(entry)
            self._total += amount
        return entry

    def correct(self, entry: _Entry, amount: float) -> None:
        """Replace the estimated use in an entry by the actual one."""
        if self._spent and entry.at >= self._spent[0].at:
            self._total += amount - entry.amount
        entry.amount = amount


class Ticket(Struct, frozen=True):
    """Permission for one call; the caller hands it back by ``Pace.leave`` when the call has ended."""

    entered: float
    tokens: _Entry
    dollars: float = 0.0


class Pace:
    """Holds one judge's calls within its limits, first come, first served.

    Args:
        concurrency: largest number of calls at once.
        requests_per_minute: largest number of calls in any sixty seconds.
        tokens_per_minute: largest number of tokens, sent and received, in any sixty seconds.
        longest_pause_s: longest pause that the server's reported limits can cause; a longer one is ignored, and the
            server's next answer decides.
        left_usd: function that returns the rest of the budget in dollars. A call waits if the expected cost of it and
            of the calls in flight exceeds this rest, unless no other call is in flight.
        at_first: largest number of calls at once until the first call succeeds; ``concurrency`` when ``None``.
        clock: function that returns the time of a monotonic clock in seconds.
    """

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        longest_pause_s: float = math.inf,
        *,
        left_usd: Callable[[], float] | None = None,
        at_first: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.allowed = float(concurrency)
        self.in_flight = 0
        self._concurrency, self._at_first = concurrency, at_first
        self._requests = MinuteWindow(requests_per_minute or math.inf)
        self._tokens = MinuteWindow(tokens_per_minute or math.inf)
        self._longest_pause_s, self._clock = longest_pause_s, clock
        self._left_usd, self._committed_usd = left_usd, 0.0
        self._paused_until = self._halved_at = -math.inf
        self._head_of_line = asyncio.Lock()
        self._changed = asyncio.Event()

    async def enter(self, tokens: int, given_up: Callable[[], bool], dollars: float = 0.0) -> Ticket | None:
        """Wait until a call of about this many tokens and dollars may be made.

        Returns:
            A ticket to hand to ``leave``; ``None`` if the caller gave up: ``given_up``, called after each ``wake``,
            returned true.
        """
        if self._head_of_line.locked() or self._wait_s(tokens, dollars) > 0:
            async with self._head_of_line:
                while (wait_s := self._wait_s(tokens, dollars)) > 0 and not given_up():
                    self._changed.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait_s if math.isfinite(wait_s) else None):
                            await self._changed.wait()
        if given_up():
            return None
        now = self._clock()
        self.in_flight += 1
        self._requests.spend(now, 1)
        self._committed_usd += dollars
        return Ticket(now, self._tokens.spend(now, tokens), dollars)

    def leave(self, ticket: Ticket, tokens: int | None = None) -> None:
        """Hand back a ticket after its call; ``tokens`` is the number of tokens that the call used, if known."""
        self.in_flight -= 1
        self._committed_usd -= ticket.dollars
        if tokens is not None:
            self._tokens.correct(ticket.tokens, tokens)
        self.wake()

    def speed_up(self) -> None:
        """Raise the limit on concurrent calls after a success."""
        self._at_first = None
        self.allowed = min(float(self._concurrency), self.allowed + 1 / self.allowed)

    def slow_down(self, ticket: Ticket, retry_after_s: float | None) -> None:
        """After an overload, halve the limit on concurrent calls, once for all in flight; pause if the server asks."""
        if ticket.entered > self._halved_at:
            self._halved_at = self._clock()
            self.allowed = max(1.0, min(self.allowed, self.in_flight) / 2)
        self._pause(retry_after_s)

    def respect_limits(self, allowance: Allowance, tokens: int) -> None:
        """Pause until the server's limits are reset if they leave no request, or fewer tokens than a call needs."""
        if allowance.requests is not None and allowance.requests < 1:
            self._pause(allowance.requests_reset_s)
        if allowance.tokens is not None and allowance.tokens < tokens:
            self._pause(allowance.tokens_reset_s)

    def wake(self) -> None:
        self._changed.set()

    def _pause(self, seconds: float | None) -> None:
        if seconds is not None and seconds <= self._longest_pause_s:
            self._paused_until = max(self._paused_until, self._clock() + seconds)

    def _wait_s(self, tokens: int, dollars: float = 0.0) -> float:
        """Seconds until a call may be made; infinite if another call must end first."""
        most = int(self.allowed) if self._at_first is None else min(int(self.allowed), self._at_first)
        beyond_budget = self._left_usd is not None and self._committed_usd + dollars > self._left_usd()
        if self.in_flight >= most or (beyond_budget and self.in_flight):
            return math.inf
        now = self._clock()
        return max(0.0, self._paused_until - now, self._requests.wait_s(now, 1), self._tokens.wait_s(now, tokens))
