"""The HTTP client for hosted models, shared by the providers that speak HTTP.

The vendor's SDK supplies the address and the headers once. Each call then goes directly through aiohttp, on which both
SDKs can run too, since the SDK's layers take most of a call's CPU time: in one run on one machine the SDK's typed
method took 1.6 ms, its ``post`` 1.0, the same on aiohttp 0.7, its HTTP client on aiohttp 0.36, and this client 0.2.
``benchmarks/transport.py`` compares them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import ssl
from collections.abc import Mapping
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
from judges.masking import keep_secret, one_line
from judges.providers.http_answers import Received, allowance_of, error_in_body, error_of_answer, joined, shown
from judges.spec import JudgeSpec
from judges.types import Allowance

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from anthropic import AsyncAnthropic
    from httpx2 import AsyncClient
    from openai import AsyncOpenAI

_CONNECT_S = 10.0
_KEEPALIVE_S = 60.0
_HANDSHAKE_S = 1.0
_NO_KEY = "no-key-needed"
_SECRET_NAME = re.compile(r"key|secret|password|token|sig|auth|code", re.IGNORECASE)
_MOST_TOKENS = 10**9
_SHOWN_BYTES = 60
"""How many bytes of an answer a message shows, if the answer does not come from the expected service."""
_PATHS: Final = ("/chat/completions", "/embeddings", "/messages")
"""Paths that the vendors' SDKs append to a server's address, one for each kind of request."""
MOST_BYTES = 2**25
"""Largest body of an answer that is read into memory, in bytes."""


class HttpAnswer(Struct, frozen=True):
    """The JSON object of a successful answer, and the remaining rate limits in its headers."""

    body: dict[str, Any]
    allowance: Allowance | None


class Target(Struct, frozen=True):
    """The server to which requests are sent, with the limits for its connections.

    Attributes:
        name: the service's name in messages.
        concurrency: largest number of connections.
        timeout_s: longest wait between two reads, in seconds.
        named_by: for messages, the settings that name the model and the server's address.
        address_from: for messages, the setting that holds the address.
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
    """The target of an SDK's client: its address followed by ``path``, with the SDK's headers and the declared ones."""
    url = str(sdk.base_url.copy_with(path=sdk.base_url.path.rstrip("/") + path))
    headers = {**sdk.auth_headers, **sdk.default_headers}
    # The SDKs mark a header that must not be sent by a value of another type.
    sent = {name: value for name, value in headers.items() if isinstance(value, str)}
    declared_headers = headers_of(spec.headers_env)
    replaced = {name.lower() for name in declared_headers} | (set() if spec.sends_key else KEY_HEADERS)
    sent = {name: value for name, value in sent.items() if name.lower() not in replaced} | declared_headers
    name = f"{spec.model} at {shown(spec.address)}"
    return Target(
        url, sent, name, spec.concurrency, spec.timeout_s, f"'model' and {spec.address_from}", spec.address_from
    )


KEY_HEADERS = frozenset({"authorization", "x-api-key"})
"""Headers in which the SDKs send a key."""


