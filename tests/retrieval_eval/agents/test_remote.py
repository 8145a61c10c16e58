"""Agents behind an address: what is sent, what is read, and everything that can go wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judges.types import Query
from tests.support.agent_fixtures import CORPUS, QUERY, answered, failed, only
from tests.support.llm_server import LLMServer, Reply

KEY = "sk-secret-0123456789abcdef"
MAPPING = {"answer": "result.answer", "documents": "result.sources", "citations": "result.cited"}


def http(server: LLMServer, **settings: Any) -> dict[str, Any]:
    request = {"question": "{query}", "options": {"top": 3, "tag": ["id {query_id}"]}}
    url = f"http://127.0.0.1:{server.port}/ask"
    return {"kind": "http", "url": url, "request": request, "mapping": MAPPING, "max_attempts": 1, **settings}


def said(**result: Any) -> Reply:
    return Reply(body={"result": result})


async def test_the_request_is_filled_in_and_the_reply_is_mapped() -> None:
    sources = [
        {"id": 7, "text": "Seven.", "score": 2, "title": "T"},
        {"text": "No id."},
        "Bare text.",
        "elo",
        {"id": "x", "text": "X."},
    ]
    reply = said(answer=" Because. ", sources=sources, cited=["x", 1, 9])
    with LLMServer([reply]) as server:
        found = await answered(only(http(server)), Query("q/1", 'Is {query_id} "quoted"?'))
    assert server.calls[0].path == "/ask"
    assert server.calls[0].body == {"question": 'Is {query_id} "quoted"?', "options": {"top": 3, "tag": ["id q/1"]}}
    assert found.answer == "Because."
    assert [(entry.rank, entry.text) for entry in found.documents] == [
        (1, "Seven."),
        (2, "No id."),
        (3, "Bare text."),
        (4, CORPUS.by_id["elo"].text),
        (5, "X."),
    ]
    first, second, _, fourth, _ = found.documents
    assert (first.doc_id, first.score, first.metadata) == ("7", 2.0, {"title": "T"})
    assert second.doc_id.startswith("sha256-")
    assert (fourth.doc_id, fourth.metadata) == ("elo", {"title": "Elo"})
    assert found.citations == ("x", "7")
    assert found.latency_s
    assert (found.calls, found.cost_usd) == (1, None)


async def test_pieces_of_one_document_come_together_and_numbers_cite_by_place() -> None:
    sources = [{"id": "a", "text": "One."}, {"id": "a", "text": "Two."}, {"id": "b", "text": "Three."}]
    with LLMServer([said(answer="So [3] and [2].", sources=sources)]) as server:
        found = await answered(only(http(server)))
    assert [(entry.doc_id, entry.text) for entry in found.documents] == [("a", "One.\n\nTwo."), ("b", "Three.")]
    assert found.citations == ("b", "a")


async def test_keys_come_from_the_environment_and_go_into_headers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_HEADER", f"Token {KEY}")
    with LLMServer([Reply(status=401, text=f"bad key {KEY}")]) as server:
        agent = only(http(server, headers_env={"X-Auth": "MY_HEADER"}))
        failure = await failed(agent)
    assert server.calls[0].headers["x-auth"] == f"Token {KEY}"
    assert failure.cause == "authentication"
    assert KEY not in failure.message
    assert KEY[:10] not in failure.message
    assert KEY not in repr(agent.__dict__)


async def test_a_server_that_repeats_the_key_does_not_get_it_into_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_HEADER", f"Bearer {KEY}")
    with LLMServer([said(answer=f"You sent {KEY}.")]) as server:
        reply = await answered(only(http(server, headers_env={"Authorization": "MY_HEADER"})))
    assert reply.answer == "You sent ***."


async def test_a_redirect_is_not_followed() -> None:
    with LLMServer([said(answer="stolen")]) as thief:
        moved = Reply(status=307, headers={"Location": f"http://127.0.0.1:{thief.port}/ask"})
        with LLMServer([moved]) as server:
            failure = await failed(only(http(server)))
        moved = f"mine: HTTP 307: moved to http://127.0.0.1:{thief.port}/ask (no redirect is followed); check 'url'"
        assert (failure.cause, failure.message) == ("bad_request", moved)
        assert thief.calls == []


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (Reply(fault="stall"), "timeout"),
        (Reply("late", delay_s=3), "timeout"),
        (Reply(fault="reset"), "connection"),
        (Reply(fault="half"), "connection"),
        (Reply(fault="garbage"), "server_error"),
        (Reply(status=500, text="oops"), "server_error"),
        (Reply(status=400, text="what?"), "bad_request"),
        (Reply(status=404, text="gone"), "bad_request"),
        (Reply(status=429, text="slower", headers={"Retry-After": "3600"}), "rate_limit"),
        (said(answer=""), "empty"),
        (said(answer=" \n"), "empty"),
        (said(), "empty"),
        (Reply(body={"detail": "no"}), "empty"),
        (said(answer=["a", "list"]), "contract"),
        (said(answer="a", sources={"not": "a list"}), "contract"),
        (said(answer="a", sources=[{}]), "contract"),
        (said(answer="a", sources=[{"id": ["x"], "text": "t"}]), "contract"),
        (said(answer="a", sources=[{"id": "in no corpus"}, "elo"]), "contract"),
        (said(answer="a", sources=[5]), "contract"),
        (said(answer="a", sources=["x"] * 1001), "contract"),
        (said(answer="a", cited="1"), "contract"),
        (said(answer="a", cited=[None]), "contract"),
    ],
)
async def test_what_is_no_answer_is_a_failure(reply: Reply, cause: str) -> None:
    with LLMServer(lambda call: reply) as server:
        failure = await failed(only(http(server, timeout_s=1)))
    assert (failure.cause, failure.calls) == (cause, 1)
    assert "\n" not in failure.message
    assert len(failure.message) < 500


async def test_a_body_that_would_fill_memory_is_a_failure() -> None:
    with LLMServer([said(answer="a" * 2**25)]) as server:
        failure = await failed(only(http(server)))
    assert (failure.cause, failure.message) == ("too_long", "mine: the answer is larger than 33554432 bytes")


async def test_nothing_that_listens_is_a_failure() -> None:
    with LLMServer() as server:
        spec = http(server)
    assert (await failed(only(spec))).cause == "connection"


async def test_another_attempt_is_made_where_it_may_help_and_only_there() -> None:
    with LLMServer([Reply(status=503, text="busy"), said(answer="Now.")]) as server:
        reply = await answered(only(http(server, max_attempts=3)))
    assert (reply.answer, reply.calls) == ("Now.", 2)
    with LLMServer(lambda call: said(answer="")) as server:
        failure = await failed(only(http(server, max_attempts=3)))
    assert (failure.calls, len(server.calls)) == (1, 1)


async def test_a_chat_endpoint_is_asked_the_bare_query_and_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    price = {"input": 1.0, "output": 1.0}
    with LLMServer([Reply("An answer [1].")]) as server:
        spec = {
            "kind": "endpoint",
            "base_url": server.openai_url,
            "model": "m",
            "api_key_env": "MY_KEY",
            "price": price,
        }
        reply = await answered(only({**spec, "request": {"temperature": 0, "model": "m"}}))
    assert server.calls[0].path == "/v1/chat/completions"
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.calls[0].body == {
        "model": "m",
        "messages": [{"role": "user", "content": QUERY.text}],
        "temperature": 0,
    }
    sent, written = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
    assert (reply.answer, reply.citations) == ("An answer [1].", ())
    assert reply.cost_usd == pytest.approx((sent + written) * 1e-6)


async def test_a_chat_endpoint_s_documents_and_cost_are_mapped_too() -> None:
    body = {
        "choices": [{"message": {"content": "See [2].", "context": {"citations": [{"url": "u1"}, {"url": "u2"}]}}}],
        "cost": 0.25,
    }
    mapping = {
        "answer": "choices[0].message.content",
        "documents": "choices[0].message.context.citations",
        "doc_id": "url",
        "cost_usd": "cost",
    }
    with LLMServer([Reply(body=body)]) as server:
        spec = {"kind": "endpoint", "base_url": server.openai_url, "model": "m", "mapping": mapping}
        reply = await answered(only(spec))
    assert [entry.doc_id for entry in reply.documents] == ["u1", "u2"]
    assert (reply.citations, reply.cost_usd) == (("u2",), 0.25)


async def test_what_a_failed_reply_cost_is_counted() -> None:
    mapping = {**MAPPING, "cost_usd": "cost", "input_tokens": "used"}
    with LLMServer([Reply(body={"cost": 0.5, "used": 11, "result": {}})]) as server:
        failure = await failed(only(http(server, mapping=mapping)))
    assert (failure.cause, failure.cost_usd, failure.usage.input_tokens) == ("empty", 0.5, 11)


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


@pytest.mark.parametrize(
    ("reply", "cause", "said"),
    [
        (Reply(body={"error": {"code": 400, "message": "no"}}), "bad_request", "mine: error 400 in the reply: no"),
        (
            Reply("Half a", choice={"finish_reason": "error"}),
            "server_error",
            "mine: the server ended the reply with 'error'",
        ),
        (
            Reply(choice={"finish_reason": "content_filter"}, message={"content": None}),
            "content_filter",
            "mine: the provider's filter withheld the answer",
        ),
    ],
)
async def test_what_a_gateway_says_in_place_of_an_answer_is_the_cause(reply: Reply, cause: str, said: str) -> None:
    with LLMServer([reply]) as server:
        failure = await failed(only(chat(server)))
    assert (failure.cause, failure.message) == (cause, said)


async def test_a_stream_that_broke_off_is_asked_for_again() -> None:
    with LLMServer([streamed(*CHUNKS[:3], done=False), streamed(*CHUNKS)]) as server:
        found = await answered(only(chat(server, max_attempts=2)))
    assert (found.answer, found.calls) == ("Because \u2603.", 2)


async def test_json_over_several_lines_is_no_stream() -> None:
    content = json.dumps({"answer": "Yes.", "sources": [{"id": "a", "text": "data: x"}]}, indent=1).encode()
    with LLMServer([Reply(raw=lambda body: content, body={})]) as server:
        found = await answered(only(chat(server, mapping={"answer": "answer"})))
    assert found.answer == "Yes."
