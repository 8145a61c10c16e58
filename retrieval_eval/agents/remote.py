"""Agents behind an address: an OpenAI-compatible chat endpoint, or any server that takes and gives a JSON object."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from judges.errors import InputError, JudgeStoppedError, ProviderError, RejectedError
from judges.masking import keep_secret
from judges.pricing import cost_usd
from judges.providers.endpoint import Received, Target, with_extras
from judges.types import Document, Query, Usage
from retrieval_eval.agents.attempts import Requests, decoded
from retrieval_eval.agents.mapping import Mapped, read_reply, read_usage
from retrieval_eval.agents.meter import Meter
from retrieval_eval.agents.spec import AgentSpec, MappingSpec
from retrieval_eval.agents.streams import whole
from retrieval_eval.agents.types import Reply

CHAT_MAPPING = MappingSpec(
    answer="choices[0].message.content", input_tokens="usage.prompt_tokens", output_tokens="usage.completion_tokens"
)
"""Where a chat completion has its answer; Perplexity's, Azure's and others' citations need a mapping of one's own."""

_PLACE = re.compile(r"\{(query|query_id)\}")


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
        headers = {header: _from_environment(variable) for header, variable in spec.headers_env.items()}
        if spec.api_key_env is not None:
            headers["Authorization"] = f"Bearer {_from_environment(spec.api_key_env)}"
        for value in headers.values():
            keep_secret(*_secrets(value))
        url = spec.url or f"{(spec.base_url or '').rstrip('/')}/chat/completions"
        sent = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        named_by = "'url'" if spec.kind == "http" else "'model' and 'base_url'"
        target = Target(url, sent, name, spec.concurrency, spec.timeout_s, named_by)
        self._requests = Requests(target, spec.max_attempts)
        self._mapping = spec.mapping or CHAT_MAPPING
        self._request = _request(spec)

    async def reply(self, query: Query) -> Reply:
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
            if received.status == HTTPStatus.OK:
                received = whole(received, self.name)
            body = decoded(self._requests.endpoint, received).body
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

    async def close(self) -> None:
        """Close the connections."""
        await self._requests.close()


def filled(request: Any, query: Query) -> Any:
    """The request with ``{query}`` and ``{query_id}`` replaced in its texts, and nothing else changed."""
    if isinstance(request, str):
        values = {"query": query.text, "query_id": query.query_id}
        return _PLACE.sub(lambda match: values[match[1]], request)
    if isinstance(request, dict):
        return {name: filled(value, query) for name, value in request.items()}
    return [filled(value, query) for value in request] if isinstance(request, list) else request


def _request(spec: AgentSpec) -> dict[str, Any]:
    if spec.kind == "http":
        return dict(spec.request or {})
    chat = {"model": spec.model, "messages": [{"role": "user", "content": "{query}"}]}
    return with_extras(chat, spec.request or {})


def _secrets(value: str) -> list[str]:
    """What a header's value holds that nobody may see: its words, as in ``Bearer KEY``, and a password."""
    words = value.split()
    with suppress(ValueError):
        if words[0].lower() == "basic":
            words.append(base64.b64decode(words[-1]).decode().partition(":")[2])
    return words


def _from_environment(variable: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(f"set the environment variable {variable}")
    if not (value.isascii() and value.isprintable()):
        raise InputError(f"the value of {variable} holds characters that no header can carry; set it again")
    return value