class Endpoint:
    """Posts JSON to a server and returns JSON, or raises the errors of ``Provider.complete``. No error shows a key.

    The first call opens the connections.
    """

    def __init__(self, target: Target) -> None:
        import aiohttp

        self._target = target
        self._proxy = proxy_of(target.url)
        _mask_secrets_of(target.url)
        if _is_encrypted(target.url):
            require_authorities()
        self._connection_errors = (aiohttp.ClientError, TimeoutError, OSError)
        connector_errors = (aiohttp.ClientConnectorError, aiohttp.ClientConnectorCertificateError)
        self._unreachable_errors = (*connector_errors, aiohttp.ClientResponseError)
        self._session: ClientSession | None = None
        # Errors when http is sent to a server that expects https; the first one triggers a check.
        self._plain_http_errors = (aiohttp.ServerDisconnectedError, aiohttp.ClientResponseError, aiohttp.ClientOSError)
        self._answered = False

    @property
    def name(self) -> str:
        return self._target.name

    async def post(self, body: Mapping[str, Any]) -> HttpAnswer:
        """Post a request once and decode the server's answer."""
        return self.decoded(await self.fetch(body))

    async def fetch(self, body: Mapping[str, Any]) -> Received:
        """Post a request once; returns the answer whatever its status.

        Raises:
            ProviderError: there was no answer, or one that cannot be used.
        """
        try:
            content = to_json(body)
        except ValueError:  # a lone surrogate, which JSON can only write as an escape
            content = json.dumps(body, separators=(",", ":")).encode("ascii")
        failure: ProviderError
        try:
            # Redirects are not followed, since only the named server may get the key. The headers are not set on the
            # session, since aiohttp sends those to a proxy too, in clear text.
            async with self.session().post(
                self._target.url, data=content, headers=self._target.headers, allow_redirects=False
            ) as response:
                received = await _read(response)
        except self._connection_errors as error:
            failure = self._connection_error(error)
            if not self._answered and isinstance(error, self._plain_http_errors) and await self._is_encrypted():
                to_do = f"write https:// in {self._target.address_from}"
                failure = JudgeStoppedError("connection", f"{self.name}: the server there speaks https", to_do=to_do)
        else:
            self._answered = True
            if received is not None:
                return Received(response.status, response.headers, received)
            failure = RejectedError("too_long", f"{self.name}: the answer is larger than {MOST_BYTES} bytes")
        raise failure  # outside the except block: the client's exception holds the request with the key

    async def look(self, path: str = "") -> Received:
        """Check that the server answers by a GET of the target's URL; ``path``, if given, replaces the SDK's path.

        Raises:
            ProviderError: there was no answer.
        """
        url = urlsplit(self._target.url)
        sdk_path = next((each for each in _PATHS if path and url.path.endswith(each)), None)
        if sdk_path:
            url = url._replace(path=url.path.removesuffix(sdk_path) + path)
        try:
            session, headers = self.session(), self._target.headers
            async with session.get(url.geturl(), headers=headers, allow_redirects=False) as response:
                return Received(response.status, response.headers, await _read(response) or b"")
        except self._connection_errors as error:
            failure = self._connection_error(error)
        raise failure

    def decoded(self, received: Received, decoder: type[json.JSONDecoder] | None = None) -> HttpAnswer:
        """Decode an answer, or the joined chunks of a stream, as a JSON object; ``decoder`` replaces the JSON decoder.

        Raises:
            ProviderError: the answer is an error, or not a JSON object.
        """
        if 200 <= received.status < 300:
            received = joined(received, self._target.name)
        try:
            answer = json.loads(received.content, cls=decoder)
        except (ValueError, RecursionError):
            answer = None
        status, headers = received.status, received.headers
        if not 200 <= status < 300:
            explanation = received.content.decode("utf-8", "replace") if answer is None else answer
            raise error_of_answer(status, headers, explanation, self.name, named_by=self._target.named_by)
        if not isinstance(answer, dict):
            kind = "not JSON" if answer is None else "not a JSON object"
            beginning = received.content[:_SHOWN_BYTES].decode("utf-8", "replace")
            message = f"{self.name}: HTTP {status}: the answer is {kind}: {beginning!r}"
            raise NoServiceError("server_error", one_line(message))
        return HttpAnswer(answer, allowance_of(headers))

    def session(self) -> ClientSession:
        """The HTTP session with its open connections, created at the first use in the event loop that uses it."""
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self._target.concurrency, keepalive_timeout=_KEEPALIVE_S, ssl=trusted(self._target.url)
            )
            # These limit the single reads; the caller limits the call as a whole.
            connect_s = min(_CONNECT_S, self._target.timeout_s)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_s, sock_read=self._target.timeout_s)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), proxy=self._proxy
            )
        return self._session

    async def _is_encrypted(self) -> bool:
        """Whether a server that did not answer over http speaks TLS; nothing but a TLS handshake is sent to it."""
        parts, self._answered = urlsplit(self._target.url), True
        if parts.scheme != "http" or self._proxy:
            return False
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            async with asyncio.timeout(min(_HANDSHAKE_S, self._target.timeout_s / 4)):
                _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80, ssl=context)
        except (OSError, TimeoutError):  # ssl.SSLError is an OSError
            return False
        writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_HANDSHAKE_S):
                await writer.wait_closed()
        return True

    def _connection_error(self, error: Exception) -> ProviderError:
        if (certificate_error := tls_error(error, self.name, self._target.address_from)) is not None:
            return certificate_error
        if isinstance(error, TimeoutError):
            return TransientError("timeout", f"{self.name}: the server did not answer in time")
        if type(error).__name__ == "ClientPayloadError":
            return TransientError("connection", f"{self.name}: the answer broke off before its end")
        if type(error).__name__ == "ClientResponseError":  # its message quotes the answer
            return NoServiceError("connection", f"{self.name}: the server there does not speak HTTP")
        number = getattr(error, "errno", None) or 0
        words = os.strerror(number) if number > 0 else getattr(error, "strerror", None) or str(error)
        through = f" through the proxy {shown(self._proxy)}" if self._proxy else ""
        message = one_line(f"{self.name}: no connection{through}: {words or type(error).__name__}")
        error_type = NoServiceError if isinstance(error, self._unreachable_errors) else TransientError
        return error_type("connection", message)

    def no_reply(self, body: object) -> ProviderError:
        """The error to raise for an answer that has status 200 but contains no reply."""
        return error_in_body(body, self._target.name, named_by=self._target.named_by)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


async def _read(response: ClientResponse) -> bytes | None:
    """The whole body of an answer, decompressed; ``None`` if it is larger than ``MOST_BYTES`` or announced as such."""
    if (response.content_length or 0) > MOST_BYTES:
        return None
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > MOST_BYTES:
            return None
    return bytes(content)


