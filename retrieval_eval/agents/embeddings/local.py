"""Embeddings by a local transformers model: the mean of its last layer over a text's tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from judges.errors import JudgeStoppedError, ProviderError
from judges.providers.local_source import LocalSource
from judges.providers.texts import one_line
from retrieval_eval.agents.embeddings.base import of_length_one
from retrieval_eval.agents.meter import Meter

if TYPE_CHECKING:
    from retrieval_eval.agents.embeddings.base import Vectors

_LONGEST = 512
"""Tokens of a text that are read, where the model does not say that it can do with fewer."""


class LocalEmbedder:
    """Mean pooling as in Sentence-BERT (Reimers and Gurevych 2019, section 3). The model is loaded with the first text.

    It works in a thread of its own, one batch after another; what is longer than the model reads is cut off.
    """

    note = ""
    parallel = 1

    def __init__(self, local: LocalSource) -> None:
        self._local = local
        self._loaded: tuple[Any, Any, int] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self.identity: Mapping[str, str | int | None] = {
            "provider": "transformers",
            "model": local.name,
            "weights": local.weights,
            "pooling": "mean",
        }

    async def embed(self, texts: Sequence[str], meter: Meter) -> Vectors:
        """Vectors of length 1.

        Raises:
            ProviderError: the model cannot be loaded, or memory does not suffice.
        """
        self._thread = self._thread or ThreadPoolExecutor(max_workers=1)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._load)
        return await loop.run_in_executor(self._thread, self._timed, list(texts), meter)

    def _load(self) -> None:
        if self._loaded is not None:
            return
        import transformers

        transformers.utils.logging.disable_progress_bar()  # it would write across ours
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._local.source)
            model = transformers.AutoModel.from_pretrained(self._local.source).to(self._local.device).eval()
        except Exception as error:  # broken files raise what the libraries below please
            raise JudgeStoppedError(
                "unknown_model", one_line(f"{self._local.source}: cannot be loaded: {error}")
            ) from error
        known = (tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None), _LONGEST)
        self._loaded = tokenizer, model, min(length for length in known if length)

    def _timed(self, texts: list[str], meter: Meter) -> Vectors:
        """Within the thread, so that the wait for a turn does not count."""
        with meter.timed():
            return self._pooled(texts)

    def _pooled(self, texts: list[str]) -> Vectors:
        import torch

        assert self._loaded is not None  # by embed
        tokenizer, model, longest = self._loaded
        inputs = tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
        inputs = {name: values.to(model.device) for name, values in inputs.items()}
        try:
            with torch.inference_mode():
                tokens = model(**inputs).last_hidden_state
        except torch.OutOfMemoryError:
            message = f"{self._local.name}: out of memory with {len(texts)} texts; lower 'batch'"
            raise ProviderError("server_error", message) from None
        mask = inputs["attention_mask"].unsqueeze(-1).to(tokens.dtype)
        means = (tokens * mask).sum(1) / mask.sum(1).clamp(min=1)
        return of_length_one(means.float().cpu().numpy())

    async def close(self) -> None:
        """Release the model's memory."""
        if self._thread is not None:
            self._thread.shutdown()
        self._loaded = self._thread = None
