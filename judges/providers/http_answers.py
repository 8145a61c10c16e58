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
from collections.abc import Iterator, Mapping
from contextlib import suppress
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

_TRANSIENT = {408: "timeout", 504: "timeout", 429: "rate_limit", 409: "server_error", 425: "server_error"}
_NO_ACCESS = frozenset({401, 402, 403})
_NOT_AVAILABLE = frozenset({404, 405, 410, 501})
"""HTTP statuses which say that the model or address does not exist, or does not accept such requests."""
_NO_CREDIT = frozenset(
    {"insufficient_quota", "billing_error", "billing_not_active", "billing_hard_limit_reached", "budget_exceeded"}
    | {"exceeded_current_quota_error", "insufficient_balance", "insufficient_credits"}
    | {"Arrearage", "AccountOverdueError"}
)
_NO_CREDIT_MESSAGES: Final = re.compile(
    r"ExceededBudget|Budget has been exceeded|(Sorry, )?(your )?account balance is insufficient"
    r"|Your credit balance is too low|Insufficient (account )?(balance|credits|funds)\b"
    r"|Your (\w+ )?team \S{1,64} has either used all available credits",
    re.IGNORECASE,
)
"""Beginnings of messages which say that the account has no credit, although the error has another code. Only the
beginning is compared, since the rest of a message may quote the prompt."""
_EXCEPTION_NAMES: Final = re.compile(r"(?:[\w.]+(?:Error|Exception)\b[\s:-]*)+")
_OTHER_HEADER: Final = re.compile(r"subscription key|\b(x-)?api-key\b|\bheader\b", re.IGNORECASE)
"""Phrases in the errors of servers that expect the key in another header than the vendor's usual one."""
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
"""Beginnings of messages which say that a filter refused the prompt, although the error has another code."""
_TOO_LONG = frozenset({"context_length_exceeded", "context_window_exceeded", "exceed_context_size_error"})
_LENGTH_WORDS: Final = re.compile(
    r"maximum context length|context (length|window|size)|prompt is too long|input is too long|maximum input length"
    r"|exceeds? the (available )?context|(input|prompt) token count|too many (input )?tokens",
    re.IGNORECASE,
)
"""Phrases in errors about a prompt that is too long. They only decide whether the judge goes on with other requests."""
_MARKUP = re.compile(r"<style.*?</style>|<[^>]*>", re.DOTALL)
"""Matches the markup of HTML pages that gateways send instead of an error object."""
STATUS_OF: Final[Mapping[str, int]] = (
    dict.fromkeys(("invalid_request_error", "INVALID_ARGUMENT", "FAILED_PRECONDITION"), 400)
    | dict.fromkeys(("authentication_error", "invalid_api_key", "UNAUTHENTICATED"), 401)
    | {"billing_error": 402, "permission_error": 403, "PERMISSION_DENIED": 403}
    | {"not_found_error": 404, "NOT_FOUND": 404, "request_too_large": 413}
    | dict.fromkeys(("rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"), 429)
    | {"api_error": 500, "INTERNAL": 500, "UNAVAILABLE": 503, "overloaded_error": 529}
    | {"timeout_error": 504, "DEADLINE_EXCEEDED": 504}
)
"""The HTTP status that corresponds to an error's name, for the names that Anthropic, OpenAI and Google use."""
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
"""Patterns for messages in which a server refuses a setting, each with the advice to show to the user."""


def error_of_answer(
    status: int, headers: Mapping[str, str], body: object, model: str, *, named_by: str = "'model' and 'base_url'"
) -> ProviderError:
    """The exception for an answer with a status other than 2xx.

    ``headers`` should ignore the case of names, ``body`` is the decoded JSON or the text, and ``named_by`` are the
    settings that name model and address, for messages.
    """
    error = _error_object(body)
    if 300 <= status < 400:
        moved = one_line(f"{model}: HTTP {status}: moved to {shown(headers.get('location', ''))}")
        return JudgeStoppedError("unknown_model", f"{moved} (no redirect is followed)", to_do=f"check {named_by}")
    message = one_line(f"{model}: HTTP {status}: {_message_of(error) or 'no explanation'}")
    return _error_for(status, error, message, named_by, wait_s=retry_after_s(headers))


