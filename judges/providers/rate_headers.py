"""What a server's headers say is left of its rate limit. A value that makes no sense counts as not said.

- OpenAI, Azure, Groq, gateways: ``x-ratelimit-remaining-requests`` and ``-tokens`` are whole numbers,
  ``x-ratelimit-reset-requests`` and ``-tokens`` durations such as ``6m0s``, or seconds.
- Anthropic: ``anthropic-ratelimit-requests-remaining`` is a whole number and ``-reset`` a time by RFC 3339, and so
  for ``tokens``, ``input-tokens`` and ``output-tokens`` instead of ``requests``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from judges.types import Allowance

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

    tokens = [found for found in map(left, ("tokens", "input-tokens", "output-tokens")) if found[0] is not None]
    return left("requests"), min(tokens, key=lambda found: found[0] or 0, default=_NOTHING)


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
    told = moment_s(headers.get("date", ""))
    return time.time() if told is None else told


def moment_s(date: str) -> float | None:
    """Seconds since 1970 of a date as headers spell it; ``None`` where it is none."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):  # a year or a zone of twenty digits
        return None
