"""Clients for the batch APIs of OpenAI and Anthropic: submit requests, poll batches, download the results."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from types import ModuleType
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from judges.errors import JudgeStoppedError, ProviderError, RejectedError, TransientError
from judges.masking import one_line
from judges.providers.endpoint import (
    KEY_HEADERS,
    MOST_BYTES,
    HttpAnswer,
    api_key,
    headers_of,
    proxy_of,
    tls_error,
    trusted,
)
from judges.providers.hosted import HostedProvider
from judges.providers.http_answers import STATUS_OF, error_of_answer
from judges.spec import JudgeSpec
from judges.types import Completion

_CUSTOM_ID = re.compile(rb'(?<!\\)"custom_id"\s*:\s*"([\w-]+)"')
_HEAD_BYTES = 2**16
"""How many bytes at the beginning of an overlong line are searched for the id of the line's request."""
_NAMED_BY = "'base_url', and that the key is of the account to which the batch was sent"
_MARK = "ragleague"
"""The key, in the metadata of an OpenAI batch, under which this program's own id of the batch (its marker) is sent."""
_QUEUE_LIMIT = "token_limit_exceeded"
"""OpenAI's error code for too many tokens in waiting batches; a new attempt succeeds after other batches have ended."""
BatchOutcome: TypeAlias = tuple[str, Completion | ProviderError]
"""The id of a request in a batch, with the model's completion or the error that the server reported for it."""

BatchEnding: TypeAlias = Literal["completed", "cancelled", "expired"]
"""How a batch ended: ``cancelled`` or ``expired`` if any of its requests was left unanswered for that reason."""

_ENDINGS: Mapping[str, BatchEnding] = {"completed": "completed", "expired": "expired", "cancelled": "cancelled"}
Server = TypeVar("Server", bound="BatchServer")
Params = ParamSpec("Params")
Result = TypeVar("Result")
Call: TypeAlias = Callable[Concatenate[Server, Params], Coroutine[Any, Any, Result]]


class Batch(Struct, frozen=True):
    """One batch as it is stored in the record of batches (``Book``).

    Attributes:
        marker: the id that this program gives the batch before it submits the batch.
        made_at: time of the batch's creation, in seconds since 1970.
        requests: number of requests in the batch.
        remote_id: the server's id of the batch; ``None`` until the server's answer to the submission is known.
    """

    marker: str
    made_at: float
    requests: int
    remote_id: str | None = None


class Book(Protocol):
    """The persistent record of batches and of the requests in each. Its methods may be called in any thread."""

    def place(self, batch: Batch, lines: Mapping[str, str]) -> dict[str, Batch]:
        """Record a batch that is about to be submitted, and those of ``lines`` that are in no other recorded batch.

        ``lines`` maps each request's id to its judgment's id. Returns, for each request's id, the batch that contains
        the request: the new batch or an earlier one.
        """

    def custom_ids(self, marker: str) -> set[str]:
        """Ids of the requests in a batch."""

    def submitted(self, marker: str, remote_id: str) -> None:
        """Record that the server accepted a batch, with the server's id of the batch."""

    def free(self, custom_ids: Sequence[str]) -> None:
        """Release requests that got no reply, so that they can go into another batch."""

    def drop(self, marker: str) -> None:
        """Delete from the record a batch that the server does not have; its requests can then go into another batch."""


class NotTakenError(TransientError):
    """The server certainly did not accept a request: there was no connection, or the server's answer says so."""


class UndecidedError(TransientError):
    """It is not known yet whether the server has a submitted batch: one that still runs there may be it."""

    def __init__(self, model: str) -> None:
        super().__init__(
            "server_error", f"{model}: a batch on the server may belong to this store; waiting for it to end"
        )


