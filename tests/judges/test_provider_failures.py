"""How calls fail: over real connections with both SDKs' addresses and headers, and what each failure becomes."""

from __future__ import annotations

import asyncio
import email.utils
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from judges.errors import CAUSES, JudgeStoppedError, NoServiceError, ProviderError, RejectedError, TransientError
from judges.providers import open_provider
from judges.providers.http_answers import allowance_of, error_of_answer, retry_after_s
from judges.spec import JudgeSpec
from judges.types import Allowance
from tests.support.llm_server import LLMServer, Reply
from tests.support.prompts import pairwise

KEY = "sk-planted-0123456789"
BOTH = pytest.mark.parametrize("vendor", ["openai", "anthropic"])


@pytest.fixture(autouse=True)
def planted_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


async def failure_at(url: str, vendor: str = "openai", timeout_s: float = 5.0) -> ProviderError:
    spec = JudgeSpec.model_validate({"provider": vendor, "model": "judge-x", "base_url": url, "timeout_s": timeout_s})
    provider = open_provider(spec)
    try:
        with pytest.raises(ProviderError) as caught:
            await provider.complete(pairwise())
    finally:
        await provider.close()
    return caught.value


async def failure(reply: Reply, vendor: str = "openai", timeout_s: float = 5.0) -> ProviderError:
    """The error of one call, which is checked to be one call, one line, and to show no key."""
    with LLMServer([reply]) as server:
        error = await failure_at(server.openai_url if vendor == "openai" else server.anthropic_url, vendor, timeout_s)
        assert len(server.calls) == 1
        assert KEY in server.calls[0].headers["authorization"]
    assert error.cause in CAUSES
    assert "\n" not in str(error)
    assert all(KEY not in shown for shown in _everything_shown(error))
    return error


def _everything_shown(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield from (str(error), repr(error), repr(vars(error)))
        for request in (getattr(error, "request", None), getattr(error, "response", None)):
            yield str(getattr(request, "headers", ""))
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("status", "kind", "cause"),
    [
        (408, TransientError, "timeout"),
        (409, TransientError, "server_error"),
        (429, TransientError, "rate_limit"),
        (500, TransientError, "server_error"),
        (503, TransientError, "server_error"),
        (504, TransientError, "timeout"),
        (529, TransientError, "server_error"),
        (401, JudgeStoppedError, "authentication"),
        (402, JudgeStoppedError, "quota"),
        (403, JudgeStoppedError, "authentication"),
        (404, JudgeStoppedError, "unknown_model"),
        (400, RejectedError, "bad_request"),
        (413, RejectedError, "bad_request"),
        (422, RejectedError, "bad_request"),
    ],
)
def test_a_status_says_whether_to_try_again(status: int, kind: type[ProviderError], cause: str) -> None:
    error = error_of_answer(status, {}, "the server's own words", "judge-x")
    assert (type(error), error.cause) == (kind, cause)
    assert "the server's own words" in str(error)
    assert str(status) in str(error)


@pytest.mark.parametrize(
    ("status", "body", "kind", "cause"),
    [
        (429, {"code": "insufficient_quota", "message": "no credit"}, JudgeStoppedError, "quota"),
        (429, {"type": "billing_error", "message": "no credit"}, JudgeStoppedError, "quota"),
        (400, {"code": "model_not_found", "message": "no judge-x"}, JudgeStoppedError, "unknown_model"),
        (404, {"message": "model 'judge-x' not found, try pulling it first"}, JudgeStoppedError, "unknown_model"),
        (400, {"code": "content_filter", "message": "filtered"}, RejectedError, "content_filter"),
        (403, {"code": "content_policy_violation", "message": "filtered"}, RejectedError, "content_filter"),
        (403, {"code": 403, "message": "m", "metadata": {"flagged_input": "x"}}, RejectedError, "content_filter"),
        (403, {"code": 403, "message": "m", "metadata": {"provider_name": "x"}}, JudgeStoppedError, "authentication"),
        (403, {"code": "Forbidden", "message": "your resource is blocked"}, JudgeStoppedError, "authentication"),
        (401, {"code": "content_filter", "message": "no key"}, JudgeStoppedError, "authentication"),
        # As in reports to clients of xAI (UKGovernmentBEIS/inspect_ai 2267, Wei-Shaw/sub2api 5359).
        (403, {"message": "Content violates usage guidelines. Failed check: BIO"}, RejectedError, "content_filter"),
        (403, {"message": "Access to the chat endpoint is denied"}, JudgeStoppedError, "authentication"),
    ],
)
def test_an_error_code_says_more_than_the_status(
    status: int, body: dict[str, Any], kind: type[ProviderError], cause: str
) -> None:
    bare = {"code": "permission-denied", "error": body["message"]} if body.keys() == {"message"} else None
    error = error_of_answer(status, {}, bare or {"type": "error", "error": body}, "judge-x")
    assert (type(error), error.cause) == (kind, cause)
    assert body["message"] in str(error)


