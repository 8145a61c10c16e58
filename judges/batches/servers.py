"""The batch APIs of both vendors: requests go up, and what became of each comes down as a line of JSON."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from types import ModuleType
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from judges.batches import Batch, BatchEnding, BatchOutcome
from judges.errors import JudgeStoppedError, ProviderError, RejectedError, TransientError
from judges.masking import one_line
from judges.providers.endpoint import (
    KEY_HEADERS,
    MOST_BYTES,
    HostedProvider,
    HttpAnswer,
    api_key,
    headers_of,
    proxy_of,
    tls_error,
    trusted,
)
from judges.providers.http_answers import STATUS_OF, error_of_answer
from judges.spec import JudgeSpec
from judges.types import Completion

_CUSTOM_ID = re.compile(rb'(?<!\\)"custom_id"\s*:\s*"([\w-]+)"')
_HEAD_BYTES = 2**16
"""Where a line's id is looked for if the line is too long to be read."""
_NAMED_BY = "'base_url', and that the key is of the account to which the batch was sent"
_MARK = "ragleague"
"""The key of an OpenAI batch's metadata that holds its marker."""
_TOO_MUCH_WAITS = "token_limit_exceeded"
"""OpenAI bounds the tokens that wait in batches: what is beyond goes once others have ended."""
_ENDINGS: Mapping[str, BatchEnding] = {"completed": "completed", "expired": "expired", "cancelled": "cancelled"}
Server = TypeVar("Server", bound="BatchServer")
Params = ParamSpec("Params")
Result = TypeVar("Result")
Call: TypeAlias = Callable[Concatenate[Server, Params], Coroutine[Any, Any, Result]]


class NotTakenError(TransientError):
    """The server has not taken what was sent: there was no connection, or it said so."""


class UndecidedError(TransientError):
    """Whether the server has a batch cannot be told until it has worked off one that may be it."""

    def __init__(self, model: str) -> None:
        super().__init__("server_error", f"{model}: a batch on the server may be one of this store; it is waited for")


