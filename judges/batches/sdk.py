"""What the batch APIs of both vendors share: their SDKs' errors, and results as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from judges.batches.base import HostedProvider
from judges.errors import JudgeStoppedError, ProviderError, RejectedError, TransientError
from judges.providers.endpoint import HttpAnswer
from judges.providers.http_errors import error_of_answer
from judges.providers.texts import one_line
from judges.types import Completion

_MOST_BYTES = 2**25
"""A line beyond this is no reply, and would fill memory."""
_NAMED_BY = "'base_url', and that the key is of the account to which the batch was sent"

Result = TypeVar("Result")


class Session:
    """Calls to one server through an SDK; errors come out as ``ProviderError`` and show no key.

    Args:
        model: for messages.
        status_error: the SDK's error for an answer other than 2xx.
        error: the SDK's error for everything that goes wrong with a call.
    """

    def __init__(self, model: str, status_error: type[Any], error: type[Exception]) -> None:
        self.model, self._status_error, self._error = model, status_error, error

    async def call(self, ask: Callable[[], Awaitable[Result]]) -> Result:
        """The result of one call, with what is read from its answer: the SDKs do not check that it has that."""
        try:
            return await ask()
        except self._error as problem:
            told = self._told(problem)
        except (AttributeError, TypeError, ValueError):
            told = TransientError("server_error", self.message("the answer is none of a batch API"))
        raise told  # outside: the SDK's error carries the request with the key

    async def lines(self, opened: Any) -> AsyncIterator[dict[str, Any]]:
        """The JSON objects of a streamed answer, one on each line; ``opened`` is the SDK's context manager."""
        import httpx2

        told: ProviderError | None = None
        try:
            async with opened as response:
                async for line in _split(response.iter_bytes()):
                    yield self._object(line)
        except (self._error, httpx2.HTTPError) as problem:  # the latter where the connection broke within the body
            told = self._told(problem)
        if told is not None:
            raise told

    def message(self, text: str) -> str:
        """A message for people."""
        return one_line(f"{self.model}: {text}")

    def refused(self, status: int, body: object) -> ProviderError:
        """The error that a status and its body stand for."""
        return error_of_answer(status, {}, body, self.model)

    def _object(self, line: bytes) -> dict[str, Any]:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise TransientError("server_error", self.message("the batch's results are not lines of JSON objects"))
        return said

    def _told(self, problem: Exception) -> ProviderError:
        if isinstance(problem, self._status_error):
            known: Any = problem
            status, headers = known.status_code, known.response.headers
            return error_of_answer(status, headers, known.body, self.model, named_by=_NAMED_BY)
        cause = "timeout" if "Timeout" in type(problem).__name__ else "connection"
        return TransientError(cause, self.message(f"batches: {str(problem) or type(problem).__name__}"))


async def _split(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines that end in a newline and nothing else: a reply may hold what Unicode calls a line separator."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in filter(None, map(bytes.strip, whole)):
            yield line
        if len(rest) > _MOST_BYTES:
            raise RejectedError("server_error", f"a line of the batch's results is larger than {_MOST_BYTES} bytes")
    if rest.strip():
        yield rest.strip()


def reply_of(provider: HostedProvider, body: object) -> Completion | ProviderError:
    """The reply that a request's own answer holds."""
    if not isinstance(body, dict):
        return TransientError("server_error", "the batch's results hold no answer to this request")
    try:
        return provider.read(HttpAnswer(body, None))
    except ProviderError as error:
        return error


def refused_as_a_whole(error: ProviderError) -> ProviderError:
    """A batch that the server would not begin says nothing about the single requests: the next run asks them again."""
    if isinstance(error, RejectedError):
        return JudgeStoppedError("server_error", f"the server refused the batch: {error}")
    return error


class UndecidedError(TransientError):
    """Whether the server has a batch cannot be told until it has worked off one that may be it."""

    def __init__(self, model: str) -> None:
        super().__init__("server_error", f"{model}: a batch on the server may be one of this store; it is waited for")
