"""The provider ``anthropic``: Anthropic's messages API."""

from __future__ import annotations

from typing import Any

from judges.contracts import json_schema
from judges.errors import InputError
from judges.providers.endpoint import HostedProvider, VendorReply, token_count
from judges.spec import JudgeSpec
from judges.types import Prompt, Usage


class AnthropicProvider(HostedProvider):
    """Sends prompts to Anthropic's messages API.

    The system message, which all prompts of a stage share, is marked for the prompt cache; the server ignores the mark
    if the message is too short. A declared ``temperature`` is sent, although the SDK no longer has this parameter;
    newer models refuse it, and the server's message says so.
    """

    path = "/v1/messages"

    def __init__(self, spec: JudgeSpec) -> None:
        """Prepare a client; nothing is sent.

        Raises:
            InputError: there is no key, or the declaration has a seed or JSON without a schema, which the API lacks.
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

    def _reply(self, body: dict[str, Any]) -> VendorReply:
        """The reply in the text blocks; blocks with thinking or tool calls are left out."""
        text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
        aside = "thinking" if any(block["type"] == "thinking" for block in body["content"]) else ""
        return VendorReply(text, body.get("stop_reason"), _usage(body.get("usage")), aside=aside)


def _usage(usage: object) -> Usage:
    """The tokens used. ``Usage.input_tokens`` includes cached tokens, which Anthropic counts separately."""
    fresh, cached = token_count(usage, "input_tokens"), token_count(usage, "cache_read_input_tokens")
    written = token_count(usage, "cache_creation_input_tokens")
    sent = None if fresh is None else fresh + (cached or 0) + (written or 0)
    return Usage(sent, cached, token_count(usage, "output_tokens"), written)
