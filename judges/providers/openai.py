"""OpenAI's chat completions, and every server that speaks them: Azure OpenAI, vLLM, Ollama, llama.cpp, gateways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

OPENAI_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"

_FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH, "content_filter": Finish.FILTER}


class OpenAIProvider:
    """Asks with the openai SDK's address and headers. Nothing is tried again here, since the runtime does that.

    The field that bounds the reply is ``max_completion_tokens`` at OpenAI, whose newer models refuse ``max_tokens``,
    and ``max_tokens`` behind a ``base_url``, where many servers do not know the new one; ``token_limit_field`` in the
    declaration overrides that. A declared seed is sent as it is for the first sample of a judgment and one higher for
    each further one; the identity keeps the seed declared. The address never comes from the environment, so a stray
    variable cannot send the texts elsewhere.
    """

    judges_names = False

    def __init__(self, spec: JudgeSpec) -> None:
        """Prepare a client; nothing is sent.

        Raises:
            InputError: no key.
        """
        import openai

        self._spec = spec
        self.limit_field = spec.token_limit_field or ("max_tokens" if spec.base_url else "max_completion_tokens")
        key = api_key(spec, KEY_VARIABLE)
        sdk = openai.AsyncOpenAI(api_key=key, base_url=spec.base_url or OPENAI_URL, http_client=unused_client())
        self._endpoint = Endpoint(sdk_target(sdk, "/chat/completions", spec))
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": "openai",
            "model": spec.model,
            "temperature": spec.temperature,
            "seed": spec.seed,
            "max_tokens": spec.max_tokens,
            "structured_output": spec.structured_output,
            **({} if spec.system_role else {"system_role": False}),
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
        body: dict[str, Any] = {"model": spec.model, "messages": self._messages(prompt)}
        body[self.limit_field] = spec.max_tokens
        if spec.temperature is not None:
            body["temperature"] = spec.temperature
        if spec.seed is not None:
            body["seed"] = spec.seed + prompt.sample
        if spec.structured_output and prompt.contract.is_object:
            body["response_format"] = _held_to(prompt, schema=spec.structured_output is True)
        return with_extras(body, spec.extra_body)

    def _messages(self, prompt: Prompt) -> list[dict[str, str]]:
        turns = [{"role": turn.role, "content": turn.text} for turn in prompt.turns]
        if prompt.system and self._spec.system_role:
            system, user = [{"role": "system", "content": prompt.system}], prompt.user
        else:
            system, user = [], f"{prompt.system}\n\n{prompt.user}".strip()
        return [*system, {"role": "user", "content": user}, *turns]

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()


def _held_to(prompt: Prompt, *, schema: bool) -> dict[str, Any]:
    """The request for a reply in the contract's form; without ``schema`` only for some JSON object."""
    if not schema:
        return {"type": "json_object"}
    held_to = {"name": prompt.task.value, "strict": True, "schema": json_schema(prompt.contract)}
    return {"type": "json_schema", "json_schema": held_to}


def _completion(answer: HttpAnswer, asked: str) -> Completion:
    """The first choice as a completion. A tool call is not a reply: it comes out as no text and ``Finish.OTHER``."""
    body = answer.body
    choice = body["choices"][0]
    message = choice["message"]
    finish = _FINISHES.get(choice.get("finish_reason") or "", Finish.OTHER)
    text = _text(message.get("content"))
    if refusal := message.get("refusal"):
        finish, text = Finish.REFUSAL, text or str(refusal)
    elif not text and message.get("tool_calls"):
        finish = Finish.OTHER
    model, usage = storable(str(body.get("model") or asked)), _usage(body.get("usage"))
    return Completion(storable(text), model, finish, usage, answer.allowance)


def _text(content: str | list[Mapping[str, Any]] | None) -> str:
    """The text of a message; some servers send a list of parts, those that think aloud among them."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str | None):
        raise TypeError("content is neither text nor parts")
    return content or ""


def _usage(usage: object) -> Usage:
    details = usage.get("prompt_tokens_details") if isinstance(usage, Mapping) else None
    cached = token_count(details, "cached_tokens")
    return Usage(token_count(usage, "prompt_tokens"), cached, token_count(usage, "completion_tokens"))
