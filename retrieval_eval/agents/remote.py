"""Remote agents: an OpenAI-compatible chat endpoint, or any server that takes and returns a JSON object.

A separate thread sends and times the requests, so that other work does not distort their latency. It retries transient
errors.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from judges.errors import JudgeStoppedError, ProviderError, RejectedError, TransientError
from judges.masking import keep_secret
from judges.pace import LONGEST_WAIT_S, backoff_s
from judges.providers.endpoint import Endpoint, HttpAnswer, Target, from_environment, headers_of, with_extras
from judges.providers.http_answers import ForeignStreamError, Received, error_in_body, finish_of
from judges.spec import cost_usd
from judges.types import Document, Finish, Message, Query, Usage
from retrieval_eval.agents.json_replies import Mapped, read_reply, read_usage
from retrieval_eval.agents.spec import AgentSpec, MappingSpec
from retrieval_eval.agents.types import Meter, ReplyOrFailure

Result = TypeVar("Result")

_LARGE = 2**20
"""Size in bytes from which a body counts as large: parsing it would distort the latency of other replies."""

CHAT_MAPPING = MappingSpec(
    answer="choices[0].message.content", input_tokens="usage.prompt_tokens", output_tokens="usage.completion_tokens"
)
"""Default mapping of chat completions; for citations of Perplexity, Azure and others the user must give one."""

_PLACE = re.compile(r"\{(query|query_id|messages)\}")
_MESSAGES = "{messages}"


class RemoteAgent:
    """Posts a request with the query, and reads the reply by the mapping.

    The agent follows no redirects, reads keys from environment variables, and shows them in no message.

    Args:
        name: the agent's name.
        spec: the agent's declaration, of kind ``endpoint`` or ``http``.
        corpus: documents by id, for replies that give documents by id only.
        identity: hash of everything that affects the replies, see ``Agent``.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, name: str, spec: AgentSpec, corpus: Mapping[str, Document], identity: str) -> None:
        """Prepare the requests; sends none.

        Raises:
            InputError: the variable of a header is not set, or its value is not allowed in a header.
        """
        self.name, self.identity = name, identity
        self._spec, self._corpus = spec, corpus
        headers = headers_of(spec.headers_env)
        if spec.api_key_env is not None:
            key = from_environment(spec.api_key_env)
            keep_secret(key)
            headers["Authorization"] = f"Bearer {key}"
        url = spec.url or f"{(spec.base_url or '').rstrip('/')}/chat/completions"
        all_headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        named_by = "'url'" if spec.kind == "http" else "'model' and 'base_url'"
        where = "'url'" if spec.kind == "http" else "'base_url'"
        target = Target(url, all_headers, name, spec.concurrency, spec.timeout_s, named_by, where)
        self._requests = Requests(target, spec.max_attempts)
        self._mapping = spec.mapping or CHAT_MAPPING
        self._request = _request(spec)

    @property
    def endpoint(self) -> Endpoint:
        return self._requests.endpoint

    async def reply(self, query: Query) -> ReplyOrFailure:
        """Send the query to the agent; retries transient errors."""
        meter = Meter()
        try:
            usage, reported_usd, extracted = await self._requests.post(filled(self._request, query), self._read, meter)
        except ProviderError as error:
            return meter.failure(error)
        meter.count(usage, 1, cost_usd(usage, self._spec.price) if reported_usd is None else reported_usd)
        if isinstance(extracted, ProviderError):
            return meter.failure(extracted)
        return meter.reply(extracted.answer, extracted.documents, extracted.citations)

    def _read(self, received: Received) -> tuple[Usage, float | None, Mapped | ProviderError]:
        """Tokens and dollars of a reply, with the parsed reply, or with the error if the reply is unusable."""
        try:
            body = decoded(self._requests.endpoint, received).body
            if self._spec.kind == "endpoint":
                _require_completion(body, self.name)
        except ForeignStreamError as error:
            advice = "have it answer at once, as with 'stream: false' in its 'request'"
            raise ProviderError("contract", str(error), to_do=advice) from None
        except JudgeStoppedError as error:
            if self._spec.kind == "http" and error.cause == "unknown_model":
                # 404 does not mean a missing model here: a system may return it when it finds nothing for this query.
                raise RejectedError("bad_request", str(error)) from None
            raise
        usage, reported_usd = read_usage(body, self._mapping)
        try:
            return usage, reported_usd, read_reply(body, self._mapping, self._corpus)
        except ProviderError as error:
            return usage, reported_usd, error

    def halt(self) -> None:
        """Stop sending requests; pending retries are dropped."""
        self._requests.halt()

    async def close(self) -> None:
        await self._requests.close()


def _require_completion(body: Mapping[str, Any], name: str) -> None:
    """Check for an error that a server or gateway returned with status 200.

    Raises:
        ProviderError: the server failed, or a filter withheld the answer.
    """
    if body.get("error"):
        raise error_in_body(body, name)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, Mapping):
        finish = finish_of(choice.get("finish_reason"), choice.get("error"), name)
        message = choice.get("message")
        if finish is Finish.FILTER and not (isinstance(message, Mapping) and message.get("content")):
            raise RejectedError("content_filter", f"{name}: the provider's filter withheld the answer")


