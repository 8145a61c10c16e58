"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judges.errors import InputError
from judges.parse import json_schema
from judges.providers.endpoint import (
    Endpoint,
    HttpAnswer,
    api_key,
    declared_extras,
    sdk_target,
    token_count,
    unused_client,
    with_extras,
)
from judges.providers.texts import storable
from judges.spec import JudgeSpec
from judges.types import Completion, Finish, Prompt, Usage

ANTHROPIC_URL = "https://api.anthropic.com"
KEY_VARIABLE = "ANTHROPIC_API_KEY"

_FINISHES = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSAL,
}


class AnthropicProvider:
    """Asks with the anthropic SDK's address and headers. Nothing is tried again here, since the runtime does that.

    The system message, which all prompts of a stage share, is marked for the prompt cache; the server ignores the mark
    where the message is too short to be worth it. ``temperature`` is sent if declared, although the SDK has no
    parameter for it any more and newer models refuse it: then the server's own words say so.
    """

    judges_names = False

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
        self._spec = spec
        key = api_key(spec, KEY_VARIABLE)
        sdk = anthropic.AsyncAnthropic(
            api_key=key, base_url=spec.base_url or ANTHROPIC_URL, http_client=unused_client()
        )
        self._endpoint = Endpoint(sdk_target(sdk, "/v1/messages", spec))
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": "anthropic",
            "model": spec.model,
            "temperature": spec.temperature,
            "max_tokens": spec.max_tokens,
            "structured_output": spec.structured_output,
            **declared_extras(spec),
        }

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once."""
        return self.read(await self._endpoint.post(self.request(prompt)))

    def read(self, answer: HttpAnswer) -> Completion:
        """The reply that an answer holds.

        Raises:
            TransientError: it holds none.
        """
        try:
            return _completion(answer, self._spec.model)
        except (LookupError, TypeError, AttributeError):
            failure = self._endpoint.no_reply(answer.body)
        raise failure

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """The body that asks for a reply."""
        spec = self._spec
        messages = [{"role": "user", "content": prompt.user}]
        messages += [{"role": turn.role, "content": turn.text} for turn in prompt.turns]
        body: dict[str, Any] = {"model": spec.model, "max_tokens": spec.max_tokens, "messages": messages}
        if prompt.system:
            body["system"] = [{"type": "text", "text": prompt.system, "cache_control": {"type": "ephemeral"}}]
        if spec.temperature is not None:
            body["temperature"] = spec.temperature
        if spec.structured_output and prompt.contract.is_object:
            body["output_config"] = {"format": {"type": "json_schema", "schema": json_schema(prompt.contract)}}
        return with_extras(body, spec.extra_body)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()


def _completion(answer: HttpAnswer, asked: str) -> Completion:
    """The text blocks as one completion. Thinking is not part of a reply, a tool call is none: ``Finish.OTHER``."""
    body = answer.body
    text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
    finish = _FINISHES.get(body.get("stop_reason") or "", Finish.OTHER)
    model, usage = storable(str(body.get("model") or asked)), _usage(body.get("usage"))
    return Completion(storable(text), model, finish, usage, answer.allowance)


def _usage(usage: object) -> Usage:
    """Anthropic counts what the cache held and what it took in apart from ``input_tokens``; here input is all of it."""
    fresh, cached = token_count(usage, "input_tokens"), token_count(usage, "cache_read_input_tokens")
    taken_in = token_count(usage, "cache_creation_input_tokens")
    sent = None if fresh is None else fresh + (cached or 0) + (taken_in or 0)
    return Usage(sent, cached, token_count(usage, "output_tokens"), taken_in)