AUTHORITIES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""Environment variables that name a file of certificate authorities to trust; the second may name a folder."""


def trusted(url: str) -> ssl.SSLContext:
    """An SSL context that trusts the certificate authorities of the vendors' SDKs; for an http address, none.

    Authorities in ``REQUESTS_CA_BUNDLE`` are trusted too, since a company's authority is often set there.
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
    """Check the files that ``AUTHORITIES`` name, before anything is sent.

    Raises:
        InputError: a file cannot be read or holds no certificates.
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


_UNTRUSTED = {9: "not valid yet", 10: "expired"}
_UNTRUSTED |= dict.fromkeys((18, 19), "self-signed") | dict.fromkeys((20, 21), "issuer not known")
_UNTRUSTED |= dict.fromkeys((62, 64), "another server's")
"""Problems of a certificate, by OpenSSL's numbers."""


def tls_error(error: BaseException, name: str, address_from: str) -> JudgeStoppedError | None:
    """The error for a failed TLS connection, which retries would not help; ``None`` if TLS was not the cause."""
    # aiohttp's exceptions derive from ssl's, but the details are in the exceptions that they wrap.
    cause: Any = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        words = _UNTRUSTED.get(cause.verify_code, cause.verify_message.rstrip("."))
        if cause.verify_code in {62, 64}:
            to_do = f"call the server by the name in its certificate, in {address_from}"
        elif cause.verify_code in {9, 10}:
            to_do = "renew the certificate, or set this machine's clock"
        else:
            to_do = f"put its authority into {' or '.join(AUTHORITIES)}"
        return JudgeStoppedError("connection", one_line(f"{name}: certificate not trusted ({words})"), to_do=to_do)
    if cause is not None and cause.reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}:
        problem = f"{name}: the server there does not speak https"
        return JudgeStoppedError("connection", problem, to_do=f"write http:// in {address_from}")
    return None


def unused_client() -> AsyncClient:
    """An HTTP client to pass to an SDK that sends nothing itself; loads no certificate authorities, to save time."""
    import httpx2

    return httpx2.AsyncClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trust_env=False)


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for an address, if any; its password is masked from now on.

    Raises:
        InputError: the proxy's address is neither an http nor an https address.
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
        proxy_parts = urlsplit(proxy)
        usable = proxy_parts.scheme in {"http", "https"} and bool(proxy_parts.hostname) and proxy_parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError(
            f"{scheme.upper()}_PROXY names {shown(proxy)}; name a proxy that speaks HTTP, such as http://proxy:3128, "
            f"or put {parts.hostname} into NO_PROXY"
        )
    _mask_secrets_of(proxy)
    return proxy


def _mask_secrets_of(url: str) -> None:
    """Mask the password in a URL and the keys in its query string from now on."""
    parts = urlsplit(url)
    keys = [value for name, value in parse_qsl(parts.query) if _SECRET_NAME.search(name)]
    keep_secret(*keys, *([unquote(parts.password)] if parts.password else []))


def api_key(spec: JudgeSpec) -> str:
    """The API key from the environment, which is masked in all texts from now on.

    For a server that is not the vendor's a placeholder is returned if no key is set.

    Raises:
        InputError: there is no key, or it has characters that a header cannot contain.
    """
    variable = spec.key_from
    key = os.environ.get(variable, "").strip() if spec.sends_key else _NO_KEY
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"the key in {variable} contains a character that is not printable ASCII; set it again")
    if not key and (spec.other_address is None or spec.api_key_env is not None):
        raise InputError(f"no key for model {spec.model!r}: set the environment variable {variable}")
    if key and key != _NO_KEY:
        keep_secret(key)
    return key or _NO_KEY


def headers_of(headers_env: Mapping[str, str]) -> dict[str, str]:
    """Headers with their values from the environment (``from_environment``), which are masked from now on.

    The masked parts of a value are its words, as in ``Bearer KEY``, and the password of basic authentication.
    """
    headers = {header: from_environment(variable) for header, variable in headers_env.items()}
    for words in map(str.split, headers.values()):
        with suppress(ValueError):
            if words[0].lower() == "basic":
                words.append(base64.b64decode(words[-1]).decode().partition(":")[2])
        keep_secret(*words)
    return headers


def from_environment(variable: str) -> str:
    """The value of an environment variable whose value is sent in a request's header.

    Raises:
        InputError: the variable is not set, or has characters that a header cannot contain.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(f"a request header needs the environment variable {variable}, which is not set; set it")
    if not (value.isascii() and value.isprintable()):
        raise InputError(f"the value of {variable} contains a character that is not printable ASCII; set it again")
    return value


def token_count(usage: object, name: str) -> int | None:
    """A number of tokens in the usage block of a model's response; ``None`` if it is missing or invalid.

    An invalid number raises no error, since the reply has been paid for.
    """
    count = usage.get(name) if isinstance(usage, Mapping) else None
    return count if type(count) is int and 0 <= count <= _MOST_TOKENS else None


def with_extras(body: Mapping[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request with the user's ``extra_body`` added; objects that occur in both are merged."""
    merged = {**body, **extras}
    for name in body.keys() & extras.keys():
        if isinstance(body[name], Mapping) and isinstance(extras[name], Mapping):
            merged[name] = with_extras(body[name], extras[name])
    return merged
