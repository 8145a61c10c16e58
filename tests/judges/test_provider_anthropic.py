"""The anthropic provider through its real SDK, against a scripted server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judges.contracts import json_schema
from judges.errors import InputError
from judges.parse import parse_reply
from judges.providers import open_provider
from judges.spec import JudgeSpec
from judges.types import Completion, Finish, Prompt, Turn, Usage
from tests.support.llm_server import LLMServer, Reply
from tests.support.prompts import bracketed, criteria, pairwise, relevance


def declared(server: LLMServer, **options: object) -> JudgeSpec:
    given = {"provider": "anthropic", "model": "claude-x", "base_url": server.anthropic_url, **options}
    return JudgeSpec.model_validate(given)


async def asked(spec: JudgeSpec, prompt: Prompt) -> Completion:
    provider = open_provider(spec)
    try:
        return await provider.complete(prompt)
    finally:
        await provider.close()


async def completed(reply: Reply, **options: object) -> Completion:
    with LLMServer([reply]) as server:
        return await asked(declared(server, **options), pairwise())


async def test_a_prompt_is_sent_as_system_and_messages() -> None:
    prompt = replace(pairwise(), turns=(Turn("assistant", "B!"), Turn("user", "Again, please.")))
    with LLMServer() as server:
        await asked(declared(server), prompt)
        (call,) = server.calls
    assert call.path == "/v1/messages"
    assert call.body["max_tokens"] == 1024
    assert call.body["messages"] == [
        {"role": "user", "content": prompt.user},
        {"role": "assistant", "content": "B!"},
        {"role": "user", "content": "Again, please."},
    ]


async def test_the_part_that_prompts_share_is_marked_for_the_cache() -> None:
    with LLMServer() as server:
        await asked(declared(server), pairwise())
        (system,) = server.calls[0].body["system"]
    assert system == {"type": "text", "text": pairwise().system, "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize("prompt", [relevance(), pairwise(), criteria()], ids=["relevance", "pairwise", "criteria"])
async def test_the_reply_is_held_to_the_contracts_schema(prompt: Prompt) -> None:
    with LLMServer() as server:
        completion = await asked(declared(server), prompt)
        held_to = server.calls[0].body["output_config"]["format"]
    assert held_to == {"type": "json_schema", "schema": json_schema(prompt.contract)}
    parse_reply(completion.text, prompt.contract, prompt.inputs)


@pytest.mark.parametrize(
    ("prompt", "structured"), [(bracketed(), True), (pairwise(), False)], ids=["brackets", "declared off"]
)
async def test_no_schema_is_sent_for_free_text_or_where_declared_off(prompt: Prompt, structured: bool) -> None:
    with LLMServer([Reply("[[A]]")]) as server:
        await asked(declared(server, structured_output=structured), prompt)
        assert "output_config" not in server.calls[0].body


async def test_input_tokens_count_what_the_cache_held_and_took_in() -> None:
    completion = await completed(Reply('{"verdict": "A"}'))
    plain = await completed(Reply('{"verdict": "A"}', usage=False))
    assert completion.model == "claude-x-2026-11"
    assert completion.finish is Finish.STOP
    assert completion.usage.cached_input_tokens == 16
    assert completion.usage.output_tokens == 4
    assert plain.usage == Usage(None, None, None)


async def test_input_tokens_are_the_sum_of_the_three_that_the_server_counts() -> None:
    usage = {"input_tokens": 100, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 5, "output_tokens": 9}
    body = {"model": "m", "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn", "usage": usage}
    assert (await completed(Reply(body=body))).usage == Usage(135, 30, 9, 5)


@pytest.mark.parametrize(
    ("reply", "finish", "text"),
    [
        (Reply('{"reason": "so', ending="length"), Finish.LENGTH, '{"reason": "so'),
        (Reply("I cannot judge this.", ending="refusal"), Finish.REFUSAL, "I cannot judge this."),
        (Reply('{"verdict": "A"}', ending="tool_call"), Finish.OTHER, ""),
        (Reply(""), Finish.STOP, ""),
    ],
    ids=["truncated", "refused", "tool call", "empty content"],
)
async def test_why_the_model_stopped_is_told(reply: Reply, finish: Finish, text: str) -> None:
    completion = await completed(reply)
    assert (completion.finish, completion.text) == (finish, text)


async def test_thinking_is_not_part_of_the_reply() -> None:
    content = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "[[A]]"}]
    completion = await completed(Reply(body={"model": "m", "content": content, "stop_reason": "end_turn"}))
    assert completion.text == "[[A]]"


async def test_declared_further_fields_join_what_is_sent_and_decide_the_identity() -> None:
    extra = {"output_config": {"effort": "low"}, "metadata": {"user_id": "judge"}}
    with LLMServer([Reply("{}")]) as server:
        await asked(declared(server, extra_body=extra), pairwise())
        body = server.calls[0].body
        plain, special = (open_provider(declared(server, **options)) for options in ({}, {"extra_body": extra}))
    assert body["output_config"]["effort"] == "low"
    assert body["output_config"]["format"]["schema"] == json_schema(pairwise().contract)
    assert body["metadata"] == {"user_id": "judge"}
    assert plain.identity != special.identity
    for provider in (plain, special):
        await provider.close()


def test_a_json_mode_without_schema_is_refused_since_there_is_none() -> None:
    with LLMServer() as server, pytest.raises(InputError, match="'object'"):
        open_provider(declared(server, structured_output="object"))


def test_a_seed_is_refused_since_it_would_do_nothing() -> None:
    with LLMServer() as server, pytest.raises(InputError, match="seed"):
        open_provider(declared(server, seed=7))
