"""The openai provider through its real SDK, against a scripted server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from judges.contracts import json_schema
from judges.errors import InputError
from judges.parse import parse_reply
from judges.providers import open_provider
from judges.providers.endpoint import token_count
from judges.spec import JudgeSpec
from judges.types import Allowance, Completion, Finish, Prompt, Turn
from tests.support.llm_server import LLMServer, Reply
from tests.support.prompts import bracketed, criteria, pairwise, relevance


def declared(server: LLMServer, **options: object) -> JudgeSpec:
    return JudgeSpec.model_validate({"provider": "openai", "model": "gpt-x", "base_url": server.openai_url, **options})


async def asked(spec: JudgeSpec, prompt: Prompt) -> Completion:
    provider = open_provider(spec)
    try:
        return await provider.complete(prompt)
    finally:
        await provider.close()


async def completed(reply: Reply, **options: object) -> Completion:
    with LLMServer([reply]) as server:
        return await asked(declared(server, **options), pairwise())


async def test_a_prompt_is_sent_as_system_user_and_later_turns() -> None:
    prompt = replace(pairwise(), turns=(Turn("assistant", "B!"), Turn("user", "Again, please.")))
    with LLMServer() as server:
        await asked(declared(server), prompt)
        (call,) = server.calls
    assert call.path == "/v1/chat/completions"
    assert call.body["messages"] == [
        {"role": "system", "content": prompt.system},
        {"role": "user", "content": prompt.user},
        {"role": "assistant", "content": "B!"},
        {"role": "user", "content": "Again, please."},
    ]


async def test_the_reply_is_held_to_the_contracts_schema() -> None:
    with LLMServer() as server:
        completion = await asked(declared(server), pairwise())
        held_to = server.calls[0].body["response_format"]
    assert held_to["type"] == "json_schema"
    assert held_to["json_schema"]["strict"] is True
    assert held_to["json_schema"]["schema"] == json_schema(pairwise().contract)
    assert parse_reply(completion.text, pairwise().contract, pairwise().inputs).outcome in {"A", "B", "TIE"}


@pytest.mark.parametrize(
    ("prompt", "structured"), [(bracketed(), True), (pairwise(), False)], ids=["brackets", "declared off"]
)
async def test_no_schema_is_sent_for_free_text_or_where_declared_off(prompt: Prompt, structured: bool) -> None:
    with LLMServer([Reply("[[A]]")]) as server:
        await asked(declared(server, structured_output=structured), prompt)
        assert "response_format" not in server.calls[0].body


async def test_only_declared_sampling_parameters_are_sent() -> None:
    with LLMServer([Reply("{}"), Reply("{}")]) as server:
        await asked(declared(server), pairwise())
        await asked(declared(server, temperature=0, seed=7, max_tokens=99), pairwise())
        plain, full = (call.body for call in server.calls)
    assert {"temperature", "seed"}.isdisjoint(plain)
    assert (full["temperature"], full["seed"], full["max_tokens"]) == (0, 7, 99)


async def test_each_repetition_of_a_prompt_gets_a_seed_of_its_own() -> None:
    with LLMServer([Reply("{}")] * 3) as server:
        for sample in range(3):
            await asked(declared(server, seed=7), replace(pairwise(), sample=sample))
        assert [call.body["seed"] for call in server.calls] == [7, 8, 9]


async def test_a_server_that_promises_no_more_than_json_is_asked_for_that() -> None:
    with LLMServer([Reply("{}"), Reply("[[A]]")]) as server:
        await asked(declared(server, structured_output="object"), pairwise())
        await asked(declared(server, structured_output="object"), bracketed())
        held_to, free = (call.body.get("response_format") for call in server.calls)
    assert held_to == {"type": "json_object"}
    assert free is None


async def test_a_model_without_a_system_role_gets_its_text_with_the_first_user_message() -> None:
    prompt = replace(pairwise(), turns=(Turn("assistant", "B!"), Turn("user", "Again, please.")))
    with LLMServer([Reply("{}")]) as server:
        await asked(declared(server, system_role=False), prompt)
        first, *turns = server.calls[0].body["messages"]
    assert first == {"role": "user", "content": f"{prompt.system}\n\n{prompt.user}"}
    assert [turn["role"] for turn in turns] == ["assistant", "user"]


async def test_declared_further_fields_are_sent_and_decide_the_identity() -> None:
    extra = {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}}
    with LLMServer([Reply("{}")]) as server:
        await asked(declared(server, extra_body=extra), pairwise())
        body = server.calls[0].body
        options: list[dict[str, object]] = [{}, {"extra_body": extra}, {"system_role": False}]
        providers = [open_provider(declared(server, **each)) for each in options]
    assert extra.items() <= body.items()
    assert len({json.dumps(dict(provider.identity)) for provider in providers}) == 3
    for provider in providers:
        await provider.close()


@pytest.mark.parametrize("field", ["model", "messages", "stream", "n", "seed", "max_tokens", "response_format"])
def test_a_further_field_that_is_set_anyway_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"extra_body may not hold {field}"):
        JudgeSpec.model_validate({"provider": "openai", "model": "m", "extra_body": {field: 1}})


async def test_a_query_in_the_address_stays_behind_the_path() -> None:
    with LLMServer([Reply("{}")]) as server:
        spec = declared(server).model_copy(update={"base_url": f"{server.openai_url}/?api-version=preview"})
        await asked(spec, pairwise())
        assert server.calls[0].path == "/v1/chat/completions?api-version=preview"


async def test_what_is_left_of_the_rate_limits_goes_with_the_reply() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1m0.5s",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6ms",
    }
    assert (await completed(Reply("x", headers=headers))).allowance == Allowance(59, 60.5, 149984, 0.006)
    assert (await completed(Reply("x"))).allowance is None


async def test_the_field_of_the_token_limit_can_be_declared() -> None:
    with LLMServer([Reply("{}")]) as server:
        await asked(declared(server, token_limit_field="max_completion_tokens"), pairwise())
        body = server.calls[0].body
    assert body["max_completion_tokens"] == 1024
    assert "max_tokens" not in body


async def test_a_reply_carries_text_model_and_usage() -> None:
    completion = await completed(Reply('{"verdict": "A"}'))
    assert completion.text == '{"verdict": "A"}'
    assert completion.model == "gpt-x-2026-11"
    assert completion.finish is Finish.STOP
    assert completion.usage.cached_input_tokens == 16
    assert completion.usage.output_tokens == 4
    assert (completion.usage.input_tokens or 0) > 100


@pytest.mark.parametrize("count", [-5, 10**400, 2**70, True, "12", 1.5])
def test_what_is_no_number_of_tokens_counts_as_not_said(count: object) -> None:
    assert token_count({"prompt_tokens": count}, "prompt_tokens") is None


@pytest.mark.parametrize(
    ("reply", "finish", "text"),
    [
        (Reply('{"reason": "so', ending="length"), Finish.LENGTH, '{"reason": "so'),
        (Reply("", ending="content_filter"), Finish.FILTER, ""),
        (Reply("I cannot judge this.", ending="refusal"), Finish.REFUSAL, "I cannot judge this."),
        (Reply('{"verdict": "A"}', ending="tool_call"), Finish.OTHER, ""),
        (Reply(None), Finish.STOP, ""),
        (Reply(""), Finish.STOP, ""),
    ],
    ids=["truncated", "filtered", "refused", "tool call", "null content", "empty content"],
)
async def test_why_the_model_stopped_is_told(reply: Reply, finish: Finish, text: str) -> None:
    completion = await completed(reply)
    assert (completion.finish, completion.text) == (finish, text)


async def test_the_text_of_a_message_in_parts_is_kept_without_its_thoughts() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "[[A]]"}]
    choice = {"message": {"role": "assistant", "content": parts}, "finish_reason": "stop"}
    completion = await completed(Reply(body={"model": "m", "choices": [choice]}))
    assert (completion.text, completion.finish) == ("[[A]]", Finish.STOP)


async def test_characters_that_no_store_holds_are_replaced() -> None:
    completion = await completed(Reply("half \ud800 pair, nul \0, whole 𝄞"))
    assert completion.text == "half \ufffd pair, nul \ufffd, whole 𝄞"


async def test_many_prompts_at_once_share_one_connection_each() -> None:
    with LLMServer() as server:
        provider = open_provider(declared(server, concurrency=8))
        prompts = [relevance(), pairwise(), criteria()] * 8
        completions = await asyncio.gather(*(provider.complete(prompt) for prompt in prompts))
        await provider.close()
        assert len(server.calls) == 24
        assert server.connections_made <= 8
    for prompt, completion in zip(prompts, completions, strict=True):
        parse_reply(completion.text, prompt.contract, prompt.inputs)


async def test_the_key_comes_from_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", " sk-mine\n")
    with LLMServer([Reply("{}")]) as server:
        await asked(declared(server, api_key_env="MY_KEY"), pairwise())
        assert server.calls[0].headers["authorization"] == "Bearer sk-mine"


async def test_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with LLMServer([Reply("{}")]) as server:
        assert (await asked(declared(server), pairwise())).text == "{}"


@pytest.mark.parametrize(
    ("options", "variable"),
    [
        ({}, "OPENAI_API_KEY"),
        ({"api_key_env": "TEAM_KEY"}, "TEAM_KEY"),
        ({"api_key_env": "TEAM_KEY", "base_url": "http://127.0.0.1:9/v1"}, "TEAM_KEY"),
    ],
)
def test_a_missing_key_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], variable: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("TEAM_KEY", raising=False)
    with pytest.raises(InputError, match=variable) as caught:
        open_provider(JudgeSpec.model_validate({"provider": "openai", "model": "gpt-x", **options}))
    assert "\n" not in str(caught.value)


def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-pla\nnted")
    with pytest.raises(InputError, match="OPENAI_API_KEY") as caught:
        open_provider(JudgeSpec(provider="openai", model="gpt-x"))
    assert "nted" not in str(caught.value)


def test_at_openai_itself_the_limit_is_in_the_field_its_new_models_take(monkeypatch: pytest.MonkeyPatch) -> None:
    from judges.providers.openai import OpenAIProvider

    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    assert OpenAIProvider(JudgeSpec(provider="openai", model="gpt-x")).limit_field == "max_completion_tokens"


@pytest.mark.parametrize(
    "extra", [{"api_key": "k"}, {"provider": [{"Authorization": "Bearer k"}]}, {"clientSecret": 1}]
)
def test_keys_do_not_go_into_further_fields(extra: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="keys stay in the environment"):
        JudgeSpec.model_validate({"provider": "openai", "model": "m", "extra_body": extra})
