"""Agents behind an address: an OpenAI-compatible chat endpoint, or any server that takes and gives a JSON object.

Requests are timed where nothing else is done, and made again where another attempt may succeed.
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

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    wait_random_exponential,
)

from judges.errors import JudgeStoppedError, ProviderError, RejectedError, TransientError
from judges.masking import keep_secret
from judges.providers.endpoint import Endpoint, HttpAnswer, Target, from_environment, headers_of, with_extras
from judges.providers.http_answers import error_in_body, finish_of
from judges.providers.streams import ForeignStreamError, Received
from judges.spec import cost_usd
from judges.types import Document, Finish, Message, Query, Usage
from retrieval_eval.agents.json_replies import Mapped, read_reply, read_usage
from retrieval_eval.agents.spec import AgentSpec, MappingSpec
from retrieval_eval.agents.types import Meter, ReplyOrFailure

Result = TypeVar("Result")

_LONGEST_WAIT_S = 60.0
_BACKOFF = wait_random_exponential(multiplier=0.5, max=_LONGEST_WAIT_S)
_LARGE = 2**20
"""Bytes of a body that takes so long to read that other replies' seconds would include it."""

CHAT_MAPPING = MappingSpec(
    answer="choices[0].message.content", input_tokens="usage.prompt_tokens", output_tokens="usage.completion_tokens"
)
"""Where a chat completion has its answer; Perplexity's, Azure's and others' citations need a mapping of one's own."""

_PLACE = re.compile(r"\{(query|query_id|messages)\}")
_MESSAGES = "{messages}"


