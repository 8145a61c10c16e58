"""One way to post to a hosted model, shared by the providers that speak HTTP.

The vendor's SDK is asked once for what it knows: the address and the headers. Each call then goes through aiohttp, the
transport on which both SDKs offer to run, without the layers between. They are what a call costs: on one machine and in
one run the SDK's typed method took 1.6 ms of CPU, its ``post`` 1.0, the same on aiohttp 0.7, its HTTP client on aiohttp
0.36, and this way 0.2. ``benchmarks/transport.py`` compares them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from msgspec import Struct
from pydantic_core import to_json

from judges.errors import (
    InputError,
    JudgeStoppedError,
    NoServiceError,
    ProviderError,
    RejectedError,
    TransientError,
    reason,
)
from judges.masking import keep_secret, one_line, storable
from judges.providers.http_answers import allowance_of, error_in_body, error_of_answer, finish_of, shown
from judges.providers.streams import Received, whole
from judges.spec import JudgeSpec
from judges.types import Allowance, Completion, Finish, Prompt, Usage

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from anthropic import AsyncAnthropic
    from httpx2 import AsyncClient
    from openai import AsyncOpenAI

_CONNECT_S = 10.0
_KEPT_OPEN_S = 60.0
_GREETING_S = 1.0
_NO_KEY = "no-key-needed"
_SECRET_NAME = re.compile(r"key|secret|password|token|sig|auth|code", re.IGNORECASE)
_MOST_TOKENS = 10**9
_BEGINS = 60
"""Bytes that show what answered, where it is no service such as was asked for."""
_MOST_CHARACTERS = 2**20
"""A text beyond this is no reply to any prompt, and it would be sent back with what is wrong with it."""
MOST_BYTES = 2**25
"""A body beyond this is no reply, and would fill memory."""


class HttpAnswer(Struct, frozen=True):
    """The JSON object of an answer with status 200, and what its headers say is left of the rate limits."""

    body: dict[str, Any]
    allowance: Allowance | None


class Target(Struct, frozen=True):
    """Where requests go, and what a call may take.

    Attributes:
        url: whole.
        headers: sent with every request.
        name: by which messages call what answers there.
        concurrency: most connections.
        timeout_s: longest wait between two reads.
        named_by: the keys of a configuration that say who is asked.
        address_from: the one of them that says where.
    """

    url: str
    headers: Mapping[str, str]
    name: str
    concurrency: int
    timeout_s: float
    named_by: str = "'model' and 'base_url'"
    address_from: str = "'base_url'"

    def __repr__(self) -> str:  # a key is among the headers
        return f"Target({self.url!r})"


def sdk_target(sdk: AsyncOpenAI | AsyncAnthropic, path: str, spec: JudgeSpec) -> Target:
    """The address and the headers that ``sdk`` knows; ``path`` is below its address."""
    url = str(sdk.base_url.copy_with(path=sdk.base_url.path.rstrip("/") + path))
    headers = {**sdk.auth_headers, **sdk.default_headers}
    # The SDKs mark a header that is not to be sent by another type.
    sent = {name: value for name, value in headers.items() if isinstance(value, str)}
    own = headers_of(spec.headers_env)
    replaced = {name.lower() for name in own} | (set() if spec.sends_key else KEY_HEADERS)
    sent = {name: value for name, value in sent.items() if name.lower() not in replaced} | own
    name = f"{spec.model} at {shown(spec.address)}"
    return Target(
        url, sent, name, spec.concurrency, spec.timeout_s, f"'model' and {spec.address_from}", spec.address_from
    )


KEY_HEADERS = frozenset({"authorization", "x-api-key"})
"""In which the SDKs send a key."""


class Endpoint:
    """Posts JSON and returns JSON, or raises what ``Provider.complete`` raises. No error shows a key.

    Nothing is sent and no connection opened before the first call.
    """

    def __init__(self, target: Target) -> None:
        import aiohttp

        self._target = target
        self._proxy = proxy_of(target.url)
        _keep_secrets_of(target.url)
        if _is_encrypted(target.url):
            require_authorities()
        self._lost_errors = (aiohttp.ClientError, TimeoutError, OSError)
        self._no_service = (
            aiohttp.ClientConnectorError,
            aiohttp.ClientConnectorCertificateError,
            aiohttp.ClientResponseError,
        )
        self._session: ClientSession | None = None
        # How it ends where http is spoken to a server that waits for https; looked into once.
        self._unspoken = (aiohttp.ServerDisconnectedError, aiohttp.ClientResponseError, aiohttp.ClientOSError)
        self._answered = False

    @property
    def name(self) -> str:
        """By which messages call what answers there."""
        return self._target.name

    async def post(self, body: Mapping[str, Any]) -> HttpAnswer:
        """Ask once and decode the answer."""
        return self.decoded(await self.fetch(body))

    async def fetch(self, body: Mapping[str, Any]) -> Received:
        """Ask once; what came, of whatever status.

        Raises:
            ProviderError: nothing came, or more than any reply has.
        """
        content = _written(body)
        failure: ProviderError
        try:
            # A redirect is not followed: the key is for the server that was named. Nor do the headers belong to the
            # session: aiohttp sends those to a proxy too, in clear text.
            async with self.opened().post(
                self._target.url, data=content, headers=self._target.headers, allow_redirects=False
            ) as response:
                received = await _read(response)
        except self._lost_errors as error:
            failure = self._lost(error)
            if not self._answered and isinstance(error, self._unspoken) and await self._is_encrypted():
                here = f"{self._target.name}: what answers there speaks https"
                failure = JudgeStoppedError("connection", here, to_do=f"write https:// in {self._target.address_from}")
        else:
            self._answered = True
            if received is not None:
                return Received(response.status, response.headers, received)
            name = self._target.name
            failure = RejectedError("too_long", f"{name}: the answer is larger than {MOST_BYTES} bytes")
        raise failure  # here and not while the client's exception is handled: that one carries the request with the key

    async def look(self, path: str = "") -> Received:
        """See whether something answers: a GET of the address, or of what stands at ``path`` beside it.

        Raises:
            ProviderError: nothing came, or more than any reply has.
        """
        url = self._target.url
        if path:
            url = _beside(url, path)
        failure: ProviderError
        try:
            async with self.opened().get(url, headers=self._target.headers, allow_redirects=False) as response:
                received = await _read(response)
        except self._lost_errors as error:
            failure = self._lost(error)
        else:
            return Received(response.status, response.headers, received or b"")
        raise failure

    def decoded(self, received: Received, decoder: type[json.JSONDecoder] | None = None) -> HttpAnswer:
        """The JSON object of an answer, or of a stream put together, read by ``decoder`` where one is named.

        Raises:
            ProviderError: it holds none, or stands for an error.
        """
        if 200 <= received.status < 300:
            received = whole(received, self._target.name)
        try:
            answer = json.loads(received.content, cls=decoder)
        except (ValueError, RecursionError):
            answer = None
        status, headers = received.status, received.headers
        allowance = allowance_of(headers)
        if not 200 <= status < 300:
            explanation = received.content.decode("utf-8", "replace") if answer is None else answer
            name, named_by = self._target.name, self._target.named_by
            raise error_of_answer(status, headers, explanation, name, allowance=allowance, named_by=named_by)
        if not isinstance(answer, dict):
            kind = "not JSON" if answer is None else "not a JSON object"
            begins = received.content[:_BEGINS].decode("utf-8", "replace")
            message = f"{self._target.name}: HTTP {status}: the answer is {kind}: {begins!r}"
            raise NoServiceError("server_error", one_line(message))
        return HttpAnswer(answer, allowance)

    def opened(self) -> ClientSession:
        """The connections, all kept open; opened within the event loop that uses them."""
        import aiohttp

        if self._session is None:
            at_once = aiohttp.TCPConnector(
                limit=self._target.concurrency, keepalive_timeout=_KEPT_OPEN_S, ssl=trusted(self._target.url)
            )
            # Between two reads as long as a whole call may take; whoever asks bounds the call as a whole.
            connect_s = min(_CONNECT_S, self._target.timeout_s)
            waits = aiohttp.ClientTimeout(total=None, sock_connect=connect_s, sock_read=self._target.timeout_s)
            self._session = aiohttp.ClientSession(
                connector=at_once,
                timeout=waits,
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=self._proxy,
            )
        return self._session

    async def _is_encrypted(self) -> bool:
        """Whether a server that has answered nothing to http speaks TLS; nothing but a greeting is sent."""
        parts, self._answered = urlsplit(self._target.url), True
        if parts.scheme != "http" or self._proxy:
            return False
        greeting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        greeting.check_hostname, greeting.verify_mode = False, ssl.CERT_NONE
        try:
            async with asyncio.timeout(min(_GREETING_S, self._target.timeout_s / 4)):
                _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80, ssl=greeting)
        except (OSError, TimeoutError):  # ssl.SSLError is an OSError
            return False
        writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_GREETING_S):
                await writer.wait_closed()
        return True

    def _lost(self, error: Exception) -> ProviderError:
        if (of_tls := tls_error(error, self._target.name, self._target.address_from)) is not None:
            return of_tls
        if isinstance(error, TimeoutError):
            return TransientError("timeout", f"{self._target.name}: the server did not answer in time")
        if type(error).__name__ == "ClientPayloadError":
            return TransientError("connection", f"{self._target.name}: the answer broke off before its end")
        number = getattr(error, "errno", None) or 0
        if type(error).__name__ == "ClientResponseError":  # whose own words quote what came
            return NoServiceError("connection", f"{self._target.name}: what answers there does not speak HTTP")
        words = os.strerror(number) if number > 0 else getattr(error, "strerror", None) or str(error)
        through = f" through the proxy {shown(self._proxy)}" if self._proxy else ""
        message = one_line(f"{self._target.name}: no connection{through}: {words or type(error).__name__}")
        lost = NoServiceError if isinstance(error, self._no_service) else TransientError
        return lost("connection", message)

    def no_reply(self, body: object) -> ProviderError:
        """The error of an answer that came with status 200 and holds no reply."""
        return error_in_body(body, self._target.name, named_by=self._target.named_by)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def _beside(url: str, path: str) -> str:
    """The address with another path in place of the last one that a vendor's SDK puts behind its own."""
    parts = urlsplit(url)
    for own in _PATHS:
        if parts.path.endswith(own):
            return parts._replace(path=parts.path.removesuffix(own) + path).geturl()
    return url


