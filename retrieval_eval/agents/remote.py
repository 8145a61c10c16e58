"""Remote agents: an OpenAI-compatible chat endpoint, or any server that takes and returns a JSON object.

A separate thread sends and times the requests, so that other work does not distort their latency. It retries transient
errors. JMESPath expressions extract the answer, documents and citations from the untrusted reply.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, TypeAlias, TypeVar

from judges.errors import JudgeStoppedError, ProviderError, RejectedError, TransientError
from judges.masking import keep_secret, storable
from judges.pace import LONGEST_WAIT_S, backoff_s
from judges.providers.endpoint import (
    Endpoint,
    HttpAnswer,
    Target,
    from_environment,
    headers_of,
    token_count,
    with_extras,
)
from judges.providers.http_answers import ForeignStreamError, Received, error_in_body, finish_of
from judges.spec import cost_usd
from judges.types import Document, Finish, Message, Query, Usage
from retrieval_eval.agents.spec import AgentSpec, MappingSpec
from retrieval_eval.agents.types import Meter, ReplyOrFailure, RetrievedText, cited_numbers

Result = TypeVar("Result")
_Extracted: TypeAlias = tuple[str, tuple[RetrievedText, ...], tuple[str, ...]]
"""The answer, the retrieved documents and the cited doc_ids of a reply."""

_LARGE = 2**20
"""Size in bytes above which parsing a response body would distort the measured latency of other replies."""

CHAT_MAPPING = MappingSpec(
    answer="choices[0].message.content", input_tokens="usage.prompt_tokens", output_tokens="usage.completion_tokens"
)
"""Default ``mapping`` for chat completions. It has no citations, whose place differs between Perplexity, Azure and
others."""

_PLACE = re.compile(r"\{(query|query_id|messages)\}")
_MESSAGES = "{messages}"


class RemoteAgent:
    """Agent behind an HTTP address: posts a query as JSON, and extracts the answer from the response by ``mapping``.

    If a response names documents by id only, ``corpus`` provides their texts. The agent follows no redirects, reads
    keys from environment variables, and shows the keys in no message.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, name: str, spec: AgentSpec, corpus: Mapping[str, Document], identity: str) -> None:
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
        request = dict(spec.request or {})
        self._request = (
            request if spec.kind == "http" else with_extras({"model": spec.model, "messages": _MESSAGES}, request)
        )

    @property
    def endpoint(self) -> Endpoint:
        return self._requests.endpoint

    async def reply(self, query: Query) -> ReplyOrFailure:
        meter = Meter()
        try:
            usage, reported_usd, extracted = await self._requests.post(filled(self._request, query), self._read, meter)
        except ProviderError as error:
            return meter.failure(error)
        meter.count(usage, 1, cost_usd(usage, self._spec.price) if reported_usd is None else reported_usd)
        if isinstance(extracted, ProviderError):
            return meter.failure(extracted)
        return meter.reply(*extracted)

    def _read(self, received: Received) -> tuple[Usage, float | None, _Extracted | ProviderError]:
        """The response's tokens and dollars, and its extracted parts, or the error if they cannot be used."""
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
        self._requests.halt()

    async def close(self) -> None:
        await self._requests.close()


def _require_completion(body: Mapping[str, Any], name: str) -> None:
    """Raise the error in a response that has status 200 but reports an error of the server or gateway."""
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
    """A copy of the request with ``{query}``, ``{query_id}`` and ``{messages}`` replaced in all of its strings.

    If a string is exactly ``{messages}``, a list of chat messages replaces it: the query's earlier messages, then the
    query. In a longer string, the earlier messages replace ``{messages}``, one per line.
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


class Requests:
    """Posts requests to one address: ``target.concurrency`` at a time, each with at most ``most`` attempts.

    The measured time of an attempt runs from sending the request to the response's last byte. A separate thread with
    its own event loop measures it, so it excludes this program's other work and the parsing of the response.
    """

    def __init__(self, target: Target, most: int) -> None:
        self.endpoint = Endpoint(target)
        self._timeout_s, self._max_attempts = target.timeout_s, most
        self._slots = asyncio.Semaphore(target.concurrency)
        self._network = _Network()
        self._halted = asyncio.Event()

    def halt(self) -> None:
        """Send no further requests or retries; requests that have been sent finish."""
        self._halted.set()

    async def post(self, body: Mapping[str, Any], read: Callable[[Received], Result], meter: Meter) -> Result:
        """Post the body, with retries; returns what ``read`` returns for the first response without an error.

        This method adds failed attempts to the meter; the caller adds the successful one. The latency is that of the
        last attempt. Waiting for a free slot or before a retry is not counted.

        Raises:
            ProviderError: the error of the last attempt; a permanent error is not retried.
        """
        before_s, attempts = meter.latency_s, 0
        async with self._slots:
            if self._halted.is_set():
                raise ProviderError("stopped", "the agent was not asked, since the run was stopped")
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
    """Parse a response's body, see ``Endpoint.decoded``; a large body step by step, so that other threads can run."""
    return endpoint.decoded(received, _Stepwise if len(received.content) > _LARGE else None)


@cache
def _reader() -> ThreadPoolExecutor:
    """The thread that parses large response bodies, one at a time: several at once would delay other threads more."""
    return ThreadPoolExecutor(1, "large bodies")


class _Stepwise(json.JSONDecoder):
    """JSON decoder without the C scanner, which blocks all threads until it has parsed the whole text."""

    def __init__(self) -> None:
        from json.scanner import py_make_scanner  # type: ignore[attr-defined]

        super().__init__()
        self.scan_once = py_make_scanner(self)


class _Network:
    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    async def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def _work(self) -> None:
        assert self._loop is not None
        self._loop.run_forever()
        self._loop.close()

    async def close(self, endpoint: Endpoint) -> None:
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


