"""Calls that are tried again where another attempt may succeed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from judges.errors import ProviderError, TransientError
from judges.types import Usage
from retrieval_eval.agents.meter import Meter

Result = TypeVar("Result")

_LONGEST_WAIT_S = 60.0
_BACKOFF = wait_random_exponential(multiplier=0.5, max=_LONGEST_WAIT_S)


async def attempts(call: Callable[[], Awaitable[Result]], most: int, timeout_s: float, meter: Meter) -> Result:
    """The result of the first attempt that succeeds, at most ``most`` of them.

    Failed attempts are counted on the meter, the successful one is for the caller to count. Of the seconds only those
    of the last attempt count: what a caller waits between attempts is no doing of the one called.

    Raises:
        ProviderError: of the last attempt, or of one that no further attempt would mend.
    """
    again = AsyncRetrying(
        retry=retry_if_exception_type(TransientError), stop=stop_after_attempt(most), wait=_wait, reraise=True
    )
    before = meter.latency_s
    async for attempt in again:
        with attempt:
            meter.latency_s = before
            with meter.timed():
                result = await _attempt(call, timeout_s, meter)
    return result


async def _attempt(call: Callable[[], Awaitable[Result]], timeout_s: float, meter: Meter) -> Result:
    try:
        async with asyncio.timeout(timeout_s):
            return await call()
    except TimeoutError:
        meter.count(Usage(), 1, 0.0)
        raise TransientError("timeout", f"no reply within {timeout_s:g} s") from None
    except ProviderError as error:
        meter.count(Usage(), 1, 0.0)
        if (error.retry_after_s or 0.0) > _LONGEST_WAIT_S:
            message = f"{error} (the server asks to wait {error.retry_after_s:.0f} s)"
            raise ProviderError(error.cause, message) from None
        raise


def _wait(state: RetryCallState) -> float:
    """At least what the server asked for, else exponential with full jitter."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after_s if isinstance(error, ProviderError) else None
    return max(asked or 0.0, _BACKOFF(state))
