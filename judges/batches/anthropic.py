"""Anthropic's message batches: the requests go up in one body, the results come down as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

from judges.batches.base import Batch, Ending, HostedProvider, Outcome
from judges.batches.sdk import Session, UndecidedError, reply_of
from judges.errors import ProviderError, TransientError
from judges.providers.anthropic import ANTHROPIC_URL, KEY_VARIABLE
from judges.providers.endpoint import api_key
from judges.spec import JudgeSpec
from judges.types import Completion

_SKEW_S = 3600.0
"""How far the server's clock may be behind ours."""
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
}
"""The HTTP status that goes with an error's type; any other is the server's own failure."""


class AnthropicBatches:
    """The message batches of Anthropic."""

    most_requests = 100_000
    most_bytes = 256 * 10**6

    def __init__(self, spec: JudgeSpec, provider: HostedProvider) -> None:
        import anthropic

        key = api_key(spec, KEY_VARIABLE)
        # Nothing is sent twice: a batch whose answer was lost is looked for first. No redirect takes the key elsewhere.
        self._sdk = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=spec.base_url or ANTHROPIC_URL,
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False),
        )
        self._provider = provider
        self._session = Session(spec.model, anthropic.APIStatusError, anthropic.AnthropicError)

    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        """One request as JSON on one line."""
        return json.dumps({"custom_id": custom_id, "params": body}, separators=(",", ":")).encode("ascii")

    async def submit(self, marker: str, lines: Sequence[bytes]) -> str:  # noqa: ARG002 - there is no place for it
        """Hand the requests in."""
        requests = [json.loads(line) for line in lines]

        async def create() -> str:
            return (await self._sdk.messages.batches.create(requests=requests)).id

        return await self._session.call(create)

    async def find(self, batch: Batch, custom_ids: Collection[str]) -> str | None:
        """The batch that holds these requests.

        These batches carry no mark, and tell their requests' ids only at their end: one as large as ours that was made
        since then may be it until then.
        """
        undecided = False
        for candidate, ended in await self._session.call(lambda: self._as_large(batch)):
            if not ended:
                undecided = True
            elif await self._first_id(candidate) in custom_ids:
                return candidate
        if undecided:
            raise UndecidedError(self._session.model)
        return None

    async def _as_large(self, batch: Batch) -> list[tuple[str, bool]]:
        """Batches with as many requests, made since ours was to be, and whether each has ended."""
        found = []
        async for each in self._sdk.messages.batches.list(limit=100):  # the newest first
            if each.created_at.timestamp() < batch.made_at - _SKEW_S:
                break
            counts = each.request_counts
            requests = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
            if requests == batch.requests:
                found.append((each.id, each.processing_status == "ended"))
        return found

    async def _first_id(self, remote_id: str) -> str | None:
        async for said in self._results(remote_id):
            return str(said.get("custom_id"))
        return None

    async def look(self, remote_id: str) -> Ending | ProviderError | None:
        """How a batch has ended, by what became of its requests; ``None`` while it has not."""

        async def ended() -> Ending | None:
            batch = await self._sdk.messages.batches.retrieve(remote_id)
            if batch.processing_status != "ended":
                return None
            if batch.request_counts.canceled:
                return "cancelled"
            return "expired" if batch.request_counts.expired else "completed"

        return await self._session.call(ended)

    async def cancel(self, remote_id: str) -> None:
        """Ask for no more replies."""
        await self._session.call(lambda: self._sdk.messages.batches.cancel(remote_id))

    async def delete_files(self, remote_id: str) -> None:
        """There are none: requests go up with the batch itself, which the server keeps for 29 days."""

    async def outcomes(self, remote_id: str) -> AsyncIterator[Outcome]:
        """What became of each request."""
        async for said in self._results(remote_id):
            yield str(said.get("custom_id")), self._outcome(said.get("result"))

    def _results(self, remote_id: str) -> AsyncIterator[dict[str, Any]]:
        return self._session.lines(self._sdk.messages.batches.with_streaming_response.results(remote_id))

    def _outcome(self, result: Any) -> Completion | ProviderError:
        kind = result.get("type") if isinstance(result, Mapping) else None
        if kind == "succeeded":
            return reply_of(self._provider, result.get("message"))
        if kind == "errored":
            body = result.get("error")
            inner = body.get("error") if isinstance(body, Mapping) else None
            named = inner.get("type") if isinstance(inner, Mapping) else None
            return self._session.refused(_STATUS.get(str(named), 500), body)
        return TransientError("timeout", self._session.message(f"batch: this request is {kind or 'lost'}"))

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()
