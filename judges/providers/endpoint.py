"""One way to post to a hosted model, shared by the providers that speak HTTP.

The vendor's SDK is asked once for what it knows: the address, the headers, and its HTTP client on aiohttp. Each call
then goes through that client directly. The SDKs' own ``post`` costs almost twice the CPU per call even on aiohttp: it
builds options, headers and address anew each time. Their typed methods cost three to five times as much: they walk the
request by its type annotations and build a model of the response. ``benchmarks/transport.py`` compares these ways.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from judges.errors import InputError, ProviderError, TransientError
from judges.providers.http_errors import error_in_body, error_of_answer
from judges.providers.rate_headers import allowance_of
from judges.providers.texts import one_line, without
from judges.spec import JudgeSpec
from judges.types import Allowance

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

_CONNECT_S = 10.0
_NO_KEY = "no-key-needed"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The JSON object of an answer with status 200, and what its headers say is left of the rate limits."""

    body: dict[str, Any]
    allowance: Allowance | None


class Endpoint:
    """Posts JSON and returns JSON, or raises what ``Provider.complete`` raises. No error shows the key."""

    def __init__(
        self, sdk: AsyncOpenAI | AsyncAnthropic, http: httpx2.AsyncClient, path: str, model: str, key: str
    ) -> None:
        """Take address and headers from ``sdk``; ``http`` is the client that it was given.

        Args:
            sdk: knows the address and the headers.
            http: sends; its timeouts hold for each call.
            path: below the SDK's address.
            model: for messages.
            key: kept out of messages.
        """
        # aiohttp's own exceptions are not all translated by the SDKs' transport; see ``_lost``.
        import aiohttp

        self._http, self._model, self._key = http, model, key
        self._url = sdk.base_url.copy_with(path=sdk.base_url.path.rstrip("/") + path)
        self._headers = http.headers.copy()
        for name, value in {**sdk.auth_headers, **sdk.default_headers}.items():
            if isinstance(value, str):  # the SDKs mark a header that is not to be sent
                self._headers[name] = value
        self._extensions = {"timeout": http.timeout.as_dict()}
        self._lost_errors = (httpx2.RequestError, aiohttp.ClientError, OSError)

    async def post(self, body: Mapping[str, Any]) -> HttpAnswer:
        """Ask once and decode the answer."""
        answer = await self._send(body)
        # Raised here and not while the client's exception is handled: that one carries the request with the key.
        if isinstance(answer, ProviderError):
            raise answer
        return answer

    async def _send(self, body: Mapping[str, Any]) -> HttpAnswer | ProviderError:
        content = json.dumps(body, separators=(",", ":")).encode("ascii")
        request = httpx2.Request("POST", self._url, headers=self._headers, content=content, extensions=self._extensions)
        try:
            # A redirect is not followed: the key is for the server that was named.
            response = await self._http.send(request, follow_redirects=False)
        except self._lost_errors as error:
            return self._lost(error)
        received = without(response.content, self._key)
        try:
            said = json.loads(received)
        except (ValueError, RecursionError):
            said = None
        allowance = allowance_of(response.headers)
        if not response.is_success:
            told = received.decode(response.encoding or "utf-8", "replace") if said is None else said
            status, headers = response.status_code, response.headers
            return error_of_answer(status, headers, told, self._model, secret=self._key, allowance=allowance)
        if not isinstance(said, dict):
            return self.no_reply("the answer is not JSON" if said is None else "the answer is not a JSON object")
        return HttpAnswer(said, allowance)

    def _lost(self, error: Exception) -> TransientError:
        """The cause decides what it was: openai's transport calls every lost connection a timeout while connecting."""
        cause = error.__cause__ or error
        if isinstance(cause, TimeoutError):
            return TransientError("timeout", f"{self._model}: the server did not answer in time")
        return TransientError("connection", one_line(f"{self._model}: {str(cause) or type(cause).__name__}", self._key))

    def no_reply(self, body: object) -> TransientError:
        """The error of an answer that came with status 200 and holds no reply."""
        return error_in_body(body, self._model, self._key)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def api_key(spec: JudgeSpec, default_variable: str) -> str:
    """The key from the environment; a stand-in where a server of one's own is named and no key is set.

    Raises:
        InputError: no key, or one that no header can carry.
    """
    variable = spec.api_key_env or default_variable
    key = os.environ.get(variable, "").strip()
    if key:
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"the key in {variable} holds characters that no key has; set it again")
        return key
    if spec.base_url is None or spec.api_key_env is not None:
        raise InputError(f"no key for model {spec.model!r}: set the environment variable {variable}")
    return _NO_KEY


def token_count(usage: Mapping[str, Any], name: str) -> int | None:
    """A whole number from a usage block; servers leave it out, or say ``null``."""
    count = usage.get(name)
    return count if isinstance(count, int) else None


def timeout(spec: JudgeSpec) -> httpx2.Timeout:
    """Between two reads as long as a whole call may take; whoever asks bounds the call as a whole."""
    return httpx2.Timeout(spec.timeout_s, connect=min(_CONNECT_S, spec.timeout_s))


def limits(spec: JudgeSpec) -> httpx2.Limits:
    """A connection for each concurrent call, all kept: the SDKs keep 100 and would reopen the rest."""
    return httpx2.Limits(max_connections=spec.concurrency, max_keepalive_connections=spec.concurrency)


def with_extras(body: Mapping[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """``body`` with the declared further fields; where both hold an object, these are joined."""
    joined = dict(body)
    for name, value in extras.items():
        own = joined.get(name)
        if isinstance(own, Mapping) and isinstance(value, Mapping):
            joined[name] = with_extras(own, value)
        else:
            joined[name] = value
    return joined


def declared_extras(spec: JudgeSpec) -> dict[str, str]:
    """``extra_body`` as a part of a provider's identity, since it decides the reply; nothing where it is empty."""
    return {"extra_body": json.dumps(spec.extra_body, sort_keys=True)} if spec.extra_body else {}