def _translate_errors(method: Call[Server, Params, Result]) -> Call[Server, Params, Result]:
    """Decorate a method that calls the vendor's SDK: its exceptions become ``ProviderError``s, which show no key."""

    @wraps(method)
    async def ask(self: Server, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        try:
            return await method(self, *args, **kwargs)
        except self.sdk_error as problem:
            error = self.error_of(problem)
        except (AttributeError, TypeError, ValueError):  # the SDKs do not check that an answer has all its fields
            error = TransientError("server_error", self.message("the answer is not that of a batch API"))
        raise error  # outside the except block: the SDK's exception holds the request with the key

    return ask


class BatchServer(ABC):
    """One vendor's batch API. Its exceptions are ``ProviderError``s, transient if another attempt may succeed.

    Requests are not retried here: after a submission whose answer was lost, the caller must first search the server for
    the batch. Redirects are not followed, so that no other server gets the key.

    Attributes:
        most_requests: largest number of requests in a batch.
        most_bytes: largest total size of the requests in a batch, in bytes.
        skew_s: allowed difference between this machine's clock and the server's, in seconds. A batch on the server that
            was created earlier than the recorded batch by more than this is another batch.
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
        declared_headers = headers_of(spec.headers_env)
        removed_headers = set() if spec.sends_key else KEY_HEADERS - {name.lower() for name in declared_headers}

        async def remove_headers(request: Any) -> None:  # the SDKs always send a key, and refuse to run without one
            for name in removed_headers:
                request.headers.pop(name, None)

        connections = httpx2.AsyncClient(
            verify=trusted(spec.address), proxy=proxy, trust_env=False, event_hooks={"request": [remove_headers]}
        )
        options = {"api_key": api_key(spec), "base_url": spec.address, "default_headers": declared_headers or None}
        self._client = client(**options, max_retries=0, http_client=connections)
        self._address_from = spec.address_from

    @abstractmethod
    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        """A request of a batch as one line of JSON."""

    @abstractmethod
    async def submit(self, marker: str, lines: Sequence[bytes]) -> str:
        """Submit a batch; returns the server's id for it.

        Raises:
            NotTakenError: the server certainly does not have the batch.
            TransientError: the server may or may not have the batch.
            RejectedError, JudgeStoppedError: the server refused the batch.
        """

    @abstractmethod
    async def find(self, batch: Batch, custom_ids: Collection[str]) -> str | None:
        """Search for a batch whose submission got no answer; returns the server's id, ``None`` if it is not there.

        Raises:
            UndecidedError: it is not known yet whether the server has the batch.
        """

    @abstractmethod
    async def look(self, remote_id: str) -> BatchEnding | ProviderError | None:
        """Ask the server how a batch ended; ``None`` while it runs, an error if the server refused the whole batch."""

    @abstractmethod
    async def cancel(self, remote_id: str) -> None:
        """Cancel a batch on the server. Replies that are already finished can still be downloaded by ``outcomes``."""

    @abstractmethod
    async def delete_files(self, remote_id: str) -> None:
        """Delete the server's files of an ended batch: those that were uploaded, and those with its results."""

    @abstractmethod
    def outcomes(self, remote_id: str) -> AsyncIterator[BatchOutcome]:
        """Yield the results of an ended batch, one per request, in any order."""

    async def close(self) -> None:
        await self._client.close()

    def message(self, text: str) -> str:
        return one_line(f"{self._model}: {text}")

    def error_of(self, problem: Exception) -> ProviderError:
        """Convert an exception of the vendor's SDK, or of its connection, to a ``ProviderError``."""
        import httpx2

        if isinstance(problem, self._sdk.APIStatusError):
            status_error: Any = problem
            status, headers = status_error.status_code, status_error.response.headers
            error = error_of_answer(status, headers, status_error.body, self._model, named_by=_NAMED_BY)
            return as_not_taken(error) if status < 500 and isinstance(error, TransientError) else error
        if (certificate_error := tls_error(problem, self._model, self._address_from)) is not None:
            return certificate_error
        cause = "timeout" if "Timeout" in type(problem).__name__ else "connection"
        error = TransientError(cause, self.message(f"batches: {str(problem) or type(problem).__name__}"))
        unsent = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
        return as_not_taken(error) if isinstance(problem.__cause__, unsent) else error

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
        """Yield each line of a streamed results file: the id of its request, and its JSON object.

        ``opened`` is the SDK's context manager of the HTTP answer. For a line larger than ``MOST_BYTES`` the object is
        ``None``.
        """
        import httpx2

        error: ProviderError | None = None
        try:
            async with opened as response:
                async for line, is_whole in _split(response.iter_bytes()):
                    if is_whole:
                        entry = self._object(line)
                        yield str(entry.get("custom_id")), entry
                    else:
                        found = _CUSTOM_ID.search(line)
                        yield "" if found is None else found[1].decode("ascii"), None
        except (self.sdk_error, httpx2.HTTPError) as problem:  # the latter if the connection breaks within the body
            error = self.error_of(problem)
        if error is not None:
            raise error

    def _too_long(self) -> RejectedError:
        """The error for a reply that is too long. It is not transient, since another attempt would cost money again."""
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
    """The batch API of OpenAI and compatible servers (Azure OpenAI).

    The client uploads a file of requests, creates a batch from it, and downloads files of replies and of errors.
    """

    most_requests = 50_000
    most_bytes = 200 * 10**6
    skew_s = 86_400.0

    def __init__(self, spec: JudgeSpec, provider: HostedProvider) -> None:
        import openai

        super().__init__(spec, provider, openai, openai.AsyncOpenAI, openai.OpenAIError)

    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        request = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
        return json.dumps(request, separators=(",", ":")).encode("ascii")

    async def submit(self, marker: str, lines: Sequence[bytes]) -> str:
        try:
            file_id = await self._upload(f"{_MARK}-{marker}.jsonl", b"\n".join(lines))
        except TransientError as error:  # a file without a batch costs nothing
            raise as_not_taken(error) from None
        try:
            return await self._make(marker, file_id)
        except ProviderError as error:
            if isinstance(error, NotTakenError) or not isinstance(error, TransientError):
                with suppress(self.sdk_error):
                    await self._client.files.delete(file_id)
            raise

    @_translate_errors
    async def _upload(self, name: str, content: bytes) -> str:
        file = await self._client.files.create(file=(name, content), purpose="batch")
        return str(file.id)

    @_translate_errors
    async def _make(self, marker: str, file_id: str) -> str:
        batch = await self._client.batches.create(
            input_file_id=file_id, endpoint="/v1/chat/completions", completion_window="24h", metadata={_MARK: marker}
        )
        return str(batch.id)

    @_translate_errors
    async def find(self, batch: Batch, custom_ids: Collection[str]) -> str | None:  # noqa: ARG002
        async for candidate in self._client.batches.list(limit=100):  # the newest first
            if candidate.created_at < batch.made_at - self.skew_s:
                return None
            if batch.marker in (candidate.metadata or {}).values():
                return str(candidate.id)
        return None

    @_translate_errors
    async def look(self, remote_id: str) -> BatchEnding | ProviderError | None:
        batch = await self._client.batches.retrieve(remote_id)
        if batch.status != "failed":  # a failed batch did not pass validation
            return _ENDINGS.get(batch.status)
        first = batch.errors.data[0] if batch.errors and batch.errors.data else None
        error = {"code": first and first.code, "message": first and first.message}
        return refused_as_a_whole(self._refused(429 if error["code"] == _QUEUE_LIMIT else 400, {"error": error}))

    @_translate_errors
    async def cancel(self, remote_id: str) -> None:
        """Cancel the batch, which takes the server up to ten minutes."""
        await self._client.batches.cancel(remote_id)

    @_translate_errors
    async def delete_files(self, remote_id: str) -> None:
        """Delete the files of requests, replies and errors, which the server would keep for weeks."""
        batch = await self._client.batches.retrieve(remote_id)
        for file_id in filter(None, (batch.input_file_id, batch.output_file_id, batch.error_file_id)):
            with suppress(self._sdk.NotFoundError):  # an earlier run was interrupted between the files
                await self._client.files.delete(file_id)

    async def outcomes(self, remote_id: str) -> AsyncIterator[BatchOutcome]:
        for file_id in await self._result_files(remote_id):
            async for custom_id, entry in self._lines(self._client.files.with_streaming_response.content(file_id)):
                yield custom_id, self._too_long() if entry is None else self._outcome(entry)

    @_translate_errors
    async def _result_files(self, remote_id: str) -> list[str]:
        batch = await self._client.batches.retrieve(remote_id)
        return [file_id for file_id in (batch.output_file_id, batch.error_file_id) if file_id]

    def _outcome(self, entry: Mapping[str, Any]) -> Completion | ProviderError:
        response = entry.get("response")
        if not isinstance(response, Mapping):  # expired or cancelled before it was processed
            error = entry.get("error")
            problem = error.get("message") if isinstance(error, Mapping) else None
            return TransientError("timeout", self.message(f"batch: {problem or 'no reply to this request'}"))
        status = response.get("status_code")
        if status == 200:
            return self._reply(response.get("body"))
        return self._refused(status if isinstance(status, int) else 500, response.get("body"))


class AnthropicBatches(BatchServer):
    """The message batches of Anthropic: requests are sent in one body, results downloaded as lines of JSON."""

    most_requests = 100_000
    most_bytes = 256 * 10**6
    skew_s = 3600.0

    def __init__(self, spec: JudgeSpec, provider: HostedProvider) -> None:
        import anthropic

        super().__init__(spec, provider, anthropic, anthropic.AsyncAnthropic, anthropic.AnthropicError)

    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        return json.dumps({"custom_id": custom_id, "params": body}, separators=(",", ":")).encode("ascii")

    @_translate_errors
    async def submit(self, marker: str, lines: Sequence[bytes]) -> str:  # noqa: ARG002 - no place for a marker
        batch = await self._client.messages.batches.create(requests=[json.loads(line) for line in lines])
        return str(batch.id)

    @_translate_errors
    async def find(self, batch: Batch, custom_ids: Collection[str]) -> str | None:
        """Find the ended batch that contains these requests; returns the server's id, ``None`` if there is none.

        Anthropic's batches carry no id of this program, and show their requests' ids only after they end. Until then,
        any later batch of the same size may be the right one.

        Raises:
            UndecidedError: no ended batch matches, but a batch that is still running may match.
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
        async for custom_id, _ in self._results(remote_id):
            return custom_id
        return None

    @_translate_errors
    async def look(self, remote_id: str) -> BatchEnding | ProviderError | None:
        batch = await self._client.messages.batches.retrieve(remote_id)
        if batch.processing_status != "ended":
            return None
        if batch.request_counts.canceled:
            return "cancelled"
        return "expired" if batch.request_counts.expired else "completed"

    @_translate_errors
    async def cancel(self, remote_id: str) -> None:
        await self._client.messages.batches.cancel(remote_id)

    async def delete_files(self, remote_id: str) -> None:
        """Do nothing: there are no files. The server keeps the batch itself for 29 days."""

    async def outcomes(self, remote_id: str) -> AsyncIterator[BatchOutcome]:
        async for custom_id, entry in self._results(remote_id):
            yield custom_id, self._too_long() if entry is None else self._outcome(entry.get("result"))

    def _results(self, remote_id: str) -> AsyncIterator[tuple[str, dict[str, Any] | None]]:
        return self._lines(self._client.messages.batches.with_streaming_response.results(remote_id))

    def _outcome(self, result: Any) -> Completion | ProviderError:
        kind = result.get("type") if isinstance(result, Mapping) else None
        if kind == "succeeded":
            return self._reply(result.get("message"))
        if kind == "errored":
            body = result.get("error")
            inner = body.get("error") if isinstance(body, Mapping) else None
            error_type = inner.get("type") if isinstance(inner, Mapping) else None
            return self._refused(STATUS_OF.get(str(error_type), 500), body)
        return TransientError("timeout", self.message(f"batch: this request is {kind or 'lost'}"))


async def _split(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, bool]]:
    """Yield each line of a stream, with ``True`` if it is complete, ``False`` if it was cut because of its size.

    A line larger than ``MOST_BYTES`` is cut. Lines end at newlines only, since a reply may contain other line
    separators of Unicode.
    """
    rest, is_whole = bytearray(), True
    async for chunk in chunks:
        *ends, beginning = chunk.split(b"\n")
        for end in ends:
            if is_whole:
                rest += end
            if line := bytes(rest.strip()):
                yield line, is_whole
            rest, is_whole = bytearray(), True
        if is_whole:
            rest += beginning
        if len(rest) > MOST_BYTES:
            del rest[_HEAD_BYTES:]
            is_whole = False
    if line := bytes(rest.strip()):
        yield line, is_whole


def as_not_taken(error: TransientError) -> NotTakenError:
    """Convert an error to a ``NotTakenError``, for errors which prove that the server does not have the batch."""
    return NotTakenError(error.cause, error.problem, retry_after_s=error.retry_after_s, to_do=error.to_do)


def refused_as_a_whole(error: ProviderError) -> ProviderError:
    """Convert a ``RejectedError`` about a whole batch to a ``JudgeStoppedError``: the next run then sends it again."""
    if isinstance(error, RejectedError):
        return JudgeStoppedError("server_error", f"the server refused the batch: {error}")
    return error