_MOST_DOCUMENTS = 1000
_SCORE = "\0score"


def read_reply(body: Any, spec: MappingSpec, corpus: Mapping[str, Document]) -> _Extracted:
    """Extract the answer, documents and citations from a response; ``corpus`` has the texts of documents given by id.

    Raises:
        ProviderError: ``empty`` if there is no answer, ``contract`` if a part has the wrong type.
    """
    answer = _answer(body, spec)
    entries = _documents(body, spec, corpus)
    citations = None if spec.citations is None else _at(body, spec.citations)
    ids = [entry.doc_id for entry in entries]
    cited = cited_numbers(answer, len(ids)) if citations is None else citations
    documents = _ranked(entries)
    # If no document has a text, they are only citations. A ranking with some texts missing could not be scored.
    without_text = [document.doc_id for document in documents if not document.text.strip()]
    if 0 < len(without_text) < len(documents):
        raise ProviderError(
            "contract", f"document {without_text[0]!r} has no text, neither in the reply nor in 'data.corpus'"
        )
    return answer, documents, _citations(cited, ids)


def read_usage(body: Any, spec: MappingSpec) -> tuple[Usage, float | None]:
    """The tokens and dollars that a response reports; ``None`` for figures that are missing or invalid."""
    dollars = None if spec.cost_usd is None else _number(_at(body, spec.cost_usd))
    read, written = (
        None if expression is None else token_count({"count": _at(body, expression)}, "count")
        for expression in (spec.input_tokens, spec.output_tokens)
    )
    usage = Usage(read, None, written)
    return usage, dollars if dollars is None or dollars >= 0 else None


def _answer(body: Any, spec: MappingSpec) -> str:
    answer = _at(body, spec.answer)
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        raise ProviderError("empty", f"the agent's reply has no answer at {spec.answer!r}")
    if not isinstance(answer, str):
        raise ProviderError("contract", f"the value at {spec.answer!r} is not a text")
    return storable(answer)


def _documents(body: Any, spec: MappingSpec, corpus: Mapping[str, Document]) -> list[Document]:
    """The documents in the response's order; until they are ranked, ``metadata`` contains their scores."""
    listed = None if spec.documents is None else _at(body, spec.documents)
    if listed is None:
        return []
    if not isinstance(listed, list) or len(listed) > _MOST_DOCUMENTS:
        raise ProviderError(
            "contract", f"the value at {spec.documents!r} is not a list of at most {_MOST_DOCUMENTS} documents"
        )
    return [_document(entry, number, spec, corpus) for number, entry in enumerate(listed, start=1)]


def _document(entry: Any, number: int, spec: MappingSpec, corpus: Mapping[str, Document]) -> Document:
    if isinstance(entry, str):
        entry = {spec.doc_id: entry} if entry in corpus else {spec.text: entry}
        doc_id, text = entry.get(spec.doc_id), entry.get(spec.text)
    else:
        doc_id, text = _at(entry, spec.doc_id), _at(entry, spec.text)
    if isinstance(doc_id, int) and not isinstance(doc_id, bool):
        doc_id = str(doc_id)
    if not isinstance(doc_id, str | None) or not isinstance(text, str | None) or not (doc_id or text):
        raise ProviderError(
            "contract", f"document {number} of the reply has neither an id at {spec.doc_id!r} nor a text"
        )
    known = corpus.get(doc_id or "")
    text = storable(text or (known.text if known is not None else ""))
    doc_id = storable(doc_id) if doc_id else "sha256-" + hashlib.sha256(text.encode()).hexdigest()[:16]
    score, title = _number(_at(entry, spec.score)), _at(entry, spec.title)
    metadata = {} if known is None else dict(known.metadata)
    if isinstance(title, str) and title:
        metadata["title"] = storable(title)
    return Document(doc_id, text, metadata if score is None else {**metadata, _SCORE: repr(score)})


def _ranked(entries: Sequence[Document]) -> tuple[RetrievedText, ...]:
    pieces_by_id: dict[str, list[Document]] = {}
    for entry in entries:
        pieces_by_id.setdefault(entry.doc_id, []).append(entry)
    ranked = []
    for rank, (doc_id, pieces) in enumerate(pieces_by_id.items(), start=1):
        text = "\n\n".join(dict.fromkeys(piece.text for piece in pieces if piece.text))
        metadata = dict(pieces[0].metadata)
        score = metadata.pop(_SCORE, None)
        ranked.append(RetrievedText(doc_id, text, rank, None if score is None else float(score), metadata))
    return tuple(ranked)


def _citations(citations: Any, ids: Sequence[str]) -> tuple[str, ...]:
    """The cited doc_ids; a number is a position in ``ids`` from 1, and numbers beyond ``ids`` are ignored."""
    if not isinstance(citations, list | tuple):
        raise ProviderError("contract", "the citations in the reply are not a list")
    doc_ids = []
    for entry in citations:
        if isinstance(entry, str) and entry.strip():
            doc_ids.append(storable(entry))
        elif isinstance(entry, int) and not isinstance(entry, bool):
            doc_ids += [ids[entry - 1]] if 1 <= entry <= len(ids) else []
        else:
            raise ProviderError("contract", "a citation in the reply is neither a document's id nor its number")
    return tuple(dict.fromkeys(doc_ids))


def _at(value: Any, expression: str) -> Any:
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        return jmespath.search(expression, value)
    except JMESPathError as error:
        problem = str(error).splitlines()[0]
        raise ProviderError("contract", f"{expression!r} cannot be evaluated on the reply: {problem}") from None
    except RecursionError:
        raise ProviderError("contract", "the reply is nested too deeply") from None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= 1e300 and math.isfinite(value) else None