_PATHS: Final = ("/chat/completions", "/embeddings", "/messages")


def _written(body: Mapping[str, Any]) -> bytes:
    try:
        return to_json(body)
    except ValueError:  # half of a pair of surrogates, which only an escape can say
        return json.dumps(body, separators=(",", ":")).encode("ascii")


async def _read(response: ClientResponse) -> bytes | None:
    """The whole body, unpacked; ``None`` where it is larger than any reply, or is announced to be."""
    if (response.content_length or 0) > MOST_BYTES:
        return None
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > MOST_BYTES:
            return None
    return bytes(content)


class Said(Struct, frozen=True):
    """A reply as a vendor's answer holds it.

    Attributes:
        text: the reply.
        reason: why it ended, in the server's words.
        usage: tokens.
        refused: whether the model says that it refuses.
        error: that the server put beside it.
        aside: the field that holds the model's reasoning, where there is some.
    """

    text: str
    reason: object
    usage: Usage
    refused: bool = False
    error: object = None
    aside: str = ""


class HostedProvider(ABC):
    """A vendor's API, asked with its SDK's address and headers. Nothing is tried again here: the judge does that.

    Attributes:
        path: of requests, below the address.
    """

    judges_names = False
    path: str

    def __init__(self, spec: JudgeSpec, sdk: Callable[..., AsyncOpenAI | AsyncAnthropic]) -> None:
        """Prepare a client; nothing is sent.

        Raises:
            InputError: no key.
        """
        self._spec = spec
        client = sdk(api_key=api_key(spec), base_url=spec.address, http_client=unused_client())
        self._endpoint = Endpoint(sdk_target(client, self.path, spec))
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": spec.provider,
            "model": spec.model,
            "temperature": spec.temperature,
            "max_tokens": spec.max_tokens,
            "structured_output": spec.structured_output,
            **({"extra_body": json.dumps(spec.extra_body, sort_keys=True)} if spec.extra_body else {}),
        }

    @property
    def endpoint(self) -> Endpoint:
        """Where it asks."""
        return self._endpoint

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once."""
        # Some gateways stream unless they are told not to.
        return self.read(await self._endpoint.post({**self.request(prompt), "stream": False}))

    def request(self, prompt: Prompt) -> dict[str, Any]:
        """The body that asks for a reply."""
        temperature = {} if self._spec.temperature is None else {"temperature": self._spec.temperature}
        return with_extras({"model": self._spec.model, **temperature, **self._fields(prompt)}, self._spec.extra_body)

    def read(self, answer: HttpAnswer) -> Completion:
        """The reply that an answer holds.

        Raises:
            TransientError: it holds none.
        """
        if answer.body.get("error"):  # of a gateway, whatever stands beside it
            raise self._endpoint.no_reply(answer.body)
        try:
            said = self._reply(answer.body)
        except (LookupError, TypeError, AttributeError):
            failure = self._endpoint.no_reply(answer.body)
        else:
            text, finish = said.text, finish_of(said.reason, said.error, self._endpoint.name)
            if said.refused:
                finish = Finish.REFUSAL
            if len(text) > _MOST_CHARACTERS:
                text, finish = text[:_MOST_CHARACTERS], Finish.TOO_LONG
            model = storable(str(answer.body.get("model") or self._spec.model))
            aside = "" if text.strip() else said.aside
            return Completion(storable(text), model, finish, said.usage, answer.allowance, aside=aside)
        raise failure

    @abstractmethod
    def _fields(self, prompt: Prompt) -> dict[str, Any]:
        """The fields of a request that depend on the vendor."""

    @abstractmethod
    def _reply(self, body: dict[str, Any]) -> Said:
        """What an answer holds; raises a ``LookupError`` or the like where it holds no reply."""

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()


AUTHORITIES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""Variables of the environment that name a file of authorities to trust; the second may name a folder."""


