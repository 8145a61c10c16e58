"""The providers ``openai`` (also Azure OpenAI, vLLM, Ollama, llama.cpp and gateways) and ``anthropic``."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from judges.contracts import json_schema
from judges.errors import InputError
from judges.identity import cache_key
from judges.masking import storable
from judges.providers.endpoint import (
    Endpoint,
    HttpAnswer,
    api_key,
    sdk_target,
    token_count,
    unused_client,
    with_extras,
)
from judges.providers.http_answers import finish_of
from judges.spec import JudgeSpec, cached_from
from judges.types import Completion, Finish, Prompt, Usage
from judges.writing import estimated_tokens

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

_MOST_CHARACTERS = 2**20
"""Longest reply, in characters. A longer text answers no prompt, and asking again would send it back to the model."""


class VendorReply(Struct, frozen=True):
    """The model's reply text in the server's response, with what the response says about the reply.

    Attributes:
        reason: the server's name for the reason why the reply ended.
        refused: whether the response marks the reply as a refusal.
        error: the server's error next to the reply, if any.
        aside: the field that holds the model's reasoning, if there is any.
    """

    text: str
    reason: object
    usage: Usage
    refused: bool = False
    error: object = None
    aside: str = ""


class HostedProvider(ABC):
    """Calls a vendor's API with its SDK's address and headers. The judge, not the provider, retries failed calls.

    Attributes:
        path: path of requests, appended to the address.
    """

    judges_names = False
    path: str

    def __init__(self, spec: JudgeSpec, sdk: Callable[..., AsyncOpenAI | AsyncAnthropic]) -> None:
        """Prepare a client; nothing is sent. Raises ``InputError`` if there is no key."""
        self._spec = spec
        client = sdk(api_key=api_key(spec), base_url=spec.address, http_client=unused_client())
        self.endpoint = Endpoint(sdk_target(client, self.path, spec))
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": spec.provider,
            "model": spec.model,
            "temperature": spec.temperature,
            "max_tokens": spec.max_tokens,
            "structured_output": spec.structured_output,
            **({"extra_body": json.dumps(spec.extra_body, sort_keys=True)} if spec.extra_body else {}),
        }

    async def complete(self, prompt: Prompt) -> Completion:
        # Some gateways stream by default.
        return self.read(await self.endpoint.post({**self.request(prompt), "stream": False}))

    def request(self, prompt: Prompt) -> dict[str, Any]:
        temperature = {} if self._spec.temperature is None else {"temperature": self._spec.temperature}
        return with_extras({"model": self._spec.model, **temperature, **self._fields(prompt)}, self._spec.extra_body)

    def read(self, answer: HttpAnswer) -> Completion:
        """Convert the server's response to a completion.

        Raises:
            ProviderError: the response holds an error or no reply.
        """
        if answer.body.get("error"):  # of a gateway; the rest of the body does not count
            raise self.endpoint.no_reply(answer.body)
        try:
            reply = self._reply(answer.body)
        except (LookupError, TypeError, AttributeError):
            failure = self.endpoint.no_reply(answer.body)
        else:
            text, finish = reply.text, finish_of(reply.reason, reply.error, self.endpoint.name)
            if reply.refused:
                finish = Finish.REFUSAL
            if len(text) > _MOST_CHARACTERS:
                text, finish = text[:_MOST_CHARACTERS], Finish.TOO_LONG
            model = storable(str(answer.body.get("model") or self._spec.model))
            aside = "" if text.strip() else reply.aside
            return Completion(storable(text), model, finish, reply.usage, answer.allowance, aside=aside)
        raise failure

    @abstractmethod
    def _fields(self, prompt: Prompt) -> dict[str, Any]:
        """The fields of a request that depend on the vendor, such as the messages and the limit on tokens."""

    @abstractmethod
    def _reply(self, body: dict[str, Any]) -> VendorReply:
        """Find the model's reply in the body of the server's response.

        Raises:
            LookupError, TypeError, AttributeError: the body contains no reply.
        """

    async def close(self) -> None:
        await self.endpoint.close()


_FINISHES_WITH_MESSAGE = (None, "stop", "length")
_REASONING = ("reasoning", "reasoning_content", "thinking")
"""Names of the fields in which servers put a model's reasoning."""


