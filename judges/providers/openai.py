"""The provider ``openai``: OpenAI and compatible servers (Azure OpenAI, vLLM, Ollama, llama.cpp, gateways)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judges.contracts import json_schema
from judges.providers.endpoint import HostedProvider, VendorReply, token_count
from judges.spec import JudgeSpec
from judges.types import Prompt, Usage

_FINISHES_WITH_MESSAGE = (None, "stop", "length")
_REASONING = ("reasoning", "reasoning_content", "thinking")
"""Fields in which servers put a model's reasoning."""


class OpenAIProvider(HostedProvider):
    """Sends prompts as chat completions.

    The reply's length is limited by ``max_completion_tokens`` at OpenAI, whose newer models refuse ``max_tokens``, and
    by ``max_tokens`` at any other address, since many servers do not know the new field; ``token_limit_field`` in the
    declaration overrides this. The first sample of a judgment gets the declared seed, each further sample the next
    number; the identity contains the declared seed.
    """

    path = "/chat/completions"

    def __init__(self, spec: JudgeSpec) -> None:
        import openai

        super().__init__(spec, openai.AsyncOpenAI)
        self.limit_field = spec.token_limit_field or ("max_tokens" if spec.other_address else "max_completion_tokens")
        self.identity = {**self.identity, "seed": spec.seed, **({} if spec.system_role else {"system_role": False})}

    def _fields(self, prompt: Prompt) -> dict[str, Any]:
        spec = self._spec
        fields: dict[str, Any] = {"messages": self._messages(prompt), self.limit_field: spec.max_tokens}
        if spec.seed is not None:
            fields["seed"] = spec.seed + prompt.sample
        if spec.structured_output == "object" and prompt.contract.is_object:
            fields["response_format"] = {"type": "json_object"}
        elif spec.structured_output and prompt.contract.is_object:
            schema = {"name": prompt.task.value, "strict": True, "schema": json_schema(prompt.contract)}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
        return fields

    def _messages(self, prompt: Prompt) -> list[dict[str, str]]:
        turns = [{"role": turn.role, "content": turn.text} for turn in prompt.turns]
        if prompt.system and self._spec.system_role:
            system, user = [{"role": "system", "content": prompt.system}], prompt.user
        else:
            system, user = [], f"{prompt.system}\n\n{prompt.user}".strip()
        return [*system, {"role": "user", "content": user}, *turns]

    def _reply(self, body: dict[str, Any]) -> VendorReply:
        """The reply of the first choice; empty for a tool call."""
        choice = body["choices"][0]
        reason = choice.get("finish_reason")
        # A choice that was filtered or broken off may have no message.
        message = choice["message"] if reason in _FINISHES_WITH_MESSAGE else choice.get("message") or {}
        text, refusal = _text(message.get("content")), message.get("refusal")
        aside = next((name for name in _REASONING if str(message.get(name) or "").strip()), "")
        usage = _usage(body.get("usage"))
        return VendorReply(text or str(refusal or ""), reason, usage, bool(refusal), choice.get("error"), aside)


def _text(content: str | list[Mapping[str, Any]] | None) -> str:
    """The text of a message; if a server sends a list of parts, parts with reasoning are left out."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str | None):
        raise TypeError("content is neither text nor parts")
    return content or ""


def _usage(usage: object) -> Usage:
    details = usage.get("prompt_tokens_details") if isinstance(usage, Mapping) else None
    cached = token_count(details, "cached_tokens")
    return Usage(token_count(usage, "prompt_tokens"), cached, token_count(usage, "completion_tokens"))