def trusted(url: str) -> ssl.SSLContext:
    """The authorities that the SDKs trust, whatever this machine has; none where nothing on the way is encrypted.

    Those in ``REQUESTS_CA_BUNDLE`` are trusted too: whoever has a company's authority has often named it there.
    """
    import httpx2

    if not _is_encrypted(url):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    require_authorities()
    context = httpx2.create_ssl_context()
    _load_authorities(context)
    return context


def _is_encrypted(url: str) -> bool:
    return url.startswith("https:") or proxy_of(url) is not None


def require_authorities() -> None:
    """Look at what ``AUTHORITIES`` name, before anything is sent.

    Raises:
        InputError: no authorities can be read there.
    """
    if any(os.environ.get(variable) for variable in AUTHORITIES):
        _load_authorities(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _load_authorities(context: ssl.SSLContext) -> None:
    for variable in AUTHORITIES:
        if not (path := os.environ.get(variable)):
            continue
        try:
            context.load_verify_locations(**{"capath" if Path(path).is_dir() else "cafile": path})
        except OSError as error:  # ssl.SSLError is one
            why = "holds no certificates" if isinstance(error, ssl.SSLError) else reason(error)
            raise InputError(f"{variable}: {path}: {why}; name a file of certificates (PEM)") from error


_UNTRUSTED = {
    18: "self-signed",
    19: "self-signed",
    20: "issuer not known",
    21: "issuer not known",
    9: "not valid yet",
    10: "expired",
    62: "another server's",
    64: "another server's",
}
_OTHER_NAME, _OUTDATED = {62, 64}, {9, 10}
"""OpenSSL's numbers for a certificate of another server, and for one that is not valid today."""


def tls_error(error: BaseException, name: str, address_from: str) -> JudgeStoppedError | None:
    """What is wrong with the encryption, if that is why there is no connection: it will be tomorrow too.

    Args:
        error: the client's, whatever it is wrapped in.
        name: of what was asked, for the message.
        address_from: what the address was taken from.
    """
    # aiohttp's errors are of ssl's classes, but the details are in what they wrap.
    seen: Any = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    while seen is not None and not isinstance(seen, ssl.SSLError):
        seen = seen.__cause__ or seen.__context__
    if isinstance(seen, ssl.SSLCertVerificationError):
        words = _UNTRUSTED.get(seen.verify_code, seen.verify_message.rstrip("."))
        if seen.verify_code in _OTHER_NAME:
            to_do = f"call the server by the name in its certificate, in {address_from}"
        elif seen.verify_code in _OUTDATED:
            to_do = "renew the certificate, or set this machine's clock"
        else:
            to_do = f"put its authority into {' or '.join(AUTHORITIES)}"
        message = one_line(f"{name}: certificate not trusted ({words})")
        return JudgeStoppedError("connection", message, to_do=to_do)
    if seen is not None and seen.reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}:
        return JudgeStoppedError(
            "connection", f"{name}: what answers there does not speak https", to_do=f"write http:// in {address_from}"
        )
    return None


