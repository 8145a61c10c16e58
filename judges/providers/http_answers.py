"""What an HTTP answer other than a reply means for a judge, in ``judges.errors``' terms.

| answer | meaning |
|---|---|
| 408, 409, 425, 429, 5xx | another attempt may succeed, not before ``Retry-After`` |
| 401, 402, 403, and any 4xx of an account without credit | nothing can succeed with this key |
| 404, 405, 410, 501, a redirect, or a code that names the model | nothing can succeed with this model or address |
| a filter that objects to what this request says, or a prompt that is too long | this request cannot succeed |
| other 4xx | this request cannot succeed |

An error that comes with status 200, in the body or in a choice, means what its own code says.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

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
_NO_SUCH = frozenset({404, 405, 410, 501})
"""No such model or address, or one that takes no such request."""
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
_SPENT: Final = re.compile(
    r"ExceededBudget|Budget has been exceeded|(Sorry, )?(your )?account balance is insufficient"
    r"|Your credit balance is too low|Insufficient (account )?(balance|credits|funds)\b"
    r"|Your (\w+ )?team \S{1,64} has either used all available credits",
    re.IGNORECASE,
)
"""How messages begin that say so with the code of another error. Not what stands in the middle of one: it may be a text
of the prompt."""
_EXCEPTIONS: Final = re.compile(r"(?:[\w.]+(?:Error|Exception)\b[\s:-]*)+")
_OTHER_HEADER: Final = re.compile(r"subscription key|\b(x-)?api-key\b|\bheader\b", re.IGNORECASE)
"""Words of servers that look for a key elsewhere than in the vendor's header."""
_NO_MODEL = frozenset({"model_not_found", "invalid_model", "DeploymentNotFound"})
_FILTERED = frozenset(
    {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation", "ContentPolicyViolationError"}
    | {"data_inspection_failed", "DataInspectionFailed", "moderation_blocked", "invalid_prompt"}
)
_OBJECTS: Final = re.compile(
    r"Content violates usage guidelines|Content Exists Risk"
    r"|The response was filtered due to the prompt|The request was rejected because it was considered high risk"
    r"|Invalid prompt: your prompt was flagged|Your request was rejected (as a result of our|by the) safety system"
)
"""How messages begin that say so with the code of another error."""
_TOO_LONG = frozenset({"context_length_exceeded", "context_window_exceeded", "exceed_context_size_error"})
_LENGTH: Final = re.compile(
    r"maximum context length|context (length|window|size)|prompt is too long|input is too long|maximum input length"
    r"|exceeds? the (available )?context|(input|prompt) token count|too many (input )?tokens",
    re.IGNORECASE,
)
"""Words of a status 400 on the length of a prompt; they decide no more than whether others are asked."""
_MARKUP = re.compile(r"<style.*?</style>|<[^>]*>", re.DOTALL)
"""In the pages that gateways send in place of an error."""
_FLAGGED = "flagged_input"
"""What OpenRouter, and gateways that follow it, name in the ``metadata`` of an error about a text."""
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
"""The HTTP status that goes with what Anthropic, OpenAI and Google call an error."""
_SETTINGS: Final = (
    (
        re.compile(r"response_format|json_schema|output_config|guided_json|structured output", re.IGNORECASE),
        "set 'structured_output' to object or false",
    ),
    (re.compile(r"max_(completion_)?tokens"), "set 'token_limit_field', or lower 'max_tokens'"),
    (re.compile(r"\btemperature\b", re.IGNORECASE), "leave 'temperature' out"),
    (re.compile(r"\b(system role|system message|role.{0,20}system)\b", re.IGNORECASE), "set 'system_role: false'"),
    (re.compile(r"\bseed\b"), "leave 'seed' out"),
)
"""What to do about a setting that a server says it does not know, by its own words."""


def error_of_answer(
    status: int,
    headers: Mapping[str, str],
    body: object,
    model: str,
    *,
    allowance: Allowance | None = None,
    named_by: str = "'model' and 'base_url'",
) -> ProviderError:
    """The error that a status other than 2xx stands for.

    Args:
        status: HTTP status.
        headers: of the answer, names in any case if the mapping ignores it.
        body: the decoded JSON, or the text.
        model: for the message.
        allowance: what the headers say is left of the rate limits; goes with an error that another attempt may mend.
        named_by: the keys of a configuration that say who is asked.
    """
    error = _error_object(body)
    if 300 <= status < 400:
        moved = one_line(f"{model}: HTTP {status}: moved to {shown(headers.get('location', ''))}")
        return JudgeStoppedError("unknown_model", f"{moved} (no redirect is followed)", to_do=f"check {named_by}")
    said = one_line(f"{model}: HTTP {status}: {_words(error) or 'no explanation'}")
    return _meant(status, error, said, named_by, wait_s=retry_after_s(headers), allowance=allowance)


def _meant(
    status: int,
    error: Mapping[str, Any],
    said: str,
    named_by: str,
    *,
    wait_s: float | None = None,
    allowance: Allowance | None = None,
) -> ProviderError:
    codes, filtered = _codes(error), _is_filtered(error)
    spent = bool(codes & _NO_CREDIT) or (400 <= status < 500 and _is_spent(error))
    if (status in _NO_ACCESS and not (status == HTTPStatus.FORBIDDEN and filtered)) or spent:
        cause = "quota" if status == HTTPStatus.PAYMENT_REQUIRED or spent else "authentication"
        elsewhere = cause == "authentication" and _OTHER_HEADER.search(said)
        return JudgeStoppedError(
            cause, said, to_do="send it in the header named, by 'headers_env'" if elsewhere else ""
        )
    if status in _NO_SUCH or codes & _NO_MODEL:
        return JudgeStoppedError("unknown_model", said, to_do=f"check {named_by}")
    if status >= 600:
        return NoServiceError("server_error", said)
    if passing := _transient_cause(status):
        return TransientError(passing, said, retry_after_s=wait_s, allowance=allowance)
    words = str(error.get("message"))
    too_long = status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or bool(codes & _TOO_LONG) or bool(_LENGTH.search(words))
    if filtered or too_long:
        return RejectedError("content_filter" if filtered else "bad_request", said, of_text=True)
    return RejectedError("bad_request", said, to_do=_setting_to_mend(words))


def _setting_to_mend(words: str) -> str:
    named = words[:300]  # further on a server may quote the request
    return next((advice for pattern, advice in _SETTINGS if pattern.search(named)), "")


def shown(address: str) -> str:
    """An address as messages repeat it: without a password, and without what follows a question mark."""
    try:
        parts = urlsplit(address)
    except ValueError:  # a server may say anything
        return "no address"
    server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""
    return f"{server}{parts.path}" or "no address"


def _transient_cause(status: int) -> str | None:
    if status == 429:
        return "rate_limit"
    if status in _TIMED_OUT:
        return "timeout"
    return "server_error" if status in _BUSY or status >= 500 else None


FAILED: Final = frozenset(
    {"error", "abort", "aborted", "cancelled", "canceled", "failed", "network_error", "internal_error", "timeout"}
    | {"insufficient_system_resource", "malformed_response"}
)
"""Ends of replies that are the server's failure, by what servers call them: whatever was written is none."""
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
    """Why a model stopped writing, by what servers call it; ``content_filter: SAFETY`` begins with the reason.

    Args:
        reason: as the server gave it.
        error: that came beside it, if any.
        model: for the message.

    Raises:
        ProviderError: the server failed; nothing of the reply counts, whole as it may look.
    """
    word = reason.partition(":")[0].strip().lower() if isinstance(reason, str) else ""
    if error or word in FAILED:
        failed = error_in_body({"error": error or f"the server ended the reply with {word!r}"}, model)
        if isinstance(failed, TransientError):
            failed = BrokenReplyError(failed.cause, failed.problem)
        raise failed
    return _FINISHES.get(word, Finish.OTHER)


def error_in_body(body: object, model: str, *, named_by: str = "'model' and 'base_url'") -> ProviderError:
    """The error of an answer with status 200 that is no reply: gateways send their failures so.

    Its own code counts as the status would; one without a code may pass.
    """
    error = _error_object(body)
    words, status = _words(error), _own_status(error)
    said = one_line(f"{model}: {words or 'the answer holds no reply'}")
    if status is not None:
        said = one_line(f"{model}: error {status} in the reply: {words or 'no explanation'}")
        return _meant(status, error, said, named_by)
    if _is_filtered(error):
        return RejectedError("content_filter", said, of_text=True)
    if _codes(error) & (_NO_CREDIT | _NO_MODEL) or _is_spent(error):
        return _meant(400, error, said, named_by)
    kind = TransientError if words else NoServiceError  # what says nothing of itself is none of such
    return kind("server_error", said)


def _own_status(error: Mapping[str, Any]) -> int | None:
    """The HTTP status that an error itself tells, or that goes with its name."""
    for given in (error.get("code"), error.get("status"), error.get("type")):
        if isinstance(given, int | str) and re.fullmatch(r"[45]\d\d", str(given)):
            return int(given)
        if isinstance(given, str) and given in STATUS_OF:
            return STATUS_OF[given]
    return None


def _codes(error: Mapping[str, Any]) -> set[str]:
    inner = error.get("innererror")
    within = inner.get("code") if isinstance(inner, Mapping) else None
    return {str(error.get("code")), str(error.get("type")), str(within)}


def _words(error: Mapping[str, Any]) -> str:
    """What an error says, without markup; of a gateway also what the server behind it said."""
    told = error.get("message") or error.get("detail") or error.get("msg") or ""
    if isinstance(told, list):
        told = "; ".join(str(each.get("msg", each)) if isinstance(each, Mapping) else str(each) for each in told)
    about = error.get("metadata")
    behind = about.get("raw") if isinstance(about, Mapping) else None
    said = f"{_behind(behind)} ({told})" if told and isinstance(behind, str) and behind else str(told)
    return _MARKUP.sub(" ", said)


def _behind(raw: str) -> str:
    """What a server said to its gateway: often JSON once more."""
    try:
        inner = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    words = str(_error_object(inner).get("message") or "")
    return words or raw


def _is_filtered(error: Mapping[str, Any]) -> bool:
    """Whether an error is about what this one request says, and no other request need share it."""
    about = error.get("metadata")
    names, message = _within(error)
    return (
        bool(_FILTERED & _codes(error))
        or (isinstance(about, Mapping) and _FLAGGED in about)
        or "ContentPolicyViolation" in names
        or _OBJECTS.match(message) is not None
    )


def _is_spent(error: Mapping[str, Any]) -> bool:
    """Whether the beginning of the message says that the account has nothing left."""
    names, message = _within(error)
    return "BudgetExceeded" in names or _SPENT.match(message) is not None


def _within(error: Mapping[str, Any]) -> tuple[str, str]:
    """The names of exceptions that a gateway puts before a message, and the message."""
    message = str(error.get("message"))
    names = _EXCEPTIONS.match(message)
    end = 0 if names is None else names.end()
    return message[:end], message[end:]


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by ``retry-after-ms`` or ``Retry-After`` (seconds or a date, RFC 9110 section 10.2.3)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None or given is None:
        return seconds
    moment = moment_s(given)
    return None if moment is None else max(0.0, moment - time.time())


def _error_object(body: object) -> Mapping[str, Any]:
    """The error object of a body: ``{"error": {...}}``, ``{"error": "text"}``, the object itself, or bare text.

    Google's come in a list, and others list ``errors``: the first counts.
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


def _number(given: str | None) -> float | None:
    try:
        number = float(given) if given is not None else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < float("inf") else None


_UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = r"(\d{1,12}(?:\.\d{1,12})?)(ms|us|µs|ns|h|m|s)"
_PARTS, _DURATION = re.compile(_PART, re.ASCII), re.compile(f"(?:{_PART})+", re.ASCII)
_SECONDS = re.compile(r"\d{1,12}(?:\.\d{1,12})?", re.ASCII)
_COUNT = re.compile(r"\d{1,15}", re.ASCII)

Left = tuple[int | None, float | None]
"""How many are left, and seconds until there are more."""

_NOTHING: Left = (None, None)


def allowance_of(headers: Mapping[str, str]) -> Allowance | None:
    """What is left by the headers of one answer; ``None`` where they say nothing of it."""
    given = {name.lower(): value for name, value in headers.items() if "ratelimit" in name.lower()}
    if not given:
        return None
    if any(name.startswith("anthropic-") for name in given):
        requests, tokens = _anthropic(given, _now(headers))
    else:
        requests, tokens = _openai(given)
    return None if requests == tokens == _NOTHING else Allowance(*requests, *tokens)


def duration_s(text: str) -> float | None:
    """Seconds of a duration as Go spells it (``1h2m3.5s``, ``20ms``), or of a bare number of seconds."""
    stripped = text.strip()
    if _SECONDS.fullmatch(stripped):
        return float(stripped)
    if not _DURATION.fullmatch(stripped):
        return None
    return sum(float(number) * _UNIT_S[unit] for number, unit in _PARTS.findall(stripped))


def _openai(given: Mapping[str, str]) -> tuple[Left, Left]:
    def left(kind: str) -> Left:
        return _left(given, f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}", duration_s)

    return left("requests"), left("tokens")


def _anthropic(given: Mapping[str, str], now: float) -> tuple[Left, Left]:
    """Of the limits on all tokens, those sent and those written, the one with the fewest left."""

    def left(kind: str) -> Left:
        head = f"anthropic-ratelimit-{kind}"
        return _left(given, f"{head}-remaining", f"{head}-reset", lambda text: _until_s(text, now))

    tokens = [limit for limit in map(left, ("tokens", "input-tokens", "output-tokens")) if limit[0] is not None]
    return left("requests"), min(tokens, key=lambda limit: limit[0] or 0, default=_NOTHING)


def _left(given: Mapping[str, str], remaining: str, reset: str, read: Callable[[str], float | None]) -> Left:
    """A reset without a count says nothing that one could act on."""
    count = given.get(remaining, "").strip()
    if not _COUNT.fullmatch(count):
        return _NOTHING
    return int(count), read(given[reset]) if reset in given else None


def _until_s(text: str, now: float) -> float | None:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - now) if moment.tzinfo else None


def _now(headers: Mapping[str, str]) -> float:
    """The server's own clock where it tells the time, since the times of its limits are by that."""
    server_time = moment_s(headers.get("date", ""))
    return time.time() if server_time is None else server_time


def moment_s(date: str) -> float | None:
    """Seconds since 1970 of a date as headers spell it; ``None`` where it is none."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):  # a year or a zone of twenty digits
        return None
