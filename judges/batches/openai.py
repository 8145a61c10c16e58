"""OpenAI's batches: a file of requests goes up, a batch is made of it, files of replies and of errors come down."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from judges.batches.base import Batch, Ending, HostedProvider, Outcome
from judges.batches.sdk import Session, refused_as_a_whole, reply_of
from judges.errors import ProviderError, TransientError
from judges.providers.endpoint import api_key
from judges.providers.openai import KEY_VARIABLE, OPENAI_URL
from judges.spec import JudgeSpec
from judges.types import Completion

_MARK = "ragleague"
"""The key of a batch's metadata that holds its marker."""
_ENDINGS: Mapping[str, Ending] = {"completed": "completed", "expired": "expired", "cancelled": "cancelled"}
_SKEW_S = 86_400.0
"""A batch that is older than ours by so much is not ours, whatever the clocks say."""
_TOO_MUCH_WAITS = "token_limit_exceeded"
"""OpenAI bounds the tokens that wait in batches: what is beyond goes once others have ended."""


class OpenAIBatches:
    """The batch API of OpenAI, and of servers that have the same one (Azure OpenAI)."""

    most_requests = 50_000
    most_bytes = 200 * 10**6

    def __init__(self, spec: JudgeSpec, provider: HostedProvider) -> None:
        import openai

        key = api_key(spec, KEY_VARIABLE)
        # Nothing is sent twice: a batch whose answer was lost is looked for first. No redirect takes the key elsewhere.
        self._sdk = openai.AsyncOpenAI(
            api_key=key,
            base_url=spec.base_url or OPENAI_URL,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )
        self._provider = provider
        self._session = Session(spec.model, openai.APIStatusError, openai.OpenAIError)

    def line(self, custom_id: str, body: Mapping[str, Any]) -> bytes:
        """One request as JSON on one line."""
        request = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
        return json.dumps(request, separators=(",", ":")).encode("ascii")

    async def submit(self, marker: str, lines: Sequence[bytes]) -> str:
        """Upload the requests and make a batch of them."""
        content = b"\n".join(lines)

        async def create() -> str:
            file = await self._sdk.files.create(file=(f"{_MARK}-{marker}.jsonl", content), purpose="batch")
            try:
                batch = await self._sdk.batches.create(
                    input_file_id=file.id,
                    endpoint="/v1/chat/completions",
                    completion_window="24h",
                    metadata={_MARK: marker},
                )
            except openai.APIStatusError as error:
                if error.status_code < 500:  # else there may be a batch of it
                    await self._sdk.files.delete(file.id)
                raise
            return batch.id

        import openai

        return await self._session.call(create)

    async def find(self, batch: Batch, custom_ids: Collection[str]) -> str | None:  # noqa: ARG002 - the marker is enough
        """The batch that carries the marker."""

        async def search() -> str | None:
            async for found in self._sdk.batches.list(limit=100):  # the newest first
                if found.created_at < batch.made_at - _SKEW_S:
                    return None
                if batch.marker in (found.metadata or {}).values():
                    return found.id
            return None

        return await self._session.call(search)

    async def look(self, remote_id: str) -> Ending | ProviderError | None:
        """How a batch has ended; ``None`` while it has not, an error if validation refused it."""
        return await self._session.call(lambda: self._state(remote_id))

    async def cancel(self, remote_id: str) -> None:
        """Ask for no more replies; it takes the server up to ten minutes."""
        await self._session.call(lambda: self._sdk.batches.cancel(remote_id))

    async def delete_files(self, remote_id: str) -> None:
        """Delete the file of requests, and those of replies and errors, which the server would keep for weeks."""

        async def delete() -> None:
            batch = await self._sdk.batches.retrieve(remote_id)
            for file_id in filter(None, (batch.input_file_id, batch.output_file_id, batch.error_file_id)):
                with suppress(openai.NotFoundError):  # a run before this one was ended in the middle of it
                    await self._sdk.files.delete(file_id)

        import openai

        await self._session.call(delete)

    async def _state(self, remote_id: str) -> Ending | ProviderError | None:
        batch = await self._sdk.batches.retrieve(remote_id)
        if batch.status != "failed":
            return _ENDINGS.get(batch.status)
        said = batch.errors.data[0] if batch.errors and batch.errors.data else None
        error = {"code": said and said.code, "message": said and said.message}
        return refused_as_a_whole(
            self._session.refused(429 if error["code"] == _TOO_MUCH_WAITS else 400, {"error": error})
        )

    async def outcomes(self, remote_id: str) -> AsyncIterator[Outcome]:
        """What both files say."""

        async def files() -> list[str]:
            batch = await self._sdk.batches.retrieve(remote_id)
            return [file_id for file_id in (batch.output_file_id, batch.error_file_id) if file_id]

        for file_id in await self._session.call(files):
            async for said in self._session.lines(self._sdk.files.with_streaming_response.content(file_id)):
                yield str(said.get("custom_id")), self._outcome(said)

    def _outcome(self, said: Mapping[str, Any]) -> Completion | ProviderError:
        response = said.get("response")
        if not isinstance(response, Mapping):  # expired or cancelled before it was its turn
            error = said.get("error")
            told = error.get("message") if isinstance(error, Mapping) else None
            return TransientError("timeout", self._session.message(f"batch: {told or 'no reply to this request'}"))
        status = response.get("status_code")
        if status == 200:
            return reply_of(self._provider, response.get("body"))
        return self._session.refused(status if isinstance(status, int) else 500, response.get("body"))

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()