def filled(request: Any, query: Query) -> Any:
    """The request with ``{query}``, ``{query_id}`` and ``{messages}`` replaced in its texts.

    If a text is exactly ``{messages}``, the conversation's list of messages replaces it, with the question last. Within
    a longer text, the messages before the question replace ``{messages}``, one per line.
    """
    if request == _MESSAGES:
        messages = [*query.messages, Message("user", query.text)]
        return [{"role": message.role, "content": message.text} for message in messages]
    if isinstance(request, str):
        history = "\n".join(f"{message.role}: {message.text}" for message in query.messages)
        values = {"query": query.text, "query_id": query.query_id, "messages": history}
        return _PLACE.sub(lambda match: values[match[1]], request)
    if isinstance(request, dict):
        return {name: filled(value, query) for name, value in request.items()}
    return [filled(value, query) for value in request] if isinstance(request, list) else request


def _request(spec: AgentSpec) -> dict[str, Any]:
    if spec.kind == "http":
        return dict(spec.request or {})
    chat = {"model": spec.model, "messages": _MESSAGES}
    return with_extras(chat, spec.request or {})


class Requests:
    """Posts to one address, with a limit on concurrent requests.

    The time of an attempt runs from sending the request to the last byte of the answer. It is measured in a separate
    thread with its own event loop, so it excludes this program's other work and the parsing of the answer.

    Args:
        target: address, concurrency, and the timeout of each attempt.
        most: most attempts per request.
    """

    def __init__(self, target: Target, most: int) -> None:
        self.endpoint = Endpoint(target)
        self._timeout_s, self._max_attempts = target.timeout_s, most
        self._slots = asyncio.Semaphore(target.concurrency)
        self._network = _Network()
        self._halted = asyncio.Event()

    def halt(self) -> None:
        """Stop sending requests and retries; requests in flight finish."""
        self._halted.set()

    async def post(self, body: Mapping[str, Any], read: Callable[[Received], Result], meter: Meter) -> Result:
        """Post the body, with retries; returns the result of ``read`` for the first answer without an error.

        The meter counts failed attempts; the caller counts the successful one. The latency is that of the last attempt.
        Waiting for a free slot or before a retry is not counted.

        Raises:
            ProviderError: the error of the last attempt; a permanent error is not retried.
        """
        before_s, attempts = meter.latency_s, 0
        async with self._slots:
            if self._halted.is_set():
                raise ProviderError("stopped", "not asked: the run was stopped")
            while True:
                received, seconds = await self._network.run(self._timed(body))
                meter.latency_s = before_s + seconds
                meter.tried_s += seconds
                try:
                    return await _result(received, read, meter)
                except TransientError as error:
                    attempts += 1
                    if attempts >= self._max_attempts:
                        raise
                    with suppress(TimeoutError):
                        async with asyncio.timeout(backoff_s(attempts, error)):
                            await self._halted.wait()
                    if self._halted.is_set():
                        raise

    async def _timed(self, body: Mapping[str, Any]) -> tuple[Received | ProviderError, float]:
        self.endpoint.session()  # loads libraries the first time, which the server's latency must not include
        sent = time.perf_counter()
        answer: Received | ProviderError
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self.endpoint.fetch(body)
        except TimeoutError:
            answer = TransientError("timeout", f"no reply within {self._timeout_s:g} s")
        except ProviderError as error:
            answer = error
        return answer, time.perf_counter() - sent

    async def close(self) -> None:
        await self._network.close(self.endpoint)


def decoded(endpoint: Endpoint, received: Received) -> HttpAnswer:
    """Parse a body, see ``Endpoint.decoded``; a large body in small steps, so that other threads run in between."""
    return endpoint.decoded(received, _Stepwise if len(received.content) > _LARGE else None)


@cache
def _reader() -> ThreadPoolExecutor:
    """The thread that parses large bodies, one at a time: several at once would delay other threads more."""
    return ThreadPoolExecutor(1, "large bodies")


class _Stepwise(json.JSONDecoder):
    """JSON decoder without the C scanner, which blocks all threads until it has parsed the whole text."""

    def __init__(self) -> None:
        from json.scanner import py_make_scanner  # type: ignore[attr-defined]

        super().__init__()
        self.scan_once = py_make_scanner(self)


class _Network:
    """A thread with an event loop; it starts at the first request."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    async def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run the coroutine in the thread."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def _work(self) -> None:
        assert self._loop is not None
        self._loop.run_forever()
        self._loop.close()

    async def close(self, endpoint: Endpoint) -> None:
        """Close the endpoint in the thread, then end the thread."""
        if self._loop is not None and self._thread.is_alive():
            await self.run(endpoint.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


async def _result(received: Received | ProviderError, read: Callable[[Received], Result], meter: Meter) -> Result:
    try:
        if isinstance(received, ProviderError):
            raise received
        if len(received.content) > _LARGE:
            return await asyncio.get_running_loop().run_in_executor(_reader(), read, received)
        return read(received)
    except ProviderError as error:
        meter.count(Usage(), 1, 0.0)
        if (error.retry_after_s or 0.0) > LONGEST_WAIT_S:
            message = f"{error} (the server asks to wait {error.retry_after_s:.0f} s)"
            raise ProviderError(error.cause, message) from None
        raise
