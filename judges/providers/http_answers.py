"""Translates HTTP answers without a reply into the exceptions of ``judges.errors``, and headers into rate limits.

| answer | meaning |
|---|---|
| 408, 409, 425, 429, 5xx | another attempt may succeed, after ``Retry-After`` |
| 401, 402, 403, and any 4xx of an account without credit | no request with this key can succeed |
| 404, 405, 410, 501, a redirect, or an error code about the model | no request to this model or address can succeed |
| a filter that refuses this request's text, or a prompt that is too long | this request cannot succeed |
| other 4xx | this request cannot succeed |

An error in an answer with status 200, in the body or in a choice, is translated by its own code.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import takewhile
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from judges.errors import (
    BrokenReplyError,
    JudgeStoppedError,
    NoServiceError,
    ProviderError,
    RejectedError,
    TransientError,
)
from judges.masking import one_line
from judges.types import Allowance, Finish

_TIMED_OUT = frozenset({408, 504})
_BUSY = frozenset({409, 425})
_NO_ACCESS = frozenset({401, 402, 403})
_NOT_AVAILABLE = frozenset({404, 405, 410, 501})
"""The model or address does not exist, or does not accept such requests."""
_NO_CREDIT = frozenset(
    {"insufficient_quota", "billing_error", "billing_not_active", "billing_hard_limit_reached", "budget_exceeded"}
    | {
        "exceeded_current_quota_error",
        "insufficient_balance",
        "insufficient_credits",
        "Arrearage",
        "AccountOverdueError",
    }
)
_NO_CREDIT_MESSAGES: Final = re.compile(
    r"ExceededBudget|Budget has been exceeded|(Sorry, )?(your )?account balance is insufficient"
    r"|Your credit balance is too low|Insufficient (account )?(balance|credits|funds)\b"
    r"|Your (\w+ )?team \S{1,64} has either used all available credits",
    re.IGNORECASE,
)
"""Beginnings of messages about missing credit that come with the code of another error. Only the beginning is compared,
since the rest of a message may quote the prompt."""
_EXCEPTION_NAMES: Final = re.compile(r"(?:[\w.]+(?:Error|Exception)\b[\s:-]*)+")
_OTHER_HEADER: Final = re.compile(r"subscription key|\b(x-)?api-key\b|\bheader\b", re.IGNORECASE)
"""Phrases in errors of servers that expect the key in a header other than the vendor's."""
_NO_MODEL = frozenset({"model_not_found", "invalid_model", "DeploymentNotFound"})
_FILTERED = frozenset(
    {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation", "ContentPolicyViolationError"}
    | {"data_inspection_failed", "DataInspectionFailed", "moderation_blocked", "invalid_prompt"}
)
_FILTER_MESSAGES: Final = re.compile(
    r"Content violates usage guidelines|Content Exists Risk"
    r"|The response was filtered due to the prompt|The request was rejected because it was considered high risk"
    r"|Invalid prompt: your prompt was flagged|Your request was rejected (as a result of our|by the) safety system"
)
"""Beginnings of messages about a filter that come with the code of another error."""
_TOO_LONG = frozenset({"context_length_exceeded", "context_window_exceeded", "exceed_context_size_error"})
_LENGTH_WORDS: Final = re.compile(
    r"maximum context length|context (length|window|size)|prompt is too long|input is too long|maximum input length"
    r"|exceeds? the (available )?context|(input|prompt) token count|too many (input )?tokens",
    re.IGNORECASE,
)
"""Phrases in errors about a prompt that is too long. They only decide whether other requests are still sent."""
_MARKUP = re.compile(r"<style.*?</style>|<[^>]*>", re.DOTALL)
"""Markup of the HTML pages that gateways send instead of an error object."""
_FLAGGED = "flagged_input"
"""A key in the ``metadata`` of errors about a text, from OpenRouter and similar gateways."""
STATUS_OF: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "api_error": 500,
    "overloaded_error": 529,
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""The HTTP status for the error names of Anthropic, OpenAI and Google."""
_SETTING_ADVICE: Final = (
    (
        re.compile(r"response_format|json_schema|output_config|guided_json|structured output", re.IGNORECASE),
        "set 'structured_output' to object or false",
    ),
    (re.compile(r"max_(completion_)?tokens"), "set 'token_limit_field', or lower 'max_tokens'"),
    (re.compile(r"\btemperature\b", re.IGNORECASE), "leave 'temperature' out"),
    (re.compile(r"\b(system role|system message|role.{0,20}system)\b", re.IGNORECASE), "set 'system_role: false'"),
    (re.compile(r"\bseed\b"), "leave 'seed' out"),
)
"""Advice on a setting that the server refuses, by the words of its message."""


def error_of_answer(
    status: int,
    headers: Mapping[str, str],
    body: object,
    model: str,
    *,
    allowance: Allowance | None = None,
    named_by: str = "'model' and 'base_url'",
) -> ProviderError:
    """The exception for an answer with a status other than 2xx.

    Args:
        status: HTTP status.
        headers: the answer's headers; names are looked up in lower case, so the mapping should ignore case.
        body: the decoded JSON, or the text.
        model: the model's name in the message.
        allowance: the remaining rate limits; part of errors for which another attempt may succeed.
        named_by: the settings that name model and address, for messages.
    """
    error = _error_object(body)
    if 300 <= status < 400:
        moved = one_line(f"{model}: HTTP {status}: moved to {shown(headers.get('location', ''))}")
        return JudgeStoppedError("unknown_model", f"{moved} (no redirect is followed)", to_do=f"check {named_by}")
    message = one_line(f"{model}: HTTP {status}: {_message_of(error) or 'no explanation'}")
    return _error_for(status, error, message, named_by, wait_s=retry_after_s(headers), allowance=allowance)


def _error_for(
    status: int,
    error: Mapping[str, Any],
    message: str,
    named_by: str,
    *,
    wait_s: float | None = None,
    allowance: Allowance | None = None,
) -> ProviderError:
    codes, filtered = _codes(error), _is_filtered(error)
    no_credit = bool(codes & _NO_CREDIT) or (400 <= status < 500 and _lacks_credit(error))
    if (status in _NO_ACCESS and not (status == HTTPStatus.FORBIDDEN and filtered)) or no_credit:
        cause = "quota" if status == HTTPStatus.PAYMENT_REQUIRED or no_credit else "authentication"
        in_other_header = cause == "authentication" and _OTHER_HEADER.search(message)
        return JudgeStoppedError(
            cause, message, to_do="send it in the header named, by 'headers_env'" if in_other_header else ""
        )
    if status in _NOT_AVAILABLE or codes & _NO_MODEL:
        return JudgeStoppedError("unknown_model", message, to_do=f"check {named_by}")
    if status >= 600:
        return NoServiceError("server_error", message)
    if transient_cause := _transient_cause(status):
        return TransientError(transient_cause, message, retry_after_s=wait_s, allowance=allowance)
    words = str(error.get("message"))
    too_long = (
        status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or bool(codes & _TOO_LONG) or bool(_LENGTH_WORDS.search(words))
    )
    if filtered or too_long:
        return RejectedError("content_filter" if filtered else "bad_request", message, of_text=True)
    return RejectedError("bad_request", message, to_do=_advice_on_setting(words))


def _advice_on_setting(words: str) -> str:
    beginning = words[:300]  # the rest may quote the request
    return next((advice for pattern, advice in _SETTING_ADVICE if pattern.search(beginning)), "")


def shown(address: str) -> str:
    """An address for messages, without password and query string."""
    try:
        parts = urlsplit(address)
    except ValueError:  # a server may send any text
        return "no address"
    server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""
    return f"{server}{parts.path}" or "no address"


def _transient_cause(status: int) -> str | None:
    if status == 429:
        return "rate_limit"
    if status in _TIMED_OUT:
        return "timeout"
    return "server_error" if status in _BUSY or status >= 500 else None


FAILED_FINISHES: Final = frozenset(
    {"error", "abort", "aborted", "cancelled", "canceled", "failed", "network_error", "internal_error", "timeout"}
    | {"insufficient_system_resource", "malformed_response"}
)
"""Servers' finish reasons for replies that the server failed to complete; their text does not count."""
_FINISHES: Final[Mapping[str, Finish]] = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence"), Finish.STOP),
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"), Finish.LENGTH
    ),
    **dict.fromkeys(
        ["content_filter", "content_filtered", "safety", "prohibited_content", "blocklist", "recitation", "spii"],
        Finish.FILTER,
    ),
    **dict.fromkeys(
        ["sensitive", "guardrail_intervened", "error_toxic", "error_content_filter"],
        Finish.FILTER,
    ),
    "refusal": Finish.REFUSAL,
}