def _error_for(
    status: int, error: Mapping[str, Any], message: str, named_by: str, *, wait_s: float | None = None
) -> ProviderError:
    codes, filtered = _codes(error), _is_filtered(error)
    no_credit = bool(codes & _NO_CREDIT) or (400 <= status < 500 and _lacks_credit(error))
    if (status in _NO_ACCESS and not (status == HTTPStatus.FORBIDDEN and filtered)) or no_credit:
        cause = "quota" if status == HTTPStatus.PAYMENT_REQUIRED or no_credit else "authentication"
        in_other_header = cause == "authentication" and _OTHER_HEADER.search(message)
        to_do = "send it in the header named, by 'headers_env'" if in_other_header else ""
        return JudgeStoppedError(cause, message, to_do=to_do)
    if status in _NOT_AVAILABLE or codes & _NO_MODEL:
        return JudgeStoppedError("unknown_model", message, to_do=f"check {named_by}")
    if status >= 600:
        return NoServiceError("server_error", message)
    if status in _TRANSIENT or status >= 500:
        return TransientError(_TRANSIENT.get(status, "server_error"), message, retry_after_s=wait_s)
    words = str(error.get("message"))
    if filtered or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or codes & _TOO_LONG or _LENGTH_WORDS.search(words):
        return RejectedError("content_filter" if filtered else "bad_request", message, of_text=True)
    beginning = words[:300]  # the rest may quote the request
    advice = next((advice for pattern, advice in _SETTING_ADVICE if pattern.search(beginning)), "")
    return RejectedError("bad_request", message, to_do=advice)


def shown(address: str) -> str:
    """An address as messages show it: without password and query string."""
    try:
        parts = urlsplit(address)
    except ValueError:  # a server may send any text
        return "no address"
    server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""
    return f"{server}{parts.path}" or "no address"


FAILED_FINISHES: Final = frozenset(
    {"error", "abort", "aborted", "cancelled", "canceled", "failed", "network_error", "internal_error", "timeout"}
    | {"insufficient_system_resource", "malformed_response"}
)
"""Finish reasons by which servers report that they failed to complete a reply; the text of such a reply is not used."""
_FINISHES: Final[Mapping[str, Finish]] = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence"), Finish.STOP),
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"), Finish.LENGTH
    ),
    **dict.fromkeys(
        ["content_filter", "content_filtered", "safety", "prohibited_content", "blocklist", "recitation", "spii"],
        Finish.FILTER,
    ),
    **dict.fromkeys(["sensitive", "guardrail_intervened", "error_toxic", "error_content_filter"], Finish.FILTER),
    "refusal": Finish.REFUSAL,
}


def finish_of(reason: object, error: object, model: str) -> Finish:
    """Why the model stopped writing, according to the server's finish reason (its part before a colon).

    Raises:
        ProviderError: the server failed while writing, or the response has an ``error``. The reply does not count even
            if it looks complete.
    """
    word = reason.partition(":")[0].strip().lower() if isinstance(reason, str) else ""
    if error or word in FAILED_FINISHES:
        failed = error_in_body({"error": error or f"the server ended the reply with {word!r}"}, model)
        if isinstance(failed, TransientError):
            failed = BrokenReplyError(failed.cause, failed.problem)
        raise failed
    return _FINISHES.get(word, Finish.OTHER)


def error_in_body(body: object, model: str, *, named_by: str = "'model' and 'base_url'") -> ProviderError:
    """The exception for an answer with status 200 that contains no reply; gateways send errors in such answers.

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
    """The HTTP status that an error object contains or that its name stands for; ``None`` if there is neither."""
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
    """An error's message without markup; for a gateway's error, preceded by that of the server that it called."""
    message = error.get("message") or error.get("detail") or error.get("msg") or ""
    if isinstance(message, list):
        message = "; ".join(str(each.get("msg", each)) if isinstance(each, Mapping) else str(each) for each in message)
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    if message and isinstance(raw, str) and raw:
        with suppress(ValueError, RecursionError):  # the answer of the server that the gateway called is often JSON
            raw = str(_error_object(json.loads(raw)).get("message") or raw)
        message = f"{raw} ({message})"
    return _MARKUP.sub(" ", str(message))


def _is_filtered(error: Mapping[str, Any]) -> bool:
    """Whether a server's filter refused the text of this request, so that other requests may succeed."""
    metadata = error.get("metadata")
    names, message = _split_exception_names(error)
    return (
        bool(_FILTERED & _codes(error))
        or (isinstance(metadata, Mapping) and "flagged_input" in metadata)  # of OpenRouter and similar gateways
        or "ContentPolicyViolation" in names
        or _FILTER_MESSAGES.match(message) is not None
    )


def _lacks_credit(error: Mapping[str, Any]) -> bool:
    """Whether an error's message says that the account has no credit or budget left."""
    names, message = _split_exception_names(error)
    return "BudgetExceeded" in names or _NO_CREDIT_MESSAGES.match(message) is not None


