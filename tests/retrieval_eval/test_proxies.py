"""No key reaches a proxy in clear text, and it gets its own password: every client over a real proxy and TLS."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

from judges.batch_servers import AnthropicBatches, OpenAIBatches
from judges.errors import InputError, ProviderError
from judges.providers import open_provider
from judges.providers.hosted import AnthropicProvider, OpenAIProvider
from judges.spec import JudgeSpec
from retrieval_eval.agents.embeddings import open_embedder
from retrieval_eval.agents.spec import EmbeddingsSpec
from retrieval_eval.agents.types import Meter
from tests.support.agent_fixtures import QUERY, only
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.prompts import pairwise
from tests.support.proxy import HOST, RecordingProxy, certified

KEY = "sk-planted-Behind4Proxy-0123456789"
PASSWORD = "pr0xy p@ssword"


def answering(call: Call) -> Reply:
    """Any of the clients gets what it expects."""
    return Reply(body={"answer": "Fine."}) if call.path == "/ask" else steady_judge(call)


async def judge(provider: str, url: str) -> None:
    opened = open_provider(JudgeSpec.model_validate({"provider": provider, "model": "m", "base_url": url}))
    try:
        await opened.complete(pairwise())
    finally:
        await opened.close()


async def batches(vendor: str, url: str) -> None:
    provider_of, server_of = {
        "openai": (OpenAIProvider, OpenAIBatches),
        "anthropic": (AnthropicProvider, AnthropicBatches),
    }[vendor]
    spec = JudgeSpec.model_validate({"provider": vendor, "model": "m", "base_url": url, "mode": "batch"})
    provider = provider_of(spec)
    server = server_of(spec, provider)
    try:
        remote_id = await server.submit("marker", [server.line("one", provider.request(pairwise()))])
        while await server.look(remote_id) is None:
            pass
        assert [name async for name, _ in server.outcomes(remote_id)] == ["one"]
    finally:
        await server.close()
        await provider.close()


async def agent(declared: Mapping[str, object]) -> None:
    asked = only({"max_attempts": 1, **declared})
    try:
        reply = await asked.reply(QUERY)
    finally:
        await asked.close()
    assert not hasattr(reply, "cause"), reply


async def embeddings(url: str) -> None:
    spec = EmbeddingsSpec(provider="openai", model="v", base_url=f"{url}/v1", max_attempts=1)
    embedder = open_embedder(spec)
    try:
        await embedder.embed(["A text."], Meter())
    finally:
        await embedder.close()


HTTP = {"kind": "http", "request": {"question": "{query}"}, "mapping": {"answer": "answer"}}
Client: TypeAlias = Callable[[str], Awaitable[None]]
CLIENTS: Mapping[str, Client] = {
    "openai": lambda url: judge("openai", f"{url}/v1"),
    "anthropic": lambda url: judge("anthropic", url),
    "openai, batches": lambda url: batches("openai", f"{url}/v1"),
    "anthropic, batches": lambda url: batches("anthropic", url),
    "agent http": lambda url: agent({**HTTP, "url": f"{url}/ask", "headers_env": {"X-Agent-Key": "AGENT_KEY"}}),
    "agent http, bearer": lambda url: agent({**HTTP, "url": f"{url}/ask", "headers_env": {"Authorization": "BEARER"}}),
    "agent endpoint": lambda url: agent(
        {"kind": "endpoint", "base_url": f"{url}/v1", "model": "m", "api_key_env": "AGENT_KEY"}
    ),
    "embeddings": embeddings,
}
EACH = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)


@pytest.fixture(autouse=True)
def planted_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AGENT_KEY"):
        monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("BEARER", f"Bearer {KEY}")
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)


@pytest.fixture
def encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LLMServer]:
    """A server that only a proxy can reach, as ``https://judge.invalid``."""
    tls, authority = certified(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with LLMServer(answering, tls=tls) as server:
        yield server


def forms(secret: str) -> list[bytes]:
    """The secret, its middle, and what its encodings begin with."""
    code = secret.encode()
    return [code, code[4:20], base64.b64encode(code)[:20], code.hex().encode()]


def basic(head: str) -> str | None:
    """The user and password in a head's ``Proxy-Authorization``."""
    header = re.search(r"^proxy-authorization: basic (\S+)", head, re.IGNORECASE | re.MULTILINE)
    return header and base64.b64decode(header[1]).decode()


@EACH
async def test_a_certificate_that_is_not_trusted_names_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    tls, authority = certified(tmp_path, "127.0.0.1")
    with LLMServer(answering, tls=tls) as server:
        with pytest.raises((ProviderError, AssertionError), match=r"not trusted \(self-signed\); put its authority"):
            await client(f"https://127.0.0.1:{server.port}")
        assert server.calls == []
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority))
        await client(f"https://127.0.0.1:{server.port}")


