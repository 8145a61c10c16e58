"""What an HTTP answer other than a reply means for a judge, in ``judges.errors``' terms.

| answer | meaning |
|---|---|
| 408, 409, 425, 429, 5xx | another attempt may succeed, not before ``Retry-After`` |
| 401, 402, 403, and 429 without credit left | nothing can succeed with this key |
| 403 of a filter that objects to what this request says | this request cannot succeed: ``content_filter`` |
| 404, a redirect, or an error code that names the model | nothing can succeed with this model or address |
| other 4xx | this request cannot succeed; ``content_filter`` where the server says so |
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from judges.errors import JudgeStoppedError, NoServiceError, ProviderError, RejectedError, TransientError
from judges.masking import one_line
from judges.types import Allowance

_TIMED_OUT = frozenset({408, 504})
_BUSY = frozenset({409, 425})
_NO_ACCESS = frozenset({401, 402, 403})
_NO_CREDIT = frozenset({"insufficient_quota", "billing_error", "billing_not_active", "billing_hard_limit_reached"})
_NO_MODEL = frozenset({"model_not_found", "invalid_model", "DeploymentNotFound"})
_FILTERED = frozenset({"content_filter", "content_policy_violation"})
_MARKUP = re.compile(r"<style.*?</style>|<[^>]*>", re.DOTALL)
"""In the pages that gateways send in place of an error."""
_FLAGGED = "flagged_input"
"""What OpenRouter, and gateways that follow it, name in the ``metadata`` of an error about a text."""
_AGAINST_GUIDELINES = "Content violates usage guidelines"
"""How xAI begins to say so, with the code of a key that lacks permission."""


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
    words = {str(error.get("code")), str(error.get("type"))}
    told = error.get("message") or error.get("detail") or "no explanation"
    message = one_line(f"{model}: HTTP {status}: {_MARKUP.sub(' ', told) if isinstance(told, str) else told}")
    filtered = _is_filtered(error)
    if (status in _NO_ACCESS and not (status == 403 and filtered)) or words & _NO_CREDIT:
        return JudgeStoppedError("quota" if status == 402 or words & _NO_CREDIT else "authentication", message)
    if 300 <= status < 400:
        moved = one_line(f"{model}: HTTP {status}: moved to {shown(headers.get('location', ''))}")
        return JudgeStoppedError("unknown_model", f"{moved} (no redirect is followed; check {named_by})")
    if status == 404 or words & _NO_MODEL:
        return JudgeStoppedError("unknown_model", f"{message} (check {named_by})")
    if status >= 600:
        return NoServiceError("server_error", message)
    if cause := _transient_cause(status):
        return TransientError(cause, message, retry_after_s=retry_after_s(headers), allowance=allowance)
    return RejectedError("content_filter" if filtered else "bad_request", message)


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


def error_in_body(body: object, model: str) -> ProviderError:
    """The error of an answer with status 200 that is no reply: gateways send their failures so."""
    error = _error_object(body)
    message = one_line(f"{model}: {error.get('message') or 'the answer holds no reply'}")
    if _is_filtered(error):
        return RejectedError("content_filter", message)
    kind = TransientError if error.get("message") else NoServiceError  # what says nothing of itself is none of such
    return kind("server_error", message)


def _is_filtered(error: Mapping[str, Any]) -> bool:
    """Whether an error is about what this one request says, and no other request need share it."""
    about = error.get("metadata")
    return (
        bool(_FILTERED & {str(error.get("code")), str(error.get("type"))})
        or (isinstance(about, Mapping) and _FLAGGED in about)
        or str(error.get("message")).startswith(_AGAINST_GUIDELINES)
    )


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
    """The error object of a body: ``{"error": {...}}``, ``{"error": "text"}``, the object itself, or bare text."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        return inner if isinstance(inner, Mapping) else {"message": inner}
    return {"message": body}


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
