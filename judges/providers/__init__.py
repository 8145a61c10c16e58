"""Providers by name; each is imported only when a configuration asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judges.providers.base import Provider
    from judges.spec import JudgeSpec


def open_provider(spec: JudgeSpec) -> Provider:
    """The provider that a judge's declaration names.

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

            return ReplayProvider(spec)
