"""The openai and anthropic providers with their real SDKs' addresses and headers, against a scripted server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec import field
from msgspec.structs import replace

from judges.batch_servers import AnthropicBatches, BatchServer, OpenAIBatches
from judges.contracts import json_schema
from judges.errors import InputError, ProviderError
from judges.masking import masked
from judges.parse import parse_reply
from judges.providers import open_provider
from judges.providers.endpoint import Target, token_count
from judges.providers.hosted import AnthropicProvider, HostedProvider, OpenAIProvider
from judges.spec import JudgeSpec
from judges.types import Allowance, Completion, Finish, Message, Prompt, Usage
from tests.support.llm_batches import Answer, Batches, Execute
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.prompts import bracketed, criteria, pairwise, relevance

BOTH = pytest.mark.parametrize("vendor", ["openai", "anthropic"])
AGAIN = (Message("assistant", "B!"), Message("user", "Again, please."))


def declared(server: LLMServer, vendor: str = "openai", **options: object) -> JudgeSpec:
    url = server.openai_url if vendor == "openai" else server.anthropic_url
    return JudgeSpec.model_validate({"provider": vendor, "model": "x", "base_url": url, **options})


async def asked(spec: JudgeSpec, prompt: Prompt) -> Completion:
    provider = open_provider(spec)
    try:
        return await provider.complete(prompt)
    finally:
        await provider.close()


async def completed(reply: Reply, vendor: str = "openai") -> Completion:
    with LLMServer([reply]) as server:
        return await asked(declared(server, vendor), pairwise())


async def sent(prompt: Prompt, vendor: str = "openai", **options: object) -> Call:
    with LLMServer([Reply("{}")]) as server:
        await asked(declared(server, vendor, **options), prompt)
        (call,) = server.calls
    return call


def schema_of(body: Mapping[str, dict[str, object]], vendor: str) -> object:
    if vendor == "anthropic":
        return body["output_config"]["format"]
    form = body["response_format"]
    assert form["json_schema"] == {"name": "pairwise", "strict": True, "schema": json_schema(pairwise().contract)}
    return {"type": form["type"], "schema": json_schema(pairwise().contract)}


async def test_a_prompt_is_sent_as_system_user_and_later_turns() -> None:
    prompt = replace(pairwise(), turns=AGAIN)
    turns = [{"role": turn.role, "content": turn.text} for turn in AGAIN]
    user = {"role": "user", "content": prompt.user}
    call = await sent(prompt)
    assert call.path == "/v1/chat/completions"
    assert call.body["messages"] == [{"role": "system", "content": prompt.system}, user, *turns]
    call = await sent(prompt, "anthropic")
    assert (call.path, call.body["max_tokens"]) == ("/v1/messages", 1024)
    assert call.body["messages"] == [user, *turns]
    assert call.body["system"] == [{"type": "text", "text": prompt.system}]


MARK = {"cache_control": {"type": "ephemeral"}}


def sharing(characters: int) -> Prompt:
    """A prompt whose system message and shared beginning have this many characters together."""
    prompt = replace(pairwise(), system="Judge.")
    shared = "d" * (characters - len("Judge.") - 1)
    return replace(prompt, user=f"{shared}{prompt.user}", shared=len(shared))


@pytest.mark.parametrize(("model", "least"), [("x", 1024), ("claude-haiku-4-5-20251001", 4096)])
async def test_anthropics_cache_is_marked_behind_what_prompts_share_where_that_is_long_enough(
    model: str, least: int
) -> None:
    prompt = sharing(4 * least)
    call = await sent(prompt, "anthropic", model=model)
    (message,) = call.body["messages"]
    shared, rest = (
        {"type": "text", "text": text} for text in (prompt.user[: prompt.shared], prompt.user[prompt.shared :])
    )
    assert message["content"] == [shared | MARK, rest]
    assert call.body["system"] == [{"type": "text", "text": prompt.system}], "no mark behind a short text"
    for other in (sharing(4 * least - 4), replace(prompt, shared=0)):
        call = await sent(other, "anthropic", model=model)
        assert "cache_control" not in call.content.decode(), "writing costs more, and would save nothing"
    call = await sent(replace(prompt, system="s" * 4 * least, shared=0), "anthropic", model=model)
    assert call.body["system"] == [{"type": "text", "text": "s" * 4 * least} | MARK]


async def test_openai_gets_a_key_of_what_prompts_share_and_other_servers_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompt = sharing(4096)
    assert "prompt_cache_key" not in (await sent(prompt)).body
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    provider = OpenAIProvider(JudgeSpec(provider="openai", model="x"))
    keys = [
        provider.request(each).get("prompt_cache_key") for each in (prompt, replace(prompt, user=prompt.user + "!"))
    ]
    assert keys[0] == keys[1]
    assert keys[0]
    assert "prompt_cache_key" not in provider.request(sharing(4092))
    await provider.close()


@BOTH
async def test_the_reply_is_held_to_the_contracts_schema(vendor: str) -> None:
    prompt = pairwise()
    with LLMServer() as server:
        completion = await asked(declared(server, vendor), prompt)
        held_to = schema_of(server.calls[0].body, vendor)
    assert held_to == {"type": "json_schema", "schema": json_schema(prompt.contract)}
    assert parse_reply(completion.text, prompt.contract, prompt.inputs).outcome in {"A", "B", "TIE"}


@BOTH
@pytest.mark.parametrize(("prompt", "structured"), [(bracketed(), True), (pairwise(), False)], ids=["free", "off"])
async def test_no_schema_is_sent_for_free_text_or_where_declared_off(
    vendor: str, prompt: Prompt, structured: bool
) -> None:
    body = (await sent(prompt, vendor, structured_output=structured)).body
    assert body.keys().isdisjoint({"response_format", "output_config"})


async def test_a_server_that_promises_no_more_than_json_is_asked_for_that() -> None:
    body = (await sent(pairwise(), structured_output="object")).body
    assert body["response_format"] == {"type": "json_object"}
    assert "response_format" not in (await sent(bracketed(), structured_output="object")).body


@BOTH
async def test_only_declared_sampling_parameters_are_sent(vendor: str) -> None:
    assert {"temperature", "seed"}.isdisjoint((await sent(pairwise(), vendor)).body)
    body = (await sent(pairwise(), vendor, temperature=0, max_tokens=99)).body
    assert (body["temperature"], body["max_tokens"]) == (0, 99)


async def test_each_repetition_of_a_prompt_gets_a_seed_of_its_own() -> None:
    seeds = [(await sent(replace(pairwise(), sample=sample), seed=7)).body["seed"] for sample in range(3)]
    assert seeds == [7, 8, 9]


async def test_a_model_without_a_system_role_gets_its_text_with_the_first_user_message() -> None:
    prompt = replace(pairwise(), turns=AGAIN)
    first, *turns = (await sent(prompt, system_role=False)).body["messages"]
    assert first == {"role": "user", "content": f"{prompt.system}\n\n{prompt.user}"}
    assert [turn["role"] for turn in turns] == ["assistant", "user"]


@pytest.mark.parametrize(
    ("vendor", "extra"),
    [
        ("openai", {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}}),
        ("anthropic", {"output_config": {"effort": "low"}, "metadata": {"user_id": "judge"}}),
    ],
)
async def test_declared_further_fields_join_what_is_sent_and_decide_the_identity(
    vendor: str, extra: dict[str, dict[str, object]]
) -> None:
    body = (await sent(pairwise(), vendor, extra_body=extra)).body
    assert all(isinstance(value, str) or value.items() <= body[name].items() for name, value in extra.items())
    if vendor == "anthropic":
        assert body["output_config"]["format"]["schema"] == json_schema(pairwise().contract)
    with LLMServer() as server:
        options: list[dict[str, object]] = [{}, {"extra_body": extra}, {"system_role": False}]
        providers = [open_provider(declared(server, vendor, **each)) for each in options]
    identities = {json.dumps(dict(provider.identity)) for provider in providers}
    assert len(identities) == (3 if vendor == "openai" else 2)
    for provider in providers:
        await provider.close()


@pytest.mark.parametrize("field", ["model", "messages", "stream", "n", "seed", "max_tokens", "response_format"])
def test_a_further_field_that_is_set_anyway_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"extra_body may not hold {field}"):
        JudgeSpec.model_validate({"provider": "openai", "model": "m", "extra_body": {field: 1}})


@pytest.mark.parametrize(
    "extra", [{"api_key": "k"}, {"provider": [{"Authorization": "Bearer k"}]}, {"clientSecret": 1}]
)
def test_keys_do_not_go_into_further_fields(extra: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="put keys into environment variables"):
        JudgeSpec.model_validate({"provider": "openai", "model": "m", "extra_body": extra})


@pytest.mark.parametrize(("option", "value"), [("seed", 7), ("structured_output", "object")])
def test_what_anthropics_models_do_not_have_is_refused(option: str, value: object) -> None:
    with LLMServer() as server, pytest.raises(InputError, match=option):
        open_provider(declared(server, "anthropic", **{option: value}))


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


async def test_the_field_of_the_token_limit_can_be_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    body = (await sent(pairwise(), token_limit_field="max_completion_tokens")).body
    assert body["max_completion_tokens"] == 1024
    assert "max_tokens" not in body
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    at_openai = OpenAIProvider(JudgeSpec(provider="openai", model="x"))
    assert at_openai.limit_field == "max_completion_tokens", "which its new models take"


@BOTH
async def test_a_reply_carries_text_model_and_usage(vendor: str) -> None:
    completion = await completed(Reply('{"verdict": "A"}'), vendor)
    assert (completion.text, completion.model) == ('{"verdict": "A"}', "x-2026-11")
    assert completion.finish is Finish.STOP
    assert (completion.usage.cached_input_tokens, completion.usage.output_tokens) == (16, 4)
    assert (completion.usage.input_tokens or 0) > 100
    assert (await completed(Reply("x", usage=False), vendor)).usage == Usage()


@pytest.mark.parametrize("count", [-5, 10**400, 2**70, True, "12", 1.5])
def test_what_is_no_number_of_tokens_counts_as_not_said(count: object) -> None:
    assert token_count({"prompt_tokens": count}, "prompt_tokens") is None


async def test_input_tokens_are_the_sum_of_the_three_that_anthropic_counts() -> None:
    usage = {"input_tokens": 100, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 5, "output_tokens": 9}
    body = {"model": "m", "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn", "usage": usage}
    assert (await completed(Reply(body=body), "anthropic")).usage == Usage(135, 30, 9, 5)


@BOTH
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
async def test_why_the_model_stopped_is_told(vendor: str, reply: Reply, finish: Finish, text: str) -> None:
    completion = await completed(reply, vendor)
    assert (completion.finish, completion.text) == (finish, text)


@pytest.mark.parametrize(
    ("reply", "finish"), [(Reply("", ending="content_filter"), Finish.FILTER), (Reply(None), Finish.STOP)]
)
async def test_a_filtered_and_a_null_content_are_empty(reply: Reply, finish: Finish) -> None:
    completion = await completed(reply)
    assert (completion.finish, completion.text) == (finish, "")


async def test_the_text_of_a_message_in_parts_is_kept_without_its_thoughts() -> None:
    said = {"type": "text", "text": "[[A]]"}
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, said]
    choice = {"message": {"role": "assistant", "content": parts}, "finish_reason": "stop"}
    completion = await completed(Reply(body={"model": "m", "choices": [choice]}))
    assert (completion.text, completion.finish) == ("[[A]]", Finish.STOP)
    content = [{"type": "thinking", "thinking": "hm", "signature": "s"}, said]
    body = {"model": "m", "content": content, "stop_reason": "end_turn"}
    assert (await completed(Reply(body=body), "anthropic")).text == "[[A]]"


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


async def test_the_key_comes_from_the_named_variable_and_a_server_of_ones_own_needs_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", " sk-mine\n")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert (await sent(pairwise(), api_key_env="MY_KEY")).headers["authorization"] == "Bearer sk-mine"
    assert (await completed(Reply("{}"))).text == "{}"


@pytest.mark.parametrize(
    ("options", "variable"),
    [
        ({}, "OPENAI_API_KEY"),
        ({"provider": "anthropic"}, "ANTHROPIC_API_KEY"),
        ({"api_key_env": "TEAM_KEY"}, "TEAM_KEY"),
        ({"api_key_env": "TEAM_KEY", "base_url": "http://127.0.0.1:9/v1"}, "TEAM_KEY"),
    ],
)
def test_a_missing_key_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], variable: str
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TEAM_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match=variable) as caught:
        open_provider(JudgeSpec.model_validate({"provider": "openai", "model": "x", **options}))
    assert "\n" not in str(caught.value)


def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-pla\nnted")
    with pytest.raises(InputError, match="OPENAI_API_KEY") as caught:
        open_provider(JudgeSpec(provider="openai", model="x"))
    assert "nted" not in str(caught.value)


@pytest.mark.parametrize(
    ("vendor", "variable", "path", "asked_at"),
    [
        ("openai", "OPENAI_BASE_URL", "/v1", "/v1/chat/completions"),
        ("anthropic", "ANTHROPIC_BASE_URL", "", "/v1/messages"),
        ("anthropic", "ANTHROPIC_BASE_URL", "/v1", "/v1/messages"),
        ("anthropic", "ANTHROPIC_BASE_URL", "/v1/", "/v1/messages"),
    ],
)
async def test_the_address_in_the_environment_counts_where_the_judge_names_none(
    monkeypatch: pytest.MonkeyPatch, vendor: str, variable: str, path: str, asked_at: str
) -> None:
    monkeypatch.setenv(f"{vendor.upper()}_API_KEY", "sk-test")
    with LLMServer([Reply("{}"), Reply("{}")]) as server, LLMServer([Reply("{}")]) as named:
        root = server.openai_url.removesuffix("/v1")
        monkeypatch.setenv(variable, f"{root}{path}")
        await asked(JudgeSpec.model_validate({"provider": vendor, "model": "x"}), pairwise())
        await asked(declared(named, vendor), pairwise())
        assert [call.path for call in server.calls] == [asked_at]
        assert [call.path for call in named.calls] == [asked_at]


@pytest.fixture
def port() -> Iterator[int]:
    command = [sys.executable, "-m", "tests.support.llm_server", "--delay-ms", "20"]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.terminate()


async def test_it_answers_after_its_delay_and_counts_what_it_was_asked(port: int) -> None:
    base_url = f"http://127.0.0.1:{port}/v1"
    provider = open_provider(JudgeSpec(provider="openai", model="gpt-x", base_url=base_url))
    started = time.monotonic()
    completions = [await provider.complete(pairwise()) for _ in range(3)]
    assert time.monotonic() - started > 0.06
    await provider.close()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/log") as answer:
        log = json.load(answer)
    assert log["count"] == 3
    assert len({call["sha256"] for call in log["calls"]}) == 1
    assert len({completion.text for completion in completions}) == 1


def test_no_key_is_written_where_a_target_is() -> None:
    target = Target("http://judge.test/v1", {"Authorization": "Bearer sk-secret"}, "m", 1, 1.0)
    assert "sk-secret" not in f"{target} {target!r} {[target]}"


@BOTH
@pytest.mark.parametrize("named", [False, True], ids=["in its place", "beside the key"])
async def test_declared_headers_take_the_place_of_the_key(
    monkeypatch: pytest.MonkeyPatch, vendor: str, named: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-this-server-1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-for-this-server-1")
    monkeypatch.setenv("AZURE_KEY", "planted-0123456789")
    monkeypatch.setenv("VENDOR_KEY", "sk-for-the-vendor-1")
    beside = {"api_key_env": "VENDOR_KEY"} if named else {}
    with LLMServer() as server:
        provider = open_provider(declared(server, vendor, headers_env={"api-key": "AZURE_KEY"}, **beside))
        await provider.complete(pairwise())
        await provider.close()
    (call,) = server.calls
    assert call.headers["api-key"] == "planted-0123456789"
    assert "not-for-this" not in call.head.decode()
    assert ("sk-for-the-vendor-1" in call.head.decode()) is named
    assert "planted" not in repr(provider.identity)
    assert masked("said planted-0123456789.") == "said ***."


class Refusing(Batches):
    """A batch API that takes nothing, and keeps the heads of what it was sent."""

    heads: list[bytes] = field(default_factory=list)

    def answer(self, path: str, head: bytes, content: bytes, execute: Execute) -> Answer | None:
        self.heads.append(head)
        return 400, b"{}"


@pytest.mark.parametrize(
    ("vendor", "opened", "batches"),
    [("openai", OpenAIProvider, OpenAIBatches), ("anthropic", AnthropicProvider, AnthropicBatches)],
)
async def test_declared_headers_go_with_batches_in_place_of_the_key(
    monkeypatch: pytest.MonkeyPatch,
    vendor: str,
    opened: Callable[[JudgeSpec], HostedProvider],
    batches: Callable[[JudgeSpec, HostedProvider], BatchServer],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-this-server-1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-for-this-server-1")
    monkeypatch.setenv("AZURE_KEY", "planted-0123456789")
    with LLMServer() as server:
        server.batches = refusing = Refusing()
        spec = declared(server, vendor, headers_env={"api-key": "AZURE_KEY"}, mode="batch")
        provider = opened(spec)
        there = batches(spec, provider)
        with pytest.raises(ProviderError):
            await there.submit("marker", [there.line("one", provider.request(pairwise()))])
        await there.close()
        await provider.close()
    assert refusing.heads
    assert all(b"api-key: planted-0123456789" in head for head in refusing.heads)
    assert not any(b"not-for-this" in head or b"no-key-needed" in head for head in refusing.heads)


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"a b": "KEY"}, "'a b' is not a valid header name"),
        ({"Host": "KEY"}, "'Host' is a header that ragleague sets itself"),
        ({"api-key": "sk-secret-0123456789"}, "api-key: name an environment variable"),
    ],
)
def test_headers_that_cannot_be_are_refused(headers: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        JudgeSpec.model_validate({"provider": "openai", "model": "m", "headers_env": headers})


def test_only_who_asks_a_server_has_headers() -> None:
    with pytest.raises(ValueError, match="provider 'lexical' has no 'headers_env'"):
        JudgeSpec.model_validate({"provider": "lexical", "headers_env": {"api-key": "KEY"}})


def test_a_header_without_a_value_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_KEY", raising=False)
    spec = {"provider": "openai", "model": "m", "headers_env": {"api-key": "AZURE_KEY"}}
    with pytest.raises(InputError, match="needs the environment variable AZURE_KEY, which is not set"):
        open_provider(JudgeSpec.model_validate(spec))
