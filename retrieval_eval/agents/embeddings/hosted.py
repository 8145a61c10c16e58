"""Embeddings by a server that speaks OpenAI's: OpenAI itself, vLLM, Ollama, text-embeddings-inference, gateways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judges.providers.endpoint import HttpAnswer, Received, api_key, sdk_target, token_count, unused_client
from judges.providers.openai import KEY_VARIABLE, OPENAI_URL
from judges.spec import JudgeSpec
from judges.types import Usage
from retrieval_eval.agents.attempts import Requests, decoded
from retrieval_eval.agents.embedding_spec import EmbeddingsSpec
from retrieval_eval.agents.embeddings.base import of_length_one
from retrieval_eval.agents.meter import Meter

if TYPE_CHECKING:
    from retrieval_eval.agents.embeddings.base import Vectors


class HostedEmbedder:
    """Asks with the openai SDK's address and headers; a call that may succeed later is tried again."""

    note = ""

    def __init__(self, spec: EmbeddingsSpec) -> None:
        """Prepare a client; nothing is sent.

        Raises:
            InputError: no key.
        """
        import openai

        self._spec = spec
        self.parallel = spec.concurrency
        asked = JudgeSpec(
            provider="openai",
            model=spec.model,
            base_url=spec.base_url,
            api_key_env=spec.api_key_env,
            timeout_s=spec.timeout_s,
            concurrency=spec.concurrency,
        )
        key = api_key(asked, KEY_VARIABLE)
        sdk = openai.AsyncOpenAI(api_key=key, base_url=spec.base_url or OPENAI_URL, http_client=unused_client())
        self._requests = Requests(sdk_target(sdk, "/embeddings", asked), spec.max_attempts)
        self.identity: Mapping[str, str | int | None] = {
            "provider": "openai",
            "model": spec.model,
            "dimensions": spec.dimensions,
        }

    async def embed(self, texts: Sequence[str], meter: Meter) -> Vectors:
        """Vectors of length 1.

        Raises:
            ProviderError: the server gave none.
        """
        body: dict[str, Any] = {"model": self._spec.model, "input": list(texts), "encoding_format": "float"}
        if self._spec.dimensions is not None:
            body["dimensions"] = self._spec.dimensions

        def read(received: Received) -> tuple[Vectors, int | None]:
            answer = decoded(self._requests.endpoint, received)
            vectors = _vectors(answer, len(texts))
            if vectors is None:
                raise self._requests.endpoint.no_reply(answer.body)
            usage = answer.body.get("usage")
            return vectors, token_count(usage, "prompt_tokens") if isinstance(usage, Mapping) else None

        vectors, tokens = await self._requests.post(body, read, meter)
        meter.count(Usage(input_tokens=tokens), 1, self._cost_usd(tokens))
        return of_length_one(vectors)

    def _cost_usd(self, tokens: int | None) -> float | None:
        price = self._spec.usd_per_million_tokens
        if price == 0:
            return 0.0
        return None if price is None or tokens is None else tokens * price * 1e-6

    async def close(self) -> None:
        """Close the connections."""
        await self._requests.close()


def _vectors(answer: HttpAnswer, number: int) -> Vectors | None:
    """The vectors in the order of the texts; ``None`` where the answer does not hold one of finite numbers for each."""
    import numpy as np

    try:
        entries = sorted(answer.body["data"], key=lambda entry: int(entry["index"]))
        if [entry["index"] for entry in entries] != list(range(number)):
            return None
        vectors = np.array([entry["embedding"] for entry in entries], dtype=np.float32)
    except (LookupError, TypeError, ValueError):
        return None
    return vectors if vectors.ndim == 2 and vectors.shape[1] and bool(np.isfinite(vectors).all()) else None
