"""OpenAI's chat completions, and every server that speaks them: Azure OpenAI, vLLM, Ollama, llama.cpp, gateways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judges.parse import json_schema
from judges.providers.endpoint import Endpoint, api_key, limits, timeout, token_count
from judges.providers.texts import storable
from judges.spec import JudgeSpec
from judges.types import Completion, Finish, Prompt, Usage

OPENAI_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"

_FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH, "content_filter": Finish.FILTER}


class OpenAIProvider:
    """Asks with the openai SDK's headers and HTTP client. Nothing is tried again here, since the runtime does that.

    The field that bounds the reply is ``max_completion_tokens`` at OpenAI, whose newer models refuse ``max_tokens``,
    and ``max_tokens`` behind a ``base_url``, where many servers do not know the new one; ``token_limit_field`` in the
    declaration overrides that. The address never comes from the environment, so a stray variable cannot send the texts
    elsewhere.
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
        http = openai.DefaultAioHttpClient(limits=limits(spec), timeout=timeout(spec))
        sdk = openai.AsyncOpenAI(api_key=key, base_url=spec.base_url or OPENAI_URL, http_client=http)
        self._endpoint = Endpoint(sdk, http, "/chat/completions", spec.model, key)
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": "openai",
            "model": spec.model,
            "temperature": spec.temperature,
            "seed": spec.seed,
            "max_tokens": spec.max_tokens,
            "structured_output": spec.structured_output,
        }

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once."""
        body = await self._endpoint.post(self._request(prompt))
        try:
            choice = body["choices"][0]
            return _completion(choice, choice["message"], body, self._spec.model)
        except (LookupError, TypeError, AttributeError):
            failure = self._endpoint.no_reply(body)
        raise failure

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        spec = self._spec
        messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
        messages.append({"role": "user", "content": prompt.user})
        messages += [{"role": turn.role, "content": turn.text} for turn in prompt.turns]
        body: dict[str, Any] = {"model": spec.model, "messages": messages, self.limit_field: spec.max_tokens}
        if spec.temperature is not None:
            body["temperature"] = spec.temperature
        if spec.seed is not None:
            body["seed"] = spec.seed
        if spec.structured_output and prompt.contract.form == "json":
            held_to = {"name": prompt.task.value, "strict": True, "schema": json_schema(prompt.contract)}
            body["response_format"] = {"type": "json_schema", "json_schema": held_to}
        return body

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()


def _completion(
    choice: Mapping[str, Any], message: Mapping[str, Any], body: Mapping[str, Any], asked: str
) -> Completion:
    """A choice as a completion. A tool call is not a reply: it comes out as no text and ``Finish.OTHER``."""
    finish = _FINISHES.get(choice.get("finish_reason") or "", Finish.OTHER)
    text = _text(message.get("content"))
    if refusal := message.get("refusal"):
        finish, text = Finish.REFUSAL, text or str(refusal)
    elif not text and message.get("tool_calls"):
        finish = Finish.OTHER
    return Completion(storable(text), str(body.get("model") or asked), finish, _usage(body.get("usage") or {}))


def _text(content: str | list[Mapping[str, Any]] | None) -> str:
    """The text of a message; some servers send a list of parts, those that think aloud among them."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str | None):
        raise TypeError("content is neither text nor parts")
    return content or ""


def _usage(usage: Mapping[str, Any]) -> Usage:
    cached = token_count(usage.get("prompt_tokens_details") or {}, "cached_tokens")
    return Usage(token_count(usage, "prompt_tokens"), cached, token_count(usage, "completion_tokens"))
