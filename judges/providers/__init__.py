"""The protocol of providers, and the function that opens one by name; providers are imported on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from judges.types import Completion, Prompt

if TYPE_CHECKING:
    from judges.providers.replay import ReadRecords
    from judges.spec import JudgeSpec


class Provider(Protocol):
    """Turns a prompt into a completion.

    Attributes:
        identity: everything besides the prompt that affects the reply (provider, model, parameters). It is part of each
            judgment's id, so it contains no key, address, or timeout.
        judges_names: whether replies depend on the names of documents and agents instead of their texts, as recorded
            verdicts do.
    """

    judges_names: bool
    identity: Mapping[str, str | int | float | None]

    async def complete(self, prompt: Prompt) -> Completion:
        """Send the prompt to the model once, without retries.

        Raises:
            TransientError: another attempt may succeed.
            RejectedError: this prompt will not succeed.
            JudgeStoppedError: no prompt will succeed.
        """

    async def close(self) -> None:
        """Close the provider's connections, or release the memory of its model."""


def open_provider(spec: JudgeSpec, read_records: ReadRecords | None = None) -> Provider:
    """Open the provider that a judge's declaration names.

    ``read_records`` reads the file of recorded replies; only the provider ``replay`` needs it.

    Raises:
        InputError: a key, extra, folder or file is missing.
    """
    provider = _open(spec, read_records)
    if spec.version:
        provider.identity = {**provider.identity, "version": spec.version}
    return provider


def _open(spec: JudgeSpec, read_records: ReadRecords | None) -> Provider:  # noqa: PLR0911 - one for each
    match spec.provider:
        case "openai":
            from judges.providers.hosted import OpenAIProvider

            return OpenAIProvider(spec)
        case "anthropic":
            from judges.providers.hosted import AnthropicProvider

            return AnthropicProvider(spec)
        case "transformers":
            from judges.providers.transformers import TransformersProvider

            return TransformersProvider(spec)
        case "extractive_qa":
            from judges.providers.extractive_qa import ExtractiveQAProvider

            return ExtractiveQAProvider(spec)
        case "python":
            from judges.functions import PythonProvider

            assert spec.function is not None  # JudgeSpec requires it
            return PythonProvider(spec.function, spec.model, spec.version)
        case "lexical":
            from judges.providers.lexical import LexicalProvider

            return LexicalProvider()
        case "replay":
            from judges.providers.replay import ReplayProvider

            if read_records is None:
                raise TypeError("provider 'replay' needs read_records")
            return ReplayProvider(spec, read_records)