@EACH
@pytest.mark.parametrize(
    ("variable", "user", "sent"),
    [
        ("HTTPS_PROXY", "", None),
        ("https_proxy", "", None),
        ("ALL_PROXY", "", None),
        ("HTTPS_PROXY", "me@", "me:"),
        ("https_proxy", "me:pr0xy%20p%40ssword@", f"me:{PASSWORD}"),
        ("all_proxy", "me:pr0xy%20p%40ssword@", f"me:{PASSWORD}"),
    ],
)
async def test_a_proxy_reads_no_key_of_an_encrypted_request(
    encrypted: LLMServer, monkeypatch: pytest.MonkeyPatch, client: Client, variable: str, user: str, sent: str | None
) -> None:
    with RecordingProxy(encrypted.port) as proxy:
        monkeypatch.setenv(variable, f"http://{user}127.0.0.1:{proxy.port}")
        await client(f"https://{HOST}")
    assert all(KEY in call.head.decode() for call in encrypted.calls if call.head), "the server got it"
    assert proxy.heads
    for head, read in zip(proxy.heads, proxy.read, strict=True):
        assert head.startswith(f"CONNECT {HOST}:443 HTTP/1.1\r\n")
        names = {line.partition(":")[0].lower() for line in head.split("\r\n")[1:]}
        assert names <= {"host", "accept", "accept-encoding", "user-agent", "proxy-authorization"}
        assert basic(head) == sent
        assert not [form for form in forms(KEY) if form in read]


@EACH
async def test_a_proxy_that_is_named_without_http_is_used(
    encrypted: LLMServer, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    with RecordingProxy(encrypted.port) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"127.0.0.1:{proxy.port}")
        await client(f"https://{HOST}")
    assert proxy.heads


@EACH
@pytest.mark.parametrize("user", ["", "me:pr0xy%20p%40ssword@"])
async def test_a_proxy_passes_on_requests_that_nothing_encrypts(
    monkeypatch: pytest.MonkeyPatch, client: Client, user: str
) -> None:
    """It reads them whole, as everybody on the way does; the proxy's own password goes no further by our doing."""
    with LLMServer(answering) as server, RecordingProxy(server.port) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://{user}127.0.0.1:{proxy.port}")
        await client(f"http://{HOST}")
    assert all(" http://judge.invalid/" in head.partition("\r\n")[0] for head in proxy.heads)
    assert {basic(head) for head in proxy.heads} == ({f"me:{PASSWORD}"} if user else {None})


@EACH
@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
@pytest.mark.parametrize("named", ["*", "127.0.0.1", "elsewhere,127.0.0.1"])
async def test_an_address_in_no_proxy_is_asked_directly(
    monkeypatch: pytest.MonkeyPatch, client: Client, variable: str, named: str
) -> None:
    with LLMServer(answering) as server, RecordingProxy(server.port) as proxy:
        for scheme in ("HTTP", "HTTPS", "ALL"):
            monkeypatch.setenv(f"{scheme}_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv(variable, named)
        await client(f"http://127.0.0.1:{server.port}")
    assert proxy.read == []


@EACH
@pytest.mark.parametrize("named", ["socks5://me:planted@127.0.0.1:9", "http://127.0.0.1:99999", "http://[::1"])
async def test_a_proxy_that_cannot_be_used_is_one_line_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, client: Client, named: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", named)
    with pytest.raises(InputError) as caught:
        await client(f"https://{HOST}")
    words = str(caught.value)
    assert "ALL_PROXY names " in words
    assert f"put {HOST} into NO_PROXY" in words
    assert "\n" not in words
    assert "planted" not in words
