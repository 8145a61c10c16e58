"""What servers' headers say is left of their rate limits."""

from __future__ import annotations

import math

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.providers.http_answers import allowance_of, duration_s
from judges.types import Allowance

UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("20ms", 0.02),
        ("1h2m3.5s", 3723.5),
        ("2m59.56s", 179.56),
        ("0s", 0),
        ("7", 7),
        ("0.5", 0.5),
    ],
)
def test_durations_as_servers_spell_them(text: str, seconds: float) -> None:
    assert duration_s(text) == pytest.approx(seconds)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(sorted(UNITS))), min_size=1, max_size=5))
def test_a_duration_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in parts)
    assert duration_s(text) == pytest.approx(sum(number * UNITS[unit] for number, unit in parts))


@given(st.text(alphabet="0123456789.hmsnuµ+-e ٣", max_size=20) | st.text(max_size=10))
def test_any_text_is_a_finite_duration_or_none(text: str) -> None:
    seconds = duration_s(text)
    assert seconds is None or (math.isfinite(seconds) and seconds >= 0)


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1s-", "1 s", "1e3s", "s", "1s1", "inf", "nan", "٣s", "9" * 40])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_s(text) is None


@given(st.text(max_size=12), st.text(max_size=12))
def test_nonsense_never_raises_and_counts_as_not_said(count: str, reset: str) -> None:
    names = [f"x-ratelimit-{word}-tokens" for word in ("remaining", "reset")]
    names += [f"anthropic-ratelimit-tokens-{word}" for word in ("remaining", "reset")]
    for remaining_name, reset_name in (names[:2], names[2:]):
        raw = [(remaining_name.encode(), count.encode()), (reset_name.encode(), reset.encode())]
        found = allowance_of(httpx2.Headers(raw))
        stripped = count.strip()
        assert found is None or found.tokens == int(stripped)
        assert found is not None or not (stripped.isascii() and stripped.isdigit() and len(stripped) < 16)


def test_headers_that_say_nothing_of_limits_give_nothing() -> None:
    assert allowance_of(httpx2.Headers({"date": "Sat, 21 Nov 2026 09:00:00 GMT"})) is None
    assert allowance_of(httpx2.Headers({"x-ratelimit-limit-requests": "60"})) is None


def test_a_count_without_a_time_and_names_in_any_case() -> None:
    headers = httpx2.Headers({"X-RateLimit-Remaining-Requests": " 3 ", "X-RateLimit-Reset-Requests": "whenever"})
    assert allowance_of(headers) == Allowance(requests=3)


def test_times_are_by_the_servers_clock() -> None:
    headers = {
        "date": "Sat, 21 Nov 2020 09:00:00 GMT",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2020-11-21T10:00:12+01:00",
    }
    assert allowance_of(httpx2.Headers(headers)) == Allowance(0, 12.0)
    del headers["date"]
    assert allowance_of(httpx2.Headers(headers)) == Allowance(0, 0.0), "long past by our clock"
    headers["anthropic-ratelimit-requests-reset"] = "2020-11-21T10:00:12"
    assert allowance_of(httpx2.Headers(headers)) == Allowance(0, None), "a time without its zone says nothing"


def test_of_several_token_limits_the_tightest_counts() -> None:
    headers = {"anthropic-ratelimit-tokens-remaining": "5000", "anthropic-ratelimit-input-tokens-remaining": "40"}
    assert allowance_of(httpx2.Headers(headers)) == Allowance(tokens=40)