def finish_of(reason: object, error: object, model: str) -> Finish:
    """Why a model stopped writing. Only the part of the reason before a colon counts (``content_filter: SAFETY``).

    Args:
        reason: the server's finish reason.
        error: the error in the same answer, if any.
        model: the model's name in the message.

    Raises:
        ProviderError: the server failed while writing, so the reply does not count even if it looks complete.
    """
    word = reason.partition(":")[0].strip().lower() if isinstance(reason, str) else ""
    if error or word in FAILED_FINISHES:
        failed = error_in_body({"error": error or f"the server ended the reply with {word!r}"}, model)
        if isinstance(failed, TransientError):
            failed = BrokenReplyError(failed.cause, failed.problem)
        raise failed
    return _FINISHES.get(word, Finish.OTHER)


def error_in_body(body: object, model: str, *, named_by: str = "'model' and 'base_url'") -> ProviderError:
    """The exception for an answer with status 200 but without a reply, in which gateways send errors.

    The error's own code counts like an HTTP status; for an error without a code, another attempt may succeed.
    """
    error = _error_object(body)
    words, status = _message_of(error), _status_in(error)
    message = one_line(f"{model}: {words or 'the answer holds no reply'}")
    if status is not None:
        message = one_line(f"{model}: error {status} in the reply: {words or 'no explanation'}")
        return _error_for(status, error, message, named_by)
    if _is_filtered(error):
        return RejectedError("content_filter", message, of_text=True)
    if _codes(error) & (_NO_CREDIT | _NO_MODEL) or _lacks_credit(error):
        return _error_for(400, error, message, named_by)
    kind = TransientError if words else NoServiceError  # without a message the answer is not from such a service
    return kind("server_error", message)