def _asks(method: Call[Server, Params, Result]) -> Call[Server, Params, Result]:
    """A method that calls the SDK: what goes wrong comes out as a ``ProviderError`` that shows no key."""

    @wraps(method)
    async def ask(self: Server, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        try:
            return await method(self, *args, **kwargs)
        except self.sdk_error as problem:
            error = self.error_of(problem)
        except (AttributeError, TypeError, ValueError):  # the SDKs do not check that an answer has all its fields
            error = TransientError("server_error", self.message("the answer is none of a batch API"))
        raise error  # outside: the SDK's error carries the request with the key

    return ask


class BatchServer(ABC):
    """One vendor's batch API. What it raises is a ``ProviderError``: transient where asking again may help.

    Nothing is sent twice, since a batch whose answer was lost is looked for first; and no redirect takes the key
    elsewhere.

    Attributes:
        most_requests: that one batch may hold.
        most_bytes: that all its lines may take together.
        skew_s: a batch on the server that is older than ours by so much is not ours, whatever the clocks say.
    """

    most_requests: int
    most_bytes: int
    skew_s: float

    def __init__(
        self, spec: JudgeSpec, provider: HostedProvider, sdk: ModuleType, client: type[Any], error: type[Exception]
    ) -> None:
        import httpx2

        self._model, self._provider, self._sdk, self.sdk_error = spec.model, provider, sdk, error
        proxy = proxy_of(spec.address)
        own = headers_of(spec.headers_env)
        left_out = set() if spec.sends_key else KEY_HEADERS - {name.lower() for name in own}

        async def leave_out(request: Any) -> None:  # the SDKs send a key, and refuse to be without one
            for name in left_out:
                request.headers.pop(name, None)

        connections = httpx2.AsyncClient(
            verify=trusted(spec.address), proxy=proxy, trust_env=False, event_hooks={"request": [leave_out]}
        )
        self._client = client(
            api_key=api_key(spec),
            base_url=spec.address,
            max_retries=0,
            http_client=connections,
            default_headers=own or None,
        )
        self._address_from = spec.address_from

    @abstractmethod
    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        """One request as JSON on one line."""

    @abstractmethod
    async def submit(self, marker: str, lines: Sequence[bytes]) -> str:
        """Hand in a batch; returns the server's name for it.

        Raises:
            NotTakenError: the server has no such batch.
            TransientError: it may have it or not.
            RejectedError, JudgeStoppedError: it refuses it.
        """

    @abstractmethod
    async def find(self, batch: Batch, custom_ids: Collection[str]) -> str | None:
        """The server's name for a batch that was handed in without its answer having come; ``None`` if it has none.

        Raises:
            UndecidedError: it cannot be told yet.
        """

    @abstractmethod
    async def look(self, remote_id: str) -> BatchEnding | ProviderError | None:
        """How a batch has ended; ``None`` while it has not, an error if it was refused as a whole."""

    @abstractmethod
    async def cancel(self, remote_id: str) -> None:
        """Ask the server to answer no more requests of a batch. Those that were answered are among its outcomes."""

    @abstractmethod
    async def delete_files(self, remote_id: str) -> None:
        """Delete what was uploaded for a batch that has ended, and what came of it; nobody will read it again."""

    @abstractmethod
    def outcomes(self, remote_id: str) -> AsyncIterator[BatchOutcome]:
        """What became of its requests, in any order, once it has ended."""

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def message(self, text: str) -> str:
        """A message for people."""
        return one_line(f"{self._model}: {text}")

    def error_of(self, problem: Exception) -> ProviderError:
        """What an error of the SDK, or of the connection below it, means."""
        import httpx2

        if isinstance(problem, self._sdk.APIStatusError):
            known: Any = problem
            status, headers = known.status_code, known.response.headers
            error = error_of_answer(status, headers, known.body, self._model, named_by=_NAMED_BY)
            return not_taken(error) if status < 500 and isinstance(error, TransientError) else error
        if (of_tls := tls_error(problem, self._model, self._address_from)) is not None:
            return of_tls
        cause = "timeout" if "Timeout" in type(problem).__name__ else "connection"
        error = TransientError(cause, self.message(f"batches: {str(problem) or type(problem).__name__}"))
        unsent = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
        return not_taken(error) if isinstance(problem.__cause__, unsent) else error

    def _refused(self, status: int, body: object) -> ProviderError:
        return error_of_answer(status, {}, body, self._model)

    def _reply(self, body: object) -> Completion | ProviderError:
        if not isinstance(body, dict):
            return TransientError("server_error", "the batch's results hold no answer to this request")
        try:
            return self._provider.read(HttpAnswer(body, None))
        except ProviderError as error:
            return error

    async def _lines(self, opened: Any) -> AsyncIterator[tuple[str, dict[str, Any] | None]]:
        """The JSON objects of a streamed answer, one on each line, each behind its request's id.

        Args:
            opened: the SDK's context manager.

        Yields:
            ``None`` for a line that is larger than any reply.
        """
        import httpx2

        error: ProviderError | None = None
        try:
            async with opened as response:
                async for line, whole in _split(response.iter_bytes()):
                    if not whole:
                        yield _custom_id(line), None
                        continue
                    entry = self._object(line)
                    yield str(entry.get("custom_id")), entry
        except (self.sdk_error, httpx2.HTTPError) as problem:  # the latter where the connection broke within the body
            error = self.error_of(problem)
        if error is not None:
            raise error

    def _too_long(self) -> RejectedError:
        """A reply that is too long to be read. It is paid for, and would be again."""
        return RejectedError("too_long", self.message(f"the reply's line is larger than {MOST_BYTES} bytes"))

    def _object(self, line: bytes) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict):
            raise TransientError("server_error", self.message("the batch's results are not lines of JSON objects"))
        return entry


