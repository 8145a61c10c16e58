"""Anthropic's messages."""

from __future__ import annotations

from typing import Any

from judges.contracts import json_schema
from judges.errors import InputError
from judges.providers.endpoint import HostedProvider, Said, token_count
from judges.spec import JudgeSpec
from judges.types import Prompt, Usage


class AnthropicProvider(HostedProvider):
    """Messages.

    The system message, which all prompts of a stage share, is marked for the prompt cache; the server ignores the mark
    where the message is too short to be worth it. ``temperature`` is sent if declared, although the SDK has no
    parameter for it any more and newer models refuse it: then the server's own words say so.
    """

    path = "/v1/messages"

    def __init__(self, spec: JudgeSpec) -> None:
        """Prepare a client; nothing is sent.

        Raises:
            InputError: no key, or a seed or an unschemed JSON mode, which these models do not have.
        """
        import anthropic

        if spec.seed is not None:
            raise InputError(f"model {spec.model!r}: provider 'anthropic' takes no 'seed'; remove it")
        if spec.structured_output == "object":
            raise InputError(f"model {spec.model!r}: provider 'anthropic' has no structured_output 'object'")
        super().__init__(spec, anthropic.AsyncAnthropic)

    def _fields(self, prompt: Prompt) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt.user}]
        messages += [{"role": turn.role, "content": turn.text} for turn in prompt.turns]
        fields: dict[str, Any] = {"max_tokens": self._spec.max_tokens, "messages": messages}
        if prompt.system:
            fields["system"] = [{"type": "text", "text": prompt.system, "cache_control": {"type": "ephemeral"}}]
        if self._spec.structured_output and prompt.contract.is_object:
            fields["output_config"] = {"format": {"type": "json_schema", "schema": json_schema(prompt.contract)}}
        return fields

    def _reply(self, body: dict[str, Any]) -> Said:
        """Of the text blocks. Thinking is not part of a reply, a tool call is none."""
        text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
        aside = "thinking" if any(block["type"] == "thinking" for block in body["content"]) else ""
        return Said(text, body.get("stop_reason"), _usage(body.get("usage")), aside=aside)


def _usage(usage: object) -> Usage:
    """Anthropic counts what the cache held and what it took in apart from ``input_tokens``; here input is all of it."""
    fresh, cached = token_count(usage, "input_tokens"), token_count(usage, "cache_read_input_tokens")
    written = token_count(usage, "cache_creation_input_tokens")
    sent = None if fresh is None else fresh + (cached or 0) + (written or 0)
    return Usage(sent, cached, token_count(usage, "output_tokens"), written)
