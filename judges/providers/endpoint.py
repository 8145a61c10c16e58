"""One way to post to a hosted model, shared by the providers that speak HTTP through their vendor's SDK.

The SDKs are used for what they know (addresses, headers, connections, errors) and asked for the raw response, a way
they document for endpoints without a typed method. Their typed way costs twice the CPU per call: it walks the request
by its type annotations and builds a model of the response.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from judges.errors import InputError, ProviderError, TransientError
from judges.providers.http_errors import error_in_body, error_of_answer
from judges.providers.texts import one_line
from judges.spec import JudgeSpec

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

_CONNECT_S = 10.0
_NO_KEY = "no-key-needed"


@dataclass(frozen=True, slots=True)
class SDKErrors:
    """An SDK's exception classes; both SDKs name them alike and relate them to nothing in common."""

    timeout: type[Exception]
    connection: type[Exception]
    status: type[Exception]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Posts JSON and returns JSON, or raises what ``Provider.complete`` raises. No error shows the key."""

    client: AsyncOpenAI | AsyncAnthropic
    path: str
    errors: SDKErrors
    model: str
    key: str = field(repr=False)

    async def post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask once and decode the answer."""
        answer = await self._send(body)
        # Raised here and not while the SDK's exception is handled: that one carries the request with the key.
        if isinstance(answer, ProviderError):
            raise answer
        return answer

    async def _send(self, body: Mapping[str, Any]) -> dict[str, Any] | ProviderError:
        try:
            response = await self.client.post(self.path, body=body, cast_to=httpx2.Response)
        except self.errors.timeout:
            return TransientError("timeout", f"{self.model}: the server did not answer in time")
        except self.errors.connection as error:
            return TransientError("connection", one_line(f"{self.model}: {error.__cause__ or error}", self.key))
        except self.errors.status as error:
            return self._refused(error)
        try:
            answer = json.loads(response.content)
        except (ValueError, RecursionError):
            return self.no_reply("the answer is not JSON")
        return answer if isinstance(answer, dict) else self.no_reply("the answer is not a JSON object")

    def _refused(self, error: Any) -> ProviderError:
        body = error.body if error.body is not None else error.response.text
        return error_of_answer(error.status_code, error.response.headers, body, self.model, self.key)

    def no_reply(self, body: object) -> TransientError:
        """The error of an answer that came with status 200 and holds no reply."""
        return error_in_body(body, self.model, self.key)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()


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