class OpenAIBatches(BatchServer):
    """The batch API of OpenAI, and of servers that have the same one (Azure OpenAI).

    A file of requests goes up, a batch is made of it, files of replies and of errors come down.
    """

    most_requests = 50_000
    most_bytes = 200 * 10**6
    skew_s = 86_400.0

    def __init__(self, spec: JudgeSpec, provider: HostedProvider) -> None:
        import openai

        super().__init__(spec, provider, openai, openai.AsyncOpenAI, openai.OpenAIError)

    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        """One request as JSON on one line."""
        request = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
        return json.dumps(request, separators=(",", ":")).encode("ascii")

    async def submit(self, marker: str, lines: Sequence[bytes]) -> str:
        """Upload the requests and make a batch of them."""
        try:
            file_id = await self._upload(f"{_MARK}-{marker}.jsonl", b"\n".join(lines))
        except TransientError as error:  # a file alone is no batch, and costs nothing
            raise not_taken(error) from None
        try:
            return await self._make(marker, file_id)
        except ProviderError as error:
            if isinstance(error, NotTakenError) or not isinstance(error, TransientError):
                with suppress(self.sdk_error):
                    await self._client.files.delete(file_id)
            raise

    @_asks
    async def _upload(self, name: str, content: bytes) -> str:
        file = await self._client.files.create(file=(name, content), purpose="batch")
        return str(file.id)

    @_asks
    async def _make(self, marker: str, file_id: str) -> str:
        batch = await self._client.batches.create(
            input_file_id=file_id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={_MARK: marker},
        )
        return str(batch.id)

    @_asks
    async def find(self, batch: Batch, custom_ids: Collection[str]) -> str | None:  # noqa: ARG002
        """The batch that carries the marker."""
        async for candidate in self._client.batches.list(limit=100):  # the newest first
            if candidate.created_at < batch.made_at - self.skew_s:
                return None
            if batch.marker in (candidate.metadata or {}).values():
                return str(candidate.id)
        return None

    @_asks
    async def look(self, remote_id: str) -> BatchEnding | ProviderError | None:
        """How a batch has ended; validation may have refused it."""
        batch = await self._client.batches.retrieve(remote_id)
        if batch.status != "failed":  # by validation
            return _ENDINGS.get(batch.status)
        first = batch.errors.data[0] if batch.errors and batch.errors.data else None
        error = {"code": first and first.code, "message": first and first.message}
        return refused_as_a_whole(self._refused(429 if error["code"] == _TOO_MUCH_WAITS else 400, {"error": error}))

    @_asks
    async def cancel(self, remote_id: str) -> None:
        """Ask for no more replies; it takes the server up to ten minutes."""
        await self._client.batches.cancel(remote_id)

    @_asks
    async def delete_files(self, remote_id: str) -> None:
        """Delete the file of requests, and those of replies and errors, which the server would keep for weeks."""
        batch = await self._client.batches.retrieve(remote_id)
        for file_id in filter(None, (batch.input_file_id, batch.output_file_id, batch.error_file_id)):
            with suppress(self._sdk.NotFoundError):  # a run before this one was ended in the middle of it
                await self._client.files.delete(file_id)

    async def outcomes(self, remote_id: str) -> AsyncIterator[BatchOutcome]:
        """What both files say."""
        for file_id in await self._result_files(remote_id):
            async for ident, entry in self._lines(self._client.files.with_streaming_response.content(file_id)):
                yield ident, self._too_long() if entry is None else self._outcome(entry)

    @_asks
    async def _result_files(self, remote_id: str) -> list[str]:
        batch = await self._client.batches.retrieve(remote_id)
        return [file_id for file_id in (batch.output_file_id, batch.error_file_id) if file_id]

    def _outcome(self, entry: Mapping[str, Any]) -> Completion | ProviderError:
        response = entry.get("response")
        if not isinstance(response, Mapping):  # expired or cancelled before it was its turn
            error = entry.get("error")
            problem = error.get("message") if isinstance(error, Mapping) else None
            return TransientError("timeout", self.message(f"batch: {problem or 'no reply to this request'}"))
        status = response.get("status_code")
        if status == 200:
            return self._reply(response.get("body"))
        return self._refused(status if isinstance(status, int) else 500, response.get("body"))


