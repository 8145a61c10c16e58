"""Local models through Hugging Face transformers: causal chat models and the text-to-text family (FLAN-T5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from judges.errors import InputError, MissingExtraError
from judges.providers.batching import Batcher
from judges.providers.local_model import Conversation, Decoding, LocalModel, device_or_error, fingerprint
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
        if find_spec("torch") is None or find_spec("transformers") is None:
            raise MissingExtraError("local", "provider 'transformers'")
        if spec.path is not None and not (spec.path / "config.json").is_file():
            problem = "holds no config.json" if spec.path.is_dir() else "is not a folder"
            raise InputError(f"{spec.path}: {problem}; a model folder is what save_pretrained writes")
        self._source = str(spec.path or spec.model)
        self._name = spec.model or str(spec.path and spec.path.resolve().name)
        self._decoding = Decoding(spec.max_tokens, spec.temperature, spec.seed)
        self._device = device_or_error(spec.device)
        self._model: LocalModel | None = None
        self._batcher = Batcher(self._replies, spec.concurrency)
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": "transformers",
            "model": self._name,
            "weights": fingerprint(spec.path) if spec.path else None,
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
            self._model = LocalModel(self._source, self._device, self._decoding)
        replies: list[Completion | Exception] = []
        for reply in self._model.generate(conversations):
            if isinstance(reply, Exception):
                replies.append(reply)
                continue
            usage = Usage(reply.input_tokens, None, reply.output_tokens)
            replies.append(Completion(storable(reply.text), self._name, reply.finish, usage))
        return replies

    async def close(self) -> None:
        """Release the model's memory."""
        await self._batcher.close()
        self._model = None


def _conversation(prompt: Prompt) -> Conversation:
    messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
    messages.append({"role": "user", "content": prompt.user})
    return [*messages, *({"role": turn.role, "content": turn.text} for turn in prompt.turns)]