@BOTH
@pytest.mark.parametrize(
    ("code", "kind", "cause"),
    [
        ({"code": 403, "metadata": {"flagged_input": "x"}}, RejectedError, "content_filter"),
        ({"code": 502}, TransientError, "server_error"),
    ],
)
async def test_a_gateways_error_in_a_200_is_told_in_its_words(
    vendor: str, code: dict[str, Any], kind: type[ProviderError], cause: str
) -> None:
    error = await failure(Reply(body={"type": "error", "error": {**code, "message": "upstream is down"}}), vendor)
    assert (type(error), error.cause) == (kind, cause)
    assert "upstream is down" in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "Wed, 21 Oct 99999999999999999999 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 +99999999999999"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(headers: Mapping[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


def test_a_date_in_retry_after_becomes_seconds_from_now() -> None:
    seconds = retry_after_s({"retry-after": email.utils.formatdate(time.time() + 30, usegmt=True)})
    assert seconds is not None
    assert 25 < seconds <= 31


def test_a_date_beyond_all_bounds_counts_as_not_said() -> None:
    headers = {
        "date": "Wed, 21 Oct 2015 07:28:00 +99999999999999",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2015-10-21T07:28:00Z",
    }
    assert allowance_of(headers) == Allowance(0, 0.0)


@pytest.mark.parametrize(("status", "said"), [(429, True), (400, False)])
async def test_a_refusal_for_now_says_how_long(status: int, said: bool) -> None:
    error = await failure(Reply("slow down", status=status, headers={"Retry-After": "7"}))
    assert error.retry_after_s == (7.0 if said else None)


@BOTH
@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (Reply(fault="reset"), "connection"),
        (Reply("half an answer", fault="half"), "connection"),
        (Reply(fault="garbage"), "server_error"),
        (Reply(body={}), "server_error"),
        (Reply(body={"choices": [], "content": None}), "server_error"),
        (Reply(body={"choices": [{"message": {"content": 7}}], "content": 7}), "server_error"),
        (Reply(status=502, fault="garbage"), "server_error"),
    ],
    ids=["reset", "broken off", "not JSON", "empty object", "no choices", "no text", "HTML 502"],
)
async def test_a_broken_answer_is_worth_another_attempt(vendor: str, reply: Reply, cause: str) -> None:
    error = await failure(reply, vendor)
    assert isinstance(error, TransientError)
    assert error.cause == cause


async def test_a_stalled_server_is_given_up() -> None:
    started = time.monotonic()
    error = await failure(Reply(fault="stall"), timeout_s=0.3)
    assert (type(error), error.cause) == (TransientError, "timeout")
    assert time.monotonic() - started < 30, "half of what is waited by default"


async def test_a_server_that_is_not_there_is_a_lost_connection() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        error = await failure_at(f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert (type(error), error.cause) == (NoServiceError, "connection")


async def test_a_server_that_speaks_no_http_is_a_lost_connection() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        error = await failure_at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert (type(error), error.cause) == (NoServiceError, "connection")


async def test_calls_go_through_the_proxy_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with LLMServer([Reply("from behind the proxy", status=400)]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        error = await failure_at("http://judge.invalid/v1")
        (call,) = proxy.calls
    assert "from behind the proxy" in str(error)
    assert call.path.startswith("http://judge.invalid/v1/")


@BOTH
@pytest.mark.parametrize("status", [200, 401])
async def test_a_server_that_repeats_the_key_does_not_spread_it(vendor: str, status: int) -> None:
    body = {"error": {"message": f"Incorrect key {KEY} provided, or {KEY.upper()}."}}
    assert "Incorrect key *** provided, or ***." in str(await failure(Reply(status=status, body=body), vendor))


async def test_a_long_explanation_is_shortened_to_one_line() -> None:
    error = await failure(Reply("too\nlong " * 500, status=400))
    assert len(str(error)) <= 300


@BOTH
@pytest.mark.parametrize("status", [301, 307])
async def test_a_redirect_is_not_followed(vendor: str, status: int) -> None:
    """Texts and key would go to an address that nobody declared, in calls that nobody counts."""
    with LLMServer() as elsewhere:
        moved = Reply("Moved.", status=status, headers={"Location": f"{elsewhere.openai_url}/x"})
        error = await failure(moved, vendor)
        assert not elsewhere.calls
    assert isinstance(error, JudgeStoppedError)
    assert "'base_url'" in str(error)


@pytest.mark.parametrize("charset", ["hex", "undefined", "no-such-charset"])
async def test_an_answer_is_text_whatever_charset_it_names(charset: str) -> None:
    headers = {"Content-Type": f"text/plain; charset={charset}"}
    error = await failure(Reply(status=500, headers=headers, fault="garbage"))
    assert error.cause == "server_error"
    assert "not JSON" in str(error)