class RemoteAgent:
    """Posts the request with the query in it, and reads the reply by the mapping.

    Redirects are not followed, keys come from the environment, and no message shows one.

    Args:
        name: the agent's.
        spec: of kind ``endpoint`` or ``http``.
        corpus: documents by id, for replies that give ids only.
        identity: see ``Agent``.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, name: str, spec: AgentSpec, corpus: Mapping[str, Document], identity: str) -> None:
        """Prepare; nothing is sent.

        Raises:
            InputError: a variable that is to hold a header's value is not set, or holds what no header can carry.
        """
        self.name, self.identity = name, identity
        self._spec, self._corpus = spec, corpus
        headers = headers_of(spec.headers_env)
        if spec.api_key_env is not None:
            key = from_environment(spec.api_key_env)
            keep_secret(key)
            headers["Authorization"] = f"Bearer {key}"
        url = spec.url or f"{(spec.base_url or '').rstrip('/')}/chat/completions"
        sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        named_by = "'url'" if spec.kind == "http" else "'model' and 'base_url'"
        where = "'url'" if spec.kind == "http" else "'base_url'"
        target = Target(url, sent, name, spec.concurrency, spec.timeout_s, named_by, where)
        self._requests = Requests(target, spec.max_attempts)
        self._mapping = spec.mapping or CHAT_MAPPING
        self._request = _request(spec)

    @property
    def endpoint(self) -> Endpoint:
        """Where it is asked."""
        return self._requests.endpoint

    async def reply(self, query: Query) -> ReplyOrFailure:
        """Ask the agent; what may succeed later is tried again."""
        meter = Meter()
        try:
            usage, told, found = await self._requests.post(filled(self._request, query), self._read, meter)
        except ProviderError as error:
            return meter.failure(error)
        meter.count(usage, 1, cost_usd(usage, self._spec.price) if told is None else told)
        if isinstance(found, ProviderError):
            return meter.failure(found)
        return meter.reply(found.answer, found.documents, found.citations)

    def _read(self, received: Received) -> tuple[Usage, float | None, Mapped | ProviderError]:
        """Tokens, dollars, and the reply or why there is none in an answer that has been paid for."""
        try:
            body = decoded(self._requests.endpoint, received).body
            if self._spec.kind == "endpoint":
                _require_completion(body, self.name)
        except ForeignStreamError as error:
            advice = "have it answer at once, as with 'stream: false' in its 'request'"
            raise ProviderError("contract", str(error), to_do=advice) from None
        except JudgeStoppedError as error:
            if self._spec.kind == "http" and error.cause == "unknown_model":
                # There is no model; a system may well say 404 of what it finds nothing for, and answer the next query.
                raise RejectedError("bad_request", str(error)) from None
            raise
        usage, told = read_usage(body, self._mapping)
        try:
            return usage, told, read_reply(body, self._mapping, self._corpus)
        except ProviderError as error:
            return usage, told, error

    def halt(self) -> None:
        """Send nothing more."""
        self._requests.halt()

    async def close(self) -> None:
        """Close the connections."""
        await self._requests.close()


def _require_completion(body: Mapping[str, Any], name: str) -> None:
    """Look for what a server, or a gateway before it, says in place of a completion, with status 200.

    Raises:
        ProviderError: it failed, or a filter withheld the answer.
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
    """The request with ``{query}``, ``{query_id}`` and ``{messages}`` replaced in its texts, and nothing else changed.

    A text that is ``{messages}`` and nothing else becomes the conversation as a list of messages, the question last;
    within a text it is what was said before the question, a line for each message.
    """
    if request == _MESSAGES:
        said = [*query.messages, Message("user", query.text)]
        return [{"role": each.role, "content": each.text} for each in said]
    if isinstance(request, str):
        before = "\n".join(f"{each.role}: {each.text}" for each in query.messages)
        values = {"query": query.text, "query_id": query.query_id, "messages": before}
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
    """Posts to one address, at most so many requests at a time.

    The seconds of an attempt are from sending the request to the last byte of the answer. They are taken in a thread of
    its own with an event loop of its own, so that nobody else's work is in them: neither what this program does with
    other answers, nor the reading of this one, which comes after.

    Args:
        target: where requests go; ``timeout_s`` bounds each attempt.
        most: attempts of a request.
    """

    def __init__(self, target: Target, most: int) -> None:
        self.endpoint = Endpoint(target)
        self._timeout_s, self._most = target.timeout_s, most
        self._free = asyncio.Semaphore(target.concurrency)
        self._network = _Network()
        self._halted = asyncio.Event()

    def halt(self) -> None:
        """Send nothing more, further attempts included; what is in flight goes on."""
        self._halted.set()

    async def post(self, body: Mapping[str, Any], read: Callable[[Received], Result], meter: Meter) -> Result:
        """What ``read`` makes of the first answer that it takes.

        Failed attempts are counted on the meter, the successful one is for the caller to count. The latency is that of
        the last attempt. What a caller waits for a turn, or before a further attempt, counts nowhere.

        Raises:
            ProviderError: of the last attempt, or of one that no further attempt would mend.
        """
        last: TransientError | None = None
        again = AsyncRetrying(
            retry=retry_if_exception_type(TransientError),
            stop=lambda state: state.attempt_number >= self._most or self._halted.is_set(),
            wait=_wait,
            sleep=self._sleep,
            reraise=True,
        )
        before_s = meter.latency_s
        async with self._free:
            async for attempt in again:
                with attempt:
                    if self._halted.is_set():
                        raise last or ProviderError("stopped", "not asked: the run was stopped")
                    received, seconds = await self._network.run(self._timed(body))
                    meter.latency_s = before_s + seconds
                    meter.tried_s += seconds
                    try:
                        result = await _result(received, read, meter)
                    except TransientError as error:
                        last = error
                        raise
        return result

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._halted.wait()

    async def _timed(self, body: Mapping[str, Any]) -> tuple[Received | ProviderError, float]:
        self.endpoint.opened()  # the first time this loads libraries, which is no doing of the server
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
        """Close the connections."""
        await self._network.close(self.endpoint)


def decoded(endpoint: Endpoint, received: Received) -> HttpAnswer:
    """As ``Endpoint.decoded``; a large body in small steps, between which other threads have their turn."""
    return endpoint.decoded(received, _Stepwise if len(received.content) > _LARGE else None)


@cache
def _reader() -> ThreadPoolExecutor:
    """Reads large bodies one at a time: several at once would leave other threads waiting longer."""
    return ThreadPoolExecutor(1, "large bodies")


class _Stepwise(json.JSONDecoder):
    """Without the scanner in C, which holds up every thread until it is done with the whole text."""

    def __init__(self) -> None:
        from json.scanner import py_make_scanner  # type: ignore[attr-defined]

        super().__init__()
        self.scan_once = py_make_scanner(self)


class _Network:
    """A thread with an event loop, from the first request on."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do it there."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _work(self) -> None:
        assert self._loop is not None
        self._loop.run_forever()
        self._loop.close()

    async def close(self, endpoint: Endpoint) -> None:
        """Close what was opened there, and end the thread."""
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
        if (error.retry_after_s or 0.0) > _LONGEST_WAIT_S:
            message = f"{error} (the server asks to wait {error.retry_after_s:.0f} s)"
            raise ProviderError(error.cause, message) from None
        raise


def _wait(state: RetryCallState) -> float:
    """At least what the server asked for, else exponential with full jitter."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after_s if isinstance(error, ProviderError) else None
    return max(asked or 0.0, _BACKOFF(state))