def _status_in(error: Mapping[str, Any]) -> int | None:
    """The HTTP status in an error object, or the status for the error's name; ``None`` if there is none."""
    for value in (error.get("code"), error.get("status"), error.get("type")):
        if isinstance(value, int | str) and re.fullmatch(r"[45]\d\d", str(value)):
            return int(value)
        if isinstance(value, str) and value in STATUS_OF:
            return STATUS_OF[value]
    return None


def _codes(error: Mapping[str, Any]) -> set[str]:
    inner = error.get("innererror")
    within = inner.get("code") if isinstance(inner, Mapping) else None
    return {str(error.get("code")), str(error.get("type")), str(within)}


def _message_of(error: Mapping[str, Any]) -> str:
    """An error's message without markup; for a gateway's error, with the message of the server that it called."""
    message = error.get("message") or error.get("detail") or error.get("msg") or ""
    if isinstance(message, list):
        message = "; ".join(str(each.get("msg", each)) if isinstance(each, Mapping) else str(each) for each in message)
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    text = f"{_inner_message(raw)} ({message})" if message and isinstance(raw, str) and raw else str(message)
    return _MARKUP.sub(" ", text)


def _inner_message(raw: str) -> str:
    """The message in a server's answer that a gateway passes on, which is often JSON."""
    try:
        inner = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    words = str(_error_object(inner).get("message") or "")
    return words or raw


def _is_filtered(error: Mapping[str, Any]) -> bool:
    """Whether a filter refused the text of this request, so that other requests may succeed."""
    metadata = error.get("metadata")
    names, message = _split_exception_names(error)
    return (
        bool(_FILTERED & _codes(error))
        or (isinstance(metadata, Mapping) and _FLAGGED in metadata)
        or "ContentPolicyViolation" in names
        or _FILTER_MESSAGES.match(message) is not None
    )


def _lacks_credit(error: Mapping[str, Any]) -> bool:
    """Whether the message says that the account has no credit or budget left."""
    names, message = _split_exception_names(error)
    return "BudgetExceeded" in names or _NO_CREDIT_MESSAGES.match(message) is not None


def _split_exception_names(error: Mapping[str, Any]) -> tuple[str, str]:
    """The names of exceptions with which a gateway begins a message, and the rest of the message."""
    message = str(error.get("message"))
    names = _EXCEPTION_NAMES.match(message)
    end = 0 if names is None else names.end()
    return message[:end], message[end:]


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait according to ``retry-after-ms`` or ``Retry-After`` (seconds or a date, RFC 9110, 10.2.3)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after")
    seconds = _number(header)
    if seconds is not None or header is None:
        return seconds
    moment = moment_s(header)
    return None if moment is None else max(0.0, moment - time.time())


def _error_object(body: object) -> Mapping[str, Any]:
    """The error object of a body: ``{"error": {...}}``, ``{"error": "text"}``, the object itself, or bare text.

    If the body is a list, as from Google, or contains a list ``errors``, the first entry counts.
    """
    while isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, Mapping):
        inner = body.get("error") or body.get("errors") or body
        while isinstance(inner, list) and inner:
            inner = inner[0]
        if not isinstance(inner, Mapping):
            return {**{name: body[name] for name in ("code", "type") if name in body}, "message": inner}
        return inner
    return {"message": body or ""}


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < float("inf") else None


_UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = r"(\d{1,12}(?:\.\d{1,12})?)(ms|us|µs|ns|h|m|s)"
_PARTS, _DURATION = re.compile(_PART, re.ASCII), re.compile(f"(?:{_PART})+", re.ASCII)
_SECONDS = re.compile(r"\d{1,12}(?:\.\d{1,12})?", re.ASCII)
_COUNT = re.compile(r"\d{1,15}", re.ASCII)

Left = tuple[int | None, float | None]
"""Number of requests or tokens that remain, and seconds until the limit is reset; ``None`` if unknown."""

_NOTHING: Left = (None, None)


def allowance_of(headers: Mapping[str, str]) -> Allowance | None:
    """The remaining rate limits in the headers of an answer; ``None`` if it has no such headers."""
    limits = {name.lower(): value for name, value in headers.items() if "ratelimit" in name.lower()}
    if not limits:
        return None
    if any(name.startswith("anthropic-") for name in limits):
        requests, tokens = _anthropic(limits, _now(headers))
    else:
        requests, tokens = _openai(limits)
    return None if requests == tokens == _NOTHING else Allowance(*requests, *tokens)


def duration_s(text: str) -> float | None:
    """Seconds of a duration in Go's format (``1h2m3.5s``, ``20ms``), or of a bare number of seconds."""
    stripped = text.strip()
    if _SECONDS.fullmatch(stripped):
        return float(stripped)
    if not _DURATION.fullmatch(stripped):
        return None
    return sum(float(number) * _UNIT_S[unit] for number, unit in _PARTS.findall(stripped))


def _openai(limits: Mapping[str, str]) -> tuple[Left, Left]:
    def left(kind: str) -> Left:
        return _left(limits, f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}", duration_s)

    return left("requests"), left("tokens")


def _anthropic(limits: Mapping[str, str], now: float) -> tuple[Left, Left]:
    """The limit on requests, and the tightest of the three limits on tokens (all, input, output)."""

    def left(kind: str) -> Left:
        head = f"anthropic-ratelimit-{kind}"
        return _left(limits, f"{head}-remaining", f"{head}-reset", lambda text: _until_s(text, now))

    tokens = [limit for limit in map(left, ("tokens", "input-tokens", "output-tokens")) if limit[0] is not None]
    return left("requests"), min(tokens, key=lambda limit: limit[0] or 0, default=_NOTHING)


def _left(limits: Mapping[str, str], remaining: str, reset: str, read: Callable[[str], float | None]) -> Left:
    """The count and reset of one limit; a reset without a count is ignored."""
    count = limits.get(remaining, "").strip()
    if not _COUNT.fullmatch(count):
        return _NOTHING
    return int(count), read(limits[reset]) if reset in limits else None


def _until_s(text: str, now: float) -> float | None:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - now) if moment.tzinfo else None


def _now(headers: Mapping[str, str]) -> float:
    """The server's time from its ``date`` header, to which its limits refer; without it, this machine's time."""
    server_time = moment_s(headers.get("date", ""))
    return time.time() if server_time is None else server_time


