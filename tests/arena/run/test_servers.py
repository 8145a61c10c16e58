"""What servers and gateways do, as people have reported it, and the line that says so; over real connections."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from arena.store import Store
from judges.types import Task
from tests.conftest import CLI, Ended
from tests.support.llm_server import Call, LLMServer, Reply, Script, as_events, steady_judge
from tests.support.proxy import certified

KEY = "sk-planted-0123456789abcdef"
QUERIES = 8
GAMES = 2 * QUERIES
SSE = "text/event-stream"
LONG = " ".join(f"Sentence {number} says that a court may hear it." for number in range(700))


class Behaviour(Struct, frozen=True):
    """A server's behaviour, and what the run must print and do.

    Attributes:
        says: a line that is printed; ``...`` stands for anything, ``SERVER`` for the address.
        judged: number of games judged.
        calls: maximum number of calls.
        judge: further keys of the judge.
        answer: the answer of one of the two agents.
        check: a trust check that fails.
    """

    script: Callable[[], Script]
    says: str = "pairwise: 16 judged, 0 needed no call, 0 failed, 0 left of 16; ..."
    judged: int = GAMES
    calls: int = GAMES
    judge: Mapping[str, Any] = field(default_factory=dict)
    answer: str = "Perhaps."
    check: str = ""


def always(reply: Reply) -> Callable[[], Script]:
    return lambda: lambda call: reply


def first(reply: Reply | Callable[[Call], Reply], then: Script = steady_judge) -> Callable[[], Script]:
    def script() -> Script:
        seen = set[str]()

        def answer(call: Call) -> Reply:
            if call.sha256 in seen:
                return then(call)
            seen.add(call.sha256)
            return reply(call) if callable(reply) else reply

        return answer

    return script


def good(**changed: Any) -> Callable[[], Script]:
    return lambda: lambda call: replace(steady_judge(call), **changed)


def on_some(reply: Reply) -> Callable[[], Script]:
    filtered = re.compile(r"number [0-4]\b")
    return lambda: lambda call: reply if filtered.search(call.content.decode()) else steady_judge(call)


def failing(code: Any, message: str, **more: Any) -> Reply:
    return Reply(body={"error": {"code": code, "message": message, **more}, "user_id": "u"})


def refusing(status: int, message: str, **more: Any) -> Reply:
    return Reply(status=status, body={"error": {"message": message, **more}})


def turns(call: Call) -> Reply:
    at = call.content.decode()
    model = "gpt-4.1-2025-04-14" if at.find("Perhaps") < at.find("Surely") else "gpt-4o-mini-2024-07-18"
    return replace(steady_judge(call), model=model)


def only_by_header(call: Call) -> Reply:
    if "api-key" not in call.headers:
        return refusing(401, "Access denied due to missing subscription key.")
    return refusing(401, "Two keys.") if "authorization" in call.headers else steady_judge(call)


def unless_told(call: Call) -> Reply:
    return steady_judge(call) if call.body.get("stream") is False else Reply(raw=lambda _: b"data: x\n\n", kind=SSE)


AZURE = {"innererror": {"code": "ResponsibleAIPolicyViolation"}, "code": "content_filter"}
FILTERED = "pairwise: 6 judged, 0 needed no call, 10 failed, 0 left of 16; ..."
STOPPED = {"judged": 0, "calls": 12}
ANTHROPIC = {"provider": "anthropic"}

BEHAVIOURS: Mapping[str, Behaviour] = {
    "streams always": Behaviour(good(raw=as_events, kind=SSE)),
    "streams, without the type": Behaviour(good(raw=as_events)),
    "streams unless it is told not to": Behaviour(lambda: unless_told),
    "streams as Anthropic does": Behaviour(good(raw=as_events, kind=SSE), judge=ANTHROPIC),
    "calls one object a stream": Behaviour(
        good(raw=lambda body: json.dumps(body).encode() + b"\n\ndata: [DONE]\n\n", kind=SSE)
    ),
    "keeps a stream alive": Behaviour(good(raw=lambda body: b": PROCESSING\n\n" * 3 + as_events(body), kind=SSE)),
    "breaks a stream off, once": Behaviour(
        first(lambda call: replace(steady_judge(call), raw=lambda body: as_events(body)[:400], kind=SSE)), calls=40
    ),
    "streams something else": Behaviour(
        always(Reply(raw=lambda _: b'data: {"token": "A"}\n\ndata: {"token": "B"}\n\n', kind=SSE)),
        "judge 'j' stopped: 5 failures alike: m at SERVER: streams (text/event-stream), and not as ...; check the "
        "server and 'base_url'",
        **STOPPED,
    ),
    "fails within status 200, once": Behaviour(first(failing(502, "Provider returned error")), calls=40),
    "knows no provider, within status 200": Behaviour(
        always(failing(404, "No allowed providers are available.")),
        "judge 'j' stopped: m at SERVER: error 404 in the reply: No allowed providers are available; check 'model' and "
        "'base_url'",
        **STOPPED,
    ),
    "has no credit, within status 200": Behaviour(
        always(failing(402, "Insufficient credits.")),
        "judge 'j' stopped: m at SERVER: error 402 in the reply: Insufficient credits; add credit to the account of "
        "the key in OPENAI_API_KEY",
        **STOPPED,
    ),
    "refuses a field, within status 200": Behaviour(
        always(failing("400", "Provider returned error", metadata={"raw": '{"error": {"message": "top_k: unknown"}}'})),
        "judge 'j' stopped: 5 failures alike: m at SERVER: error 400 in the reply: top_k: unknown ...; "
        "fix the setting that the server names",
        **STOPPED,
    ),
    "fails in the middle of a reply, once": Behaviour(
        first(Reply('{"expl', choice={"finish_reason": "error", "error": {"code": 502, "message": "idle"}})), calls=40
    ),
    "fails at the end of a whole reply, once": Behaviour(
        first(lambda call: replace(steady_judge(call), choice={"finish_reason": "error"})), calls=40
    ),
    "fails at the end of every reply": Behaviour(
        always(Reply('{"explanation": "x", "verdict": "A"}', choice={"finish_reason": "error"})),
        "judge 'j' stopped: 5 failures alike: m at SERVER: the server ended the reply with 'error'; check the server "
        "and 'base_url'",
        judged=0,
        calls=4 * GAMES,
    ),
    "has no resources left, once": Behaviour(
        first(lambda call: replace(steady_judge(call), choice={"finish_reason": "insufficient_system_resource"})),
        calls=40,
    ),
    "lists its errors": Behaviour(
        always(Reply(status=400, raw=lambda _: b'[{"error": {"code": 400, "message": "Unknown name \\"seed\\"."}}]')),
        "judge 'j' stopped: 5 failures alike: m at SERVER: HTTP 400: Unknown name \"seed\"; leave 'seed' out",
        **STOPPED,
    ),
    "filters replies": Behaviour(
        on_some(Reply(choice={"finish_reason": "content_filter: PROHIBITED_CONTENT"}, message={"content": None})),
        FILTERED,
        6,
    ),
    "filters replies, without a message": Behaviour(
        on_some(Reply(choice={"finish_reason": "SAFETY", "message": None})), FILTERED, 6
    ),
    "filters prompts": Behaviour(on_some(refusing(400, "The response was filtered.", **AZURE)), FILTERED, 6),
    "filters prompts behind a gateway": Behaviour(
        on_some(refusing(400, "litellm.BadRequestError: AzureException - The response was filtered due to the prompt")),
        FILTERED,
        6,
    ),
    "reads no prompt so long": Behaviour(
        on_some(refusing(400, "This model's maximum context length is 2048 tokens.", code=400)), FILTERED, 6
    ),
    "has spent its budget": Behaviour(
        always(refusing(400, "Budget has been exceeded! Max budget: 1.0", type="budget_exceeded", code="400")),
        "judge 'j' stopped: m at SERVER: HTTP 400: Budget has been exceeded! ...; add credit to the account of the key "
        "in OPENAI_API_KEY",
        **STOPPED,
    ),
    "has no credit, by another code": Behaviour(
        always(refusing(400, "Your credit balance is too low to access it.", type="invalid_request_error")),
        "judge 'j' stopped: m at SERVER: HTTP 400: Your credit balance is too low ...; add credit to the account of "
        "the key in ANTHROPIC_API_KEY",
        judge=ANTHROPIC,
        **STOPPED,
    ),
    "replies in its reasoning": Behaviour(
        always(Reply("", message={"reasoning": "I compare the two."})),
        "judge 'j' stopped: 5 failures alike: the reply was empty: its text stands in 'reasoning'; turn reasoning off "
        "by 'extra_body', or raise 'max_tokens'",
        judged=0,
        calls=3 * GAMES,
    ),
    "knows no schema": Behaviour(
        always(refusing(400, "This response_format type is unavailable now")),
        "judge 'j' stopped: 5 failures alike: m at SERVER: HTTP 400: This response_format ...; set "
        "'structured_output' to object or false",
        **STOPPED,
    ),
    "takes another field for the length": Behaviour(
        always(refusing(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")),
        "judge 'j' stopped: 5 failures alike: m at SERVER: HTTP 400: Unsupported ...; set 'token_limit_field', or "
        "lower 'max_tokens'",
        **STOPPED,
    ),
    "takes no posts": Behaviour(
        always(Reply(status=405, body={"detail": "Method Not Allowed"})),
        "judge 'j' stopped: m at SERVER: HTTP 405: Method Not Allowed; check 'model' and 'base_url'",
        **STOPPED,
    ),
    "serves files": Behaviour(
        always(Reply(status=501, raw=lambda _: b"<p>Unsupported method ('POST')</p>", kind="text/html")),
        "judge 'j' stopped: m at SERVER: HTTP 501: Unsupported method ('POST'); check 'model' and 'base_url'",
        **STOPPED,
    ),
    "has another address": Behaviour(
        always(Reply(status=404, body={"detail": "Not Found"})),
        "judge 'j' stopped: m at SERVER: HTTP 404: Not Found; check 'model' and 'base_url'",
        **STOPPED,
    ),
    "cuts prompts": Behaviour(
        good(tokens=2051),
        "judge 'j' stopped: 5 failures alike: the server counts 2,051 tokens of a prompt of ... words …; raise the "
        "server's context length (num_ctx, max-model-len)",
        answer=LONG,
        check="Length of prompts",
        **STOPPED,
    ),
    "counts no tokens right": Behaviour(good(tokens=5), answer=LONG),
    "counts a prompt, but not what it has cached": Behaviour(
        first(lambda call: replace(steady_judge(call), tokens=9000), good(tokens=900)()), answer=LONG
    ),
    "hands on to another model": Behaviour(
        good(model="gpt-4o-mini-2024-07-18"),
        "judge 'j' stopped: 5 failures alike: asked for gpt-4o, and gpt-4o-mini-2024-07-18 replied; ask for the one "
        "that replies, or declare it as 'replies_as'",
        judge={"model": "gpt-4o"},
        check="Model behind each judge",
        **STOPPED,
    ),
    "replies by a dated name": Behaviour(good(model="gpt-4o-2024-08-06"), judge={"model": "gpt-4o"}),
    "falls back on another model": Behaviour(
        lambda: turns,
        "pairwise: 8 judged, 0 needed no call, 8 failed, 0 left of 16; ...",
        8,
        check="Model behind each judge",
    ),
    "knows the model by another name": Behaviour(
        good(model="gpt-4.1-2025-04-14"),
        "judge j: asked for m, and gpt-4.1-2025-04-14 replies",
        check="Model behind each judge",
    ),
    "knows the model by the name declared": Behaviour(
        good(model="gpt-4.1-2025-04-14"), judge={"replies_as": "gpt-4.1"}
    ),
    "wants the key in another header": Behaviour(
        lambda: only_by_header,
        "judge 'j' stopped: m at SERVER: HTTP 401: Access denied due to missing ...; send it in the "
        "header named, by 'headers_env'",
        **STOPPED,
    ),
    "gets the key in that header": Behaviour(
        lambda: only_by_header, judge={"headers_env": {"api-key": "OPENAI_API_KEY"}}
    ),
}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judges.pace.FIRST_WAIT_S", 0.01)


def run(cli: CLI, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch, **declared: Any) -> Ended:
    answer = declared.pop("answer", "Perhaps.")
    for agent, text in (("a", answer), ("b", "Surely.")):
        rows = [{"question": f"Is number {number} odd?", "answer": text} for number in range(QUERIES)]
        (folder / f"{agent}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    judge = {"provider": "openai", "model": "m", "base_url": url, "max_attempts": 4, **declared}
    config = {
        "name": "t",
        "store": "t.db",
        "data": {"answers": ["a.jsonl", "b.jsonl"]},
        "judges": {"j": judge},
        "pairwise": {"judges": "j"},
        "ratings": {"bootstrap": {"samples": 20}},
    }
    (folder / "t.yaml").write_text(json.dumps(config), encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    return cli("run", "t.yaml")


def judged(folder: Path) -> int:
    store = Store.open(str(folder / "t.db"))
    outcomes = store.outcomes("t", Task.PAIRWISE)
    store.close()
    return sum(getattr(result, "outcome", None) is not None for _, result in outcomes)


def has_line(text: str, line: str) -> bool:
    pattern = re.escape(line).replace(re.escape("..."), ".*")
    return any(re.fullmatch(pattern, each) for each in text.splitlines())


@pytest.mark.parametrize("behaviour", BEHAVIOURS.values(), ids=BEHAVIOURS)
def test_what_a_server_does_is_said(
    cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour
) -> None:
    with LLMServer(behaviour.script()) as server:
        url = server.anthropic_url if behaviour.judge.get("provider") == "anthropic" else server.openai_url
        ended = run(cli, tmp_path, url, monkeypatch, answer=behaviour.answer, **behaviour.judge)
        calls = len(server.calls)
    said = (ended.err + ended.out).replace(url, "SERVER")
    assert has_line(said, behaviour.says), said
    assert (judged(tmp_path), ended.status) == (behaviour.judged, 0 if behaviour.judged == GAMES else 3), said
    assert calls <= behaviour.calls
    if behaviour.check:
        board = cli("leaderboard", "t.yaml", "--details", "--below-coverage").out
        assert behaviour.check.lower() in " ".join(board.lower().split())
    else:
        assert "Model behind each judge" not in said
    assert KEY not in said + (tmp_path / "t.db").read_bytes().decode("latin-1")


def test_what_a_filter_withheld_is_listed_by_its_cause(
    cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LLMServer(BEHAVIOURS["filters replies"].script()) as server:
        run(cli, tmp_path, server.openai_url, monkeypatch)
    failures = cli("failures", "t.yaml").out
    assert failures.count("content_filter: the provider's filter withheld the reply") == 10


CERTIFICATE = "judge 'j' stopped: m at SERVER: certificate not trusted (self-signed); put its authority into "


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ("", f"{CERTIFICATE}SSL_CERT_FILE or REQUESTS_CA_BUNDLE"),
        ("SSL_CERT_FILE", Behaviour(lambda: steady_judge).says),
        ("REQUESTS_CA_BUNDLE", Behaviour(lambda: steady_judge).says),
    ],
)
def test_a_certificate_that_is_not_trusted_says_what_to_name(
    cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, says: str
) -> None:
    tls, authority = certified(tmp_path, "127.0.0.1")
    if variable:
        monkeypatch.setenv(variable, str(authority))
    with LLMServer(tls=tls) as server:
        url = f"https://127.0.0.1:{server.port}/v1"
        said = run(cli, tmp_path, url, monkeypatch).err.replace(url, "SERVER")
    assert has_line(said, says), said


def test_a_certificate_of_another_server_is_called_so(
    cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls, authority = certified(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with LLMServer(tls=tls) as server:
        said = run(cli, tmp_path, f"https://127.0.0.1:{server.port}/v1", monkeypatch).err
    assert "certificate not trusted (another server's)" in said
    assert "; call the server by the name in its certificate, in 'base_url'" in said


def test_http_and_https_taken_for_each_other_say_so(cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls, _ = certified(tmp_path, "127.0.0.1")
    with LLMServer(tls=tls) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        said = run(cli, tmp_path, url, monkeypatch).err.replace(url, "SERVER")
    assert has_line(said, "judge 'j' stopped: m at SERVER: the server there speaks https; write https:// in 'base_url'")
    with LLMServer() as server:
        url = f"https://127.0.0.1:{server.port}/v1"
        said = run(cli, tmp_path, url, monkeypatch).err.replace(url, "SERVER")
    assert has_line(
        said, "judge 'j' stopped: m at SERVER: the server there does not speak https; write http:// in 'base_url'"
    )


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_what_is_no_file_of_authorities_is_said_before_any_call(
    cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (tmp_path / "none.pem").write_text("none", encoding="utf-8")
    monkeypatch.setenv(variable, str(tmp_path / "none.pem"))
    ended = run(cli, tmp_path, "https://127.0.0.1:9/v1", monkeypatch)
    assert ended.status == 2
    assert f"{variable}: none.pem: holds no certificates; name a file of certificates (PEM)" in ended.err