class OpenAIProvider(HostedProvider):
    """Sends prompts as chat completions.

    The reply's length is limited by ``max_completion_tokens`` at OpenAI, whose newer models refuse ``max_tokens``, and
    by ``max_tokens`` at any other address, since many servers do not know the new field.
    """

    path = "/chat/completions"

    def __init__(self, spec: JudgeSpec) -> None:
        import openai

        super().__init__(spec, openai.AsyncOpenAI)
        self._elsewhere = spec.other_address is not None
        self.limit_field = spec.token_limit_field or ("max_tokens" if self._elsewhere else "max_completion_tokens")
        self.identity = {**self.identity, "seed": spec.seed, **({} if spec.system_role else {"system_role": False})}

    def _fields(self, prompt: Prompt) -> dict[str, Any]:
        spec = self._spec
        in_user = "" if spec.system_role else prompt.system
        user = f"{in_user}\n\n{prompt.user}".strip() if in_user else prompt.user
        messages = prompt.messages("" if in_user else prompt.system, user)
        fields: dict[str, Any] = {"messages": messages, self.limit_field: spec.max_tokens}
        if not self._elsewhere and (key := cache_key(prompt, spec)):  # other servers may refuse an unknown field
            fields["prompt_cache_key"] = key
        if spec.seed is not None:
            fields["seed"] = spec.seed + prompt.sample
        if spec.structured_output == "object" and prompt.contract.is_object:
            fields["response_format"] = {"type": "json_object"}
        elif spec.structured_output and prompt.contract.is_object:
            schema = {"name": prompt.task.value, "strict": True, "schema": json_schema(prompt.contract)}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
        return fields

    def _reply(self, body: dict[str, Any]) -> VendorReply:
        choice = body["choices"][0]
        reason = choice.get("finish_reason")
        # A choice that was filtered or broken off may have no message.
        message = choice["message"] if reason in _FINISHES_WITH_MESSAGE else choice.get("message") or {}
        text, refusal = _text(message.get("content")), message.get("refusal")
        aside = next((name for name in _REASONING if str(message.get(name) or "").strip()), "")
        usage = _openai_usage(body.get("usage"))
        return VendorReply(text or str(refusal or ""), reason, usage, bool(refusal), choice.get("error"), aside)


def _text(content: str | list[Mapping[str, Any]] | None) -> str:
    """The text of a message. If a server sends a list of parts, only parts of type text count, not reasoning."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str | None):
        raise TypeError("content is neither text nor parts")
    return content or ""


def _openai_usage(usage: object) -> Usage:
    details = usage.get("prompt_tokens_details") if isinstance(usage, Mapping) else None
    cached = token_count(details, "cached_tokens")
    return Usage(token_count(usage, "prompt_tokens"), cached, token_count(usage, "completion_tokens"))


_MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}


class AnthropicProvider(HostedProvider):
    """Sends prompts to Anthropic's messages API.

    A mark for the prompt cache, up to which the server charges more, stands only where other prompts begin the same and
    the beginning is long enough: behind the documents of a query, and behind a long system message. A declared
    ``temperature`` is sent, although the SDK no longer has this parameter; newer models refuse it, and the server's
    message says so.
    """

    path = "/v1/messages"

    def __init__(self, spec: JudgeSpec) -> None:
        import anthropic

        if spec.seed is not None:
            raise InputError(f"model {spec.model!r}: provider 'anthropic' takes no 'seed'; remove it")
        if spec.structured_output == "object":
            raise InputError(
                f"model {spec.model!r}: provider 'anthropic' has no structured_output 'object'; set it to true or false"
            )
        super().__init__(spec, anthropic.AsyncAnthropic)

    def _fields(self, prompt: Prompt) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [*prompt.messages("", prompt.user)]
        if cache_key(prompt, self._spec):
            shared, rest = prompt.user[: prompt.shared], prompt.user[prompt.shared :]
            messages[0]["content"] = [{"type": "text", "text": shared} | _MARK, {"type": "text", "text": rest}]
        fields: dict[str, Any] = {"max_tokens": self._spec.max_tokens, "messages": messages}
        if prompt.system:
            least = cached_from(self._spec)
            mark = _MARK if least is not None and estimated_tokens(prompt.system) >= least else {}
            fields["system"] = [{"type": "text", "text": prompt.system} | mark]
        if self._spec.structured_output and prompt.contract.is_object:
            fields["output_config"] = {"format": {"type": "json_schema", "schema": json_schema(prompt.contract)}}
        return fields

    def _reply(self, body: dict[str, Any]) -> VendorReply:
        text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
        aside = "thinking" if any(block["type"] == "thinking" for block in body["content"]) else ""
        return VendorReply(text, body.get("stop_reason"), _anthropic_usage(body.get("usage")), aside=aside)


def _anthropic_usage(usage: object) -> Usage:
    """The tokens that Anthropic's response reports; ``input_tokens`` includes cached ones, unlike at Anthropic."""
    fresh, cached = token_count(usage, "input_tokens"), token_count(usage, "cache_read_input_tokens")
    written = token_count(usage, "cache_creation_input_tokens")
    sent = None if fresh is None else fresh + (cached or 0) + (written or 0)
    return Usage(sent, cached, token_count(usage, "output_tokens"), written)