def unused_client() -> AsyncClient:
    """For an SDK that sends nothing itself: spares it loading all authorities. This client trusts none."""
    import httpx2

    return httpx2.AsyncClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trust_env=False)


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for an address; its password is masked from now on.

    Raises:
        InputError: it is none that speaks HTTP.
    """
    parts = urlsplit(url)
    if proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    scheme = parts.scheme if proxies.get(parts.scheme) else "all"
    proxy = proxies.get(scheme)
    if not proxy:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    try:
        there = urlsplit(proxy)
        usable = there.scheme in {"http", "https"} and bool(there.hostname) and there.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError(
            f"{scheme.upper()}_PROXY names {shown(proxy)}; name a proxy that speaks HTTP, such as http://proxy:3128, "
            f"or put {parts.hostname} into NO_PROXY"
        )
    _keep_secrets_of(proxy)
    return proxy


def _keep_secrets_of(url: str) -> None:
    """The password in an address, and the keys among what follows its question mark."""
    parts = urlsplit(url)
    keys = [value for name, value in parse_qsl(parts.query) if _SECRET_NAME.search(name)]
    keep_secret(*keys, *([unquote(parts.password)] if parts.password else []))


def api_key(spec: JudgeSpec) -> str:
    """The key from the environment; a stand-in where a server of one's own is named and no key is set.

    A key is masked in all texts from now on.

    Raises:
        InputError: no key, or one that no header can carry.
    """
    variable = spec.key_from
    key = os.environ.get(variable, "").strip() if spec.sends_key else ""
    if key:
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"the key in {variable} holds characters that no key has; set it again")
        keep_secret(key)
        return key
    if not spec.sends_key:
        return _NO_KEY
    if spec.other_address is None or spec.api_key_env is not None:
        raise InputError(f"no key for model {spec.model!r}: set the environment variable {variable}")
    return _NO_KEY


def headers_of(headers_env: Mapping[str, str]) -> dict[str, str]:
    """Headers with their values, which are masked in all texts from now on.

    Raises:
        InputError: a variable is not set, or holds what no header can carry.
    """
    headers = {header: from_environment(variable) for header, variable in headers_env.items()}
    for value in headers.values():
        keep_secret(*_secrets(value))
    return headers


def from_environment(variable: str) -> str:
    """The value of a variable, which is to be sent in a header.

    Raises:
        InputError: it is not set, or holds what no header can carry.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(f"set the environment variable {variable}")
    if not (value.isascii() and value.isprintable()):
        raise InputError(f"the value of {variable} holds characters that no header can carry; set it again")
    return value


def _secrets(value: str) -> list[str]:
    """What a header's value holds that nobody may see: its words, as in ``Bearer KEY``, and a password."""
    words = value.split()
    with suppress(ValueError):
        if words[0].lower() == "basic":
            words.append(base64.b64decode(words[-1]).decode().partition(":")[2])
    return words


def token_count(usage: object, name: str) -> int | None:
    """A whole number from a usage block; servers leave it out, or say ``null``, a list, or what is no number of tokens.

    Whatever they say of tokens, the reply that came with it has been paid for and counts.
    """
    count = usage.get(name) if isinstance(usage, Mapping) else None
    return count if type(count) is int and 0 <= count <= _MOST_TOKENS else None


def with_extras(body: Mapping[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """``body`` with the declared further fields; where both hold an object, these are joined."""
    joined = dict(body)
    for name, value in extras.items():
        inner = joined.get(name)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            joined[name] = with_extras(inner, value)
        else:
            joined[name] = value
    return joined
