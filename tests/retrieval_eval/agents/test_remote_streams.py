"""Agents that stream although nobody asked them to: read where the stream is a chat completion's, else said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.agent_fixtures import answered, failed, only
from tests.support.llm_server import LLMServer, Reply

SSE = "text/event-stream; charset=utf-8"


def streamed(*events: Any, kind: str = SSE, done: bool = True, **settings: Any) -> Reply:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in events]
    content = "".join(f"data: {text}\n\n" for text in [*texts, *(["[DONE]"] if done else [])]).encode()
    return Reply(raw=lambda body: content, kind=kind, body={}, **settings)


def lines(*events: Any, kind: str = "application/x-ndjson") -> Reply:
    content = "".join(json.dumps(each) + "\n" for each in events).encode()
    return Reply(raw=lambda body: content, kind=kind, body={})


def chunk(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    } | more


CHUNKS = [chunk("", id="c1"), chunk("Because "), chunk("\u2603."), chunk(finish="stop")]
USAGE: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}

OTHER_LINE_ENDS = b": hello\r\n\r\n" + b"".join(
    b"event: message\r\ndata:" + json.dumps(each).encode() + b"\r\n\r\n" for each in [*CHUNKS, USAGE]
)


def chat(server: LLMServer, **settings: Any) -> dict[str, Any]:
    return {"kind": "endpoint", "base_url": server.openai_url, "model": "m", "max_attempts": 1, **settings}


@pytest.mark.parametrize(
    "reply",
    [
        streamed(*CHUNKS, USAGE),
        streamed(*CHUNKS, USAGE, kind="application/json"),
        streamed(*CHUNKS, USAGE, done=False),
        Reply(raw=lambda body: OTHER_LINE_ENDS, kind=SSE, body={}),
        lines(*CHUNKS, USAGE),
        lines(*CHUNKS, USAGE, kind="application/json"),
    ],
    ids=["events", "without their type", "without a mark at the end", "other line ends", "lines", "lines as JSON"],
)
async def test_the_chunks_of_a_chat_completion_are_joined(reply: Reply) -> None:
    with LLMServer([reply]) as server:
        found = await answered(only(chat(server)))
    assert (found.answer, found.calls) == ("Because \u2603.", 1)
    assert (found.usage.input_tokens, found.usage.output_tokens) == (7, 3)


async def test_what_stands_beside_the_deltas_is_mapped() -> None:
    cited = chunk(finish="stop", citations=["https://a.example", "https://b.example"])
    mapping = {"answer": "choices[0].message.content", "citations": "citations"}
    with LLMServer([streamed(*CHUNKS[:3], cited)]) as server:
        found = await answered(only(chat(server, mapping=mapping)))
    assert found.citations == ("https://a.example", "https://b.example")


async def test_a_stream_of_one_event_is_that_event() -> None:
    with LLMServer([streamed({"answer": "Yes."}, done=False)]) as server:
        found = await answered(only(chat(server, mapping={"answer": "answer"})))
    assert found.answer == "Yes."


@pytest.mark.parametrize(
    ("reply", "cause", "said"),
    [
        (streamed(*CHUNKS[:3], done=False), "connection", "mine: the stream broke off"),
        (streamed(chunk("a", choices=[{"index": [], "delta": {"content": []}}])), "contract", None),
        (streamed(*CHUNKS[:2], '{"choices": [{"del', done=False), "connection", "mine: the stream broke off"),
        (streamed(*CHUNKS, fault="half"), "connection", None),
        (streamed(CHUNKS[0], {"error": {"message": "overloaded"}}, done=False), "server_error", "mine: overloaded"),
        (
            lines({"response": "a", "done": False}, {"response": "b", "done": True}),
            "contract",
            "mine: streams (application/x-ndjson), and not as chat completions do; have it answer at once, as with "
            "'stream: false' in its 'request'",
        ),
        (
            streamed("token", "token"),
            "contract",
            "mine: streams (text/event-stream), and not as chat completions do; have it answer at once, as with "
            "'stream: false' in its 'request'",
        ),
    ],
)
async def test_a_stream_that_cannot_be_read_is_a_failure_that_says_so(
    reply: Reply, cause: str, said: str | None
) -> None:
    with LLMServer([reply]) as server:
        failure = await failed(only(chat(server)))
    assert failure.cause == cause
    assert said is None or failure.message == said


async def test_a_stream_that_broke_off_is_asked_for_again() -> None:
    with LLMServer([streamed(*CHUNKS[:3], done=False), streamed(*CHUNKS)]) as server:
        found = await answered(only(chat(server, max_attempts=2)))
    assert (found.answer, found.calls) == ("Because \u2603.", 2)


async def test_json_over_several_lines_is_no_stream() -> None:
    content = json.dumps({"answer": "Yes.", "sources": [{"id": "a", "text": "data: x"}]}, indent=1).encode()
    with LLMServer([Reply(raw=lambda body: content, body={})]) as server:
        found = await answered(only(chat(server, mapping={"answer": "answer"})))
    assert found.answer == "Yes."