def moment_s(date: str) -> float | None:
    """Seconds since 1970 of a date in a header; ``None`` if it is invalid."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):  # a year or a zone of twenty digits
        return None


_LINE_END = re.compile(r"\r\n|\r|\n")
_DONE = "[DONE]"
_EVENTS = "text/event-stream"
_JSON_LINES = ("ndjson", "jsonl", "json-lines", "stream+json")


class Received(Struct, frozen=True):
    """A raw HTTP answer, with its body decompressed."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class ForeignStreamError(NoServiceError):
    """A stream that is neither a chat completion nor a message."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__("server_error", f"{name}: streams {what}")

    def __reduce__(self) -> tuple[Any, ...]:
        return NoServiceError, ("server_error", str(self))


def joined(received: Received, name: str) -> Received:
    """Join a stream into the chat completion or message that it contains; other answers stay unchanged.

    Streams are server-sent events or lines of JSON, recognized by their content type or their first bytes.

    Args:
        received: an answer with status 200.
        name: the service's name, for messages.

    Raises:
        TransientError: the stream broke off.
        ProviderError: the stream contains an error.
        ForeignStreamError: the stream contains something else.
    """
    kind = received.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    begin = received.content[:200].lstrip()
    if kind == _EVENTS and begin.startswith(b"{"):  # JSON in spite of the content type
        if _object(received.content.decode("utf-8", "replace")) is not None:
            return received
        kind = "application/x-ndjson"
    if kind == _EVENTS or begin.startswith((b"data:", b"event:", b": ")):
        texts = list(_events(received.content.decode("utf-8", "replace")))
    elif any(words in kind for words in _JSON_LINES) or _is_lines(received.content):
        lines = received.content.decode("utf-8", "replace").split("\n")
        texts = [line.removeprefix("data:").strip() for line in lines if line.strip()]
    else:
        return received
    try:
        content = json.dumps(_join(texts, kind or "no content type", name)).encode()
    except RecursionError:
        raise ForeignStreamError(name, "objects that are nested too deeply") from None
    return replace(received, content=content)


def _events(content: str) -> Iterator[str]:
    """The data of each event (HTML standard, section 9.2.6)."""
    data: list[str] = []
    for line in (*_LINE_END.split(content), ""):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []


def _is_lines(content: bytes) -> bool:
    """Whether the first line is a complete JSON object, followed by another object or an end marker."""
    end = content.find(b"\n", 0, 100_000)
    if end < 0 or not content[end : end + 100].lstrip().startswith((b"{", b"data:")):
        return False
    return _object(content[:end].decode("utf-8", "replace")) is not None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _join(texts: list[str], kind: str, name: str) -> Mapping[str, Any]:
    events = [_object(text) for text in texts if text.strip() != _DONE]
    error = next((event for event in events if event is not None and event.get("error")), None)
    if error is not None:
        raise error_in_body(error, name)
    if not events or (events[-1] is None and len(events) > 1 and None not in events[:-1]):
        raise TransientError("connection", f"{name}: the stream broke off")
    if any(event is not None and event.get("type") == "message_start" for event in events):
        return _message([event for event in events if event is not None], name)
    chunks = [event for event in events if event is not None and isinstance(event.get("choices"), list)]
    if len(chunks) < len(events) or not any("delta" in choice for chunk in chunks for choice in _choices(chunk)):
        if len(events) == 1 and events[0] is not None:
            return events[0]
        raise ForeignStreamError(name, f"({kind}), and not as chat completions do")
    ended = any(choice.get("finish_reason") for chunk in chunks for choice in _choices(chunk))
    if not ended and texts[-1].strip() != _DONE:
        raise TransientError("connection", f"{name}: the stream broke off")
    return _completion(chunks)


def _choices(chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [choice for choice in chunk["choices"] if isinstance(choice, dict)]


def _completion(chunks: list[dict[str, Any]]) -> Mapping[str, Any]:
    """Merge chunks into a chat completion: join their texts, and take the last value of every other field."""
    body: dict[str, Any] = {}
    choices: dict[str, dict[str, Any]] = {}
    deltas: defaultdict[str, defaultdict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for chunk in chunks:
        body |= {key: value for key, value in chunk.items() if value is not None}
        for choice in _choices(chunk):
            index, delta = str(choice.get("index", 0)), choice.get("delta")
            merged = choices.setdefault(index, {})
            merged |= {key: value for key, value in choice.items() if value is not None and key != "delta"}
            for key, value in (delta if isinstance(delta, dict) else {}).items():
                if value is not None:
                    deltas[index][key].append(value)
    for index, choice in choices.items():
        choice["message"] = {
            key: values[-1] if key == "role" else _last(values) for key, values in deltas[index].items()
        }
    return {**body, "object": "chat.completion", "choices": list(choices.values())}


def _last(values: list[Any]) -> Any:
    texts = list(takewhile(lambda value: isinstance(value, str), reversed(values)))
    return "".join(reversed(texts)) if texts else values[-1]


def _message(events: list[dict[str, Any]], name: str) -> Mapping[str, Any]:
    """Merge the events of an Anthropic stream into the message that they describe."""
    body: dict[str, Any] = {}
    blocks: dict[str, dict[str, Any]] = {}
    for event in events:
        delta = event.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        match event.get("type"):
            case "message_start" if isinstance(event.get("message"), dict):
                body = dict(event["message"])
            case "content_block_start" if isinstance(event.get("content_block"), dict):
                blocks[str(event.get("index"))] = dict(event["content_block"])
            case "content_block_delta" if isinstance(delta.get("text"), str):
                block = blocks.setdefault(str(event.get("index")), {"type": "text", "text": ""})
                block["text"] = f"{block.get('text') or ''}{delta['text']}"
            case "message_delta":
                body |= delta
                body["usage"] = {**(body.get("usage") or {}), **(event.get("usage") or {})}
    if not body.get("stop_reason") and not any(event.get("type") == "message_stop" for event in events):
        raise TransientError("connection", f"{name}: the stream broke off")
    return {**body, "content": list(blocks.values())}
