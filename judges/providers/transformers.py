"""Local models through Hugging Face transformers: causal chat models and the text-to-text family (FLAN-T5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judges.providers.batching import Batcher
from judges.providers.local_model import Conversation, Decoding, LocalModel
from judges.providers.local_source import local_source
from judges.providers.texts import storable
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt, Usage


class TransformersProvider:
    """Runs a model from a local folder (``path``) or by name (``model``); up to ``concurrency`` prompts in one batch.

    Greedy unless a temperature is declared; a seed then fixes the run as a whole, not the single reply, since what is
    sampled together depends on what was waiting. The model is loaded with the first prompt.
    """

    judges_names = False

    def __init__(self, spec: JudgeSpec) -> None:
        """Check what can be checked without loading.

        Raises:
            MissingExtraError: torch or transformers is not installed.
            InputError: the folder is missing or holds no model, or the device is not there.
        """
        self._local = local_source(spec)
        self._decoding = Decoding(spec.max_tokens, spec.temperature, spec.seed)
        self._model: LocalModel | None = None
        self._batcher = Batcher(self._replies, spec.concurrency)
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": "transformers",
            "model": self._local.name,
            "weights": self._local.weights,
            "temperature": spec.temperature,
            "seed": spec.seed,
            "max_tokens": spec.max_tokens,
        }

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once, together with what else is waiting.

        Raises:
            RejectedError: the prompt does not fit the model, or memory.
            JudgeStoppedError: the model cannot be loaded.
        """
        return await self._batcher.submit(_conversation(prompt))

    def _replies(self, conversations: Sequence[Conversation]) -> list[Completion | Exception]:
        if self._model is None:
            self._model = LocalModel(self._local.source, self._local.device, self._decoding)
        replies: list[Completion | Exception] = []
        for reply in self._model.generate(conversations):
            if isinstance(reply, Exception):
                replies.append(reply)
                continue
            usage = Usage(reply.input_tokens, None, reply.output_tokens)
            replies.append(Completion(storable(reply.text), self._local.name, reply.finish, usage))
        return replies

    async def close(self) -> None:
        """Release the model's memory."""
        await self._batcher.close()
        self._model = None


def _conversation(prompt: Prompt) -> Conversation:
    messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
    messages.append({"role": "user", "content": prompt.user})
    return [*messages, *({"role": turn.role, "content": turn.text} for turn in prompt.turns)]