class AnthropicBatches(BatchServer):
    """The message batches of Anthropic: the requests go up in one body, the results come down as lines of JSON."""

    most_requests = 100_000
    most_bytes = 256 * 10**6
    skew_s = 3600.0

    def __init__(self, spec: JudgeSpec, provider: HostedProvider) -> None:
        import anthropic

        super().__init__(spec, provider, anthropic, anthropic.AsyncAnthropic, anthropic.AnthropicError)

    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        """One request as JSON on one line."""
        return json.dumps({"custom_id": custom_id, "params": body}, separators=(",", ":")).encode("ascii")

    @_asks
    async def submit(self, marker: str, lines: Sequence[bytes]) -> str:  # noqa: ARG002 - no place for a marker
        """Hand the requests in."""
        batch = await self._client.messages.batches.create(requests=[json.loads(line) for line in lines])
        return str(batch.id)

    @_asks
    async def find(self, batch: Batch, custom_ids: Collection[str]) -> str | None:
        """The batch that holds these requests.

        These batches carry no mark, and tell their requests' ids only at their end: one as large as ours that was made
        since then may be it until then.
        """
        undecided = False
        async for candidate in self._client.messages.batches.list(limit=100):  # the newest first
            if candidate.created_at.timestamp() < batch.made_at - self.skew_s:
                break
            counts = candidate.request_counts
            requests = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
            if requests != batch.requests:
                continue
            if candidate.processing_status != "ended":
                undecided = True
            elif await self._first_id(candidate.id) in custom_ids:
                return str(candidate.id)
        if undecided:
            raise UndecidedError(self._model)
        return None

    async def _first_id(self, remote_id: str) -> str | None:
        async for ident, _ in self._results(remote_id):
            return ident
        return None

    @_asks
    async def look(self, remote_id: str) -> BatchEnding | ProviderError | None:
        """How a batch has ended, by what became of its requests."""
        batch = await self._client.messages.batches.retrieve(remote_id)
        if batch.processing_status != "ended":
            return None
        if batch.request_counts.canceled:
            return "cancelled"
        return "expired" if batch.request_counts.expired else "completed"

    @_asks
    async def cancel(self, remote_id: str) -> None:
        """Ask for no more replies."""
        await self._client.messages.batches.cancel(remote_id)

    async def delete_files(self, remote_id: str) -> None:
        """There are none: requests go up with the batch itself, which the server keeps for 29 days."""

    async def outcomes(self, remote_id: str) -> AsyncIterator[BatchOutcome]:
        """What became of each request."""
        async for ident, entry in self._results(remote_id):
            yield ident, self._too_long() if entry is None else self._outcome(entry.get("result"))

    def _results(self, remote_id: str) -> AsyncIterator[tuple[str, dict[str, Any] | None]]:
        return self._lines(self._client.messages.batches.with_streaming_response.results(remote_id))

    def _outcome(self, result: Any) -> Completion | ProviderError:
        kind = result.get("type") if isinstance(result, Mapping) else None
        if kind == "succeeded":
            return self._reply(result.get("message"))
        if kind == "errored":
            body = result.get("error")
            inner = body.get("error") if isinstance(body, Mapping) else None
            named = inner.get("type") if isinstance(inner, Mapping) else None
            return self._refused(STATUS_OF.get(str(named), 500), body)
        return TransientError("timeout", self.message(f"batch: this request is {kind or 'lost'}"))


async def _split(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, bool]]:
    """Lines that end in a newline and nothing else: a reply may hold what Unicode calls a line separator.

    Yields:
        Each line, and whether it is whole; of one that would fill memory the beginning.
    """
    rest, whole = bytearray(), True
    async for chunk in chunks:
        *ends, begun = chunk.split(b"\n")
        for end in ends:
            if whole:
                rest += end
            if line := bytes(rest.strip()):
                yield line, whole
            rest, whole = bytearray(), True
        if whole:
            rest += begun
        if len(rest) > MOST_BYTES:
            del rest[_HEAD_BYTES:]
            whole = False
    if line := bytes(rest.strip()):
        yield line, whole


def _custom_id(head: bytes) -> str:
    """The id in the beginning of a line; empty where it stands elsewhere."""
    found = _CUSTOM_ID.search(head)
    return "" if found is None else found[1].decode("ascii")


def not_taken(error: TransientError) -> NotTakenError:
    """The same error, where it is certain that the server has nothing of what was sent."""
    return NotTakenError(
        error.cause, error.problem, retry_after_s=error.retry_after_s, allowance=error.allowance, to_do=error.to_do
    )


def refused_as_a_whole(error: ProviderError) -> ProviderError:
    """A batch that the server would not begin says nothing about the single requests: the next run asks them again."""
    if isinstance(error, RejectedError):
        return JudgeStoppedError("server_error", f"the server refused the batch: {error}")
    return error