def _split_exception_names(error: Mapping[str, Any]) -> tuple[str, str]:
    """Split an error's message after the names of exceptions with which some gateways begin it."""
    message = str(error.get("message"))
    names = _EXCEPTION_NAMES.match(message)
    end = 0 if names is None else names.end()
    return message[:end], message[end:]


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait before the next attempt, by the header ``retry-after-ms`` or ``Retry-After``.

    The latter holds seconds or a date (RFC 9110, section 10.2.3).
    """
    milliseconds, header = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    if milliseconds is not None:
        return milliseconds / 1000
    seconds, moment = _number(header), moment_s(header)
    if seconds is not None or moment is None:
        return seconds
    return max(0.0, moment - time.time())


def _error_object(body: object) -> Mapping[str, Any]:
    """The error object in a body: ``{"error": {...}}``, ``{"error": "text"}``, the object itself, or bare text.

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


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


_UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = r"(\d{1,12}(?:\.\d{1,12})?)(ms|us|µs|ns|h|m|s)"
_PARTS, _DURATION = re.compile(_PART, re.ASCII), re.compile(f"(?:{_PART})+", re.ASCII)
_SECONDS = re.compile(r"\d{1,12}(?:\.\d{1,12})?", re.ASCII)
_COUNT = re.compile(r"\d{1,15}", re.ASCII)

Left = tuple[int | None, float | None]
"""How many requests or tokens the server still allows, and the seconds until it allows more; ``None`` if unknown."""

_NOTHING: Left = (None, None)


def allowance_of(headers: Mapping[str, str]) -> Allowance | None:
    """What the headers of an answer say of the remaining rate limits; ``None`` if it has no such headers."""
    limits = {name.lower(): value for name, value in headers.items() if "ratelimit" in name.lower()}
    if not limits:
        return None
    of_anthropic = any(name.startswith("anthropic-") for name in limits)
    # Resets of Anthropic are moments by the server's clock, those of OpenAI durations.
    server_time = moment_s(headers.get("date", ""))
    now = time.time() if server_time is None else server_time

    def left(kind: str) -> Left:
        names = ("anthropic-ratelimit-{0}-remaining", "anthropic-ratelimit-{0}-reset")
        names = names if of_anthropic else ("x-ratelimit-remaining-{0}", "x-ratelimit-reset-{0}")
        count, reset = (limits.get(name.format(kind), "").strip() for name in names)
        if not _COUNT.fullmatch(count):
            return _NOTHING
        return int(count), _until_s(reset, now) if of_anthropic else duration_s(reset)

    kinds = ("tokens", "input-tokens", "output-tokens") if of_anthropic else ("tokens",)
    known = [limit for limit in map(left, kinds) if limit[0] is not None]
    requests, tokens = left("requests"), min(known, key=lambda limit: limit[0] or 0, default=_NOTHING)
    return None if requests == tokens == _NOTHING else Allowance(*requests, *tokens)


def duration_s(text: str) -> float | None:
    """Seconds of a duration in Go's format (``1h2m3.5s``, ``20ms``), or of a bare number of seconds."""
    stripped = text.strip()
    if _SECONDS.fullmatch(stripped):
        return float(stripped)
    if not _DURATION.fullmatch(stripped):
        return None
    return sum(float(number) * _UNIT_S[unit] for number, unit in _PARTS.findall(stripped))


def _until_s(text: str, now: float) -> float | None:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - now) if moment.tzinfo else None


def moment_s(date: str) -> float | None:
    """Convert a header's date to seconds since 1970; ``None`` if it is invalid."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):  # a year or a zone of twenty digits
        return None


_LINE_END = re.compile(r"\r\n|\r|\n")
_DONE = "[DONE]"
_EVENTS = "text/event-stream"
_JSON_LINES = ("ndjson", "jsonl", "json-lines", "stream+json")


class Received(Struct, frozen=True):
    """An HTTP answer that is not parsed yet, with its body decompressed."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class ForeignStreamError(NoServiceError):
    """The answer is a stream of something else than a chat completion or a message."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__("server_error", f"{name}: streams {what}")

    def __reduce__(self) -> tuple[Any, ...]:
        return NoServiceError, ("server_error", str(self))


def joined(received: Received, name: str) -> Received:
    """Join a stream into the chat completion or message that it contains; other answers stay unchanged.

    Some servers stream although no stream was requested: server-sent events or lines of JSON, recognized by the content
    type or the first bytes. ``name`` is the service's name, for messages.

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
    """The data of each server-sent event in a stream (HTML standard, section 9.2.6)."""
    data: list[str] = []
    for line in (*_LINE_END.split(content), ""):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []


def _is_lines(content: bytes) -> bool:
    """Whether an answer is lines of JSON: its first line is a complete object, and another or an end marker follows."""
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
    """Merge the chunks of a streamed chat completion: join the texts, take the last value of every other field."""
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
