"""Providers by name; each is imported only when a configuration asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judges.providers.base import Provider
    from judges.providers.recordings import ReadRecords
    from judges.spec import JudgeSpec


def open_provider(spec: JudgeSpec, read_records: ReadRecords | None = None) -> Provider:
    """The provider that a judge's declaration names.

    Args:
        spec: the declaration.
        read_records: for ``replay``, which needs it: reads the file of recordings.

    Raises:
        InputError: a missing key, extra, folder or file, in one line.
    """
    match spec.provider:
        case "openai":
            from judges.providers.openai import OpenAIProvider

            return OpenAIProvider(spec)
        case "anthropic":
            from judges.providers.anthropic import AnthropicProvider

            return AnthropicProvider(spec)
        case "transformers":
            from judges.providers.transformers import TransformersProvider

            return TransformersProvider(spec)
        case "extractive_qa":
            from judges.providers.extractive_qa import ExtractiveQAProvider

            return ExtractiveQAProvider(spec)
        case "lexical":
            from judges.providers.lexical import LexicalProvider

            return LexicalProvider()
        case "replay":
            from judges.providers.replay import ReplayProvider

            if read_records is None:
                raise TypeError("provider 'replay' needs read_records")
            return ReplayProvider(spec, read_records)
